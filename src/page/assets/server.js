import { eventsOf } from "./events.js";

/** What the server, or the way to it, has against a request. */
export class ServerError extends Error {
  /** @param {string} message @param {number} status 0: there was no answer */
  constructor(message, status) {
    super(message);
    this.name = "ServerError";
    this.status = status;
  }
}

let apiKey = "";

/** @param {string} key "": none */
export function useApiKey(key) {
  apiKey = key;
}

/**
 * Paths are relative: the page may be served under any path.
 *
 * @param {string} path
 * @param {{ body?: unknown, signal?: AbortSignal }} [options]
 */
async function request(path, { body, signal } = {}) {
  /** @type {Record<string, string>} */
  const headers = apiKey === "" ? {} : { authorization: `Bearer ${apiKey}` };
  if (body !== undefined) headers["content-type"] = "application/json";
  /** @type {RequestInit} */
  const init = { headers, method: body === undefined ? "GET" : "POST" };
  if (body !== undefined) init.body = JSON.stringify(body);
  if (signal !== undefined) init.signal = signal;
  const response = await fetch(path, init).catch((error) => {
    if (signal?.aborted) throw error;
    throw new ServerError("The server does not answer.", 0);
  });
  if (!response.ok) throw await errorOf(response);
  return response;
}

/** @param {Response} response */
async function errorOf(response) {
  // A proxy's error need not be JSON: then its status is all there is to say.
  const body = await response.json().catch(() => undefined);
  return new ServerError(body?.error?.message ?? `The server answers ${response.status}.`, response.status);
}

/** @returns {Promise<string[]>} ids */
export async function listModels() {
  const { data } = await (await request("v1/models")).json();
  return data.map((/** @type {{ id: string }} */ { id }) => id);
}

/**
 * The chunks of a streamed answer.
 *
 * @param {object} body
 * @param {AbortSignal} signal
 * @returns {AsyncGenerator<import("./types.js").Chunk>}
 */
export async function* streamChat(body, signal) {
  const response = await request("v1/chat/completions", { body: { ...body, stream: true }, signal });
  let ended = false;
  for await (const data of eventsOf(response)) {
    if (data === "[DONE]") {
      ended = true;
      break;
    }
    const chunk = JSON.parse(data);
    if (chunk.error) throw new ServerError(chunk.error.message ?? "The answer broke off.", 0);
    yield chunk;
  }
  if (!ended) throw new ServerError("The answer broke off.", 0);
}

/**
 * States of the batch, as they change. Ends when the server ends it.
 *
 * @param {AbortSignal} signal
 * @returns {AsyncGenerator<import("./types.js").Live>}
 */
export async function* liveStates(signal) {
  const response = await request("page/live", { signal });
  for await (const data of eventsOf(response)) yield JSON.parse(data);
}
