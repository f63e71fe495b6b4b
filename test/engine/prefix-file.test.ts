import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import { Engine } from "../../src/engine.js";
import { ask, idle, loadNano } from "../support/engine.js";

const system = `You are a helpful assistant. ${"The dog likes the cat, and the cat likes the cow. ".repeat(30)}`;
const messages = (content: string) => [
  { role: "system" as const, content: system },
  { role: "user" as const, content },
];

let folder = "";
let engine: Engine;
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), "tokenloop-prefix-"));
});
afterAll(() => rmSync(folder, { recursive: true }));
afterEach(() => engine.close());

async function usage(content: string, prompt_cache_key = "tenant") {
  const body = {
    messages: messages(content),
    temperature: 0,
    max_tokens: 20,
    prompt_cache_key,
    stream: false as const,
  };
  const completion = await engine.chat.completions.create(body);
  return {
    text: completion.choices[0]?.message.content,
    prompt: completion.usage?.prompt_tokens ?? 0,
    cached: completion.usage?.prompt_tokens_details?.cached_tokens ?? 0,
  };
}

describe("savePrefix and restorePrefix", () => {
  it("carry a prompt cache over a restart: as many tokens are found, and the answers are the same", async () => {
    const path = join(folder, "cache.bin");
    engine = await loadNano({ contextSize: 4096 });
    const questions = ["What does a dog say?", "What does a cat say?", "What is the capital of France?"];
    const cold = [];
    for (const question of questions) cold.push(await usage(question));
    const warm = [];
    for (const question of questions) warm.push(await usage(question));
    await idle(engine);
    const saved = await engine.savePrefix("tenant", path);
    // What the three share is in the file once.
    expect(saved.tokens).toBe(engine.stats().cellsCached);
    expect(saved.tokens).toBeLessThan(2 * (cold[0]?.prompt ?? 0));
    expect(saved.bytes).toBe(readFileSync(path).length);
    expect(readdirSync(folder)).toEqual(["cache.bin"]);
    await engine.close();

    engine = await loadNano({ contextSize: 4096 });
    // At most: what was computed twice comes back once.
    const restored = await engine.restorePrefix("tenant", path);
    expect(restored.tokens).toBeLessThanOrEqual(saved.tokens);
    expect(restored.tokens).toBeGreaterThan(saved.tokens - 64);
    expect(engine.stats().cellsCached).toBe(restored.tokens);
    expect(engine.stats().cellsUsed).toBe(0);
    for (const [i, question] of questions.entries()) expect(await usage(question)).toEqual(warm[i]);
    // Again: everything is there already.
    expect(await engine.restorePrefix("tenant", path)).toMatchObject({ tokens: 0 });
    // Another tenant does not see it, and can have a copy of its own.
    expect(await usage("What does a dog say?", "other")).toMatchObject({ cached: 0 });
    await engine.restorePrefix("other too", path);
    expect(await usage("What does a dog say?", "other too")).toEqual(warm[0]);
    await idle(engine);
  });

  it("work beside requests that run", async () => {
    const path = join(folder, "busy.bin");
    engine = await loadNano({ contextSize: 4096 });
    const { text } = await usage("What does a dog say?");
    const song = "x".repeat(300);
    const running = engine.chat.completions.create({ ...ask("Sing."), grammar: `root ::= "${song}"`, stream: false });
    await engine.savePrefix("tenant", path);
    await engine.restorePrefix("copy", path);
    expect((await running).choices[0]?.message.content).toBe(song);
    expect((await usage("What does a dog say?", "copy")).text).toBe(text);
  });

  it("refuse what is not there, does not fit, or was switched off", async () => {
    const path = join(folder, "small.bin");
    engine = await loadNano({ contextSize: 2048 });
    await expect(engine.savePrefix("nobody", path)).rejects.toMatchObject({ code: "prefix_not_found", status: 404 });
    await expect(engine.restorePrefix("x", path)).rejects.toMatchObject({ code: "file_not_found", status: 404 });
    await usage("What does a dog say?");
    const missing = join(folder, "no", "such", "folder");
    await expect(engine.savePrefix("tenant", missing)).rejects.toMatchObject({ code: "file_not_written" });
    await engine.savePrefix("tenant", path);
    await engine.close();
    await expect(engine.savePrefix("tenant", path)).rejects.toMatchObject({ code: "engine_closed" });

    engine = await loadNano({ contextSize: 256 });
    await expect(engine.restorePrefix("x", path)).rejects.toMatchObject({ code: "prefix_too_large", status: 400 });
    expect(engine.stats()).toMatchObject({ cellsUsed: 0, cellsCached: 0 });
    await engine.close();

    engine = await loadNano({ contextSize: 2048, prefixCache: false });
    await expect(engine.restorePrefix("x", path)).rejects.toMatchObject({ code: "unsupported_model", status: 400 });
  });

  it("refuse a file that is damaged anywhere, and one of another model", async () => {
    const path = join(folder, "whole.bin");
    engine = await loadNano({ contextSize: 2048 });
    await usage("What does a dog say?");
    await engine.savePrefix("tenant", path);
    const whole = readFileSync(path);
    const bad = join(folder, "bad.bin");
    const refused = async (bytes: Buffer, code: RegExp) => {
      writeFileSync(bad, bytes);
      const error = await engine.restorePrefix("x", bad).then(
        () => undefined,
        (thrown: unknown) => thrown as { code: string; status: number },
      );
      expect(error?.code).toMatch(code);
      expect(error?.status).toBe(400);
    };
    for (const length of [0, 1, 8, 16, 24, 40, 1000, whole.length - 9, whole.length - 1]) {
      await refused(whole.subarray(0, length), /^prefix_file_corrupt$/);
    }
    await refused(Buffer.concat([whole, Buffer.from([0])]), /^prefix_file_corrupt$/);
    for (let i = 0; i < 200; i++) {
      const copy = Buffer.from(whole);
      const at = i < 60 ? i : Math.floor((whole.length * (i - 59)) / 142);
      copy[at] = (copy[at] ?? 0) ^ (1 << (i % 8));
      await refused(copy, /^prefix_file_(corrupt|foreign)$/);
    }
    expect(engine.stats().cellsUsed).toBe(0);

    // The same model with one byte of its weights changed is another model.
    const other = readFileSync(new URL("../models/nano/nano.gguf", import.meta.url));
    other[other.length - 4096] = (other[other.length - 4096] ?? 0) ^ 1;
    const otherPath = join(folder, "other.gguf");
    writeFileSync(otherPath, other);
    await engine.close();
    engine = await Engine.load({ model: otherPath, threads: 1, contextSize: 2048 });
    await expect(engine.restorePrefix("x", path)).rejects.toMatchObject({ code: "prefix_file_foreign", status: 400 });
    await engine.close();
    // Another layout of the cells: llama.cpp itself refuses it.
    engine = await loadNano({ contextSize: 2048, flashAttention: "off" });
    await expect(engine.restorePrefix("x", path)).rejects.toMatchObject({ code: "prefix_file_foreign", status: 400 });
    expect(engine.stats()).toMatchObject({ cellsUsed: 0, cellsCached: 0 });
  });
});
