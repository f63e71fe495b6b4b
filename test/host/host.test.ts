import { copyFile, mkdtemp, rm, utimes } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import { Engine } from "../../src/engine.js";
import { ModelHost } from "../../src/host/host.js";
import type { HostEvent } from "../../src/host/runtime.js";
import type { HostConfig, ModelConfig } from "../../src/host/spec.js";
import type { ChatCompletionChunk } from "../../src/openai/types.js";
import type { ChatCompletionStream } from "../../src/stream.js";
import { nanoModel } from "../models/nano.js";
import { ask } from "../support/engine.js";
import { rejection, tick } from "../support/scripted-engine.js";

let folder: string;
let second: string;
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "tokenloop-host-"));
  second = join(folder, "second.gguf");
  await copyFile(nanoModel(), second);
});
afterAll(() => rm(folder, { recursive: true, force: true }));

const hosts: ModelHost[] = [];
afterEach(async () => {
  await Promise.all(hosts.splice(0).map((host) => host.close()));
});

const model = (name: string, more: Partial<ModelConfig> = {}): ModelConfig => ({
  name,
  path: nanoModel(),
  ...more,
  options: { threads: 1, contextSize: 512, parallel: 4, ...more.options },
});

async function host(config: HostConfig) {
  const events: HostEvent[] = [];
  const made = await ModelHost.create(config, { onEvent: (event) => events.push(event) });
  hosts.push(made);
  return { host: made, events, log: () => events.map(({ type, model }) => `${type} ${model}`) };
}

const dog = "What does a dog say?";
const says = async (to: ModelHost, body: object = {}) => {
  const completion = await to.chat.completions.create({ ...ask(dog), stream: false, ...body });
  return {
    text: completion.choices[0]?.message.content,
    model: completion.model,
    finish: completion.choices[0]?.finish_reason,
  };
};
const states = (of: ModelHost) => of.status().map(({ name, state }) => `${name} ${state}`);

async function text(stream: ChatCompletionStream): Promise<string> {
  let all = "";
  for await (const chunk of stream) all += chunk.choices[0]?.delta.content ?? "";
  return all;
}

async function until(holds: () => boolean, ms = 5000): Promise<void> {
  for (const start = Date.now(); !holds() && Date.now() - start < ms; ) await tick(5);
  expect(holds()).toBe(true);
}

