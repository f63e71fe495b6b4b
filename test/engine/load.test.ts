import { copyFile, mkdtemp, rm, truncate, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { Engine } from "../../src/engine.js";
import type { NativeLoadOptions } from "../../src/native.js";
import { engineOptions } from "../../src/options.js";
import { nanoModel } from "../models/nano.js";
import { ensureModel } from "../models/qwen3.js";
import { answer, ask, loadNano } from "../support/engine.js";

let folder: string;
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "tokenloop-load-"));
});
afterAll(() => rm(folder, { recursive: true, force: true }));

describe("Engine.load", () => {
  it("reports progress from 0 to 1, never backwards, and says what it loaded", async () => {
    const progress: number[] = [];
    const engine = await loadNano({ onProgress: (fraction) => progress.push(fraction), contextSize: 512, parallel: 2 });
    expect(progress.length).toBeGreaterThan(0);
    expect([...progress].sort((a, b) => a - b)).toEqual(progress);
    expect(progress.at(-1)).toBe(1);
    expect(engine.info).toMatchObject({
      name: "nano-chat",
      vocabSize: 1536,
      contextSize: 512,
      parallel: 2,
      trainingContext: 2048,
    });
    expect(engine.info.build.llamaBuild).toBe(10679);
    await engine.close();
  });

  it("can be cancelled: before, and at the first progress", async () => {
    await expect(loadNano({ signal: AbortSignal.abort("no") })).rejects.toMatchObject({
      name: "AbortError",
      cause: "no",
    });
    const controller = new AbortController();
    const load = loadNano({ signal: controller.signal, onProgress: () => controller.abort("stop") });
    await expect(load).rejects.toMatchObject({ name: "AbortError", cause: "stop" });
  });

  it("the addon itself ends a load that is cancelled", async () => {
    const { loadNative } = await import("../../src/native.js");
    const options = {
      ...Object.fromEntries(engineOptions.map((row) => [row.name, row.default])),
      model: await ensureModel("mid-qwen3"),
    } as NativeLoadOptions;
    const load = loadNative().loadModel(
      options,
      () => undefined,
      () => load.cancel(),
    );
    await expect(load.promise).rejects.toMatchObject({ code: "load_cancelled" });
  });

  it("refuses what is no model, with an error that names the file", async () => {
    const missing = join(folder, "missing.gguf");
    const text = join(folder, "text.gguf");
    await writeFile(text, "This is not a model.");
    const empty = join(folder, "empty.gguf");
    await writeFile(empty, "");
    const cut = join(folder, "cut.gguf");
    await copyFile(nanoModel(), cut);
    await truncate(cut, 1_000_000);
    const header = join(folder, "header.gguf");
    await copyFile(nanoModel(), header);
    await truncate(header, 100);
    for (const path of [missing, folder, text, empty, cut, header]) {
      await expect(Engine.load({ model: path }), path).rejects.toMatchObject({
        param: "model",
        message: expect.stringContaining(path),
      });
    }
  });

  it("refuses a chat template that does not parse", async () => {
    await expect(loadNano({ chatTemplate: "{% for x in %}" })).rejects.toMatchObject({ code: "invalid_chat_template" });
  });

  it("uses a chat template of the caller's, and quotes what it raises", async () => {
    const chatTemplate =
      "{% if messages|length > 1 %}{{ raise_exception('one message only') }}{% endif %}Q: {{ messages[0].content }}\nA:";
    const engine = await loadNano({ chatTemplate });
    expect(await engine.applyTemplate([{ role: "user", content: "hi" }])).toBe("Q: hi\nA:");
    const refused = engine.chat.completions.create({
      messages: [
        { role: "user", content: "a" },
        { role: "user", content: "b" },
      ],
      stream: false,
    });
    await expect(refused).rejects.toMatchObject({
      status: 400,
      param: "messages",
      message: expect.stringContaining("one message only"),
    });
    await expect(refused).rejects.not.toMatchObject({ message: expect.stringContaining("{%") });
    await engine.close();
  });

  it("refuses more threads than the machine runs at once", async () => {
    await expect(loadNano({ threads: 512 })).rejects.toMatchObject({
      status: 400,
      param: "threads",
      code: "invalid_option",
    });
  });

  it("takes the ends of its ranges, alone and together", async () => {
    const ends = [
      { contextSize: 1 },
      { contextSize: 1, parallel: 256 },
      { batchSize: 1, microBatchSize: 1 },
      { batchSize: 1, parallel: 256 },
      { batchSize: 16, microBatchSize: 65536 },
      { contextSize: 300, parallel: 256, batchSize: 7, prefixCache: false },
      { mmap: false, mlock: true },
      { stepTargetMs: 0.001 },
    ];
    for (const options of ends) {
      const engine = await loadNano(options);
      const answers = await Promise.all(
        [1, 2, 3].map(() => answer(engine, "What does a dog say?", { max_tokens: 12 })),
      );
      expect(answers, JSON.stringify(options)).toEqual(Array(3).fill("A dog says woof."));
      await engine.close();
    }
  });

  it("several engines live side by side", async () => {
    const engines = await Promise.all([loadNano(), loadNano(), loadNano()]);
    const answers = await Promise.all(engines.map((engine) => answer(engine, "What does a dog say?")));
    expect(answers).toEqual(Array(3).fill("A dog says woof."));
    await Promise.all(engines.map((engine) => engine.close()));
  });
});

describe("engine.close", () => {
  it("ends what runs and what waits, each with one error, and is idempotent", async () => {
    const engine = await loadNano({ parallel: 2 });
    const endless = ask("Count to 40.", { logit_bias: { "1502": -100 } });
    const streams = await Promise.all([1, 2].map(() => engine.chat.completions.create({ ...endless, stream: true })));
    const waiting = [1, 2, 3].map(() => engine.chat.completions.create({ ...endless, stream: false }));
    const consumed = streams.map(async (stream) => {
      for await (const _ of stream);
    });
    const results = Promise.allSettled([...consumed, ...waiting]);
    const closing = engine.close();
    expect(engine.close()).toBe(closing);
    await closing;
    for (const result of await results) {
      expect(result).toMatchObject({ status: "rejected", reason: { code: "engine_closed", status: 503 } });
    }
    await expect(engine.chat.completions.create({ ...ask("Hello!"), stream: false })).rejects.toMatchObject({
      code: "engine_closed",
    });
  });

  it("is what `await using` does", async () => {
    const engine = await loadNano();
    await engine[Symbol.asyncDispose]();
    await expect(engine.chat.completions.create({ ...ask("Hello!"), stream: false })).rejects.toMatchObject({
      code: "engine_closed",
    });
  });

  it("20 times in a row, at random moments of running requests", async () => {
    for (let round = 0; round < 20; round++) {
      const engine = await loadNano({ parallel: 4 });
      const requests = Array.from({ length: 6 }, () =>
        engine.chat.completions.create({ ...ask("Count to 40."), stream: false }),
      );
      const settled = Promise.allSettled(requests);
      await new Promise((resolve) => setTimeout(resolve, round));
      await engine.close();
      for (const result of await settled) {
        if (result.status === "rejected") expect(result.reason).toMatchObject({ code: "engine_closed" });
      }
    }
  });
});
