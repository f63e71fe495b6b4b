import { BadRequestError, EngineClosedError, NotFoundError } from "../errors.js";
import type { NativePieces, NativeStats } from "../native.js";
import { CompletionStream } from "../openai/completion-chunks.js";
import type { Completion } from "../openai/completion-params.js";
import { limits } from "../openai/limits.js";
import { isObject, type PlainObject, wellFormed } from "../openai/plain.js";
import { isTokenId } from "../openai/sampling.js";
import type { ChatCompletion } from "../openai/types.js";
import { ChatCompletionStream } from "../stream.js";
import { readJson } from "./body.js";
import { withExtraUsage } from "./extra-usage.js";
import { metricsContentType, metricsText } from "./metrics.js";
import { type ReadyChunks, toServerSentEvents } from "./sse.js";

/** What the handler needs of an engine, or of several models behind one name. */
export interface HandlerEngine {
  /** The models that requests may name. */
  models(): readonly ModelEntry[];
  /** By name, or another name that stands for it. */
  findModel(id: string): ModelEntry | undefined;
  chat(body: unknown, signal: AbortSignal): Promise<ChatCompletion | ChatCompletionStream>;
  state(): "open" | "draining" | "closed";
  /** What is about one engine; of several models that of the one that is named, or of the default. */
  readonly single: SingleEngine;
}

export interface ModelEntry {
  readonly id: string;
  /** Unix time in seconds. */
  readonly created: number;
}

export interface SingleEngine {
  complete(body: unknown, signal: AbortSignal): Promise<Completion | CompletionStream>;
  tokenize(text: string, addSpecial: boolean, parseSpecial: boolean): Promise<Int32Array>;
  pieces(tokens: Int32Array): Promise<NativePieces>;
  applyTemplate(body: PlainObject): Promise<string>;
  stats(): NativeStats;
}

/** One HTTP exchange. `signal` ends it: the client has gone. */
export interface Exchange {
  readonly request: Request;
  readonly signal: AbortSignal;
  readonly headers: Record<string, string>;
  /** Most bytes of a body. */
  readonly bodyBytes: number;
}

export interface Route {
  readonly pattern: RegExp;
  readonly method: "GET" | "POST";
  /** For the reference. */
  readonly path: string;
  readonly description: string;
  /** Needs no key. */
  readonly isPublic?: boolean;
  handle(engine: HandlerEngine, exchange: Exchange, match: RegExpExecArray): Promise<Response> | Response;
}

export const routes: readonly Route[] = [
  {
    pattern: /^(?:\/v1)?\/chat\/completions$/,
    method: "POST",
    path: "/v1/chat/completions",
    description: "Chat completions, whole or streamed.",
    handle: chatCompletions,
  },
  {
    pattern: /^(?:\/v1)?\/completions$/,
    method: "POST",
    path: "/v1/completions",
    description:
      "Text completions, OpenAI's older kind: prompts as text or token ids, `echo`, `logprobs`, `n`, `stop`, `stream`.",
    handle: textCompletions,
  },
  {
    pattern: /^(?:\/v1)?\/embeddings$/,
    method: "POST",
    path: "/v1/embeddings",
    description: "Refused with a 400, code `unsupported_model`: an engine loads models that generate text.",
    handle: embeddings,
  },
  {
    pattern: /^(?:\/v1)?\/models$/,
    method: "GET",
    path: "/v1/models",
    description: "The loaded model, in a list.",
    handle: listModels,
  },
  {
    pattern: /^(?:\/v1)?\/models\/(.+)$/,
    method: "GET",
    path: "/v1/models/{id}",
    description: "The loaded model; a 404 for every other id.",
    handle: retrieveModel,
  },
  {
    pattern: /^(?:\/v1)?\/tokenize$/,
    method: "POST",
    path: "/tokenize",
    description:
      "llama-server's: `{content, add_special = false, parse_special = true, with_pieces = false}` to `{tokens}`, ids or `{id, piece}`.",
    handle: tokenize,
  },
  {
    pattern: /^(?:\/v1)?\/detokenize$/,
    method: "POST",
    path: "/detokenize",
    description: "llama-server's: `{tokens}` to `{content}`.",
    handle: detokenize,
  },
  {
    pattern: /^(?:\/v1)?\/apply-template$/,
    method: "POST",
    path: "/apply-template",
    description: "llama-server's: `{messages}` to `{prompt}`, what the model's chat template makes of them.",
    handle: applyTemplate,
  },
  {
    pattern: /^(?:\/v1)?\/health$/,
    method: "GET",
    path: "/health",
    description: "200 as long as the engine is not closed. Needs no key.",
    isPublic: true,
    handle: health,
  },
  {
    pattern: /^(?:\/v1)?\/ready$/,
    method: "GET",
    path: "/ready",
    description: "200 while the engine takes requests, 503 once it drains. Needs no key.",
    isPublic: true,
    handle: ready,
  },
  {
    pattern: /^(?:\/v1)?\/metrics$/,
    method: "GET",
    path: "/metrics",
    description: "Counters and gauges of the token loop, in Prometheus's text format.",
    handle: metrics,
  },
];

export function json(body: unknown, headers: Record<string, string>, status = 200): Response {
  return new Response(JSON.stringify(body), { status, headers: { ...headers, "content-type": "application/json" } });
}

async function chatCompletions(engine: HandlerEngine, exchange: Exchange): Promise<Response> {
  const answer = await engine.chat(await body(exchange), exchange.signal);
  return answer instanceof ChatCompletionStream ? events(answer, exchange) : whole(answer, exchange);
}

