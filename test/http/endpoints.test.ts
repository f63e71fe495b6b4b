import { describe, expect, it } from "vitest";
import { metrics } from "../../src/http/metrics.js";
import { routes } from "../../src/http/routes.js";
import type { Engine } from "../../src/index.js";
import { hi, scripted } from "../support/scripted-engine.js";

function post(engine: Engine, path: string, body: unknown, headers: Record<string, string> = {}): Promise<Response> {
  return engine.fetch(`http://local${path}`, {
    method: "POST",
    headers: { "content-type": "application/json", ...headers },
    body: JSON.stringify(body),
  });
}

async function json(response: Promise<Response>): Promise<unknown> {
  return (await response).json();
}

describe("/tokenize and /detokenize", () => {
  it("are each other's inverse", async () => {
    const { engine } = await scripted();
    const tokens = [104, 0x1f98a];
    expect(await json(post(engine, "/tokenize", { content: "h🦊" }))).toEqual({ tokens });
    expect(await json(post(engine, "/detokenize", { tokens }))).toEqual({ content: "h🦊" });
    expect(await json(post(engine, "/v1/tokenize", { content: "h🦊", with_pieces: true }))).toEqual({
      tokens: [
        { id: 104, piece: "h" },
        { id: 0x1f98a, piece: "🦊" },
      ],
    });
    expect(await engine.detokenize([104])).toBe("h");
  });

  it.each([
    ["/tokenize", {}, "content"],
    ["/tokenize", { content: 1 }, "content"],
    ["/tokenize", { content: "x", with_pieces: "yes" }, "with_pieces"],
    ["/tokenize", { content: "x", text: "x" }, "text"],
    ["/detokenize", { tokens: "x" }, "tokens"],
    ["/detokenize", { tokens: [1.5] }, "tokens"],
    ["/detokenize", { tokens: [-1] }, "tokens"],
    ["/apply-template", { messages: [] }, "messages"],
    ["/v1/embeddings", { input: "x" }, "model"],
  ])("%s refuses %j", async (path, body, param) => {
    const { engine } = await scripted();
    const response = await post(engine, path, body);
    expect(response.status).toBe(400);
    expect(await response.json()).toMatchObject({ error: { param, type: "invalid_request_error" } });
  });
});

describe("/apply-template", () => {
  it("gives the prompt", async () => {
    const { engine } = await scripted();
    expect(await json(post(engine, "/apply-template", hi))).toEqual({ prompt: JSON.stringify(hi.messages) });
  });
});

describe("/health and /ready", () => {
  it("tell an engine that is well from one that drains or is closed", async () => {
    const { engine } = await scripted();
    const statuses = async () =>
      Promise.all(["/health", "/ready"].map(async (path) => (await engine.fetch(`http://local${path}`)).status));
    expect(await statuses()).toEqual([200, 200]);
    await engine.drain();
    expect(await statuses()).toEqual([200, 503]);
    await engine.close();
    expect(await statuses()).toEqual([503, 503]);
  });
});

describe("/metrics", () => {
  it("has every number of the statistics, once, in Prometheus's format", async () => {
    const { engine } = await scripted({ script: "One two." });
    await engine.chat.completions.create(hi);
    const response = await engine.fetch("http://local/metrics");
    expect(response.headers.get("content-type")).toBe("text/plain; version=0.0.4; charset=utf-8");
    const text = await response.text();
    const stats = engine.stats();
    expect(text).toContain(`tokenloop_requests_finished_total ${stats.finished}\n`);
    // A statistic that no row reads fails here.
    const read = new Set<string>();
    const spy = new Proxy(stats, { get: (target, key) => Reflect.get(target, read.add(String(key)) && key) });
    for (const row of metrics) row.read(spy);
    const numbers = Object.keys(stats).filter((key) => key !== "steps" && key !== "stepsBySequences");
    expect([...read].sort()).toEqual(numbers.sort());
    const names = new Set<string>();
    for (const family of text.trim().split(/\n(?=# HELP)/)) {
      const [help = "", type = "", ...samples] = family.split("\n");
      const name = /^# HELP (tokenloop_[a-z_]+) \S.*\.$/.exec(help)?.[1];
      expect(name).toBeDefined();
      expect(names.has(name ?? "")).toBe(false);
      names.add(name ?? "");
      expect(type).toMatch(new RegExp(`^# TYPE ${name} (counter|gauge)$`));
      expect(type.endsWith("counter")).toBe(name?.endsWith("_total"));
      for (const sample of samples)
        expect(sample).toMatch(new RegExp(`^${name}(\\{[a-z]+="[0-9-]+"\\})? \\d+(\\.\\d+)?$`));
    }
    expect(names.size).toBe(metrics.length + 1);
  });
});

describe("Extra-Usage", () => {
  const extra = { timing_prompt_processing: 3, timing_token_generation: 10 };

  it("adds the times to the usage where it is asked for, streamed or not", async () => {
    const { engine } = await scripted({ script: "One." });
    const url = "/v1/chat/completions";
    const asked = { "Extra-Usage": "1" };
    expect(await json(post(engine, url, hi, asked))).toMatchObject({ usage: extra });
    expect(await json(post(engine, "/v1/completions", { prompt: "x" }, asked))).toMatchObject({ usage: extra });
    const stream = { ...hi, stream: true, stream_options: { include_usage: true } };
    expect(await (await post(engine, url, stream, asked)).text()).toContain('"timing_prompt_processing":3');
    expect(await (await post(engine, url, stream)).text()).not.toContain("timing_prompt_processing");
    expect(await (await post(engine, url, hi)).text()).not.toContain("timing_prompt_processing");
  });
});

describe("the route table", () => {
  it("has patterns that match their paths, with and without /v1", () => {
    for (const { path, pattern } of routes) {
      const bare = path.replace(/^\/v1/, "");
      for (const each of [bare, `/v1${bare}`]) expect(pattern.test(each), each).toBe(true);
      expect(pattern.test(`/v2${bare}`)).toBe(false);
    }
  });
});
