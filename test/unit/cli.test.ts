import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { connect } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { describe, expect, it } from "vitest";
import { runCli } from "../../src/cli/run.js";
import { engineOptions, samplingOptions } from "../../src/options.js";
import { modelFile, tick } from "../support/scripted-engine.js";
import { ScriptedIo } from "../support/scripted-io.js";

async function until(holds: () => boolean): Promise<void> {
  for (let i = 0; i < 400 && !holds(); i++) await tick(5);
  expect(holds()).toBe(true);
}

describe("tokenloop", () => {
  it("prints help and version", async () => {
    const io = new ScriptedIo();
    expect(await runCli(["--help"], io)).toBe(0);
    expect(io.stdout.text).toContain("serve MODEL");
    expect(await runCli(["--version"], io)).toBe(0);
    expect(io.stdout.text).toMatch(/\n\d+\.\d+\.\d+\n$/);
  });

  it("lists every option in the help of its command", async () => {
    const io = new ScriptedIo();
    expect(await runCli(["serve", "--help"], io)).toBe(0);
    for (const { flag } of engineOptions) expect(io.stdout.text).toContain(`--${flag}`);
    expect(await runCli(["chat", "-h"], io)).toBe(0);
    for (const { flag } of samplingOptions) expect(io.stdout.text).toContain(`--${flag}`);
  });

  it.each([
    [[], "command is missing"],
    [["serv"], "'serve'"],
    [["serve"], "one MODEL"],
    [["serve", "a", "b"], "one MODEL"],
    [["serve", "a", "--contextsize", "5"], "'context-size'"],
    [["serve", "a", "--parallel", "many"], "an integer from 1 to 256"],
    [["serve", "a", "--port", "99999"], "--port"],
    [["serve", "a", "--parallel"], "argument missing"],
    [["serve", modelFile, "--parallel", "0"], "from 1 to 256"],
  ])("%j is a wrong command line", async (args, text) => {
    const io = new ScriptedIo();
    expect(await runCli(args, io)).toBe(2);
    expect(io.stderr.text).toContain(text);
  });

  it("fails with the reason if the model cannot be loaded", async () => {
    const io = new ScriptedIo();
    expect(await runCli(["serve", "/no/such.gguf"], io)).toBe(1);
    expect(io.stderr.text).toContain("'/no/such.gguf': no such file");
  });

  it("ends a load on Ctrl-C", async () => {
    const io = new ScriptedIo({ loadDelay: Infinity });
    const status = runCli(["chat", modelFile], io);
    await until(() => io.native.loadOptions !== undefined);
    io.signal("SIGINT");
    expect(await status).toBe(130);
  });
});

/** The status of what comes back for these bytes, once the connection is closed. */
function rawStatus(port: number, bytes: string): Promise<number> {
  return new Promise((resolve, reject) => {
    const socket = connect(port, "127.0.0.1", () => socket.write(bytes));
    let text = "";
    socket.on("data", (part) => {
      text += part.toString();
    });
    socket.on("error", reject);
    socket.on("close", () => resolve(Number(/^HTTP\/1\.1 (\d+)/.exec(text)?.[1])));
  });
}

