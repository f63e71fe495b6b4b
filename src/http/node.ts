import type { IncomingMessage, ServerResponse } from "node:http";
import { BadRequestError, toErrorBody } from "../errors.js";

export type NodeListener = (request: IncomingMessage, response: ServerResponse) => void;

/**
 * Serves a Web-standard handler from node:http (also express and fastify): streams with back-pressure, sends headers at
 * once, and aborts the Request's signal when the client goes, streaming or not.
 */
export function toNodeListener(fetch: (request: Request) => Promise<Response>): NodeListener {
  return (incoming, outgoing) => {
    serve(fetch, incoming, outgoing).catch((error: unknown) => {
      // What is out cannot be taken back: a body that broke off ends the connection, so that nobody takes it for whole.
      if (outgoing.headersSent) outgoing.destroy();
      else respondError(outgoing, 500, error);
    });
  };
}

async function serve(
  fetch: (request: Request) => Promise<Response>,
  incoming: IncomingMessage,
  outgoing: ServerResponse,
): Promise<void> {
  const gone = new AbortController();
  let request: Request | undefined;
  let upload: Upload | undefined;
  outgoing.on("close", () => {
    if (!outgoing.writableFinished) gone.abort(new Error("The client closed the connection."));
    // Held until here: a Request's signal follows `gone` only as long as the Request is not collected.
    request = undefined;
    // An answer that did not wait for the whole body (404, 413) must not leave the connection clogged with it.
    upload?.discard();
  });
  // A write to a socket that was just closed reports here too; "close" follows and does the work.
  outgoing.on("error", () => undefined);

  try {
    upload = toUpload(incoming);
    request = toRequest(incoming, upload?.body, gone.signal);
  } catch {
    const error = new BadRequestError("The request's URL, host or headers are invalid.", null, "invalid_request");
    respondError(outgoing, error.status, error);
    return;
  }
  const response = await fetch(request).catch((error: unknown) => {
    if (gone.signal.aborted) return undefined;
    throw error;
  });
  if (response === undefined) return;
  await send(response, outgoing, gone.signal);
}

function toRequest(incoming: IncomingMessage, body: Upload["body"] | undefined, signal: AbortSignal): Request {
  const host = incoming.headers.host ?? "localhost";
  const scheme = "encrypted" in incoming.socket ? "https" : "http";
  const url = new URL(incoming.url ?? "/", `${scheme}://${host}`);
  const method = incoming.method ?? "GET";
  const init: RequestInit & { duplex?: "half" } = { method, headers: toHeaders(incoming), signal };
  if (body !== undefined) {
    init.body = body;
    init.duplex = "half";
  }
  return new Request(url, init);
}

function toHeaders({ rawHeaders }: IncomingMessage): Headers {
  const headers = new Headers();
  for (let i = 0; i + 1 < rawHeaders.length; i += 2) {
    const name = rawHeaders[i] ?? "";
    // HTTP/2 pseudo headers are no headers.
    if (!name.startsWith(":")) headers.append(name, rawHeaders[i + 1] ?? "");
  }
  return headers;
}

/** The request's body on its way in. */
interface Upload {
  readonly body: ReadableStream<Uint8Array> | string;
  /** Nobody will read the rest: it is taken from the socket and dropped. */
  discard(): void;
}

function toUpload(incoming: IncomingMessage & { body?: unknown }): Upload | undefined {
  if (incoming.method === "GET" || incoming.method === "HEAD") return undefined;
  if (incoming.readableEnded && incoming.body !== undefined) {
    // A body parser in front (express.json) has read it and left the result.
    const body = typeof incoming.body === "string" ? incoming.body : JSON.stringify(incoming.body);
    return { body, discard: () => undefined };
  }
  let over = false;
  const discard = () => {
    over = true;
    incoming.resume();
  };
  const body = new ReadableStream<Uint8Array>(
    {
      start(controller) {
        incoming.on("data", (part: Uint8Array) => {
          if (over) return;
          controller.enqueue(part);
          if ((controller.desiredSize ?? 0) <= 0) incoming.pause();
        });
        incoming.on("end", () => {
          if (!over) controller.close();
          over = true;
        });
        const broken = () => {
          if (!over) controller.error(new Error("The client closed the connection."));
          over = true;
        };
        incoming.on("error", broken);
        incoming.on("close", broken);
      },
      pull() {
        incoming.resume();
      },
      cancel: discard,
    },
    new ByteLengthQueuingStrategy({ highWaterMark: 65536 }),
  );
  return { body, discard };
}

async function send(response: Response, outgoing: ServerResponse, gone: AbortSignal): Promise<void> {
  if (gone.aborted) {
    await response.body?.cancel();
    return;
  }
  for (const [name, value] of response.headers) {
    if (name === "set-cookie") outgoing.appendHeader(name, value);
    else outgoing.setHeader(name, value);
  }
  outgoing.writeHead(response.status);
  outgoing.flushHeaders();
  if (response.body === null || outgoing.req.method === "HEAD") {
    await response.body?.cancel();
    outgoing.end();
    return;
  }
  const reader = response.body.getReader();
  // The client has gone: nobody is left to hear that the source could not be cancelled.
  const cancel = () => void reader.cancel(gone.reason).catch(() => undefined);
  gone.addEventListener("abort", cancel);
  try {
    for (;;) {
      const { done, value } = await reader.read();
      if (done) break;
      if (!outgoing.write(value)) await drained(outgoing);
    }
    outgoing.end();
  } catch (error) {
    if (!gone.aborted) throw error;
  } finally {
    gone.removeEventListener("abort", cancel);
  }
}

/** Resolves when there is room again, or nobody left to write to. */
function drained(outgoing: ServerResponse): Promise<void> {
  return new Promise((resolve) => {
    const done = () => {
      outgoing.off("drain", done);
      outgoing.off("close", done);
      resolve();
    };
    outgoing.on("drain", done);
    outgoing.on("close", done);
    if (outgoing.destroyed) done();
  });
}

function respondError(outgoing: ServerResponse, status: number, error: unknown): void {
  outgoing.writeHead(status, { "content-type": "application/json", connection: "close" });
  outgoing.end(JSON.stringify(toErrorBody(error)));
}
