import { copyFile, cp, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { basename, join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { Engine } from "../../src/engine.js";
import { type ReadConfig, readHostConfig } from "../../src/host/config-file.js";
import { ModelHost } from "../../src/host/host.js";
import { containers, leaves } from "../../src/host/localai-keys.js";
import type { LoadOptions } from "../../src/load-options.js";
import { nanoModel } from "../models/nano.js";
import { ask } from "../support/engine.js";

let folder: string;
let read: ReadConfig;
let host: ModelHost;
const loads: LoadOptions[] = [];
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "tokenloop-localai-"));
  await cp(fileURLToPath(new URL("models", import.meta.url)), folder, { recursive: true });
  await copyFile(nanoModel(), join(folder, "nano.gguf"));
  await copyFile(nanoModel(), join(folder, "bare.gguf"));
  read = await readHostConfig(folder);
  host = await ModelHost.create(read.config, {
    load: (options) => {
      loads.push(options);
      return Engine.load(options);
    },
  });
});
afterAll(async () => {
  await host.close();
  await rm(folder, { recursive: true, force: true });
});

const dog = "What does a dog say?";
const create = (body: object) =>
  host.chat.completions.create({ messages: [{ role: "user", content: dog }], stream: false, ...body });
const optionsOf = (name: string) => loads.find(({ modelId }) => modelId === name);

describe("a folder of LocalAI's files", () => {
  it("is served: each file, and each model that none names, the first as default", async () => {
    expect(read.config.models.map(({ name }) => name)).toEqual(["assistant", "echo", "tools", "bare"]);
    expect((await create({})).model).toBe("assistant");
    expect((await create({ model: "bare", temperature: 0 })).choices[0]?.message.content).toBe("A dog says woof.");
  });

  it("sets the engine's options", async () => {
    await create({ model: "assistant" });
    expect(optionsOf("assistant")).toMatchObject({
      model: join(folder, "nano.gguf"),
      contextSize: 1024,
      threads: 1,
      mmap: false,
      gpuLayers: 0,
      batchSize: 256,
    });
    await create({ model: "echo" });
    expect(optionsOf("echo")).toMatchObject({
      parallel: 3,
      draftModel: join(folder, "nano.gguf"),
      draftTokens: 2,
      flashAttention: "off",
    });
  });

  it("sets defaults of requests, which a request can set back", async () => {
    // Greedy by default: the same answer every time. 60 tokens at most: 40 numbers are more.
    const count = { messages: [{ role: "user", content: "Count to 40." }] };
    const limited = await create({ ...count, model: "assistant" });
    expect(limited.choices[0]).toMatchObject({ finish_reason: "length" });
    expect(limited.usage.completion_tokens).toBe(60);
    expect((await create({ ...count, model: "assistant", max_tokens: 500 })).choices[0]?.finish_reason).toBe("stop");
    const answers = await create({ model: "echo" });
    expect(answers.choices).toHaveLength(2);
    expect(answers.choices[0]?.logprobs?.content[0]?.top_logprobs).toHaveLength(1);
    expect((await create({ model: "echo", n: 1, logprobs: false })).choices).toMatchObject([{ logprobs: null }]);
    // prompt_cache_all: false
    await create({ model: "echo" });
    expect((await create({ model: "echo" })).usage.prompt_tokens_details?.cached_tokens).toBe(0);
  });

  it("has a grammar, which a request's own format replaces", async () => {
    expect((await create({ model: "echo", n: 1 })).choices[0]?.message.content).toMatch(/^(cat|dog)\.$/);
    const json = await create({ model: "echo", n: 1, response_format: { type: "json_object" }, max_tokens: 40 });
    expect(json.choices[0]?.message.content).toContain("{");
  });

  it("cuts, trims and prefixes", async () => {
    // "A " + "A dog says woof." without "dog ", "A " at the beginning and "." at the end.
    expect((await create({ model: "assistant" })).choices[0]?.message.content).toBe("A says woof");
    const stream = await host.chat.completions.create({ ...ask(dog), model: "assistant", stream: true });
    let text = "";
    for await (const chunk of stream) text += chunk.choices[0]?.delta.content ?? "";
    expect(text).toBe("A says woof");
  });

  it("stops at the model's words", async () => {
    const config = { ...read.config, models: read.config.models.map((model) => ({ ...model, stop: ["says"] })) };
    await host.reload(config);
    expect((await create({ model: "bare", temperature: 0 })).choices[0]?.message.content).toBe("A dog ");
    await host.reload(read.config);
    expect((await create({ model: "bare", temperature: 0 })).choices[0]?.message.content).toBe("A dog says woof.");
  });

  it("echoes the prompt of a template of ours, with the system message; extracts from both", async () => {
    // extract_regex finds the last word only where the prompt has none of them.
    const { choices } = await create({ model: "gpt-echo", n: 1, messages: [{ role: "user", content: "Name a cat." }] });
    expect(choices[0]?.message.content).toBe("cat.");
    const config = { ...read.config, models: read.config.models.map((model) => ({ ...model, extractRegex: [] })) };
    await host.reload(config);
    const echoed = await create({ model: "echo", n: 1 });
    expect(echoed.choices[0]?.message.content).toMatch(
      /^system: You are a test\.\nuser: What does a dog say\?\nA (cat|dog)\.$/,
    );
    await host.reload(read.config);
  });

  it("remarks upon every key without its effect, with file and line", () => {
    const remarks = read.remarks.map(({ file, line, key, reason }) => `${basename(file)}:${line} ${key}: ${reason}`);
    const keys = read.remarks.filter(({ file }) => file.endsWith("tools.yaml")).map(({ key }) => key);
    expect(keys).toEqual([
      "parameters.tfz",
      "parameters.n_keep",
      "parameters.ignore_eos",
      "function.disable_no_action",
      "function.response_regex",
      "function.json_regex_match",
      "function.grammar.disable",
      "function.grammar.mixed_mode",
      "reasoning.strip_reasoning_only",
      "template.use_tokenizer_template",
      "template.chat",
      "roles",
      "rope_freq_base",
      "lora_adapter",
      "mmproj",
      "options.0",
      "stopword",
    ]);
    expect(remarks).toContain("tools.yaml:5 parameters.tfz: tail-free sampling is no longer in llama.cpp");
    expect(remarks).toContain("tools.yaml:28 options.0: unknown option 'swa_full'");
    expect(remarks).toContain("tools.yaml:29 stopword: unknown key");
    expect(remarks.filter((remark) => remark.startsWith("assistant"))).toEqual([]);
    expect(remarks.filter((remark) => remark.startsWith("echo"))).toMatchObject([
      expect.stringContaining("system_prompt"),
    ]);
  });
});