describe("a host's models", () => {
  it("load with their first request, by name, alias or default", async () => {
    const { host: one, log } = await host({ models: [model("a", { aliases: ["gpt-4o"] }), model("b")] });
    expect(states(one)).toEqual(["a unloaded", "b unloaded"]);
    expect(await says(one, { model: "b" })).toEqual({ text: "A dog says woof.", model: "b", finish: "stop" });
    expect(states(one)).toEqual(["a unloaded", "b loaded"]);
    expect((await says(one)).model).toBe("a");
    expect((await says(one, { model: "gpt-4o" })).model).toBe("a");
    expect((await says(one, { model: "" })).model).toBe("a");
    expect(log()).toEqual(["loading b", "loaded b", "loading a", "loaded a"]);
  });

  it("load once, however many ask at once", async () => {
    const { host: one, log } = await host({ models: [model("a")] });
    await Promise.all(Array.from({ length: 8 }, () => says(one)));
    expect(log()).toEqual(["loading a", "loaded a"]);
  });

  it("take the configured default, not another", async () => {
    const { host: one } = await host({ models: [model("a"), model("b")], defaultModel: "b" });
    expect((await says(one)).model).toBe("b");
  });

  it("that do not exist are a 404", async () => {
    const { host: one } = await host({ models: [model("nano")] });
    expect(await rejection(says(one, { model: "nanno" }))).toMatchObject({
      status: 404,
      code: "model_not_found",
      param: "model",
      message: "The model 'nanno' does not exist. Did you mean 'nano'?",
    });
    expect(await rejection(says(one, { model: 7 }))).toMatchObject({ status: 400, param: "model" });
  });

  it("that cannot be loaded fail their request, not the host", async () => {
    const broken = model("broken", { path: join(folder, "missing.gguf") });
    const { host: one, log } = await host({ models: [model("a"), broken] });
    const refused = await rejection(says(one, { model: "broken" }));
    expect(refused).toMatchObject({ status: 500, code: "model_file_not_found", param: "model" });
    // Where files are is told to whoever runs the host.
    expect((refused as Error).message).toBe("The model 'broken' cannot be loaded.");
    await expect(one.load("broken")).rejects.toThrow(folder);
    expect((await says(one)).text).toBe("A dog says woof.");
    expect(log()).toContain("failed broken");
    await expect(ModelHost.create({ models: [{ ...broken, preload: true }] })).rejects.toMatchObject({
      param: "model",
    });
  });

  it("load ahead where they say so", async () => {
    const { host: one } = await host({ models: [model("a", { preload: true }), model("b")] });
    expect(states(one)).toEqual(["a loaded", "b unloaded"]);
    await one.load("b");
    expect(states(one)).toEqual(["a loaded", "b loaded"]);
    await one.unload("a");
    expect(states(one)).toEqual(["a unloaded", "b loaded"]);
  });

  it("unload when idle, not while a stream runs", async () => {
    const { host: one, events } = await host({
      models: [model("a", { idleUnloadSeconds: 0.15, options: { contextSize: 2048, streamBufferBytes: 4096 } })],
    });
    const stream = await one.chat.completions.create({
      ...ask("Count to 40."),
      logit_bias: { "1502": -100 },
      stream: true,
    });
    await tick(400);
    expect(states(one)).toEqual(["a loaded"]);
    stream.controller.abort();
    await expect(text(stream)).rejects.toMatchObject({ name: "AbortError" });
    await until(() => one.status()[0]?.state === "unloaded");
    expect(events.at(-1)).toMatchObject({ type: "unloaded", reason: "idle" });
    expect((await says(one)).text).toBe("A dog says woof.");
  });

  it("an abort while a model loads ends the request, and the load serves others", async () => {
    const { host: one } = await host({ models: [model("a")] });
    const controller = new AbortController();
    const gone = one.chat.completions.create({ ...ask(dog), stream: false }, { signal: controller.signal });
    const other = says(one);
    controller.abort("left");
    expect(await rejection(gone)).toMatchObject({ name: "AbortError", cause: "left" });
    expect((await other).text).toBe("A dog says woof.");
  });

  it("close with the host, also while they load", async () => {
    const { host: one } = await host({ models: [model("a"), model("b")] });
    await one.load("a");
    const running = says(one, { logit_bias: { "1502": -100 } });
    const loading = says(one, { model: "b" });
    await Promise.all([one.close(), rejection(running), rejection(loading)]);
    expect(states(one)).toEqual(["a unloaded", "b unloaded"]);
    expect(await rejection(says(one))).toMatchObject({ code: "engine_closed" });
  });
});

