import { describe, expect, it } from "vitest";
import type { HandlerOptions } from "../../src/http/access.js";
import { hi, scripted } from "../support/scripted-engine.js";

async function handler(options: HandlerOptions) {
  const { engine, native } = await scripted({ script: "Hello." });
  const fetch = engine.handler(options);
  const send = (
    path: string,
    headers: Record<string, string> = {},
    method = path.startsWith("/v1/chat") ? "POST" : "GET",
  ) =>
    fetch(`http://local${path}`, {
      method,
      headers: { "content-type": "application/json", ...headers },
      ...(method === "POST" ? { body: JSON.stringify(hi) } : {}),
    });
  return { send, native, fetch, engine };
}

describe("API keys", () => {
  it.each([
    [{}, 401],
    [{ authorization: "Bearer wrong" }, 401],
    [{ authorization: "Bearer " }, 401],
    [{ authorization: "Basic first" }, 401],
    [{ authorization: "Bearer firs" }, 401],
    [{ authorization: "Bearer firstsecond" }, 401],
    [{ authorization: "Bearer first" }, 200],
    [{ authorization: "bearer second" }, 200],
  ])("%j is %i", async (headers, status) => {
    const { send, native } = await handler({ apiKeys: ["first", "second"] });
    for (const path of ["/v1/chat/completions", "/v1/models", "/metrics", "/nowhere"]) {
      const response = await send(path, headers as Record<string, string>);
      expect(response.status).toBe(path === "/nowhere" && status === 200 ? 404 : status);
      if (status !== 401) continue;
      expect(response.headers.get("www-authenticate")).toBe("Bearer");
      expect(await response.json()).toEqual({
        error: { message: expect.any(String), type: "invalid_request_error", param: null, code: "invalid_api_key" },
      });
    }
    expect(native.requests).toHaveLength(status === 200 ? 1 : 0);
  });

  it("are not asked for by /health and /ready, nor without any", async () => {
    const { send } = await handler({ apiKeys: ["k"] });
    expect((await send("/health")).status).toBe(200);
    expect((await send("/v1/ready")).status).toBe(200);
    expect((await (await handler({})).send("/v1/models")).status).toBe(200);
  });

  it.each([
    [{ apiKeys: [""] }, "apiKeys"],
    [{ apiKeys: "k" }, "apiKeys"],
    [{ cors: [1] }, "cors"],
    [{ bodyBytes: 0 }, "bodyBytes"],
    [{ hosts: "x" }, "hosts"],
  ])("%j is refused", async (options, param) => {
    const { engine } = await scripted();
    expect(() => engine.handler(options as HandlerOptions)).toThrowError(
      expect.objectContaining({ param, code: "invalid_option" }),
    );
  });
});

describe("CORS", () => {
  const preflight = {
    origin: "https://a.example",
    "access-control-request-method": "POST",
    "access-control-request-headers": "authorization,x-mine",
  };

  it("is off: pages cannot read answers, and a preflight is refused", async () => {
    const { send } = await handler({});
    const response = await send("/v1/models", { origin: "https://a.example" });
    expect(response.headers.has("access-control-allow-origin")).toBe(false);
    expect((await send("/v1/chat/completions", preflight, "OPTIONS")).status).toBe(405);
  });

  it("allows the origins that it is told, keys or not", async () => {
    const { send, native } = await handler({ cors: ["https://a.example"], apiKeys: ["k"] });
    const asked = await send("/v1/chat/completions", preflight, "OPTIONS");
    expect(asked.status).toBe(204);
    expect(Object.fromEntries(asked.headers)).toMatchObject({
      "access-control-allow-origin": "https://a.example",
      "access-control-allow-headers": "authorization,x-mine",
      vary: "Origin",
    });
    const sent = await send("/v1/chat/completions", { origin: "https://a.example", authorization: "Bearer k" });
    expect(sent.headers.get("access-control-allow-origin")).toBe("https://a.example");
    const refused = await send("/v1/chat/completions", { origin: "https://a.example" });
    expect([refused.status, refused.headers.get("access-control-allow-origin")]).toEqual([401, "https://a.example"]);
    const other = await send("/v1/models", { origin: "https://b.example", authorization: "Bearer k" });
    expect(other.headers.has("access-control-allow-origin")).toBe(false);
    expect(other.headers.get("vary")).toBe("Origin");
    expect((await send("/v1/models", { ...preflight, origin: "https://b.example" }, "OPTIONS")).status).toBe(401);
    expect(native.requests).toHaveLength(1);
  });

  it("allows all with *", async () => {
    const { send } = await handler({ cors: "*" });
    const response = await send("/v1/models", { origin: "null" });
    expect(response.headers.get("access-control-allow-origin")).toBe("*");
    expect((await send("/v1/models", preflight, "OPTIONS")).status).toBe(204);
  });
});

describe("hosts and sizes", () => {
  it("answers only by its names", async () => {
    const { fetch } = await handler({ hosts: ["localhost", "127.0.0.1", "[::1]"] });
    for (const host of ["localhost:8080", "127.0.0.1", "[::1]:1", "LOCALHOST"]) {
      expect((await fetch(`http://${host}/v1/models`)).status).toBe(200);
    }
    const response = await fetch("http://evil.example/v1/models");
    expect(response.status).toBe(403);
    expect(await response.json()).toMatchObject({ error: { code: "host_not_allowed", param: null } });
  });

  it("takes bodies up to the limit", async () => {
    const { fetch } = await handler({ bodyBytes: 100 });
    const send = (content: string) =>
      fetch("http://local/v1/chat/completions", {
        method: "POST",
        body: JSON.stringify({ messages: [{ role: "user", content }] }),
        headers: { "content-type": "application/json" },
      });
    expect((await send("x")).status).toBe(200);
    expect((await send("x".repeat(100))).status).toBe(413);
  });
});

describe("ids", () => {
  it("come back, or are made", async () => {
    const { send } = await handler({});
    const given = await send("/v1/models", { "x-request-id": "r-1", "x-correlation-id": "c:1" });
    expect([given.headers.get("x-request-id"), given.headers.get("x-correlation-id")]).toEqual(["r-1", "c:1"]);
    const made = await send("/nowhere", { "x-correlation-id": "with space" });
    expect(made.headers.get("x-request-id")).toMatch(/^req_[0-9a-f]{32}$/);
    expect(made.headers.get("x-correlation-id")).toBe(made.headers.get("x-request-id"));
  });
});
