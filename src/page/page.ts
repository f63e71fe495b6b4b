import type { FetchHandler } from "../http/handler.js";
import { type Asset, assets } from "./assets.js";
import { type LiveModel, liveEvents } from "./live.js";

/**
 * Only the page's own files run, and they speak with this server alone. Nothing may put markup into the page, not even its
 * own scripts: a model's text stays text.
 */
const securityHeaders = {
  "content-security-policy": [
    "default-src 'none'",
    "script-src 'self'",
    "style-src 'self'",
    "img-src 'self'",
    "connect-src 'self'",
    "base-uri 'none'",
    "form-action 'none'",
    "frame-ancestors 'none'",
    "require-trusted-types-for 'script'",
    "trusted-types 'none'",
  ].join("; "),
  "x-content-type-options": "nosniff",
  "referrer-policy": "no-referrer",
  "cross-origin-opener-policy": "same-origin",
  "cross-origin-resource-policy": "same-origin",
};

/**
 * Puts the chat page in front of a handler: `GET /`, its files under /page/, and /page/live, the state of the batch as
 * server-sent events. Who may list the models may see the batch; everything else is the handler's.
 *
 * @param look the loaded models, now; it throws once there is no engine any more
 */
export function withPage(handler: FetchHandler, look: () => LiveModel[]): FetchHandler {
  return async (input, init) => {
    const request =
      typeof input === "object" && "url" in input && init === undefined ? input : new Request(input, init);
    if (request.method !== "GET" && request.method !== "HEAD") return handler(request);
    const { pathname } = new URL(request.url);
    const asset = assets.get(pathname);
    if (asset !== undefined) return assetResponse(asset, request);
    if (pathname !== "/page/live") return handler(request);
    const refusal = await refusalOf(handler, request);
    if (refusal !== undefined) return refusal;
    return new Response(liveEvents(look), {
      headers: {
        "content-type": "text/event-stream; charset=utf-8",
        "cache-control": "no-cache, no-transform",
        "x-accel-buffering": "no",
        "x-content-type-options": "nosniff",
        // It ends when the server does, which then need not wait for an idle connection.
        connection: "close",
      },
    });
  };
}

function assetResponse({ body, type, etag }: Asset, request: Request): Response {
  // Asked for anew each time, and sent only when it has changed: a new version is there at once.
  const headers = { ...securityHeaders, "content-type": type, etag, "cache-control": "no-cache" };
  if (request.headers.get("if-none-match") === etag) return new Response(null, { status: 304, headers });
  return new Response(body, { headers });
}

/** What the handler has against this caller: keys and hosts are its business alone. */
async function refusalOf(handler: FetchHandler, request: Request): Promise<Response | undefined> {
  const response = await handler(new Request(new URL("/v1/models", request.url), { headers: request.headers }));
  if (!response.ok) return response;
  await response.body?.cancel();
  return undefined;
}