describe("a configuration file", () => {
  const attempt = async (name: string, text: string) => {
    const path = join(folder, name);
    await writeFile(path, text);
    try {
      return await readHostConfig(path);
    } finally {
      await rm(path);
    }
  };

  it("has models in our own keys, in YAML or JSON", async () => {
    const models = [{ name: "a", path: "nano.gguf", options: { threads: 1 }, defaults: { temperature: 0 } }];
    const json = await attempt("host.json", JSON.stringify({ models, defaultModel: "a", maxLoaded: 1 }));
    const yaml = await attempt(
      "host.yaml",
      "models:\n  - {name: a, path: nano.gguf, options: {threads: 1}, defaults: {temperature: 0}}\ndefaultModel: a\nmaxLoaded: 1\n",
    );
    expect(yaml).toEqual(json);
    expect(json.config.models[0]?.path).toBe(join(folder, "nano.gguf"));
    expect(json.remarks).toEqual([]);
  });

  it("may be a list of LocalAI's models", async () => {
    const { config } = await attempt(
      "list.yaml",
      "- {name: a, parameters: {model: a.gguf}}\n- {name: b, parameters: {model: b.gguf}}\n",
    );
    expect(config.models.map(({ name }) => name)).toEqual(["a", "b"]);
  });

  it.each([
    ["models:\n  - name: a\n", "1.yaml:2: models.0.path: missing"],
    ["models:\n  - name: a\n    path: x\n    pathh: y\n", "4: models.0.pathh: unknown key. Did you mean 'path'?"],
    [
      "models:\n  - name: a\n    path: x\n    options:\n      threads: many\n",
      "5: models.0.options.threads: Invalid option",
    ],
    ["models:\n  - name: a\n    path: x\n    options: {gpulayers: 1}\n", "Did you mean 'gpuLayers'?"],
    ["models:\n  - name: a\n    path: x\n    defaults:\n      temperature: 7\n", "5: models.0.defaults.temperature: "],
    [
      "models:\n  - name: a\n    path: x\n    defaults: {stop: [a]}\n",
      "4: models.0.defaults.stop: a model's stop strings",
    ],
    [
      "models:\n  - name: a\n    path: x\n    cutStrings:\n      - ok\n      - '('\n",
      "6: models.0.cutStrings.1: the regular expression is wrong",
    ],
    [
      "models:\n  - {name: a, path: x}\n  - {name: b, path: y, aliases: [a]}\n",
      "3: models.1: models[0] is called 'a', too",
    ],
    ["models:\n  - {name: a, path: x}\ndefaultModel: c\n", "3: defaultModel: there is no model 'c'"],
    ["models: []\n", "1: models: there is none"],
    ["models: 7\n", "1: models: expected a list"],
    ["models:\n  - {name: a, path: x}\nmodel: 1\n", "3: model: unknown key. Did you mean 'models'?"],
    ["models: [\n", "1.yaml:2:1: "],
    ["name: a\nname: b\n", "1.yaml:2:1: Map keys must be unique"],
    ["just text", "expected a model"],
    ["name: a\nparameters:\n  temperature: 0\n", "2: parameters.model: missing"],
    ["name: a\nparameters:\n  model: x.gguf\n  top_p: 80\n", "4: parameters.top_p: "],
    ["name: a\nparameters: {model: x.gguf}\ncontext_size: -5\n", "3: context_size: Invalid option"],
    ["name: a\nparameters: {model: x.gguf}\ncutstrings: [ok, '[']\n", "3: cutstrings.1: the regular expression"],
    [
      "a: &a [x, x]\nb: &b [*a, *a]\nc: &c [*b, *b, *b, *b, *b, *b, *b, *b]\nd: [*c, *c, *c, *c, *c, *c, *c, *c, *c]\n",
      "alias",
    ],
  ])("that is wrong is an error with its line: %j", async (text, message) => {
    await expect(attempt("1.yaml", text)).rejects.toMatchObject({
      name: "ConfigError",
      code: "invalid_config",
      message: expect.stringContaining(message),
    });
  });

  it("that is missing or empty is an error", async () => {
    await expect(readHostConfig(join(folder, "none.yaml"))).rejects.toMatchObject({ code: "invalid_config" });
    const empty = await mkdtemp(join(folder, "empty-"));
    await expect(readHostConfig(empty)).rejects.toThrow("no models");
  });
});

describe("the list of LocalAI's keys", () => {
  it("names containers for each key that is inside one, and options and fields that exist", () => {
    for (const key of Object.keys(leaves)) {
      const parent = key.split(".").slice(0, -1).join(".");
      if (parent !== "") expect(containers, key).toContain(parent);
    }
  });
});
