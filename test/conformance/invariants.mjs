// What holds for every stream, whatever was asked, and what a stream says when it is put together.
import { must, show } from "./outcome.mjs";

/** @typedef {import("./types.js").Chunk} Chunk */
/** @typedef {import("./types.js").LogprobEntry} LogprobEntry */

/**
 * One choice of a stream, put together as clients do it.
 *
 * @typedef {object} Folded
 * @property {string} content
 * @property {{ id: string, type: string, name: string, arguments: string }[]} toolCalls by index
 * @property {LogprobEntry[]} logprobs
 * @property {string} finishReason
 */

/**
 * Checks a stream's invariants and puts it together.
 *
 * @param {Chunk[]} chunks
 * @param {{ n?: number, includeUsage?: boolean, logprobs?: boolean }} asked
 * @returns {{ choices: Folded[], usage: import("./types.js").Usage | undefined }}
 */
export function foldStream(chunks, { n = 1, includeUsage = false, logprobs = false } = {}) {
  const first = chunks[0];
  must(first !== undefined, "the stream has no chunks");
  for (const key of /** @type {const} */ (["id", "created", "model"])) {
    const values = new Set(chunks.map((chunk) => chunk[key]));
    must(values.size === 1, `'${key}' changes within the stream: ${show([...values])}`);
  }
  const usage = usageOf(chunks, includeUsage);

  /** @type {Map<number, Folded & { first: boolean }>} */
  const choices = new Map();
  for (const chunk of chunks) {
    for (const choice of chunk.choices) {
      must(choice.index < n, `choice ${choice.index} in a stream of ${n}`);
      let folded = choices.get(choice.index);
      if (folded === undefined) {
        folded = { content: "", toolCalls: [], logprobs: [], finishReason: "", first: true };
        choices.set(choice.index, folded);
      }
      addChoice(folded, choice, logprobs);
      folded.first = false;
    }
  }
  must(choices.size === n, `${choices.size} choices in a stream of ${n}`);
  for (const [index, { finishReason }] of choices) {
    must(finishReason !== "", `choice ${index} ends without a finish_reason`);
  }
  return { choices: [...choices].sort(([a], [b]) => a - b).map(([, folded]) => folded), usage };
}

/**
 * @param {Chunk[]} chunks
 * @param {boolean} asked
 */
function usageOf(chunks, asked) {
  const empty = chunks.filter(({ choices }) => choices.length === 0);
  if (!asked) {
    must(empty.length === 0, "a chunk without choices, though no usage was asked for");
    must(
      chunks.every(({ usage }) => usage === undefined || usage === null),
      "usage that was not asked for",
    );
    return undefined;
  }
  const last = chunks.at(-1);
  must(empty.length === 1 && last === empty[0], "the usage chunk (choices: []) must come once, last before [DONE]");
  must(last?.usage, "the last chunk has no usage");
  for (const { usage } of chunks.slice(0, -1)) {
    must(usage === null, `usage must be null before the last chunk, is ${show(usage)}`);
  }
  checkUsage(last.usage);
  return last.usage;
}

/**
 * @param {Folded & { first: boolean }} folded
 * @param {import("./types.js").ChunkChoice} choice
 * @param {boolean} logprobs
 */
function addChoice(folded, { index, delta, finish_reason, logprobs: entries }, logprobs) {
  must(folded.finishReason === "", `choice ${index} goes on after its finish_reason`);
  if (folded.first) {
    must(delta.role === "assistant", `choice ${index} does not begin with role "assistant": ${show(delta)}`);
    must((delta.content ?? "") === "", `choice ${index} has text beside its role: ${show(delta)}`);
  } else {
    must(delta.role === undefined, `choice ${index} has a role again: ${show(delta)}`);
  }
  if (finish_reason !== null) {
    must((delta.content ?? "") === "", `choice ${index} has text beside its finish_reason: ${show(delta)}`);
    folded.finishReason = finish_reason;
  }
  const { content } = delta;
  if (typeof content === "string") {
    must(isWellFormed(content), `half a character in a delta: ${show(content)}`);
    folded.content += content;
  }
  for (const call of delta.tool_calls ?? []) addCall(folded, call);
  if (entries?.content) {
    must(logprobs, "logprobs that were not asked for");
    folded.logprobs.push(...entries.content);
  }
}

