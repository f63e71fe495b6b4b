import { createServer, request as httpRequest, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { Engine } from "../../src/engine.js";
import { toNodeListener } from "../../src/http/node.js";
import { ensureModel } from "../models/qwen3.js";
import { answer, ask, idle, loadNano } from "../support/engine.js";

/** Rejects with one AbortError that carries the signal's reason. */
async function expectAbort(promise: Promise<unknown>, reason: unknown): Promise<void> {
  await expect(promise).rejects.toMatchObject({ name: "AbortError", code: "ABORT_ERR", cause: reason });
}

const endless = { logit_bias: { "1502": -100 } };
/** Runs until the context is full: hundreds of tokens. */
const long = () => ask("Count to 40.", endless);

let engine: Engine;
let server: Server;
let url: string;
beforeAll(async () => {
  engine = await loadNano({ parallel: 4 });
  server = createServer(toNodeListener(engine.fetch));
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/v1/chat/completions`;
});
afterAll(async () => {
  await new Promise((resolve) => server.close(resolve));
  await engine.close();
});

/** One way to end a request early. Each leaves the engine as if the request had never been. */
const ways: Record<string, () => Promise<void>> = {
  "aborted before it began": async () => {
    const reason = new Error("early");
    await expectAbort(
      engine.chat.completions.create({ ...long(), stream: false }, { signal: AbortSignal.abort(reason) }),
      reason,
    );
  },
  "aborted right after submission": async () => {
    const controller = new AbortController();
    const promise = engine.chat.completions.create({ ...long(), stream: false }, { signal: controller.signal });
    controller.abort("now");
    await expectAbort(promise, "now");
  },
  "aborted while it waits for a sequence": async () => {
    const first = await Promise.all(
      [1, 2, 3, 4].map(() => engine.chat.completions.create({ ...long(), stream: true })),
    );
    const controller = new AbortController();
    const waiting = engine.chat.completions.create({ ...long(), stream: false }, { signal: controller.signal });
    setTimeout(() => controller.abort("waiting"), 3);
    await expectAbort(waiting, "waiting");
    for (const stream of first) await stream[Symbol.asyncIterator]().return?.();
  },
  "aborted while it decodes, in the consumer's loop": async () => {
    const controller = new AbortController();
    const stream = await engine.chat.completions.create({ ...long(), stream: true }, { signal: controller.signal });
    let chunks = 0;
    const consume = async () => {
      for await (const _ of stream) if (++chunks === 5) controller.abort("inside");
    };
    await expectAbort(consume(), "inside");
    expect(chunks).toBeGreaterThanOrEqual(5);
  },
  "aborted while it decodes, not streamed": async () => {
    const controller = new AbortController();
    const promise = engine.chat.completions.create({ ...long(), stream: false }, { signal: controller.signal });
    setTimeout(() => controller.abort("later"), 15);
    await expectAbort(promise, "later");
  },
  "aborted twice": async () => {
    const controller = new AbortController();
    const stream = await engine.chat.completions.create({ ...long(), stream: true }, { signal: controller.signal });
    const iterator = stream[Symbol.asyncIterator]();
    await iterator.next();
    controller.abort("first");
    stream.controller.abort("second");
    await expectAbort(
      (async () => {
        for (;;) if ((await iterator.next()).done) return;
      })(),
      "first",
    );
    expect(await iterator.next()).toEqual({ done: true, value: undefined });
  },
  "aborted after the end": async () => {
    const controller = new AbortController();
    const completion = await engine.chat.completions.create(
      { ...ask("Hello!"), stream: false },
      { signal: controller.signal },
    );
    controller.abort();
    expect(completion.choices[0]?.message.content).toBe("Hello! How can I help you?");
  },
  "aborted with nobody reading": async () => {
    const controller = new AbortController();
    await engine.chat.completions.create({ ...long(), stream: true }, { signal: controller.signal });
    controller.abort();
  },
  "left by break": async () => {
    for await (const _ of await engine.chat.completions.create({ ...long(), stream: true })) break;
  },
  "left by a throw": async () => {
    const consume = async () => {
      for await (const _ of await engine.chat.completions.create({ ...long(), stream: true }))
        throw new Error("consumer");
    };
    await expect(consume()).rejects.toThrow("consumer");
  },
  "its HTTP client gone, streamed": () => disconnect(true),
  "its HTTP client gone, not streamed": () => disconnect(false),
};

/** Closes the socket after the first bytes (streamed) or a while (not). */
function disconnect(stream: boolean): Promise<void> {
  return new Promise((resolve, reject) => {
    const request = httpRequest(url, { method: "POST", headers: { "content-type": "application/json" } });
    request.on("error", (error) => ("code" in error && error.code === "ECONNRESET" ? resolve() : reject(error)));
    request.on("response", (response) => {
      response.on("error", () => undefined);
      response.once("data", () => {
        request.destroy();
        resolve();
      });
    });
    request.end(JSON.stringify({ ...long(), stream }));
    if (!stream) setTimeout(() => request.destroy(Object.assign(new Error("gone"), { code: "ECONNRESET" })), 15);
  });
}

describe("a request", () => {
  for (const [name, way] of Object.entries(ways)) {
    it(`${name}: ends once, frees everything`, async () => {
      await way();
      await idle(engine);
    });
  }

  it("every way 200 times, all at once, beside a stream that is not harmed", async () => {
    const unhandled: unknown[] = [];
    const collect = (error: unknown) => unhandled.push(error);
    process.on("unhandledRejection", collect);
    const names = Object.keys(ways).filter((name) => name !== "aborted while it waits for a sequence");
    const expected = await answer(engine, "Count to 40.");
    let unharmed = 0;
    for (let round = 0; round < 200; round++) {
      const beside = answer(engine, "Count to 40.");
      // All at once: they wait for each other's sequences, so every way meets every state.
      await Promise.all(names.map((name) => ways[name]?.()));
      if ((await beside) === expected) unharmed++;
    }
    expect(unharmed).toBe(200);
    await idle(engine);
    expect(engine.stats()).toMatchObject({
      queued: 0,
      prefilling: 0,
      decoding: 0,
      sequences: 0,
      cellsUsed: 0,
      failed: 0,
    });
    process.off("unhandledRejection", collect);
    expect(unhandled).toEqual([]);
  }, 240_000);

  it("while it waits, 200 times", async () => {
    const busy = await loadNano({ parallel: 1 });
    const running = await busy.chat.completions.create({ ...long(), stream: true });
    const iterator = running[Symbol.asyncIterator]();
    await iterator.next();
    for (let round = 0; round < 200; round++) {
      const controller = new AbortController();
      const waiting = busy.chat.completions.create({ ...long(), stream: false }, { signal: controller.signal });
      if (round % 3 === 0) await new Promise((resolve) => setTimeout(resolve, round % 10));
      controller.abort(round);
      await expectAbort(waiting, round);
      expect(busy.stats().queued).toBe(0);
    }
    await iterator.return?.();
    await idle(busy);
    expect(busy.stats().cancelled).toBe(201);
    await busy.close();
  });
});

describe("a long prompt on a real vocabulary", () => {
  it("is left in its middle at once, and the engine answers the next request", async () => {
    // Chunks of 64 tokens: the loop's own count says how far the prompt has come.
    const big = await Engine.load({
      model: await ensureModel("mid-qwen3"),
      contextSize: 4096,
      parallel: 2,
      threads: 1,
      batchSize: 64,
    });
    try {
      const prompt = ask("The quick brown fox jumps over the lazy dog. ".repeat(160), {
        max_tokens: 4,
        cache_prompt: false,
      });
      const whole = await big.chat.completions.create({ ...prompt, stream: false });
      const size = whole.usage?.prompt_tokens ?? 0;
      expect(size).toBeGreaterThan(1500);

      for (let round = 0; round < 20; round++) {
        const before = big.stats();
        const controller = new AbortController();
        const promise = big.chat.completions.create({ ...prompt, stream: false }, { signal: controller.signal });
        // Each round a chunk further, in the middle of the chunk that follows.
        const watch = setInterval(() => {
          const now = big.stats();
          if (now.prefilling === 1 && now.promptTokens - before.promptTokens >= 64 * round) controller.abort(round);
        }, 1);
        await expectAbort(promise, round);
        clearInterval(watch);
        // Already when the promise settles, nothing of it is left.
        const after = big.stats();
        expect(after).toMatchObject({ queued: 0, prefilling: 0, decoding: 0, sequences: 0, cellsUsed: 0 });
        expect(after.promptTokens - before.promptTokens).toBeLessThan(size);
        expect(after.generatedTokens).toBe(before.generatedTokens);
      }
      const again = await big.chat.completions.create({ ...prompt, stream: false });
      expect(again.choices[0]?.message.content).toBe(whole.choices[0]?.message.content);
    } finally {
      await big.close();
    }
  });

  it("also when the whole of it is one running llama_decode", async () => {
    const big = await Engine.load({
      model: await ensureModel("mid-qwen3"),
      contextSize: 4096,
      parallel: 2,
      threads: 1,
    });
    try {
      const prompt = ask("The quick brown fox jumps over the lazy dog. ".repeat(160), { cache_prompt: false });
      // The budget for one prompt alone is the batch: no chunk ends before the abort does.
      const started = Date.now();
      await big.chat.completions.create({ ...prompt, max_tokens: 1, stream: false });
      const duration = Date.now() - started;
      const controller = new AbortController();
      const promise = big.chat.completions.create(
        { ...prompt, max_tokens: 1, stream: false },
        { signal: controller.signal },
      );
      const before = big.stats();
      setTimeout(() => controller.abort("inside"), Math.min(100, duration / 4));
      await expectAbort(promise, "inside");
      // Not one chunk of it was completed.
      expect(big.stats().promptTokens).toBe(before.promptTokens);
      expect(big.stats()).toMatchObject({ sequences: 0, cellsUsed: 0 });
    } finally {
      await big.close();
    }
  });
});