describe("memory", () => {
  it("goes to the models that were used last", async () => {
    const { bytes } = await Engine.estimate({ model: nanoModel(), contextSize: 512, parallel: 4 });
    const config = { models: [model("a"), model("b"), model("c")], memoryBudget: bytes * 2.5 };
    const { host: one } = await host(config);
    for (const name of ["a", "b", "a", "c"]) await says(one, { model: name });
    expect(states(one)).toEqual(["a loaded", "b unloaded", "c loaded"]);
    expect(one.status()[0]?.bytes).toBe(bytes);
    await says(one, { model: "b" });
    expect(states(one)).toEqual(["a unloaded", "b loaded", "c loaded"]);
  });

  it("is refused to a model that never fits", async () => {
    const { host: one } = await host({
      models: [model("a"), model("big", { options: { contextSize: 8192 } })],
      memoryBudget: 20e6,
    });
    expect(await rejection(says(one, { model: "big" }))).toMatchObject({ status: 503, code: "model_too_large" });
    expect((await says(one)).text).toBe("A dog says woof.");
  });

  it("comes from an idle model before a busy one", async () => {
    const endless = { contextSize: 2048, streamBufferBytes: 4096 };
    const { host: one } = await host({
      models: [model("a", { options: endless }), model("b"), model("c")],
      maxLoaded: 2,
    });
    await says(one, { model: "a" });
    // Nobody reads it: it pauses, and is still there.
    const busy = await one.chat.completions.create({
      ...ask("Count to 40."),
      logit_bias: { "1502": -100 },
      model: "a",
      stream: true,
    });
    await says(one, { model: "b" });
    // a was used before b, but it is busy.
    await says(one, { model: "c" });
    expect(states(one)).toEqual(["a loaded", "b unloaded", "c loaded"]);
    busy.controller.abort();
    await expect(text(busy)).rejects.toMatchObject({ name: "AbortError" });
  });

  it("twenty swaps under load lose no request, cut none, and leave no memory behind", async () => {
    const { host: one, log } = await host({ models: [model("a"), model("b", { path: second })], maxLoaded: 1 });
    for (const name of ["a", "b"]) await says(one, { model: name });
    const swapsBefore = log().filter((line) => line.startsWith("unloaded")).length;
    const rssBefore = process.memoryUsage.rss();
    const counted = `${Array.from({ length: 40 }, (_, i) => i + 1).join(", ")}.`;
    let done = 0;
    const swaps = () => log().filter((line) => line.startsWith("unloaded")).length - swapsBefore;
    const user = async (name: string, stream: boolean) => {
      while (swaps() < 20) {
        if (stream) {
          const answer = await one.chat.completions.create({ ...ask("Count to 40."), model: name, stream: true });
          expect(await text(answer)).toBe(counted);
        } else {
          expect(await says(one, { model: name })).toEqual({ text: "A dog says woof.", model: name, finish: "stop" });
        }
        done++;
      }
    };
    await Promise.all([user("a", true), user("b", true), user("a", false), user("b", false), user("b", false)]);
    expect(done).toBeGreaterThan(40);
    await Promise.all(["a", "b"].map((name) => one.unload(name)));
    expect(one.status().map(({ requests, state }) => [requests, state])).toEqual([
      [0, "unloaded"],
      [0, "unloaded"],
    ]);
    // Twenty models that stayed would be 300 MB.
    expect(process.memoryUsage.rss() - rssBefore).toBeLessThan(60e6);
  });
});

describe("a reload", () => {
  it("keeps what is the same, and lets what runs end", async () => {
    const { host: one, log } = await host({ models: [model("a"), model("b"), model("c")] });
    for (const name of ["a", "b", "c"]) await one.load(name);
    const onB = await one.chat.completions.create({ ...ask("Count to 40."), model: "b", stream: true });
    const onC = await one.chat.completions.create({ ...ask("Count to 40."), model: "c", stream: true });
    await one.reload({
      models: [model("a", { replyPrefix: "> " }), model("b", { options: { contextSize: 1024 } }), model("d")],
    });
    // a is the same model with other manners; b is another; c is gone.
    expect((await says(one, { model: "a" })).text).toBe("> A dog says woof.");
    expect(await rejection(says(one, { model: "c" }))).toMatchObject({ code: "model_not_found" });
    expect((await says(one, { model: "b" })).text).toBe("A dog says woof.");
    expect(await text(onB)).toContain("40");
    expect(await text(onC)).toContain("40");
    await until(() => log().filter((line) => line.startsWith("unloaded")).length === 2);
    expect(log().filter((line) => line === "loaded a")).toHaveLength(1);
    expect(log().filter((line) => line === "loaded b")).toHaveLength(2);
  });

  it("takes a file that was replaced", async () => {
    const path = join(folder, "replaced.gguf");
    await copyFile(nanoModel(), path);
    const config = { models: [model("a", { path })] };
    const { host: one, log } = await host(config);
    await says(one);
    await one.reload(config);
    await says(one);
    expect(log()).toEqual(["loading a", "loaded a"]);
    await utimes(path, new Date(), new Date(Date.now() + 5000));
    await one.reload(config);
    await says(one);
    expect(log().filter((line) => line === "loaded a")).toHaveLength(2);
  });

  it("preloads the models behind one that cannot be loaded", async () => {
    const { host: one } = await host({ models: [model("a")] });
    const missing = model("b", { path: join(folder, "missing.gguf"), preload: true });
    await one.reload({ models: [missing, model("c", { preload: true })] });
    expect(one.status().map(({ name, state }) => [name, state])).toEqual([
      ["b", "unloaded"],
      ["c", "loaded"],
    ]);
  });

  it("holds although a model that it loads ahead is missing", async () => {
    const { host: one, log } = await host({ models: [model("a")] });
    const missing = model("b", { path: join(folder, "missing.gguf"), preload: true });
    await one.reload({ models: [missing, model("c")] });
    expect(log()).toEqual(["loading b", "failed b"]);
    expect((await says(one, { model: "c" })).text).toBe("A dog says woof.");
  });

  it("that is wrong changes nothing", async () => {
    const { host: one } = await host({ models: [model("a")] });
    await expect(one.reload({ models: [model("b"), model("b")] })).rejects.toMatchObject({ code: "invalid_config" });
    expect((await says(one, { model: "a" })).text).toBe("A dog says woof.");
  });
});

