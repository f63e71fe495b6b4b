import { createServer, type IncomingMessage, request, type Server } from "node:http";
import { type AddressInfo, connect } from "node:net";
import { afterEach, describe, expect, it } from "vitest";
import { type NodeListener, toNodeListener } from "../../src/http/node.js";
import { hi, scripted, tick } from "../support/scripted-engine.js";

const servers: Server[] = [];
afterEach(() => {
  for (const server of servers.splice(0)) {
    server.closeAllConnections();
    server.close();
  }
});

async function listen(listener: NodeListener): Promise<number> {
  const server = createServer(listener);
  servers.push(server);
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  return (server.address() as AddressInfo).port;
}

function post(port: number, body: unknown, init: RequestInit = {}): Promise<Response> {
  return fetch(`http://127.0.0.1:${port}/v1/chat/completions`, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify(body),
    ...init,
  });
}

/** Waits until it holds; fails after two seconds. */
async function until(holds: () => boolean): Promise<void> {
  for (let i = 0; i < 400 && !holds(); i++) await tick(5);
  expect(holds()).toBe(true);
}

describe("toNodeListener", () => {
  it("streams over a socket, event by event", async () => {
    const { engine } = await scripted({ script: { pieces: ["a", "b", "c"], delay: 20 } });
    const port = await listen(toNodeListener(engine.fetch));
    const response = await post(port, { ...hi, stream: true });
    expect(response.status).toBe(200);
    const parts: string[] = [];
    const decoder = new TextDecoder();
    for await (const part of response.body ?? []) parts.push(decoder.decode(part, { stream: true }));
    expect(parts.length).toBeGreaterThan(2);
    expect(parts.join("").match(/^data: /gm)).toHaveLength(6);
    expect(parts.join("").endsWith("data: [DONE]\n\n")).toBe(true);
  });

  it("sends the headers before there is any text", async () => {
    let end: () => void = () => undefined;
    const body = new ReadableStream<Uint8Array>({
      start(controller) {
        end = () => controller.close();
      },
    });
    const port = await listen(toNodeListener(async () => new Response(body, { headers: { "x-early": "yes" } })));
    const response = await fetch(`http://127.0.0.1:${port}/`);
    expect(response.headers.get("x-early")).toBe("yes");
    end();
    expect(await response.text()).toBe("");
  });

  it("answers whole, errors too, on a connection that is used again", async () => {
    const { engine } = await scripted({ script: { pieces: ["a"] } });
    const port = await listen(toNodeListener(engine.fetch));
    for (let i = 0; i < 3; i++) {
      expect(await (await post(port, hi)).json()).toMatchObject({ choices: [{ message: { content: "a" } }] });
      expect((await post(port, { messages: [] })).status).toBe(400);
      expect(
        (await fetch(`http://127.0.0.1:${port}/nowhere`, { method: "POST", body: "x".repeat(200_000) })).status,
      ).toBe(404);
    }
    const head = await fetch(`http://127.0.0.1:${port}/health`, { method: "HEAD" });
    expect([head.status, await head.text()]).toEqual([200, ""]);
  });

  it.each([
    ["streamed", true, "decoding"],
    ["streamed, before the first event", true, "queued"],
    ["whole", false, "decoding"],
    ["whole, queued", false, "queued"],
  ] as const)("cancels when the client goes: %s", async (_name, stream, hang) => {
    const { engine, native } = await scripted({ script: { pieces: ["a"], hang } });
    const port = await listen(toNodeListener(engine.fetch));
    const controller = new AbortController();
    const answer = post(port, { ...hi, stream }, { signal: controller.signal }).then((response) => response.text());
    const gone = answer.catch((error: unknown) => error);
    await until(() => native.live === 1);
    await tick(10);
    controller.abort();
    expect(await gone).toMatchObject({ name: "AbortError" });
    await until(() => native.live === 0);
    expect(native.cancels).toEqual([1]);
  });

  it("cancels 50 streams of clients that vanish at any time", async () => {
    const { engine, native } = await scripted({ script: { pieces: Array(30).fill("x"), delay: 1, hang: "decoding" } });
    const port = await listen(toNodeListener(engine.fetch));
    await Promise.all(
      Array.from({ length: 50 }, async (_, i) => {
        const socket = connect(port, "127.0.0.1");
        socket.on("error", () => undefined);
        const body = JSON.stringify({ ...hi, stream: i % 2 === 0 });
        socket.write(
          `POST /v1/chat/completions HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\ncontent-length: ${body.length}\r\n\r\n${body}`,
        );
        await tick(5 + i);
        socket.destroy();
      }),
    );
    await until(() => native.live === 0 && engine.stats().queued === 0);
    expect((await post(port, { ...hi, stream: true })).status).toBe(200);
  });

  it("survives a client that goes while it sends", async () => {
    const { engine, native } = await scripted({ script: { pieces: ["a"] } });
    const port = await listen(toNodeListener(engine.fetch));
    const socket = connect(port, "127.0.0.1");
    socket.write(
      "POST /v1/chat/completions HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\ncontent-length: 1000\r\n\r\n{",
    );
    await tick(20);
    socket.destroy();
    await tick(20);
    expect(native.requests).toHaveLength(0);
    expect((await post(port, hi)).status).toBe(200);
  });

  it("answers 413 to a client that is still sending", async () => {
    const { engine } = await scripted();
    const port = await listen(toNodeListener(engine.fetch));
    const status = await new Promise<number | undefined>((resolve, reject) => {
      const sending = request(
        {
          port,
          host: "127.0.0.1",
          method: "POST",
          path: "/chat/completions",
          headers: { "content-type": "application/json" },
        },
        (response: IncomingMessage) => {
          response.resume();
          // The server takes the rest of the body, so that the client can end in peace.
          sending.on("close", () => resolve(response.statusCode));
        },
      );
      sending.on("error", reject);
      const part = Buffer.alloc(1 << 20, 0x20);
      for (let i = 0; i < 24; i++) sending.write(part);
      sending.end();
    });
    expect(status).toBe(413);
  });

  it("holds the handler back while the client does not read", async () => {
    let produced = 0;
    const port = await listen(
      toNodeListener(async () => {
        const body = new ReadableStream<Uint8Array>({
          pull(controller) {
            produced++;
            if (produced === 4000) controller.close();
            else controller.enqueue(new Uint8Array(65536));
          },
        });
        return new Response(body);
      }),
    );
    const socket = connect(port, "127.0.0.1");
    socket.pause();
    socket.write("GET / HTTP/1.1\r\nhost: x\r\n\r\n");
    // The socket's buffers fill, then nothing moves any more.
    let before = -1;
    for (let i = 0; i < 20 && produced !== before; i++) {
      before = produced;
      await tick(200);
    }
    expect(produced).toBe(before);
    expect(produced).toBeGreaterThan(0);
    expect(produced).toBeLessThan(1000);
    socket.destroy();
  });

  it("answers 500 if the handler throws, and breaks off if the body does", async () => {
    const port = await listen(
      toNodeListener(async (incoming) => {
        if (incoming.url.endsWith("/throws")) throw new Error("/secret/path");
        let pulls = 0;
        const body = new ReadableStream<Uint8Array>({
          pull(controller) {
            if (pulls++ === 0) controller.enqueue(new Uint8Array(10));
            else controller.error(new Error("broken"));
          },
        });
        return new Response(body, {
          headers: [
            ["set-cookie", "a=1"],
            ["set-cookie", "b=2"],
          ],
        });
      }),
    );
    const failed = await fetch(`http://127.0.0.1:${port}/throws`);
    expect(failed.status).toBe(500);
    expect(await failed.text()).not.toContain("secret");
    const broken = await fetch(`http://127.0.0.1:${port}/breaks`);
    expect(broken.headers.getSetCookie()).toEqual(["a=1", "b=2"]);
    await expect(broken.text()).rejects.toThrow();
  });

  it("answers 400 to a host that is none", async () => {
    const { engine } = await scripted();
    const port = await listen(toNodeListener(engine.fetch));
    const answer = await new Promise<string>((resolve) => {
      const socket = connect(port, "127.0.0.1");
      socket.write("GET /health HTTP/1.1\r\nhost: a b\r\n\r\n");
      socket.once("data", (data) => resolve(data.toString()));
    });
    expect(answer).toContain("400 Bad Request");
    expect(answer).toContain('"code":"invalid_request"');
  });

  it("takes the body that express.json() has parsed", async () => {
    const { engine, native } = await scripted({ script: { pieces: ["a"] } });
    const listener = toNodeListener(engine.fetch);
    const port = await listen((incoming, outgoing) => {
      const parts: Buffer[] = [];
      incoming.on("data", (part: Buffer) => parts.push(part));
      incoming.on("end", () => {
        const body: unknown = JSON.parse(Buffer.concat(parts).toString());
        setImmediate(() => listener(Object.assign(incoming, { body }), outgoing));
      });
    });
    expect((await post(port, hi)).status).toBe(200);
    expect(native.requests).toHaveLength(1);
  });
});
