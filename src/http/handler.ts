import { randomUUID } from "node:crypto";
import {
  AbortError,
  AuthenticationError,
  BadRequestError,
  EngineClosedError,
  NotFoundError,
  RateLimitError,
  TokenloopError,
  toErrorBody,
} from "../errors.js";
import { type Access, type HandlerOptions, toAccess } from "./access.js";
import { type Exchange, type HandlerEngine, json, type Route, routes } from "./routes.js";

export type { HandlerEngine } from "./routes.js";

/** As `fetch`: Request in, Response out, or a URL and an init as OpenAI's client gives them. */
export type FetchHandler = (input: Request | URL | string, init?: RequestInit) => Promise<Response>;

/**
 * The HTTP side of an engine: the routes of routes.ts, each with or without /v1. Every failure is an answer in OpenAI's
 * error shape; only an abort rejects, as it does with `fetch`.
 *
 * @throws {BadRequestError} code "invalid_option", `param` names it.
 */
export function createHandler(engine: HandlerEngine, options: HandlerOptions = {}): FetchHandler {
  const access = toAccess(options);
  // A Request's signal follows its creator's only until the Request is collected: whoever listens to it, holds both.
  const held = new WeakMap<AbortSignal, Request>();
  return async (input, second) => {
    const init = isRequest(input) && !isInit(second) ? undefined : second;
    const request = isRequest(input) && init === undefined ? input : new Request(input, init);
    const signal = init?.signal ?? request.signal;
    if (signal === request.signal) held.set(signal, request);
    const headers = { ...idHeaders(request), ...access.corsHeaders(request) };
    try {
      return await dispatch(engine, access, { request, signal, headers, bodyBytes: access.bodyBytes });
    } catch (error) {
      if (error instanceof AbortError) throw error;
      return errorResponse(error, headers);
    }
  };
}

function dispatch(engine: HandlerEngine, access: Access, exchange: Exchange): Promise<Response> | Response {
  const { request, headers } = exchange;
  const { method, url } = request;
  if (method === "OPTIONS" && headers["access-control-allow-methods"] !== undefined) {
    // A page's browser asks before it sends anything, keys included.
    access.check(request, true);
    return new Response(null, { status: 204, headers });
  }
  const path = new URL(url).pathname.replace(/(?<=.)\/$/, "");
  const found = findRoute(path);
  access.check(request, found?.route.isPublic === true);
  if (found === undefined) throw new NotFoundError(`Unknown route: ${method} ${path.slice(0, 200)}`, "unknown_url");
  const { route, match } = found;
  if (method === route.method || (method === "HEAD" && route.method === "GET")) {
    return route.handle(engine, exchange, match);
  }
  headers.allow = route.method === "GET" ? "GET, HEAD" : route.method;
  throw new BadRequestError(`${method} is not allowed here: use ${route.method}.`, null, "method_not_allowed", 405);
}

function findRoute(path: string): { route: Route; match: RegExpExecArray } | undefined {
  for (const route of routes) {
    const match = route.pattern.exec(path);
    if (match !== null) return { route, match };
  }
  return undefined;
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
  if (error instanceof AuthenticationError) extra["www-authenticate"] = "Bearer";
  return json(toErrorBody(error), { ...headers, ...extra }, status);
}

/** A caller's own ids come back; without one of its own, an exchange is correlated by its request id. */
function idHeaders(request: Request): Record<string, string> {
  const given = (name: string) => {
    const value = request.headers.get(name);
    return value !== null && /^[\w.:-]{1,128}$/.test(value) ? value : undefined;
  };
  const id = given("x-request-id") ?? `req_${randomUUID().replaceAll("-", "")}`;
  return { "x-request-id": id, "x-correlation-id": given("x-correlation-id") ?? id };
}

/** Bun, Deno and workers hand a server or an environment to a handler in this place. */
function isInit(value: object | undefined): value is RequestInit {
  return value !== undefined && ["method", "headers", "body", "signal", "duplex"].some((key) => key in value);
}

/** Also true for Requests of another realm or library. */
function isRequest(input: Request | URL | string): input is Request {
  return typeof input === "object" && "headers" in input && "method" in input && "url" in input;
}
