import { readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { Engine } from "../../src/engine.js";
import type { LoadOptions } from "../../src/load-options.js";
import type { ChatCompletionCreateParams } from "../../src/openai/params.js";
import { nanoModel } from "../models/nano.js";

/**
 * nano, loaded; the caller closes it. One thread: ggml's threads wait for each other by spinning, and test files that run
 * side by side on few cores would spend their time on that.
 */
export function loadNano(options: Partial<LoadOptions> = {}): Promise<Engine> {
  return Engine.load({ model: nanoModel(), threads: 1, ...options });
}

/** One user message, greedy. */
export function ask(content: string, more: Partial<ChatCompletionCreateParams> = {}) {
  return { messages: [{ role: "user" as const, content }], temperature: 0, ...more };
}

/** The whole text of a non-streamed answer. */
export async function answer(
  engine: Engine,
  content: string,
  more: Partial<ChatCompletionCreateParams> = {},
): Promise<string> {
  const completion = await engine.chat.completions.create({ ...ask(content, more), stream: false });
  return completion.choices[0]?.message.content ?? "";
}

/** Waits until the loop has nothing to do. Counters are published once per step, so a moment may pass. */
export async function idle(engine: Engine, timeoutMs = 5000): Promise<void> {
  const start = Date.now();
  for (;;) {
    const { queued, prefilling, decoding, sequences, cellsUsed } = engine.stats();
    if (queued + prefilling + decoding + sequences + cellsUsed === 0) return;
    if (Date.now() - start > timeoutMs) throw new Error(`not idle: ${JSON.stringify(engine.stats())}`);
    await new Promise((resolve) => setTimeout(resolve, 1));
  }
}

interface ExpectedRow {
  request: { messages: { role: string; content: string }[]; tools?: unknown; chat_template_kwargs?: unknown };
  expected: { content: string; finish_reason: string };
}

/** What nano is known to answer, of the requests that need neither tools nor reasoning. */
export function knownAnswers(): { messages: ExpectedRow["request"]["messages"]; content: string }[] {
  const path = fileURLToPath(new URL("../models/nano/expected.jsonl", import.meta.url));
  return readFileSync(path, "utf8")
    .trim()
    .split("\n")
    .map((line) => JSON.parse(line) as ExpectedRow)
    .filter(({ request }) => request.tools === undefined && request.chat_template_kwargs === undefined)
    .map(({ request, expected }) => ({ messages: request.messages, content: expected.content }));
}
