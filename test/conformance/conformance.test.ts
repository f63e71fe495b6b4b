import { spawn } from "node:child_process";
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { fileURLToPath } from "node:url";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { type Engine, toNodeListener } from "../../src/index.js";
import { scriptedEngine } from "../../src/testing/index.js";
import { eloquent } from "../support/eloquent.js";
import { loadNano } from "../support/engine.js";
import { runSuite } from "./suite.mjs";
import type { Fetch, Result, SuiteOptions } from "./types.js";

/** What the engine refuses for now. */
const notYet = /^tools\./;

/** What did not pass, by outcome. */
function rest(results: Result[]): Record<string, string[]> {
  const notes: Record<string, string[]> = {};
  for (const { id, outcome, reason } of results) {
    if (outcome === "pass" || (outcome === "refused" && notYet.test(id))) continue;
    notes[outcome] ??= [];
    notes[outcome].push(`${id}: ${reason}`);
  }
  return notes;
}

const local = (engine: Engine, more: Partial<SuiteOptions> = {}): SuiteOptions => ({
  baseURL: "http://local/v1",
  fetch: engine.fetch,
  ...more,
});

describe("the suite, on a scripted engine", () => {
  it("passes, but for what a script cannot do", async () => {
    const { engine } = await scriptedEngine({ script: eloquent });
    const results = await runSuite(local(engine, { runs: 50 }));
    expect(rest(results)).toEqual({ fail: [expect.stringContaining("chat.logit-bias: the answer does not change")] });
  });
});

/** A server with one fault: what it says of each event or body, before it is sent. */
async function faultyFetch(change: (json: string) => string): Promise<Fetch> {
  const { engine } = await scriptedEngine({ script: eloquent });
  return async (url, init) => {
    const response = await engine.fetch(url, init);
    const text = await response.text();
    const changed = response.headers.get("content-type")?.startsWith("text/event-stream")
      ? text.replace(/^data: (\{.*)$/gm, (_, json: string) => `data: ${change(json)}`)
      : change(text);
    return new Response(changed, response);
  };
}

let counter = 0;
const faults: [fault: string, check: string, change: (json: string) => string][] = [
  ["ids that change", "stream.shape", (json) => json.replace(/chatcmpl-/, () => `chatcmpl-${counter++}`)],
  ["no logprobs key", "chat.shape", (json) => json.replace('"logprobs":null,', "")],
  ["no refusal key", "chat.shape", (json) => json.replace(',"refusal":null', "")],
  ["no finish_reason key", "stream.shape", (json) => json.replace(',"finish_reason":null', "")],
  ["a finish_reason of its own", "chat.shape", (json) => json.replace('"finish_reason":"', '"finish_reason":"eos_')],
  ["no role", "stream.shape", (json) => json.replace('"role":"assistant","content":""', '"content":""')],
  [
    "roles everywhere",
    "stream.shape",
    (json) => json.replace('"delta":{"content"', '"delta":{"role":"assistant","content"'),
  ],
  ["text twice", "stream.shape", (json) => json.replace('"content":" fox"', '"content":" fox fox"')],
  ["every index 0", "stream.n", (json) => json.replace('"index":1', '"index":0')],
  [
    "usage unasked",
    "stream.shape",
    (json) =>
      json.replace(',"timings"', ',"usage":{"prompt_tokens":1,"completion_tokens":1,"total_tokens":2},"timings"'),
  ],
  ["a wrong sum", "chat.usage", (json) => json.replace('"total_tokens":1', '"total_tokens":2')],
  ["infinite logprobs", "chat.logprobs", (json) => json.replace(/"logprob":-[\d.]+/, '"logprob":null')],
  ["errors without param", "errors.temperature", (json) => json.replace(/"param":"\w+"/, '"param":null')],
  ["errors of three keys", "errors.temperature", (json) => json.replace(/,"code":"\w+"/, "")],
  ["errors as text", "stream.shape", (json) => json.replace(/"choices":\[.*fox.*\]/, '"error":{"message":"broken"}')],
];

describe("the suite finds", () => {
  it.each(faults)("%s (%s)", async (_, check, change) => {
    const target = { baseURL: "http://local/v1", only: check };
    const sound = await runSuite({ ...target, fetch: await faultyFetch((json) => json) });
    const broken = await runSuite({ ...target, fetch: await faultyFetch(change) });
    expect(sound.map(({ outcome }) => outcome)).not.toContain("fail");
    expect(broken.map(({ outcome }) => outcome)).toContain("fail");
  });

  it("that nobody is there", async () => {
    const fetch = () => Promise.reject(new TypeError("fetch failed"));
    const results = await runSuite({ baseURL: "http://local/v1", fetch });
    expect(results.filter(({ outcome }) => outcome !== "fail").map(({ id }) => id)).toEqual(["errors.key"]);
  });
});

describe("the suite, on nano", () => {
  let engine: Engine;
  let server: Server;
  beforeAll(async () => {
    engine = await loadNano({ contextSize: 4096 });
    server = createServer(toNodeListener(engine.fetch));
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  });
  afterAll(async () => {
    server.closeAllConnections();
    server.close();
    await engine.close();
  });

  it("passes in process", async () => {
    expect(rest(await runSuite(local(engine)))).toEqual({});
  });

  it("passes over a socket, as a command", async () => {
    const { port } = server.address() as AddressInfo;
    const script = fileURLToPath(new URL("run.mjs", import.meta.url));
    const child = spawn(process.execPath, [script, `http://127.0.0.1:${port}/v1`, "--runs", "10", "--seed", "2"]);
    let output = "";
    child.stdout.on("data", (part) => {
      output += part;
    });
    const status = await new Promise((resolve) => child.on("close", resolve));
    expect([status, output]).toEqual([
      0,
      expect.stringMatching(/\n\d+ pass, 0 fail, \d+ refused, 0 could not be told\n$/),
    ]);
  });
});
