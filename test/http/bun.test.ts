import { type ChildProcess, spawn, spawnSync } from "node:child_process";
import { fileURLToPath } from "node:url";
import OpenAI from "openai";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { nanoModel } from "../models/nano.js";

// Bun is too large for a devDependency: the test takes the one that is there, or that TOKENLOOP_BUN names.
const bun = process.env.TOKENLOOP_BUN ?? "bun";
const present = spawnSync(bun, ["--version"]).status === 0;
if (!present) console.warn("SKIPPED: test/http/bun.test.ts needs Bun on the PATH, or in TOKENLOOP_BUN.");

const root = fileURLToPath(new URL("../..", import.meta.url));

describe.skipIf(!present)("Bun", () => {
  let child: ChildProcess;
  let client: OpenAI;
  let url = "";
  beforeAll(async () => {
    const script = fileURLToPath(new URL("examples/bun.mjs", import.meta.url));
    child = spawn(bun, [script, nanoModel()], { cwd: root, stdio: ["ignore", "pipe", "inherit"] });
    url = await new Promise((resolve, reject) => {
      child.stdout?.once("data", (line: Buffer) => resolve(line.toString().trim()));
      child.once("exit", () => reject(new Error("Bun ended before it served.")));
    });
    client = new OpenAI({ baseURL: `${url}v1`, apiKey: "-", maxRetries: 0 });
  });
  afterAll(() => {
    child?.kill();
  });

  const ask = (content: string) => ({ model: "m", messages: [{ role: "user" as const, content }], temperature: 0 });

  it("loads the addon and serves, whole and streamed", async () => {
    const whole = await client.chat.completions.create(ask("What is the capital of France?"));
    expect(whole.choices[0]?.message.content).toContain("Paris");
    let text = "";
    for await (const chunk of await client.chat.completions.create({
      ...ask("What is the capital of France?"),
      stream: true,
    })) {
      text += chunk.choices[0]?.delta.content ?? "";
    }
    expect(text).toBe(whole.choices[0]?.message.content);
  });

  it("cancels when the client goes", async () => {
    const stream = await client.chat.completions.create({
      ...ask("Tell me a story."),
      ignore_eos: true,
      stream: true,
    } as never);
    for await (const _ of stream as unknown as AsyncIterable<unknown>) break;
    const cancelled = async () => {
      const text = await (await fetch(`${url}metrics`)).text();
      return Number(/^tokenloop_requests_cancelled_total (\d+)$/m.exec(text)?.[1]);
    };
    const start = Date.now();
    while ((await cancelled()) < 1) {
      if (Date.now() - start > 5000) throw new Error("It was not cancelled.");
      await new Promise((resolve) => setTimeout(resolve, 20));
    }
  });
});