describe("tokenloop serve", () => {
  async function start(io: ScriptedIo, ...flags: string[]) {
    const status = runCli(["serve", modelFile, "--port", "0", ...flags], io);
    await until(() => io.stdout.text.includes("/v1"));
    return { status, url: /http:\S+/.exec(io.stdout.text)?.[0] ?? "" };
  }

  it("serves with the flags given, until SIGTERM", async () => {
    const io = new ScriptedIo({ script: { pieces: ["a"] } });
    io.stderr.isTTY = true;
    const flags = ["--gpu-layers", "-1", "--no-mmap", "--step-target-ms=7.5", "--model-id", "mine"];
    const { status, url } = await start(io, ...flags);
    expect(io.native.loadOptions).toMatchObject({ gpuLayers: -1, mmap: false, stepTargetMs: 7.5 });
    expect(io.stderr.text).toMatch(/Loading nano\.gguf █+ 100 %/);
    const response = await fetch(`${url}/chat/completions`, {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: JSON.stringify({ messages: [{ role: "user", content: "hi" }] }),
    });
    expect(await response.json()).toMatchObject({ model: "mine", choices: [{ message: { content: "a" } }] });
    io.signal("SIGTERM");
    expect(await status).toBe(0);
    expect(io.native.closed).toBe(1);
    await expect(fetch(`${url}/models`)).rejects.toThrow();
  });

  function send(url: string, headers: Record<string, string> = {}): Promise<Response> {
    return fetch(`${url}/chat/completions`, {
      method: "POST",
      headers: { "content-type": "application/json", ...headers },
      body: JSON.stringify({ messages: [{ role: "user", content: "hi" }], stream: true }),
    });
  }

  it("lets running answers end when it stops", async () => {
    const io = new ScriptedIo({ script: { pieces: ["a", "b", "c"], delay: 30 } });
    const { status, url } = await start(io);
    const response = await send(url);
    io.signal("SIGTERM");
    expect(await response.text()).toContain('"finish_reason":"stop"');
    expect(await status).toBe(0);
    expect(io.native.cancels).toEqual([]);
    await expect(send(url)).rejects.toThrow();
  });

  it("ends with an error those that take longer than --drain-ms", async () => {
    const io = new ScriptedIo({ script: { pieces: ["a"], hang: "decoding" } });
    const { status, url } = await start(io, "--drain-ms", "100");
    const response = await send(url);
    const begin = performance.now();
    io.signal("SIGINT");
    expect(await response.text()).toContain('"code":"engine_closed"');
    expect(await status).toBe(0);
    expect(performance.now() - begin).toBeGreaterThan(90);
  });

  it.each(["0.0.0.0", "::", "192.0.2.1", "example.com"])(
    "does not serve %s without a key, unless told to",
    async (host) => {
      const io = new ScriptedIo();
      expect(await runCli(["serve", modelFile, "--host", host], io)).toBe(2);
      expect(io.stderr.text).toContain("--api-key");
      expect(io.loadOptions).toBeUndefined();
    },
  );

  it("serves others with keys, or with --no-auth", async () => {
    const io = new ScriptedIo({ script: { pieces: ["a"] } });
    const keyed = await start(io, "--host", "0.0.0.0", "--api-key", "one,two");
    const url = keyed.url.replace("0.0.0.0", "127.0.0.1");
    expect((await send(url)).status).toBe(401);
    expect((await send(url, { authorization: "Bearer two" })).status).toBe(200);
    io.signal("SIGINT");
    await keyed.status;

    const open = new ScriptedIo({ script: { pieces: ["a"] } });
    const { status, url: openUrl } = await start(open, "--host", "0.0.0.0", "--no-auth", "--cors", "*");
    const response = await send(openUrl.replace("0.0.0.0", "127.0.0.1"), { origin: "https://a.example" });
    expect([response.status, response.headers.get("access-control-allow-origin")]).toEqual([200, "*"]);
    open.signal("SIGINT");
    await status;
  });

  it("takes keys from the environment", async () => {
    const io = new ScriptedIo({ script: { pieces: ["a"] } });
    io.env = { TOKENLOOP_API_KEY: "secret" };
    const { status, url } = await start(io);
    expect((await send(url)).status).toBe(401);
    expect((await send(url, { authorization: "Bearer secret" })).status).toBe(200);
    io.signal("SIGINT");
    await status;
  });

  it("answers on a loopback address only by its own names", async () => {
    const io = new ScriptedIo({ script: { pieces: ["a"] } });
    const { status, url } = await start(io);
    const port = Number(new URL(url).port);
    expect(await rawStatus(port, "GET /v1/models HTTP/1.1\r\nHost: evil.example\r\nConnection: close\r\n\r\n")).toBe(
      403,
    );
    expect(
      await rawStatus(port, `GET /v1/models HTTP/1.1\r\nHost: localhost:${port}\r\nConnection: close\r\n\r\n`),
    ).toBe(200);
    io.signal("SIGINT");
    await status;
  });

  it("closes connections whose request head does not come", async () => {
    const io = new ScriptedIo();
    const { status, url } = await start(io);
    const begin = performance.now();
    expect(await rawStatus(Number(new URL(url).port), "GET /v1/models HTTP/1.1\r\nHost: local")).toBe(408);
    expect(performance.now() - begin).toBeLessThan(15_000);
    io.signal("SIGINT");
    await status;
  });

  it("refuses a --drain-ms out of range", async () => {
    expect(await runCli(["serve", modelFile, "--drain-ms", "-1"], new ScriptedIo())).toBe(2);
  });

  it("takes a flag before the environment, and that before the default", async () => {
    const io = new ScriptedIo();
    io.env = { TOKENLOOP_PARALLEL: "5", TOKENLOOP_BATCH_SIZE: "128", TOKENLOOP_MMAP: "off", TOKENLOOP_THREADS: "" };
    const { status } = await start(io, "--parallel", "3");
    expect(io.native.loadOptions).toMatchObject({ parallel: 3, batchSize: 128, mmap: false, threads: 0 });
    io.signal("SIGTERM");
    expect(await status).toBe(0);
    for (const [name, value] of [
      ["TOKENLOOP_BATCH_SIZE", "many"],
      ["TOKENLOOP_MMAP", "maybe"],
    ] as const) {
      const wrong = new ScriptedIo();
      wrong.env = { [name]: value };
      expect(await runCli(["serve", modelFile], wrong)).toBe(2);
      expect(wrong.stderr.text).toContain(`'${value}' of ${name}`);
    }
  });

  it("fails when the port is taken", async () => {
    const first = new ScriptedIo();
    const { status, url } = await start(first);
    const second = new ScriptedIo();
    expect(await runCli(["serve", modelFile, "--port", new URL(url).port], second)).toBe(1);
    expect(second.stderr.text).toContain("EADDRINUSE");
    expect(second.native.closed).toBe(1);
    first.signal("SIGINT");
    await status;
  });
});

