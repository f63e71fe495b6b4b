import { type ChildProcess, spawn } from "node:child_process";
import { fileURLToPath } from "node:url";
import OpenAI from "openai";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { Engine } from "../../src/engine.js";
import { nanoModel } from "../models/nano.js";
import { idle, loadNano } from "../support/engine.js";

const cli = fileURLToPath(new URL("../../dist/cli/main.js", import.meta.url));
const france = {
  model: "nano",
  messages: [{ role: "user" as const, content: "What is the capital of France?" }],
  temperature: 0,
};

/** What the official client must be able to do, wherever the engine is. */
function contract(client: () => OpenAI) {
  it("completes", async () => {
    const completion = await client().chat.completions.create(france);
    expect(completion.choices[0]?.message).toMatchObject({
      role: "assistant",
      content: "The capital of France is Paris.",
    });
    expect(completion.choices[0]?.finish_reason).toBe("stop");
    expect(completion.usage?.total_tokens).toBeGreaterThan(10);
  });

  it("streams, with usage on request", async () => {
    const stream = await client().chat.completions.create({
      ...france,
      stream: true,
      stream_options: { include_usage: true },
    });
    let text = "";
    let usage: OpenAI.CompletionUsage | null | undefined;
    const ids = new Set<string>();
    for await (const chunk of stream) {
      ids.add(chunk.id);
      text += chunk.choices[0]?.delta.content ?? "";
      usage = chunk.usage ?? usage;
    }
    expect(text).toBe("The capital of France is Paris.");
    expect(ids.size).toBe(1);
    expect(usage?.completion_tokens).toBeGreaterThan(5);
  });

  it("assembles a streamed message with the client's own helper", async () => {
    const message = await client().chat.completions.stream(france).finalMessage();
    expect(message.content).toBe("The capital of France is Paris.");
  });

  it("gets n answers, streamed interleaved, with the prompt counted once", async () => {
    const completion = await client().chat.completions.create({ ...france, n: 3 });
    expect(completion.choices.map(({ index, message }) => [index, message.content])).toEqual(
      [0, 1, 2].map((index) => [index, "The capital of France is Paris."]),
    );
    const one = await client().chat.completions.create(france);
    expect(completion.usage?.prompt_tokens).toBe(one.usage?.prompt_tokens);
    expect(completion.usage?.completion_tokens).toBe(3 * (one.usage?.completion_tokens ?? 0));
    const streamed = await client()
      .chat.completions.stream({ ...france, n: 3 })
      .finalChatCompletion();
    expect(streamed.choices.map(({ message }) => message.content)).toEqual(
      Array(3).fill("The capital of France is Paris."),
    );
  });

  it("aborts", async () => {
    const stream = await client().chat.completions.create({ ...france, logit_bias: { "1502": -100 }, stream: true });
    let chunks = 0;
    for await (const _ of stream) {
      if (++chunks === 5) stream.controller.abort();
      expect(chunks).toBeLessThan(500);
    }
  });

  it("gets the client's own error classes", async () => {
    await expect(client().chat.completions.create({ ...france, temperature: 9 })).rejects.toBeInstanceOf(
      OpenAI.BadRequestError,
    );
    await expect(client().chat.completions.create({ ...france, n: 0 })).rejects.toMatchObject({
      status: 400,
      param: "n",
    });
    await expect(client().models.retrieve("none")).rejects.toBeInstanceOf(OpenAI.NotFoundError);
  });

  it("lists the model", async () => {
    const models = await client().models.list();
    expect(models.data).toMatchObject([{ id: "nano-chat", object: "model" }]);
  });
}

describe("the official client, in process", () => {
  let engine: Engine;
  beforeAll(async () => {
    engine = await loadNano();
  });
  afterAll(async () => {
    await idle(engine);
    await engine.close();
  });
  contract(() => new OpenAI({ apiKey: "-", baseURL: "http://local/v1", fetch: engine.fetch, maxRetries: 0 }));
});

describe("the official client, over a socket to `tokenloop serve`", () => {
  let server: ChildProcess;
  let baseURL = "";
  beforeAll(async () => {
    server = spawn(process.execPath, [cli, "serve", nanoModel(), "--port", "0", "--threads", "1"], {
      stdio: ["ignore", "pipe", "inherit"],
    });
    baseURL = await new Promise<string>((resolve, reject) => {
      let stdout = "";
      server.stdout?.on("data", (data) => {
        stdout += data;
        const url = /http:\/\/127\.0\.0\.1:\d+/.exec(stdout)?.[0];
        if (url !== undefined) resolve(`${url}/v1`);
      });
      server.on("exit", (code) => reject(new Error(`serve ended with ${code}: ${stdout}`)));
    });
  });
  afterAll(async () => {
    const ended = new Promise<number | null>((resolve) => server.once("exit", resolve));
    server.kill("SIGTERM");
    // Windows has no SIGTERM: kill() ends the process there and then.
    if (process.platform !== "win32") expect(await ended).toBe(0);
  });
  contract(() => new OpenAI({ apiKey: "-", baseURL, maxRetries: 0 }));
});