/**
 * @param {Folded} folded
 * @param {import("./types.js").ToolCallDelta} delta
 */
function addCall(folded, delta) {
  const { index, id, type, function: function_ } = delta;
  const known = folded.toolCalls[index];
  if (known === undefined) {
    must(index === folded.toolCalls.length, `tool call ${index} comes after ${folded.toolCalls.length} others`);
    must(id && type && function_?.name, `tool call ${index} does not begin with id, type and name: ${show(delta)}`);
    must(!folded.toolCalls.some((call) => call.id === id), `two tool calls have the id ${id}`);
    folded.toolCalls.push({ id, type, name: function_.name, arguments: function_.arguments ?? "" });
    return;
  }
  must(index === folded.toolCalls.length - 1, `tool call ${index} goes on after the next has begun`);
  must(id === undefined, `tool call ${index} has an id again`);
  must(type === undefined, `tool call ${index} has a type again`);
  must(function_?.name === undefined, `tool call ${index} has a name again`);
  known.arguments += function_?.arguments ?? "";
}

/** @param {import("./types.js").Usage} usage */
export function checkUsage(usage) {
  const { prompt_tokens, completion_tokens, total_tokens, prompt_tokens_details, completion_tokens_details } = usage;
  must(total_tokens === prompt_tokens + completion_tokens, `total_tokens is not the sum: ${show(usage)}`);
  must(prompt_tokens > 0, `a prompt of no tokens: ${show(usage)}`);
  must((prompt_tokens_details?.cached_tokens ?? 0) <= prompt_tokens, `more cached tokens than tokens: ${show(usage)}`);
  const reasoning = completion_tokens_details?.reasoning_tokens ?? 0;
  must(reasoning <= completion_tokens, `more reasoning tokens than tokens: ${show(usage)}`);
}

/**
 * @param {LogprobEntry[]} entries
 * @param {string} content
 * @param {number} top how many alternatives were asked for
 */
export function checkLogprobs(entries, content, top) {
  must(entries.length > 0 || content === "", "text without logprobs");
  for (const entry of entries) {
    const { token, logprob, bytes, top_logprobs } = entry;
    must(Number.isFinite(logprob), `a logprob that is no number: ${show(entry)}`);
    must(top_logprobs.length === top, `${top_logprobs.length} top_logprobs, expected ${top}: ${show(entry)}`);
    must(
      top_logprobs.every((each, i) => i === 0 || each.logprob <= (top_logprobs[i - 1]?.logprob ?? 0)),
      `top_logprobs out of order: ${show(entry)}`,
    );
    must(
      new Set(top_logprobs.map((each) => show([each.token, each.bytes]))).size === top,
      `the same alternative twice: ${show(entry)}`,
    );
    const total = top_logprobs.reduce((sum, each) => sum + Math.exp(each.logprob), 0);
    must(total <= 1 + 1e-3, `probabilities that sum to ${total}: ${show(entry)}`);
    const same = top_logprobs.find((each) => each.token === token && show(each.bytes) === show(bytes));
    must(same === undefined || Math.abs(same.logprob - logprob) < 1e-3, `one token with two logprobs: ${show(entry)}`);
    if (bytes !== null && !token.includes("\uFFFD")) {
      must(Buffer.from(bytes).toString() === token, `bytes that are not the token's: ${show(entry)}`);
    }
  }
  const whole = entries.every(({ bytes }) => bytes !== null);
  if (!whole) return;
  const text = Buffer.concat(entries.map(({ bytes }) => Buffer.from(bytes ?? []))).toString();
  // The end of the text may be missing: a stop string was cut out, or half a character.
  must(
    text.startsWith(content) || content.startsWith(text.replace(/\uFFFD+$/, "")),
    `the tokens say ${show(text)}, the text ${show(content)}`,
  );
}

/** @param {string} text */
function isWellFormed(text) {
  return !/\p{Surrogate}/u.test(text);
}