describe("tokenloop serve CONFIG", () => {
  it("serves several models, and reads the file again on SIGHUP", async () => {
    const folder = mkdtempSync(join(tmpdir(), "tokenloop-serve-"));
    const config = join(folder, "models.yaml");
    const write = (names: string[]) =>
      writeFileSync(config, JSON.stringify({ models: names.map((name) => ({ name, path: modelFile })) }));
    write(["one", "two"]);
    const io = new ScriptedIo({ script: { pieces: ["a"] } });
    const status = runCli(["serve", config, "--port", "0", "--parallel", "3"], io);
    await until(() => io.stdout.text.includes("/v1"));
    expect(io.stdout.text).toContain("serves one, two at");
    const url = /http:\S+/.exec(io.stdout.text)?.[0] ?? "";
    const ask = async (model: string) => {
      const response = await fetch(`${url}/chat/completions`, {
        method: "POST",
        headers: { "content-type": "application/json" },
        body: JSON.stringify({ model, messages: [{ role: "user", content: "hi" }] }),
      });
      return response.json();
    };
    expect(await ask("two")).toMatchObject({ model: "two" });
    expect(io.native.loadOptions).toMatchObject({ parallel: 3 });
    expect(await ask("three")).toMatchObject({ error: { code: "model_not_found" } });
    write(["one", "three"]);
    io.signal("SIGHUP");
    await until(() => io.stderr.text.includes("again: one, three."));
    expect(await ask("three")).toMatchObject({ model: "three" });
    writeFileSync(config, "models: 7");
    io.signal("SIGHUP");
    await until(() => io.stderr.text.includes("Nothing has changed"));
    expect(io.stderr.text).toContain("models.yaml:1: models: expected a list");
    expect(await ask("one")).toMatchObject({ model: "one" });
    io.signal("SIGTERM");
    expect(await status).toBe(0);
    rmSync(folder, { recursive: true });
  });

  it("fails with file and line where the configuration is wrong", async () => {
    const folder = mkdtempSync(join(tmpdir(), "tokenloop-serve-"));
    writeFileSync(join(folder, "a.yaml"), "name: a\nparameters: {model: x.gguf, top_p: 80}\n");
    const io = new ScriptedIo();
    expect(await runCli(["serve", folder], io)).toBe(1);
    expect(io.stderr.text).toContain("a.yaml:2: parameters.top_p: ");
    expect(await runCli(["serve", folder, "--model-id", "x"], io)).toBe(2);
    rmSync(folder, { recursive: true });
  });
});

