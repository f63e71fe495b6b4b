import { BadRequestError } from "../errors.js";

/** `invalid_schema`: not a JSON Schema, or nothing satisfies it. `unsupported_schema`: sound, but no grammar says it. */
export type SchemaErrorCode = "invalid_schema" | "unsupported_schema";

/** A schema that cannot be enforced exactly (400). `pointer` is the JSON pointer of the offending `keyword`. */
export class SchemaError extends BadRequestError {
  readonly pointer: string;
  readonly keyword: string;

  constructor(message: string, pointer: string, keyword: string, code: SchemaErrorCode) {
    super(`Schema at '${clip(pointer) || "/"}': ${message}`, "response_format", code);
    this.pointer = pointer;
    this.keyword = keyword;
  }
}

/** A place in the schema that an error can point at. */
export interface Place {
  pointer: string;
}

export function invalid(place: Place, keyword: string, message: string): SchemaError {
  return new SchemaError(message, at(place, keyword), keyword, "invalid_schema");
}

export function unsupported(place: Place, keyword: string, message: string): SchemaError {
  return new SchemaError(message, at(place, keyword), keyword, "unsupported_schema");
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