async function textCompletions(engine: HandlerEngine, exchange: Exchange): Promise<Response> {
  const answer = await engine.single.complete(await body(exchange), exchange.signal);
  return answer instanceof CompletionStream ? events(answer, exchange) : whole(answer, exchange);
}

function whole(answer: ChatCompletion | Completion, { request, headers }: Exchange): Response {
  return json(request.headers.has("extra-usage") ? withExtraUsage()(answer) : answer, headers);
}

function events(chunks: ReadyChunks, { request, headers }: Exchange): Response {
  const change = request.headers.has("extra-usage") ? withExtraUsage() : undefined;
  return new Response(toServerSentEvents(chunks, change), {
    headers: {
      ...headers,
      "content-type": "text/event-stream; charset=utf-8",
      // Proxies must neither keep, change, nor hold back what streams.
      "cache-control": "no-cache, no-transform",
      "x-accel-buffering": "no",
    },
  });
}

async function embeddings(_engine: HandlerEngine, exchange: Exchange): Promise<Response> {
  await body(exchange);
  const message = "This engine has no embeddings: its model generates text.";
  throw new BadRequestError(message, "model", "unsupported_model");
}

function listModels(engine: HandlerEngine, { headers }: Exchange): Response {
  return json({ object: "list", data: engine.models().map(model) }, headers);
}

function retrieveModel(engine: HandlerEngine, { headers }: Exchange, match: RegExpExecArray): Response {
  const id = decode(match[1] ?? "");
  const entry = engine.findModel(id);
  if (entry === undefined) {
    throw new NotFoundError(`The model '${id.slice(0, 200)}' does not exist.`, "model_not_found", "model");
  }
  return json(model(entry), headers);
}

function model({ id, created }: ModelEntry) {
  return { id, object: "model", created, owned_by: "tokenloop" };
}

async function tokenize(engine: HandlerEngine, exchange: Exchange): Promise<Response> {
  const fields = await bodyOf(exchange, ["content", "add_special", "parse_special", "with_pieces"]);
  const { content } = fields;
  if (typeof content !== "string") throw wrongType("content", "string");
  const tokens = await engine.single.tokenize(
    wellFormed(content),
    flag(fields, "add_special", false),
    flag(fields, "parse_special", true),
  );
  if (!flag(fields, "with_pieces", false)) return json({ tokens: [...tokens] }, exchange.headers);
  const { bytes, ends } = await engine.single.pieces(tokens);
  const pieces = [...tokens].map((id, i) => ({ id, piece: pieceOf(bytes.subarray(ends[i - 1] ?? 0, ends[i])) }));
  return json({ tokens: pieces }, exchange.headers);
}

/** Text, or the bytes where they are only a part of a character. */
function pieceOf(bytes: Uint8Array): string | number[] {
  try {
    return new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(bytes);
  } catch {
    return [...bytes];
  }
}

async function detokenize(engine: HandlerEngine, exchange: Exchange): Promise<Response> {
  const { tokens } = await bodyOf(exchange, ["tokens"]);
  if (!Array.isArray(tokens) || !tokens.every(isTokenId)) throw wrongType("tokens", "an array of token ids");
  if (tokens.length > limits.tokens) {
    throw new BadRequestError(`'tokens' is too long: at most ${limits.tokens} items.`, "tokens");
  }
  const { bytes } = await engine.single.pieces(Int32Array.from(tokens));
  const content = new TextDecoder("utf-8", { ignoreBOM: true }).decode(bytes);
  return json({ content }, exchange.headers);
}

async function applyTemplate(engine: HandlerEngine, exchange: Exchange): Promise<Response> {
  const fields = await body(exchange);
  if (!isObject(fields)) throw new BadRequestError("The request must be a JSON object.", null, "invalid_type");
  return json({ prompt: await engine.single.applyTemplate(fields) }, exchange.headers);
}

function health(engine: HandlerEngine, { headers }: Exchange): Response {
  if (engine.state() === "closed") throw new EngineClosedError();
  return json({ status: "ok" }, headers);
}

function ready(engine: HandlerEngine, { headers }: Exchange): Response {
  if (engine.state() === "closed") throw new EngineClosedError();
  if (engine.state() === "draining") throw new EngineClosedError("The engine is draining.", "engine_draining");
  return json({ status: "ok" }, headers);
}

function metrics(engine: HandlerEngine, { headers }: Exchange): Response {
  return new Response(metricsText(engine.single.stats()), {
    headers: { ...headers, "content-type": metricsContentType },
  });
}

function body({ request, signal, bodyBytes }: Exchange): Promise<unknown> {
  return readJson(request, signal, bodyBytes);
}

/** A body with no other fields than these. */
async function bodyOf(exchange: Exchange, names: readonly string[]): Promise<PlainObject> {
  const fields = await body(exchange);
  if (!isObject(fields)) throw new BadRequestError("The request must be a JSON object.", null, "invalid_type");
  const unknown = Object.keys(fields).find((name) => !names.includes(name));
  if (unknown !== undefined) {
    const shown = unknown.slice(0, 64);
    throw new BadRequestError(`Unknown parameter: '${shown}'.`, shown, "unknown_parameter");
  }
  return fields;
}

function flag(fields: PlainObject, name: string, fallback: boolean): boolean {
  const value = fields[name] ?? fallback;
  if (typeof value !== "boolean") throw wrongType(name, "boolean");
  return value;
}

function wrongType(name: string, expected: string): BadRequestError {
  return new BadRequestError(`Invalid type for '${name}': expected ${expected}.`, name, "invalid_type");
}

function decode(path: string): string {
  try {
    return decodeURIComponent(path);
  } catch {
    return path;
  }
}
