import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { AbortError } from "../../src/errors.js";
import type { ChatCompletionChunk } from "../../src/openai/types.js";
import { hi, rejection, type Scripted, scripted, tick } from "../support/scripted-engine.js";

const reason = new Error("the user changed their mind");
const pieces = Array.from({ length: 50 }, (_, i) => `${i} `);

const unhandled: unknown[] = [];
const note = (error: unknown) => unhandled.push(error);
beforeEach(() => {
  unhandled.length = 0;
  process.on("unhandledRejection", note);
});
afterEach(async () => {
  await tick(5);
  process.off("unhandledRejection", note);
  expect(unhandled).toEqual([]);
});

/** Reads to the end and gives what came and how it ended. */
async function drain(stream: AsyncIterable<ChatCompletionChunk>): Promise<{ texts: string[]; error: unknown }> {
  const texts: string[] = [];
  try {
    for await (const chunk of stream) texts.push(chunk.choices[0]?.delta.content ?? "");
    return { texts, error: undefined };
  } catch (error) {
    return { texts, error };
  }
}

function expectAbort(error: unknown): void {
  expect(error).toBeInstanceOf(AbortError);
  expect(error).toMatchObject({ name: "AbortError", code: "ABORT_ERR", cause: reason });
}

/** The listeners that a request puts on its signal, counted. */
function countedSignal() {
  const controller = new AbortController();
  const { signal } = controller;
  let listeners = 0;
  const add = signal.addEventListener.bind(signal);
  const remove = signal.removeEventListener.bind(signal);
  signal.addEventListener = (...args: Parameters<typeof add>) => {
    listeners++;
    add(...args);
  };
  signal.removeEventListener = (...args: Parameters<typeof remove>) => {
    listeners--;
    remove(...args);
  };
  return { controller, signal, listeners: () => listeners };
}

describe("abort", () => {
  it("before create(): rejects at once and submits nothing", async () => {
    const { engine, native } = await scripted({ script: { pieces } });
    const error = await rejection(engine.chat.completions.create({ ...hi }, { signal: AbortSignal.abort(reason) }));
    expectAbort(error);
    expect(native.requests).toHaveLength(0);
  });

  it.each(["queued", "prompt", "decoding"] as const)(
    "while %s, not streamed: rejects after the last event",
    async (hang) => {
      const { engine, native } = await scripted({ script: { pieces: ["a"], hang }, cancelDelay: 15 });
      const { controller, signal, listeners } = countedSignal();
      const answer = rejection(engine.chat.completions.create({ ...hi }, { signal }));
      await tick(5);
      expect(listeners()).toBe(1);
      controller.abort(reason);
      controller.abort(new Error("a second abort changes nothing"));
      await tick(2);
      expect(native.live).toBe(1);
      expectAbort(await answer);
      expect(native.live).toBe(0);
      expect(native.cancels).toEqual([1]);
      expect(listeners()).toBe(0);
    },
  );

  it("while queued, streamed: create() itself rejects", async () => {
    const { engine, native } = await scripted({ script: { hang: "queued" } });
    const controller = new AbortController();
    const stream = rejection(engine.chat.completions.create({ ...hi, stream: true }, { signal: controller.signal }));
    controller.abort(reason);
    expectAbort(await stream);
    expect(native.live).toBe(0);
  });

  it("in the consumer's loop: one AbortError, unread text dropped, then done", async () => {
    const { engine, native } = await scripted({ script: { pieces, hang: "decoding" }, cancelDelay: 5 });
    const controller = new AbortController();
    const stream = await engine.chat.completions.create({ ...hi, stream: true }, { signal: controller.signal });
    const iterator = stream[Symbol.asyncIterator]();
    await iterator.next();
    await tick(20);
    controller.abort(reason);
    expectAbort(await rejection(iterator.next()));
    expect(native.live).toBe(0);
    expect(await iterator.next()).toEqual({ done: true, value: undefined });
    expect(await iterator.return?.()).toEqual({ done: true, value: undefined });
  });

  it("rejects one of several waiting next() calls", async () => {
    const { engine } = await scripted({ script: { hang: "prompt" } });
    const controller = new AbortController();
    const stream = await engine.chat.completions.create({ ...hi, stream: true }, { signal: controller.signal });
    const iterator = stream[Symbol.asyncIterator]();
    await iterator.next();
    const waiting = Promise.allSettled([iterator.next(), iterator.next(), iterator.next()]);
    controller.abort(reason);
    expect((await waiting).map(({ status }) => status)).toEqual(["rejected", "fulfilled", "fulfilled"]);
  });

  it("through stream.controller", async () => {
    const { engine, native } = await scripted({ script: { pieces: ["a"], hang: "decoding" } });
    const { signal, listeners } = countedSignal();
    const stream = await engine.chat.completions.create({ ...hi, stream: true }, { signal });
    const reading = drain(stream);
    await tick(5);
    stream.controller.abort(reason);
    const { texts, error } = await reading;
    expect(texts).toEqual(["", "a"]);
    expectAbort(error);
    expect(native.live).toBe(0);
    expect(listeners()).toBe(0);
  });

  it("after the end: nothing happens, also with text unread", async () => {
    const { engine, native } = await scripted({ script: { pieces } });
    const { controller, signal, listeners } = countedSignal();
    const stream = await engine.chat.completions.create({ ...hi, stream: true }, { signal });
    while (native.live > 0) await tick();
    controller.abort(reason);
    const { texts, error } = await drain(stream);
    expect(error).toBeUndefined();
    expect(texts.join("")).toBe(pieces.join(""));
    expect(native.cancels).toEqual([]);
    expect(listeners()).toBe(0);
  });

  it("wins over an end that the engine had already sent", async () => {
    // The cancel comes too late: the script ends by itself.
    const { engine, native } = await scripted({ script: { pieces: ["a"], delay: 3 }, cancelDelay: Infinity });
    const controller = new AbortController();
    const answer = rejection(engine.chat.completions.create({ ...hi }, { signal: controller.signal }));
    const stream = await engine.chat.completions.create({ ...hi, stream: true }, { signal: controller.signal });
    const reading = drain(stream);
    controller.abort(reason);
    expectAbort(await answer);
    expectAbort((await reading).error);
    expect(native.live).toBe(0);
    expect(engine.stats()).toMatchObject({ finished: 2, cancelled: 0 });
  });

  it("with nobody at the iterator: no unhandled rejection, return() resolves", async () => {
    const { engine, native } = await scripted({ script: { pieces, hang: "decoding" } });
    const controller = new AbortController();
    const stream = await engine.chat.completions.create({ ...hi, stream: true }, { signal: controller.signal });
    const unread = await engine.chat.completions.create({ ...hi, stream: true }, { signal: controller.signal });
    controller.abort(reason);
    while (native.live > 0) await tick();
    await tick(5);
    expect(await stream[Symbol.asyncIterator]().return?.()).toEqual({ done: true, value: undefined });
    expectAbort((await drain(unread)).error);
  });
});

