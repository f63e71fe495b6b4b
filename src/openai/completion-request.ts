import { BadRequestError } from "../errors.js";
import { chatOnlyFields } from "./completion-params.js";
import { limits } from "./limits.js";
import { checkSize, isObject, wellFormed } from "./plain.js";
import { isTokenId } from "./sampling.js";
import { type ValidRequest, validateRequest } from "./validate.js";

/** A text completion after every check that needs no model. */
export interface ValidCompletion {
  /** At least one. */
  prompts: (string | Int32Array)[];
  echo: boolean;
  /** Everything else, as in a chat completion; its messages mean nothing. */
  request: ValidRequest;
}

const defaultMaxTokens = 16;

/**
 * Checks the body of a text completion. What it shares with chat completions is checked there.
 *
 * @throws {BadRequestError} with `param` naming the top-level field.
 */
export function validateCompletion(body: unknown): ValidCompletion {
  if (!isObject(body)) throw new BadRequestError("The request must be a JSON object.", null, "invalid_type");
  checkSize(body);
  const { prompt, suffix, echo, best_of, logprobs, max_tokens, ...shared } = body;
  for (const name of chatOnlyFields) {
    if (!(name in shared)) continue;
    throw new BadRequestError(`Unknown parameter: '${name}' (of chat completions only).`, name, "unknown_parameter");
  }
  refuseUnless(suffix ?? null, null, "suffix");
  refuseUnless(best_of ?? 1, 1, "best_of");
  if (typeof (echo ?? false) !== "boolean") {
    throw new BadRequestError("Invalid type for 'echo': expected boolean.", "echo", "invalid_type");
  }
  if (echo === true && typeof logprobs === "number") {
    const message = "'echo' is not supported with 'logprobs': those of the prompt are not computed.";
    throw new BadRequestError(message, "echo", "unsupported_parameter");
  }
  if (max_tokens === 0 && echo !== true) {
    throw new BadRequestError("Invalid value for 'max_tokens': must be >= 1 without 'echo', got 0.", "max_tokens");
  }
  const request = validateRequest({
    ...shared,
    messages: [{ role: "user", content: "" }],
    max_tokens: max_tokens === 0 ? 1 : (max_tokens ?? defaultMaxTokens),
  });
  if (max_tokens === 0) request.maxTokens = 0;
  request.logprobs = toLogprobs(logprobs ?? undefined);
  return { prompts: toPrompts(prompt), echo: echo === true, request };
}

function refuseUnless(value: unknown, neutral: unknown, name: string): void {
  if (value === neutral) return;
  const accepted = JSON.stringify(neutral);
  throw new BadRequestError(`'${name}' is not supported (accepted: ${accepted}).`, name, "unsupported_parameter");
}

function toLogprobs(value: unknown): number {
  if (value === undefined) return -1;
  if (typeof value === "number" && Number.isInteger(value) && value >= 0 && value <= limits.logprobs) return value;
  const message = `Invalid value for 'logprobs': expected an integer from 0 to ${limits.logprobs}.`;
  throw new BadRequestError(message, "logprobs");
}

function toPrompts(prompt: unknown): ValidCompletion["prompts"] {
  if (prompt === undefined || prompt === null) {
    throw new BadRequestError("Missing required parameter: 'prompt'.", "prompt", "missing_required_parameter");
  }
  if (Array.isArray(prompt) && prompt.length === 0) {
    throw new BadRequestError("'prompt' must not be empty.", "prompt", "empty_array");
  }
  const single = toPrompt(prompt);
  if (single !== undefined) return [single];
  const prompts = Array.isArray(prompt) ? prompt.map(toPrompt) : [undefined];
  if (!prompts.every((each) => each !== undefined)) {
    const message = "Invalid type for 'prompt': expected a string, an array of token ids, or an array of either.";
    throw new BadRequestError(message, "prompt", "invalid_type");
  }
  if (prompts.length > limits.prompts) {
    throw new BadRequestError(`'prompt' is too long: at most ${limits.prompts} items.`, "prompt");
  }
  return prompts;
}

/** undefined: neither a text nor token ids. */
function toPrompt(prompt: unknown): string | Int32Array | undefined {
  if (typeof prompt === "string") return wellFormed(prompt);
  if (!Array.isArray(prompt) || prompt.length === 0) return undefined;
  return prompt.every(isTokenId) ? Int32Array.from(prompt) : undefined;
}
