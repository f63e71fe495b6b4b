import { createServer, type Server } from "node:http";
import { type AddressInfo, connect, type Socket } from "node:net";
import OpenAI from "openai";
import { describe, expect, it } from "vitest";
import { type Engine, toNodeListener } from "../../src/index.js";
import { type ScriptedOptions, scriptedEngine } from "../../src/testing/index.js";
import { hi, rejection } from "../support/scripted-engine.js";
import { withExpress } from "./examples/express.js";
import { withFastify } from "./examples/fastify.js";
import { withHono } from "./examples/hono.js";
import { routeHandlers } from "./examples/next-route.js";
import { nodeHttp } from "./examples/node-http.js";

/** As Next.js's own server does it: the handler of the method. */
function withRoute(engine: Engine): Server {
  const handlers: Record<string, (request: Request) => Promise<Response>> = routeHandlers(Promise.resolve(engine));
  const listener = toNodeListener(async (request) => {
    return handlers[request.method]?.(request) ?? new Response(null, { status: 405 });
  });
  return createServer(listener).listen(0, "127.0.0.1");
}

type Start = (engine: Engine) => unknown;
const examples: [string, Start][] = [
  ["node:http", nodeHttp],
  ["express", withExpress],
  ["fastify", withFastify],
  ["hono", withHono],
  ["a Next.js route", withRoute],
];

/** Runs one example's server over a scripted engine. */
async function within(
  start: Start,
  options: ScriptedOptions,
  use: (url: string, port: number, setup: Awaited<ReturnType<typeof scriptedEngine>>) => Promise<void>,
): Promise<void> {
  const setup = await scriptedEngine(options);
  const server = (await start(setup.engine)) as Server;
  if (!server.listening) await new Promise((resolve) => server.once("listening", resolve));
  const { port } = server.address() as AddressInfo;
  try {
    await use(`http://127.0.0.1:${port}/v1`, port, setup);
  } finally {
    server.closeAllConnections();
    await new Promise((resolve) => server.close(resolve));
    await setup.engine.close();
  }
}

async function until(holds: () => boolean): Promise<void> {
  const start = Date.now();
  while (!holds()) {
    if (Date.now() - start > 5000) throw new Error("It does not come to hold.");
    await new Promise((resolve) => setTimeout(resolve, 5));
  }
}

const stream = { ...hi, model: "m", stream: true as const };

describe.each(examples)("%s", (_, start) => {
  it("serves the official client, whole and streamed, and its errors", async () => {
    await within(start, { script: "One two three." }, async (baseURL) => {
      const client = new OpenAI({ baseURL, apiKey: "-", maxRetries: 0 });
      const whole = await client.chat.completions.create({ ...hi, model: "m" });
      expect(whole.choices[0]?.message.content).toBe("One two three.");
      let text = "";
      for await (const chunk of await client.chat.completions.create(stream)) {
        text += chunk.choices[0]?.delta.content ?? "";
      }
      expect(text).toBe("One two three.");
      const wrong = await rejection(client.chat.completions.create({ ...hi, model: "m", temperature: 3 }));
      expect(wrong).toBeInstanceOf(OpenAI.BadRequestError);
      expect(wrong).toMatchObject({ status: 400, param: "temperature", type: "invalid_request_error" });
      expect((await client.models.list()).data).toHaveLength(1);
      expect(await rejection(client.models.retrieve("x"))).toBeInstanceOf(OpenAI.NotFoundError);
    });
  });

  it("sends each chunk at once", async () => {
    await within(start, { script: { pieces: ["a", "b", "c"], delay: 150 } }, async (url, _port, { native }) => {
      const response = await post(url, stream);
      const reader = response.body?.getReader();
      let text = "";
      const decoder = new TextDecoder();
      while (!text.includes('"content":"a"')) text += decoder.decode((await reader?.read())?.value, { stream: true });
      // Two more are to come.
      expect(native.live).toBe(1);
      expect(text).not.toContain('"content":"c"');
      await reader?.cancel();
    });
  });

  it.each([true, false])("cancels when the client goes (streamed: %s)", async (streamed) => {
    await within(start, { script: { pieces: ["a"], hang: "decoding" } }, async (url, _port, { native }) => {
      const controller = new AbortController();
      const answer = post(url, { ...stream, stream: streamed }, controller.signal).then((response) => response.text());
      answer.catch(() => undefined);
      await until(() => native.live === 1);
      await new Promise((resolve) => setTimeout(resolve, 20));
      controller.abort();
      await until(() => native.live === 0);
      expect(native.cancels).toHaveLength(1);
    });
  });

  it("lets a client that does not read hold up its own answer", async () => {
    const pieces = Array(1000).fill("x".repeat(64 * 1024));
    await within(start, { script: { pieces } }, async (_url, port, { native }) => {
      const socket = await open(port, stream);
      socket.pause();
      await until(() => native.live === 0);
      // Once the buffers of two sockets are full, what the loop is told of as read stands still.
      const weight = () => native.taken.reduce((sum, [, each]) => sum + each, 0);
      let before = -1;
      while (weight() > before) {
        before = weight();
        await new Promise((resolve) => setTimeout(resolve, 300));
      }
      expect(before).toBeLessThan(pieces.length * 64 * 1024 * 0.75);
      let length = 0;
      let end = "";
      socket.on("data", (part: Buffer) => {
        length += part.length;
        end = (end + part.toString("latin1")).slice(-64);
      });
      socket.resume();
      await until(() => end.includes("data: [DONE]"));
      expect(length).toBeGreaterThan(pieces.length * 64 * 1024);
      socket.destroy();
    });
  });
});

function post(url: string, body: object, signal?: AbortSignal): Promise<Response> {
  return fetch(`${url}/chat/completions`, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify(body),
    ...(signal === undefined ? {} : { signal }),
  });
}

/** A connection on which the answer comes, for who wants to decide when it is read. */
function open(port: number, body: object): Promise<Socket> {
  const json = JSON.stringify(body);
  const head = `POST /v1/chat/completions HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: ${json.length}\r\n\r\n`;
  return new Promise((resolve, reject) => {
    const socket = connect(port, "127.0.0.1", () => {
      socket.write(head + json);
      resolve(socket);
    });
    socket.on("error", reject);
  });
}