describe("tokenloop inspect", () => {
  it("says what is in a file and what it takes", async () => {
    const io = new ScriptedIo();
    expect(await runCli(["inspect", modelFile, "--context-size", "auto"], io)).toBe(0);
    for (const text of ["nano-chat", "qwen3", "2.32 million", "Q8_0", "2048 tokens", "1536 tokens", '"<|im_end|>"']) {
      expect(io.stdout.text).toContain(text);
    }
    expect(io.stdout.text).toMatch(/with +16384 cells/);
    expect(io.stdout.text).toMatch(/in all +17 MiB, which fits/);
    expect(io.stdout.text).toMatch(/auto +contextSize 16384\. Room for 8 requests/);
  });

  it("says it in JSON", async () => {
    const io = new ScriptedIo();
    expect(await runCli(["inspect", modelFile, "--json", "--context-size=1024"], io)).toBe(0);
    const { model, memory } = JSON.parse(io.stdout.text);
    expect(model).toMatchObject({ architecture: "qwen3", layers: 5, specialTokens: { eos: { text: "<|im_end|>" } } });
    expect(model.tensors.map(({ type }: { type: string }) => type)).toEqual(["Q8_0", "F32"]);
    expect(memory).toMatchObject({ contextSize: 1024, bytes: 2 << 20, fits: true });
  });

  it("refuses a file that is no model", async () => {
    const io = new ScriptedIo();
    expect(await runCli(["inspect", fileURLToPath(import.meta.url)], io)).toBe(1);
    expect(io.stderr.text).toContain("no GGUF file");
    expect(await runCli(["inspect"], io)).toBe(2);
  });
});

describe("tokenloop chat", () => {
  it("answers each line of a pipe, with what was said before", async () => {
    const io = new ScriptedIo({ script: (_request, nth) => ({ pieces: [`answer `, `${nth}`] }) });
    io.stdin.end("one\n\ntwo\n");
    expect(
      await runCli(["chat", modelFile, "--system", "be brief", "--temperature", "0", "--max-tokens", "9"], io),
    ).toBe(0);
    expect(io.stdout.text).toBe("answer 0\nanswer 1\n");
    expect(io.native.requests).toHaveLength(2);
    expect(io.native.requests[1]).toMatchObject({ maxTokens: 9, sampling: { temperature: 0 } });
    expect(JSON.parse(io.native.requests[1]?.messages ?? "")).toEqual([
      { role: "system", content: "be brief" },
      { role: "user", content: "one" },
      { role: "assistant", content: "answer 0" },
      { role: "user", content: "two" },
    ]);
    expect(io.native.closed).toBe(1);
  });

  it("cancels the running answer on Ctrl-C, and leaves on a second one", async () => {
    const io = new ScriptedIo({ script: { pieces: ["well"], hang: "decoding" } });
    const status = runCli(["chat", modelFile], io);
    io.stdin.write("one\n");
    await until(() => io.stdout.text.includes("well"));
    io.signal("SIGINT");
    await until(() => io.stdout.text.includes("[cancelled]"));
    expect(io.native.live).toBe(0);
    io.signal("SIGINT");
    expect(await status).toBe(130);
    expect(io.native.closed).toBe(1);
  });

  it("leaves on SIGTERM in the middle of an answer", async () => {
    const io = new ScriptedIo({ script: { pieces: ["well"], hang: "decoding" } });
    const status = runCli(["chat", modelFile], io);
    io.stdin.write("one\n");
    await until(() => io.stdout.text.includes("well"));
    io.signal("SIGTERM");
    expect(await status).toBe(143);
  });

  it("shows an error, forgets that turn and goes on", async () => {
    const failFirst = { code: "context_length_exceeded", status: 400, param: "messages", message: "too long" };
    const io = new ScriptedIo({ script: (_request, nth) => (nth === 0 ? { failFirst } : { pieces: ["ok"] }) });
    io.stdin.end("one\ntwo\n");
    expect(await runCli(["chat", modelFile], io)).toBe(1);
    expect(io.stderr.text).toBe("error: too long\n");
    expect(io.stdout.text).toBe("ok\n");
    expect(JSON.parse(io.native.requests[1]?.messages ?? "")).toEqual([{ role: "user", content: "two" }]);
  });
});