describe("a model's manners", () => {
  const streamed = async (of: ModelHost, body: object) => {
    const chunks: ChatCompletionChunk[] = [];
    const stream = await of.chat.completions.create({ ...ask(dog), ...body, stream: true });
    for await (const chunk of stream) chunks.push(chunk);
    return chunks;
  };
  const joined = (chunks: ChatCompletionChunk[], index = 0) =>
    chunks
      .flatMap(({ choices }) => choices.filter((c) => c.index === index).map((c) => c.delta.content ?? ""))
      .join("");

  it("hold under a request's own fields, also where these are 0, false or empty", async () => {
    const defaults = {
      max_tokens: 2,
      temperature: 0,
      logprobs: true,
      top_logprobs: 2,
      stream_options: { include_usage: true },
    };
    const { host: one } = await host({ models: [model("a", { defaults, stop: ["woof"] })] });
    const create = (body: object) =>
      one.chat.completions.create({ messages: [{ role: "user", content: dog }], stream: false, ...body });
    const plain = await create({});
    expect(plain.choices[0]).toMatchObject({
      finish_reason: "length",
      logprobs: { content: [{ top_logprobs: [{}, {}] }, {}] },
    });
    // null is as good as absent, max_completion_tokens is the same limit by another name, false is a value.
    const other = await create({ temperature: null, max_completion_tokens: 50, logprobs: false });
    expect(other.choices[0]).toMatchObject({
      finish_reason: "stop",
      logprobs: null,
      message: { content: "A dog says " },
    });
    // An empty list is a value as well; a list is beside the model's own.
    expect((await create({ max_tokens: 50, stop: [] })).choices[0]?.message.content).toBe("A dog says woof.");
    expect((await create({ max_tokens: 50, stop: ["dog"] })).choices[0]?.message.content).toBe("A ");
    const four = { max_tokens: 50, stop: ["1", "2", "3", "4"] };
    expect((await create(four)).choices[0]?.message.content).toBe("A dog says ");
    expect((await streamed(one, { max_tokens: 50 })).at(-1)?.usage?.total_tokens).toBeGreaterThan(5);
    await expect(create({ temperature: 9 })).rejects.toMatchObject({ param: "temperature" });
  });

  it("change an answer, streamed or not, and every choice of it", async () => {
    const config = { cutStrings: ["\\bdog "], trimSuffix: ["."], replyPrefix: "[", trimSpace: [""] };
    const { host: one } = await host({ models: [model("a", config)] });
    expect((await says(one)).text).toBe("[A says woof");
    const chunks = await streamed(one, { n: 2, stream_options: { include_usage: true } });
    expect([joined(chunks, 0), joined(chunks, 1)]).toEqual(["[A says woof", "[A says woof"]);
    expect(chunks.at(-1)?.choices).toEqual([]);
    expect(chunks.filter(({ choices }) => choices[0]?.finish_reason === "stop")).toHaveLength(2);
    // No chunk without text but the first and the last of each choice.
    const empty = chunks.filter(
      ({ choices }) => choices[0]?.delta.content === "" && choices[0].delta.role === undefined,
    );
    expect(empty).toEqual([]);
    await expect(says(one, { stream_options: { include_usage: true } })).rejects.toMatchObject({
      param: "stream_options",
    });
  });

  it("echo the prompt, extract, and put a system message where there is none", async () => {
    const { host: one } = await host({
      models: [
        model("echo", { echo: true, systemPrompt: "Be brief." }),
        model("extract", { extractRegex: ["dog \\w+", "w\\w+f"] }),
      ],
    });
    const echoed = (await says(one, { model: "echo" })).text ?? "";
    expect(echoed).toContain("Be brief.");
    expect(echoed).toMatch(/What does a dog say\?[\s\S]*A dog says woof\.$/);
    const messages = [
      { role: "system", content: "Mine." },
      { role: "user", content: dog },
    ];
    expect((await says(one, { model: "echo", messages })).text).not.toContain("Be brief.");
    expect((await says(one, { model: "extract" })).text).toBe("dog sayswoof");
    expect(joined(await streamed(one, { model: "extract" }))).toBe("dog sayswoof");
  });

  it("may replace the template", async () => {
    const chatTemplate = "{% for m in messages %}<{{ m.content }}>{% endfor %}";
    const { host: one } = await host({ models: [model("a", { options: { chatTemplate }, echo: true })] });
    expect((await says(one)).text).toMatch(/^<What does a dog say\?>/);
  });
});

