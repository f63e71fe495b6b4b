import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { Engine } from "../../src/engine.js";
import type { LoadOptions } from "../../src/load-options.js";
import type { NativeMemoryUse } from "../../src/native.js";
import { nanoModel } from "../models/nano.js";
import { ensureOther } from "../models/other.js";
import { ensureModel } from "../models/qwen3.js";
import { writeSlidingWindowModel } from "../support/sliding-window.js";

const parts = ["weights", "cache", "compute", "output"] as const;

let folder: string;
let slidingWindow: string;
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "tokenloop-estimate-"));
  slidingWindow = join(folder, "sliding-window.gguf");
  writeSlidingWindowModel(slidingWindow);
});
afterAll(() => rm(folder, { recursive: true, force: true }));

/** What a load allocated by llama.cpp's own log. Read into memory, for of a mapped file the log counts the gaps as well. */
async function allocated(options: LoadOptions): Promise<NativeMemoryUse> {
  const engine = await Engine.load({ ...options, mmap: false, threads: 1 });
  await engine.close();
  return engine.info.memory;
}

/** By part, and within a hundredth of a MiB, which is as exact as the log. */
async function compare(options: LoadOptions): Promise<void> {
  const estimate = await Engine.estimate(options);
  const real = await allocated(options);
  for (const part of parts) {
    const estimated = estimate.devices.reduce((sum, device) => sum + device[part], 0);
    const difference = Math.abs(estimated - real[part]);
    const where = `${part}: ${estimated} estimated, ${real[part]} allocated, ${JSON.stringify(options)}`;
    expect(difference, where).toBeLessThan(Math.max(0.05 * real[part], 1 << 14));
  }
  const sum = parts.reduce((total, part) => total + real[part], 0);
  expect(Math.abs(estimate.bytes - sum) / sum).toBeLessThan(0.05);
}

describe("Engine.estimate", () => {
  it.each([512, 4096, 32768])("is what llama.cpp then allocates for nano, with %d cells", async (contextSize) => {
    await compare({ model: nanoModel(), contextSize });
    await compare({ model: nanoModel(), contextSize, parallel: 2, microBatchSize: 64, flashAttention: "off" });
  });

  it.each([512, 4096, 32768])("also for a window of 512 tokens, with %d cells", async (contextSize) => {
    await compare({ model: slidingWindow, contextSize });
  });

  it.each(["sliding-window", "recurrent", "hybrid"] as const)("and for a %s model", async (preset) => {
    for (const contextSize of [256, 2048, 8192]) {
      await compare({ model: ensureOther(preset), contextSize });
      await compare({ model: ensureOther(preset), contextSize, parallel: 2, microBatchSize: 128, prefixCache: false });
    }
  });

  it.each([512, 4096, 16384])("and for the shape of a 0.6B model, with %d cells", async (contextSize) => {
    await compare({ model: await ensureModel("qwen3-0.6b-shaped"), contextSize });
  });

  it("counts a draft model", async () => {
    await compare({ model: nanoModel(), contextSize: 1024, draftModel: nanoModel(), draftTokens: 4 });
  });

  it("allocates nothing of it", async () => {
    const before = process.memoryUsage.rss();
    const estimate = await Engine.estimate({ model: nanoModel(), contextSize: 16777216 });
    expect(estimate.bytes).toBeGreaterThan(20 * 2 ** 30);
    expect(process.memoryUsage.rss() - before).toBeLessThan(200 * 2 ** 20);
  });

  it("says what is wrong, as a load does", async () => {
    await expect(Engine.estimate({ model: join(folder, "missing.gguf") })).rejects.toMatchObject({
      code: "model_file_not_found",
    });
    const text = join(folder, "text.gguf");
    await writeFile(text, "no model");
    await expect(Engine.estimate({ model: text })).rejects.toMatchObject({ code: "gguf_foreign" });
    await expect(Engine.estimate({ model: nanoModel(), parallel: 0 })).rejects.toMatchObject({ param: "parallel" });
  });

  it("several at once, and beside loads", async () => {
    const loads = [1, 2].map(() => allocated({ model: nanoModel(), contextSize: 512 }));
    const estimates = [1, 2, 3].map(() => Engine.estimate({ model: nanoModel(), contextSize: 512 }));
    const [first, ...others] = await Promise.all(estimates);
    for (const other of others) expect(other?.bytes).toBe(first?.bytes);
    await Promise.all(loads);
  });
});

describe('options given as "auto"', () => {
  it("are chosen, with reasons, and hold", async () => {
    const engine = await Engine.load({
      model: nanoModel(),
      contextSize: "auto",
      gpuLayers: "auto",
      parallel: 2,
      threads: 1,
    });
    const { choices, contextSize, build } = engine.info;
    await engine.close();
    expect(choices.map(({ option }) => option)).toEqual(["gpuLayers", "contextSize"]);
    if (build.devices.every((device) => device.startsWith("CPU"))) {
      expect(choices[0]).toMatchObject({ value: 0, reason: expect.stringContaining("no GPU") });
    }
    expect(choices[1]).toMatchObject({ value: 4096, reason: expect.stringMatching(/2 requests .* 2048 .* MiB of /) });
    expect(contextSize).toBe(4096);
  });
});