describe("leaving the loop", () => {
  it("by break: quiet, cancels, resolves after the last event, leaves no listener", async () => {
    const { engine, native } = await scripted({ script: { pieces, hang: "decoding" }, cancelDelay: 10 });
    const { controller, signal, listeners } = countedSignal();
    const stream = await engine.chat.completions.create({ ...hi, stream: true }, { signal });
    for await (const _chunk of stream) break;
    expect(native.live).toBe(0);
    expect(native.cancels).toEqual([1]);
    expect(listeners()).toBe(0);
    controller.abort(reason);
    expect(native.cancels).toEqual([1]);
  });

  it("by an exception in the body: that exception comes out", async () => {
    const { engine, native } = await scripted({ script: { pieces, hang: "decoding" } });
    const stream = await engine.chat.completions.create({ ...hi, stream: true });
    const mine = new Error("mine");
    const error = await rejection(
      (async () => {
        for await (const _chunk of stream) throw mine;
      })(),
    );
    expect(error).toBe(mine);
    expect(native.live).toBe(0);
  });

  it("by throw() and return() while next() waits", async () => {
    const { engine, native } = await scripted({ script: { hang: "prompt" } });
    const first = (await engine.chat.completions.create({ ...hi, stream: true }))[Symbol.asyncIterator]();
    await first.next();
    const waiting = first.next();
    expect(await rejection(first.throw?.(reason) ?? Promise.resolve())).toBe(reason);
    expect(await waiting).toEqual({ done: true, value: undefined });
    const second = (await engine.chat.completions.create({ ...hi, stream: true }))[Symbol.asyncIterator]();
    await second.next();
    const alsoWaiting = second.next();
    await second.return?.();
    expect(await alsoWaiting).toEqual({ done: true, value: undefined });
    expect(native.live).toBe(0);
  });
});

describe("200 times", () => {
  /** One way to end a request early; each must leave nothing behind. */
  const ways: ((scripted: Scripted, delay: number) => Promise<void>)[] = [
    async ({ engine }, delay) => {
      const controller = new AbortController();
      const answer = rejection(
        engine.chat.completions.create({ ...hi, user: "victim" }, { signal: controller.signal }),
      );
      if (delay > 0) await tick(delay);
      controller.abort(reason);
      expectAbort(await answer);
    },
    async ({ engine }, delay) => {
      const controller = new AbortController();
      const stream = await engine.chat.completions.create({ ...hi, stream: true }, { signal: controller.signal });
      const reading = drain(stream);
      if (delay > 0) await tick(delay);
      controller.abort(reason);
      expectAbort((await reading).error);
    },
    async ({ engine }) => {
      let seen = 0;
      for await (const _chunk of await engine.chat.completions.create({ ...hi, stream: true })) if (++seen === 3) break;
    },
  ];

  it("every way, beside a stream that must not notice", async () => {
    const long = Array.from({ length: 20 }, (_, i) => `${i} `);
    const setup = await scripted({
      script: (request) =>
        request.messages?.[0]?.content === "bystander" ? { pieces: long, delay: 1 } : { pieces, hang: "decoding" },
    });
    const bystander = { messages: [{ role: "user" as const, content: "bystander" }] };
    for (let round = 0; round < 200; round++) {
      const beside = round % 10 === 0 ? setup.engine.chat.completions.create({ ...bystander }) : undefined;
      await ways[round % ways.length]?.(setup, round % 4);
      if (beside !== undefined) expect((await beside).choices[0]?.message.content).toBe(long.join(""));
    }
    expect(setup.native.live).toBe(0);
    expect(setup.engine.stats()).toMatchObject({ sequences: 0, queued: 0, cancelled: 200, finished: 20 });
  }, 30_000);
});
