import { createHash, timingSafeEqual } from "node:crypto";
import { AuthenticationError, BadRequestError } from "../errors.js";
import { limits } from "../openai/limits.js";

export interface HandlerOptions {
  /**
   * Keys, one of which a request must bear (`Authorization: Bearer KEY`); default: none is asked for. /health and /ready
   * need none.
   */
  apiKeys?: readonly string[] | undefined;
  /** Origins of web pages that may read answers, e.g. "https://app.example.com", or "*" for all; default: none. */
  cors?: "*" | readonly string[] | undefined;
  /**
   * Names that the Host header may have, without a port; default: any. A server without keys on a loopback address needs
   * them: else a web page whose name is made to point there can use it.
   */
  hosts?: readonly string[] | undefined;
  /** Bytes of a request's body, 1..1 GiB; default 16 MiB. */
  bodyBytes?: number | undefined;
}

/** Who may use a handler. */
export interface Access {
  readonly bodyBytes: number;
  /**
   * @throws {AuthenticationError} 401: no key, or a wrong one.
   * @throws {BadRequestError} 403: a Host that is not allowed.
   */
  check(request: Request, isPublic: boolean): void;
  /** Headers that let a page of the request's origin read the answer. */
  corsHeaders(request: Request): Record<string, string>;
}

/** @throws {BadRequestError} code "invalid_option". */
export function toAccess({ apiKeys = [], cors = [], hosts, bodyBytes = limits.bodyBytes }: HandlerOptions): Access {
  for (const [name, value] of Object.entries({ apiKeys, ...(cors === "*" ? {} : { cors }), hosts: hosts ?? [] })) {
    if (Array.isArray(value) && value.every((each) => typeof each === "string" && each !== "")) continue;
    throw wrongOption(name, "an array of strings, none empty");
  }
  if (!Number.isInteger(bodyBytes) || bodyBytes < 1 || bodyBytes > 1 << 30) {
    throw wrongOption("bodyBytes", `an integer from 1 to ${1 << 30}`);
  }
  const digests = apiKeys.map(digest);
  const allowedHosts = hosts === undefined ? undefined : new Set(hosts.map((host) => host.toLowerCase()));
  return {
    bodyBytes,
    check(request, isPublic) {
      if (allowedHosts !== undefined && !allowedHosts.has(hostOf(request))) {
        const message = `The host '${hostOf(request).slice(0, 100)}' is not one of this server's names.`;
        throw new BadRequestError(message, null, "host_not_allowed", 403);
      }
      if (digests.length > 0 && !isPublic) checkKey(request, digests);
    },
    corsHeaders(request) {
      const origin = request.headers.get("origin");
      if (origin === null || cors.length === 0) return {};
      if (cors === "*") return { ...corsHeaders(request), "access-control-allow-origin": "*" };
      if (!cors.includes(origin)) return { vary: "Origin" };
      return { ...corsHeaders(request), "access-control-allow-origin": origin, vary: "Origin" };
    },
  };
}

/** What a page of an allowed origin may send and read. */
function corsHeaders(request: Request): Record<string, string> {
  if (request.method !== "OPTIONS") return { "access-control-expose-headers": "*" };
  return {
    "access-control-allow-methods": "GET, POST",
    "access-control-allow-headers": request.headers.get("access-control-request-headers") ?? "",
    "access-control-max-age": "86400",
  };
}

function checkKey(request: Request, digests: readonly Buffer[]): void {
  const header = request.headers.get("authorization");
  const given = /^Bearer +(\S+) *$/i.exec(header ?? "")?.[1];
  if (given === undefined) {
    throw new AuthenticationError("An API key is needed: send 'authorization: Bearer KEY'.");
  }
  const mine = digest(given);
  // Every key is compared, whole: neither how much of a key is right nor which one it is shows in the time.
  const right = digests.map((each) => timingSafeEqual(each, mine)).includes(true);
  if (!right) throw new AuthenticationError("The API key is wrong.");
}

/** Of one length, as timingSafeEqual wants it. */
function digest(key: string): Buffer {
  return createHash("sha256").update(key).digest();
}

function hostOf(request: Request): string {
  return new URL(request.url).hostname.toLowerCase();
}

function wrongOption(name: string, expected: string): BadRequestError {
  return new BadRequestError(`Invalid option '${name}': expected ${expected}.`, name, "invalid_option");
}
