import { Agent as HttpAgent, request as httpRequest, type IncomingMessage } from "node:http";
import { Agent as HttpsAgent, request as httpsRequest } from "node:https";
import { EventReader } from "./events.js";
import { processUsage } from "./process-usage.js";
import { type Chunk, type OnChunk, RequestFailure, type Target } from "./target.js";

export interface ServerOptions {
  /** As an OpenAI client takes it, e.g. `http://127.0.0.1:8080/v1`. */
  baseUrl: URL;
  apiKey?: string | undefined;
  /** Default: the first that the server lists. */
  model?: string | undefined;
  /** Of the server, where it runs on this machine and its CPU and memory shall be measured. */
  pid?: number | undefined;
  signal?: AbortSignal | undefined;
}

/** A server that speaks OpenAI's chat completions. */
export async function serverTarget(options: ServerOptions): Promise<Target> {
  const server = new Server(options.baseUrl, options.apiKey);
  const { pid } = options;
  const listed = options.model === undefined ? await server.models(options.signal) : undefined;
  const model = options.model ?? listed?.[0];
  if (model === undefined) throw new RequestFailure("no_model", "The server lists no model: name one with --model.");
  return {
    kind: "server",
    model,
    // A URL may hold a password.
    about: { base_url: `${options.baseUrl.origin}${options.baseUrl.pathname}` },
    send: (body, signal, onChunk) => server.stream({ model, ...body, stream: true }, signal, onChunk),
    usage: async () => (pid === undefined ? undefined : processUsage(pid)),
    close: async () => server.close(),
  };
}

class Server {
  readonly #base: URL;
  readonly #headers: Record<string, string>;
  // One socket for each request that runs, kept for the next one.
  readonly #agent: HttpAgent;

  constructor(base: URL, apiKey: string | undefined) {
    this.#base = base;
    this.#agent = base.protocol === "https:" ? new HttpsAgent({ keepAlive: true }) : new HttpAgent({ keepAlive: true });
    this.#headers = apiKey === undefined ? {} : { authorization: `Bearer ${apiKey}` };
  }

  async models(signal: AbortSignal | undefined): Promise<string[]> {
    const response = await this.#request("models", undefined, signal);
    const text = await readAll(response);
    if (response.statusCode !== 200) throw failureOf(response, text);
    const body = parse(text) as { data?: unknown } | undefined;
    const data: unknown[] = Array.isArray(body?.data) ? body.data : [];
    return data.flatMap((entry) => {
      const id = (entry as { id?: unknown } | null)?.id;
      return typeof id === "string" ? [id] : [];
    });
  }

  async stream(body: Record<string, unknown>, signal: AbortSignal, onChunk: OnChunk): Promise<void> {
    const response = await this.#request("chat/completions", JSON.stringify(body), signal);
    if (response.statusCode !== 200) throw failureOf(response, await readAll(response));
    const reader = new EventReader();
    let done = false;
    // Not `for await`: it would wait for its turn before it looks at the clock.
    await new Promise<void>((resolve, reject) => {
      response.on("data", (bytes: Buffer) => {
        const at = performance.now();
        for (const data of reader.push(bytes)) {
          if (data === "[DONE]") done = true;
          else if (!take(data, at, onChunk, reject)) response.destroy();
        }
      });
      response.on("end", () => {
        if (done) resolve();
        else reject(new RequestFailure("stream_ended_early", "The stream ended without [DONE]."));
      });
      response.on("error", (error) => reject(connectionFailure(error, signal)));
    });
  }

  #request(path: string, body: string | undefined, signal: AbortSignal | undefined): Promise<IncomingMessage> {
    const url = new URL(`${this.#base.pathname.replace(/\/$/, "")}/${path}`, this.#base);
    const send = url.protocol === "https:" ? httpsRequest : httpRequest;
    return new Promise((resolve, reject) => {
      const outgoing = send(url, {
        method: body === undefined ? "GET" : "POST",
        agent: this.#agent,
        headers: {
          ...this.#headers,
          accept: "application/json, text/event-stream",
          ...(body === undefined
            ? {}
            : { "content-type": "application/json", "content-length": Buffer.byteLength(body) }),
        },
        ...(signal === undefined ? {} : { signal }),
      });
      outgoing.on("response", resolve);
      outgoing.on("error", (error) => reject(connectionFailure(error, signal)));
      outgoing.end(body);
    });
  }

  close(): void {
    this.#agent.destroy();
  }
}

/** False when there will be no more: the event is an error, or none that can be read. */
function take(data: string, at: number, onChunk: OnChunk, reject: (error: Error) => void): boolean {
  const value = parse(data);
  if (value === undefined) {
    reject(new RequestFailure("invalid_json", `An event is not JSON: ${data.slice(0, 200)}`));
    return false;
  }
  if ("error" in value) {
    reject(new RequestFailure(`stream ${codeOf(value)}`, messageOf(value)));
    return false;
  }
  onChunk(value as Chunk, at);
  return true;
}

function failureOf({ statusCode = 0 }: IncomingMessage, text: string): RequestFailure {
  const body = parse(text) ?? {};
  return new RequestFailure(`${statusCode} ${codeOf(body)}`.trim(), messageOf(body) || text.slice(0, 200));
}

function connectionFailure(error: NodeJS.ErrnoException, signal: AbortSignal | undefined): unknown {
  if (signal?.aborted) return signal.reason;
  return new RequestFailure(error.code ?? "connection", error.message || String(error.code));
}

function codeOf(body: object): string {
  const { error } = body as { error?: { code?: unknown; type?: unknown } | null };
  return String(error?.code ?? error?.type ?? "");
}

function messageOf(body: object): string {
  const { error } = body as { error?: { message?: unknown } | string | null };
  return typeof error === "string" ? error : String(error?.message ?? "");
}

function parse(text: string): object | undefined {
  try {
    const value: unknown = JSON.parse(text);
    return typeof value === "object" && value !== null ? value : undefined;
  } catch {
    return undefined;
  }
}

async function readAll(response: IncomingMessage): Promise<string> {
  const parts: Buffer[] = [];
  for await (const part of response) parts.push(part as Buffer);
  return Buffer.concat(parts).toString("utf8");
}