describe("over HTTP", () => {
  it("lists its models and serves them by name", async () => {
    const { host: one } = await host({ models: [model("a", { aliases: ["x/y"] }), model("b", { replyPrefix: "> " })] });
    const get = async (path: string) => (await one.fetch(`http://local/v1/${path}`)).json();
    expect(((await get("models")) as { data: { id: string }[] }).data.map(({ id }) => id)).toEqual(["a", "b"]);
    expect(await get("models/x%2Fy")).toMatchObject({ id: "a" });
    expect(await get("models/none")).toMatchObject({ error: { code: "model_not_found" } });
    const post = (body: object) =>
      one.fetch("http://local/v1/chat/completions", {
        method: "POST",
        headers: { "content-type": "application/json" },
        body: JSON.stringify({ ...ask(dog), ...body }),
      });
    expect(await (await post({ model: "b" })).json()).toMatchObject({
      model: "b",
      choices: [{ message: { content: "> A dog says woof." } }],
    });
    const events = await (await post({ model: "b", stream: true })).text();
    expect(events).toContain('"content":"> A');
    expect(events).toMatch(/data: \[DONE\]\n\n$/);
    const missing = await post({ model: "c" });
    expect([missing.status, await missing.json()]).toMatchObject([
      404,
      { error: { code: "model_not_found", param: "model" } },
    ]);
  });

  it("has the other routes, each with the model that it names, or the default", async () => {
    const { host: one } = await host({ models: [model("a"), model("b")] });
    const post = async (path: string, body: object) => {
      const init = { method: "POST", headers: { "content-type": "application/json" }, body: JSON.stringify(body) };
      return (await one.fetch(`http://local/v1/${path}`, init)).json();
    };
    expect(await post("tokenize", { content: "A dog" })).toMatchObject({ tokens: expect.any(Array) });
    expect(states(one)).toEqual(["a loaded", "b unloaded"]);
    expect(await post("completions", { model: "b", prompt: "A dog says", max_tokens: 3 })).toMatchObject({
      model: "b",
    });
    expect(await post("completions", { model: "c", prompt: "A" })).toMatchObject({
      error: { code: "model_not_found" },
    });
    const metrics = await (await one.fetch("http://local/metrics")).text();
    expect(metrics).toContain("tokenloop_requests_finished_total 1\n");
    expect(metrics).toContain("tokenloop_kv_cells 1024\n");
  });

  it("takes keys, and no more requests when it drains", async () => {
    const { host: one } = await host({ models: [model("a")] });
    const handler = one.handler({ apiKeys: ["secret"] });
    expect((await handler("http://local/v1/models")).status).toBe(401);
    await says(one);
    await one.drain();
    expect(await rejection(says(one))).toMatchObject({ status: 503, code: "engine_draining" });
  });
});
