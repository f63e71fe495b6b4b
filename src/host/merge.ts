import { BadRequestError } from "../errors.js";
import { isObject, type PlainObject } from "../openai/plain.js";
import type { ModelSpec } from "./spec.js";

/** Fields of which one makes the model's defaults for the others void. */
const exclusive = [
  ["max_tokens", "max_completion_tokens"],
  ["response_format", "grammar"],
];

/** A request with the model's defaults under it, and the model's own stop strings beside it. */
export interface MergedRequest {
  body: PlainObject;
  stop: readonly string[];
}

/**
 * A field of the request holds, also where it is 0, false or empty; a null is as good as none. Nothing is checked here but
 * what is needed to merge.
 *
 * @throws {BadRequestError} the request is no object.
 */
export function mergeRequest(request: unknown, spec: ModelSpec): MergedRequest {
  if (!isObject(request)) throw new BadRequestError("The request must be a JSON object.", null, "invalid_type");
  const given: PlainObject = {};
  for (const [key, value] of Object.entries(request)) if (value !== undefined && value !== null) given[key] = value;
  const defaults: PlainObject = { ...spec.defaults };
  for (const group of exclusive) {
    if (group.some((name) => name in given)) for (const name of group) delete defaults[name];
  }
  const body: PlainObject = { ...defaults, ...given };
  // What only goes with another field, goes with it.
  if (body.logprobs !== true && !("top_logprobs" in given)) delete body.top_logprobs;
  if (body.stream !== true && !("stream_options" in given)) delete body.stream_options;
  const emptyStop = given.stop === "" || (Array.isArray(given.stop) && given.stop.length === 0);
  if (emptyStop) delete body.stop;
  if (spec.systemPrompt !== "") body.messages = withSystem(body.messages, spec.systemPrompt);
  return { body, stop: emptyStop ? [] : spec.stop };
}

function withSystem(messages: unknown, content: string): unknown {
  if (!Array.isArray(messages) || messages.length === 0) return messages;
  const has = messages.some(
    (message) => isObject(message) && (message.role === "system" || message.role === "developer"),
  );
  return has ? messages : [{ role: "system", content }, ...messages];
}
