import { describe, expect, it } from "vitest";
import { assets } from "../../src/page/assets.js";
import { liveEvents, liveModel } from "../../src/page/live.js";
import { withPage } from "../../src/page/page.js";
import { FakeChat } from "../support/fake-chat.js";
import { scripted } from "../support/scripted-engine.js";

const url = (path: string) => `http://localhost${path}`;

async function firstEvent(response: { body: ReadableStream<Uint8Array> | null }): Promise<unknown> {
  const reader = response.body?.getReader();
  const { value } = (await reader?.read()) ?? {};
  await reader?.cancel();
  return JSON.parse(new TextDecoder().decode(value).slice("data: ".length));
}

describe("the chat page's handler", () => {
  const chat = new FakeChat();
  const handler = withPage(chat.fetch, () => []);

  it("serves the page under a policy that lets nothing else in", async () => {
    const response = await handler(url("/"));
    expect(response.status).toBe(200);
    expect(response.headers.get("content-type")).toBe("text/html; charset=utf-8");
    const policy = response.headers.get("content-security-policy") ?? "";
    expect(policy).toContain("default-src 'none'");
    expect(policy).toContain("require-trusted-types-for 'script'");
    expect(policy).not.toContain("unsafe");
    expect(response.headers.get("x-content-type-options")).toBe("nosniff");
  });

  it("serves every file that the page's files name, and they name nothing outside", async () => {
    const named = new Set<string>();
    for (const [path, { body }] of assets) {
      for (const [, file = ""] of body.matchAll(/(?:href|src)="(page\/[^"]+)"/g)) named.add(`/${file}`);
      for (const [, file = ""] of body.matchAll(/from "\.\/([^"]+)"/g)) named.add(`/page/${file}`);
      expect(body.replaceAll("http://www.w3.org/2000/svg", ""), path).not.toMatch(/(?:https?:)?\/\/\w+\.\w+/);
    }
    expect(named.size).toBe(assets.size - 1);
    for (const path of named) expect((await handler(url(path))).status, path).toBe(200);
  });

  it("has no handlers, scripts or styles inside the markup, and none of the ways to make some", () => {
    const index = assets.get("/")?.body ?? "";
    expect(index).not.toMatch(/\son\w+=|\sstyle=|<style|<script(?![^>]*\ssrc=)|javascript:/i);
    for (const [path, { body }] of assets) {
      expect(body, path).not.toMatch(/innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\(|new Function/);
    }
  });

  it("sends a file again only when it has changed", async () => {
    const etag = (await handler(url("/page/app.js"))).headers.get("etag") ?? "";
    const again = await handler(url("/page/app.js"), { headers: { "if-none-match": etag } });
    expect(again.status).toBe(304);
    expect(await again.text()).toBe("");
    const other = await handler(url("/page/app.js"), { headers: { "if-none-match": '"other"' } });
    expect(other.status).toBe(200);
  });

  it("leaves everything else to the handler behind", async () => {
    expect(await (await handler(url("/v1/models"))).json()).toMatchObject({ data: [{ id: "fake" }] });
    expect((await handler(url("/page/none.js"))).status).toBe(404);
    expect((await handler(url("/"), { method: "POST" })).status).toBe(404);
  });

  it("shows the batch to those who may list the models", async () => {
    const locked = new FakeChat();
    locked.key = "secret";
    const handler_ = withPage(locked.fetch, () => []);
    expect((await handler_(url("/page/live"))).status).toBe(401);
    expect((await handler_(url("/"))).status).toBe(200);
    const shown = await handler_(url("/page/live"), { headers: { authorization: "Bearer secret" } });
    expect(shown.headers.get("content-type")).toContain("text/event-stream");
    expect(await firstEvent(shown)).toEqual({ models: [] });
  });
});

describe("live states", () => {
  it("are what the engine counts", async () => {
    const { engine } = await scripted();
    const stats = engine.stats();
    const state = await firstEvent({ body: liveEvents(() => [liveModel("m", 8, engine.stats())]) });
    expect(state).toEqual({ models: [{ id: "m", parallel: 8, ...pickFrom(stats) }] });
    await engine.close();
  });

  it("come when something has changed, and end with the engine", async () => {
    let decoding = 0;
    let closed = false;
    const body = liveEvents(() => {
      if (closed) throw new Error("closed");
      return [{ ...zero, decoding }];
    });
    const reader = body.pipeThrough(new TextDecoderStream()).getReader();
    const next = async () => (await reader.read()).value;
    expect(await next()).toContain('"decoding":0');
    const started = performance.now();
    setTimeout(() => {
      decoding = 3;
    }, 600);
    expect(await next()).toContain('"decoding":3');
    expect(performance.now() - started).toBeGreaterThan(500);
    closed = true;
    expect(await next()).toBeUndefined();
  });

  it("stop when nobody reads them", async () => {
    let looks = 0;
    const body = liveEvents(() => {
      looks++;
      return [];
    });
    await body.cancel();
    const before = looks;
    await new Promise((resolve) => setTimeout(resolve, 600));
    expect(looks).toBe(before);
  });
});

const zero = {
  id: "m",
  parallel: 4,
  queued: 0,
  prefilling: 0,
  decoding: 0,
  paused: 0,
  cells: 0,
  cellsUsed: 0,
  cellsCached: 0,
  promptTokens: 0,
  cachedTokens: 0,
  generatedTokens: 0,
  steps: 0,
  sharedSteps: 0,
};

function pickFrom(stats: object): object {
  const names = Object.keys(zero).filter((name) => name !== "id" && name !== "parallel");
  return Object.fromEntries(names.map((name) => [name, (stats as Record<string, unknown>)[name]]));
}
