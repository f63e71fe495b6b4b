import { copyFile, mkdtemp, rm, truncate, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { Engine } from "../../src/engine.js";
import { ModelFileError, ModelLoadError } from "../../src/errors.js";
import { checkModelFile } from "../../src/gguf/index.js";
import { nanoModel } from "../models/nano.js";
import { ask } from "../support/engine.js";
import { hostileModels, randomDamage, systematicDamage } from "../support/gguf-damage.js";
import { rejection } from "../support/scripted-engine.js";
import { writeSlidingWindowModel } from "../support/sliding-window.js";

// llama.cpp answers some of these files with an abort: then this whole process ends, and no test can pass.

let path: string;
let folder: string;
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "tokenloop-damaged-"));
  path = join(folder, "damaged.gguf");
});
afterAll(() => rm(folder, { recursive: true, force: true }));

describe("a damaged model", () => {
  it.each(hostileModels())("is refused: $name", async ({ bytes, code, says }) => {
    await writeFile(path, bytes);
    const error = await rejection(Engine.load({ model: path, threads: 1 }));
    expect(error).toBeInstanceOf(ModelFileError);
    expect(error).toBeInstanceOf(ModelLoadError);
    expect(error).toMatchObject({ code, path, param: "model", message: expect.stringContaining(says ?? "") });
    expect((error as Error).message).toContain(path);
  });

  it.each([
    ["at random", () => randomDamage(200, 20261201)],
    ["in each number", () => systematicDamage()],
  ])("%s is refused with an error, or loads and answers", async (_name, damages) => {
    const results = { refused: 0, failed: 0, loaded: 0 };
    for (const { name, bytes } of damages()) {
      await writeFile(path, bytes);
      try {
        const engine = await Engine.load({ model: path, threads: 1, contextSize: 256, parallel: 1 });
        try {
          await engine.chat.completions.create({ ...ask("What does a dog say?", { max_tokens: 3 }), stream: false });
        } finally {
          await engine.close();
        }
        results.loaded++;
      } catch (error) {
        expect(error, name).toMatchObject({ code: expect.stringMatching(/^\w+$/) });
        if (error instanceof ModelFileError) results.refused++;
        else results.failed++;
      }
    }
    // Each kind must have happened, or the damage is none.
    expect(results.refused).toBeGreaterThan(100);
    expect(results.loaded).toBeGreaterThan(5);
    expect(results.failed).toBeGreaterThan(3);
  });

  it("may be one of several parts, which belong together", async () => {
    const first = join(folder, "parts-00001-of-00002.gguf");
    const second = join(folder, "parts-00002-of-00002.gguf");
    writeSlidingWindowModel(first, second);
    expect((await checkModelFile(first)).map(({ tensors }) => tensors.length)).toEqual([40, 40]);
    const engine = await Engine.load({ model: first, threads: 1, contextSize: 256 });
    expect(engine.info.parameters).toBeGreaterThan(1e6);
    await engine.close();

    const code = async (model: string) => ((await rejection(Engine.load({ model }))) as ModelFileError).code;
    expect(await code(second)).toBe("gguf_foreign");
    const renamed = join(folder, "renamed.gguf");
    await copyFile(first, renamed);
    expect(await code(renamed)).toBe("gguf_corrupt");
    await copyFile(first, second);
    expect(await code(first)).toBe("gguf_corrupt");
    await truncate(second, 50);
    expect(await code(first)).toBe("gguf_truncated");
    await rm(second);
    expect(await code(first)).toBe("gguf_unreadable");
  });

  it("is not nano itself", async () => {
    const [file] = await checkModelFile(nanoModel());
    expect(file?.tensors).toHaveLength(57);
    expect(file?.metadata.get("general.name")?.value).toBe("nano-chat");
    const embedding = file?.tensors[0];
    expect(embedding).toMatchObject({ name: "token_embd.weight", shape: [192, 1536], type: { name: "Q8_0" } });
    expect(embedding?.bytes).toBe(((192 * 1536) / 32) * 34);
  });
});
