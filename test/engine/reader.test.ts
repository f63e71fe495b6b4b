import { setTimeout as sleep } from "node:timers/promises";
import { afterEach, describe, expect, it } from "vitest";
import type { Engine } from "../../src/engine.js";
import type { ChatCompletionStream } from "../../src/stream.js";
import { answer, ask, idle, loadNano } from "../support/engine.js";

let engine: Engine;
afterEach(() => engine.close());

/** One token for each of about 1,400 characters, whatever the model thinks of it. */
const whole = Array.from({ length: 400 }, (_, i) => i).join(" ");

function start(over: object = {}): Promise<ChatCompletionStream> {
  const body = { ...ask("Count."), grammar: `root ::= "${whole}"`, ...over };
  return engine.chat.completions.create({ ...body, stream: true });
}

async function until(condition: () => boolean, what: string): Promise<void> {
  for (const begin = Date.now(); !condition(); await sleep(2)) {
    if (Date.now() - begin > 20_000) throw new Error(`never: ${what} ${JSON.stringify(engine.stats())}`);
  }
}

async function textOf(stream: ChatCompletionStream): Promise<string> {
  let text = "";
  for await (const chunk of stream) text += chunk.choices[0]?.delta.content ?? "";
  return text;
}

describe("a reader that is behind", () => {
  it("pauses its request, and nothing of the text is lost when it goes on", async () => {
    engine = await loadNano({ contextSize: 2048, streamBufferBytes: 8192 });
    const stream = await start();
    await until(() => engine.stats().paused === 1, "the request pauses");
    const { generatedTokens } = engine.stats();
    await sleep(50);
    // It stands still: what waits is bounded.
    expect(engine.stats().generatedTokens).toBe(generatedTokens);
    expect(engine.stats().pauses).toBe(1);
    expect(await textOf(stream)).toBe(whole);
    await idle(engine);
  });

  it("does not keep others from running", async () => {
    engine = await loadNano({ contextSize: 2048, parallel: 2, streamBufferBytes: 8192 });
    const alone = await answer(engine, "What does a dog say?");
    const stalled = [await start(), await start()];
    await until(() => engine.stats().paused === 2, "both pause");
    // Both places are taken by requests that nobody reads: they make way.
    for (let i = 0; i < 3; i++) expect(await answer(engine, "What does a dog say?")).toBe(alone);
    expect(engine.stats().parkings).toBeGreaterThanOrEqual(1);
    expect(engine.stats().paused).toBe(2);
    expect(await Promise.all(stalled.map(textOf))).toEqual([whole, whole]);
    await idle(engine);
  });

  it("gives its cells to a request that needs them", async () => {
    engine = await loadNano({ contextSize: 1792, parallel: 4, streamBufferBytes: 32768, prefixCache: false });
    const stalled = await Promise.all([start(), start(), start()]);
    await until(() => engine.stats().paused === 3, "all pause");
    const held = engine.stats().cellsUsed;
    expect(await textOf(await start())).toBe(whole);
    // It could not have run beside them.
    expect(held + whole.length).toBeGreaterThan(1792);
    expect(engine.stats().parkings + engine.stats().preemptions).toBeGreaterThan(0);
    expect(await Promise.all(stalled.map(textOf))).toEqual([whole, whole, whole]);
    await idle(engine);
  });

  it("can be cancelled while it is paused, and by its reader's leaving", async () => {
    engine = await loadNano({ contextSize: 2048, streamBufferBytes: 4096 });
    const left = await start();
    const aborted = await start();
    await until(() => engine.stats().paused === 2, "both pause");
    for await (const _ of left) break;
    aborted.controller.abort();
    await expect(textOf(aborted)).rejects.toMatchObject({ name: "AbortError" });
    await idle(engine);
    expect(engine.stats().cancelled).toBe(2);
  });

  it("pauses once for all answers of a request, and logprobs count", async () => {
    engine = await loadNano({ contextSize: 2048, streamBufferBytes: 16384 });
    const stream = await start({ n: 3, logprobs: true, top_logprobs: 5 });
    await until(() => engine.stats().paused === 3, "all three pause");
    const texts = ["", "", ""];
    const tokens = ["", "", ""];
    for await (const chunk of stream) {
      for (const { index, delta, logprobs } of chunk.choices) {
        texts[index] += delta.content ?? "";
        for (const { token } of logprobs?.content ?? []) tokens[index] += token;
      }
    }
    expect(texts).toEqual([whole, whole, whole]);
    expect(tokens).toEqual([whole, whole, whole]);
    await idle(engine);
  });

  it("that never comes back loses the stream, after the time that was set", async () => {
    engine = await loadNano({ contextSize: 2048, streamBufferBytes: 4096, stallTimeoutMs: 100 });
    const stream = await start();
    await until(() => engine.stats().stalled === 1, "the time is up");
    await idle(engine);
    await expect(textOf(stream)).rejects.toMatchObject({ code: "stream_stalled", status: 408 });
    // One that reads on, slowly, does not.
    const slow = await start({ grammar: `root ::= "${whole.slice(0, 100)}"` });
    let text = "";
    for await (const chunk of slow) {
      text += chunk.choices[0]?.delta.content ?? "";
      await sleep(5);
    }
    expect(text).toBe(whole.slice(0, 100));
    expect(engine.stats().pauses).toBeGreaterThan(2);
  });

  it("is bounded while the event loop stands still", async () => {
    engine = await loadNano({ contextSize: 2048, streamBufferBytes: 8192 });
    const stream = await start();
    const before = engine.stats().generatedTokens;
    const until = Date.now() + 300;
    while (Date.now() < until) {
      // Nothing is delivered meanwhile.
    }
    expect(engine.stats().generatedTokens - before).toBeLessThan(8192 / 256 + 20);
    expect(await textOf(stream)).toBe(whole);
  });
});
