import { randomUUID } from "node:crypto";
import {
  AbortError,
  BadRequestError,
  EngineClosedError,
  NotFoundError,
  RateLimitError,
  TokenloopError,
  toErrorBody,
} from "../errors.js";
import type { ChatCompletion } from "../openai/types.js";
import { ChatCompletionStream } from "../stream.js";
import { readJson } from "./body.js";
import { toServerSentEvents } from "./sse.js";

/** As `fetch`: Request in, Response out, or a URL and an init as OpenAI's client gives them. */
export type FetchHandler = (input: Request | URL | string, init?: RequestInit) => Promise<Response>;

/** What the handler needs of an engine. */
export interface HandlerEngine {
  readonly info: { readonly id: string; readonly created: number };
  create(body: unknown, signal: AbortSignal): Promise<ChatCompletion | ChatCompletionStream>;
  isClosed(): boolean;
}

/** One HTTP exchange. `signal` ends it: the client has gone. */
interface Exchange {
  request: Request;
  signal: AbortSignal;
  headers: Record<string, string>;
}

interface Route {
  readonly pattern: RegExp;
  readonly method: "GET" | "POST";
  handle(engine: HandlerEngine, exchange: Exchange, match: RegExpExecArray): Promise<Response> | Response;
}

const routes: readonly Route[] = [
  { pattern: /^(?:\/v1)?\/chat\/completions$/, method: "POST", handle: chatCompletions },
  { pattern: /^(?:\/v1)?\/models$/, method: "GET", handle: listModels },
  { pattern: /^(?:\/v1)?\/models\/(.+)$/, method: "GET", handle: retrieveModel },
  { pattern: /^(?:\/v1)?\/health$/, method: "GET", handle: health },
];

/**
 * The HTTP side of an engine: POST /v1/chat/completions, GET /v1/models, GET /v1/models/{id} and GET /health, with or
 * without /v1. Every failure is an answer in OpenAI's error shape; only an abort rejects, as it does with `fetch`.
 */
export function createHandler(engine: HandlerEngine): FetchHandler {
  // A Request's signal follows its creator's only until the Request is collected: whoever listens to it, holds both.
  const held = new WeakMap<AbortSignal, Request>();
  return async (input, init) => {
    const request = isRequest(input) && init === undefined ? input : new Request(input, init);
    const signal = init?.signal ?? request.signal;
    if (signal === request.signal) held.set(signal, request);
    const headers = { "x-request-id": requestId(request) };
    try {
      return await dispatch(engine, { request, signal, headers });
    } catch (error) {
      if (error instanceof AbortError) throw error;
      return errorResponse(error, headers);
    }
  };
}

function dispatch(engine: HandlerEngine, exchange: Exchange): Promise<Response> | Response {
  const { method, url } = exchange.request;
  const path = new URL(url).pathname.replace(/(?<=.)\/$/, "");
  for (const route of routes) {
    const match = route.pattern.exec(path);
    if (match === null) continue;
    if (method === route.method || (method === "HEAD" && route.method === "GET")) {
      return route.handle(engine, exchange, match);
    }
    exchange.headers.allow = route.method === "GET" ? "GET, HEAD" : route.method;
    throw new BadRequestError(`${method} is not allowed here: use ${route.method}.`, null, "method_not_allowed", 405);
  }
  throw new NotFoundError(`Unknown route: ${method} ${path.slice(0, 200)}`, "unknown_url");
}

async function chatCompletions(engine: HandlerEngine, exchange: Exchange): Promise<Response> {
  const { request, signal, headers } = exchange;
  const body = await readJson(request, signal);
  const answer = await engine.create(body, signal);
  if (!(answer instanceof ChatCompletionStream)) return json(answer, headers);
  return new Response(toServerSentEvents(answer), {
    headers: {
      ...headers,
      "content-type": "text/event-stream; charset=utf-8",
      // Proxies must neither keep, change, nor hold back what streams.
      "cache-control": "no-cache, no-transform",
      "x-accel-buffering": "no",
    },
  });
}

function listModels(engine: HandlerEngine, { headers }: Exchange): Response {
  return json({ object: "list", data: [model(engine)] }, headers);
}

function retrieveModel(engine: HandlerEngine, { headers }: Exchange, match: RegExpExecArray): Response {
  const id = decode(match[1] ?? "");
  if (id !== engine.info.id) {
    throw new NotFoundError(`The model '${id.slice(0, 200)}' does not exist.`, "model_not_found", "model");
  }
  return json(model(engine), headers);
}

function health(engine: HandlerEngine, { headers }: Exchange): Response {
  if (engine.isClosed()) throw new EngineClosedError();
  return json({ status: "ok" }, headers);
}

function model({ info }: HandlerEngine) {
  return { id: info.id, object: "model", created: info.created, owned_by: "tokenloop" };
}

function json(body: unknown, headers: Record<string, string>, status = 200): Response {
  return new Response(JSON.stringify(body), { status, headers: { ...headers, "content-type": "application/json" } });
}

function errorResponse(error: unknown, headers: Record<string, string>): Response {
  const status = error instanceof TokenloopError ? error.status : 500;
  const extra: Record<string, string> = {};
  if (error instanceof RateLimitError) {
    extra["retry-after"] = String(Math.max(1, Math.ceil(error.retryAfter)));
    extra["retry-after-ms"] = String(Math.round(error.retryAfter * 1000));
  }
  // A closed engine stays closed: OpenAI's client must not try again.
  if (error instanceof EngineClosedError) extra["x-should-retry"] = "false";
  return json(toErrorBody(error), { ...headers, ...extra }, status);
}

function requestId(request: Request): string {
  const given = request.headers.get("x-request-id");
  return given !== null && /^[\w.:-]{1,128}$/.test(given) ? given : `req_${randomUUID().replaceAll("-", "")}`;
}

function decode(path: string): string {
  try {
    return decodeURIComponent(path);
  } catch {
    return path;
  }
}

/** Also true for Requests of another realm or library. */
function isRequest(input: Request | URL | string): input is Request {
  return typeof input === "object" && "headers" in input && "method" in input && "url" in input;
}
