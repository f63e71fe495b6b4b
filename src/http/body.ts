import { AbortError, BadRequestError } from "../errors.js";
import { limits } from "../openai/limits.js";

/**
 * The JSON of a request's body.
 *
 * @throws {BadRequestError} 415 another content type, 413 too many bytes, 400 no JSON.
 * @throws {AbortError} the client went while it was sending.
 */
export async function readJson(
  request: Request,
  signal: AbortSignal,
  limit: number = limits.bodyBytes,
): Promise<unknown> {
  checkContentType(request.headers.get("content-type"));
  const declared = Number(request.headers.get("content-length") ?? 0);
  if (declared > limit) throw tooLarge(limit);
  const bytes = await readBytes(request, signal, limit);
  try {
    return JSON.parse(new TextDecoder("utf-8", { fatal: true }).decode(bytes));
  } catch (error) {
    const reason = error instanceof SyntaxError ? error.message : "it is not UTF-8";
    throw new BadRequestError(`The body is not valid JSON: ${reason}`, null, "invalid_json");
  }
}

/** A page in a browser can send other types to a local server without asking first; JSON it cannot. */
function checkContentType(header: string | null): void {
  const type = header?.split(";")[0]?.trim().toLowerCase();
  if (type === undefined || type === "" || type === "application/json" || type.endsWith("+json")) return;
  throw new BadRequestError(
    `Content type '${type.slice(0, 100)}' is not supported: send 'content-type: application/json'.`,
    null,
    "unsupported_media_type",
    415,
  );
}

async function readBytes(request: Request, signal: AbortSignal, limit: number): Promise<Uint8Array> {
  if (request.body === null) return new Uint8Array();
  const reader = request.body.getReader();
  const parts: Uint8Array[] = [];
  let length = 0;
  for (;;) {
    const { done, value } = await readPart(reader, signal);
    if (done) return Buffer.concat(parts, length);
    length += value.byteLength;
    if (length > limit) {
      // The rest is of no use; a source that fails to be cancelled changes nothing about the answer.
      reader.cancel().catch(() => undefined);
      throw tooLarge(limit);
    }
    parts.push(value);
  }
}

async function readPart(reader: ReadableStreamDefaultReader<Uint8Array>, signal: AbortSignal) {
  try {
    return await reader.read();
  } catch (error) {
    if (signal.aborted) throw new AbortError(signal.reason);
    const reason = error instanceof Error ? error.message : String(error);
    throw new BadRequestError(`The body could not be read: ${reason}`, null, "invalid_body");
  }
}

function tooLarge(limit: number): BadRequestError {
  return new BadRequestError(`The body is too large: at most ${limit} bytes.`, null, "request_too_large", 413);
}
