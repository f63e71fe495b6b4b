import { BadRequestError } from "../errors.js";

/** `invalid_schema`: not a JSON Schema, or nothing satisfies it. `unsupported_schema`: sound, but no grammar says it. */
export type SchemaErrorCode = "invalid_schema" | "unsupported_schema";

/** What is wrong with a schema, wherever it came from: plain data, which threads can send each other. */
export interface SchemaFailure {
  /** Without the place. */
  reason: string;
  pointer: string;
  keyword: string;
  code: SchemaErrorCode;
}

/**
 * A schema that cannot be enforced exactly (400). `param` is the request's field that it came in, `pointer` the JSON
 * pointer of the offending `keyword` within the schema.
 */
export class SchemaError extends BadRequestError {
  readonly pointer: string;
  readonly keyword: string;
  /** @internal */
  readonly failure: SchemaFailure;

  constructor(failure: SchemaFailure, param = "response_format") {
    super(`Schema at '${clip(failure.pointer) || "/"}': ${failure.reason}`, param, failure.code);
    this.pointer = failure.pointer;
    this.keyword = failure.keyword;
    this.failure = failure;
  }
}

/** It takes longer than it may. */
export class SchemaTimeoutError extends SchemaError {
  constructor(place: Place, milliseconds: number) {
    const reason = `it takes longer than ${milliseconds} ms.`;
    super({ reason, pointer: place.pointer, keyword: "", code: "unsupported_schema" });
  }
}

/** A place in the schema that an error can point at. */
export interface Place {
  pointer: string;
}

export function invalid(place: Place, keyword: string, reason: string): SchemaError {
  return new SchemaError({ reason, pointer: at(place, keyword), keyword, code: "invalid_schema" });
}

export function unsupported(place: Place, keyword: string, reason: string): SchemaError {
  return new SchemaError({ reason, pointer: at(place, keyword), keyword, code: "unsupported_schema" });
}

function at(place: Place, keyword: string): string {
  return keyword === "" ? place.pointer : `${place.pointer}/${escapePointer(keyword)}`;
}

export function escapePointer(step: string): string {
  return step.replaceAll("~", "~0").replaceAll("/", "~1");
}

function clip(text: string): string {
  return text.length > 200 ? `${text.slice(0, 200)}…` : text;
}
