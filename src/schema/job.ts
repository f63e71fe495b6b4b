import { SchemaError, type SchemaFailure, SchemaTimeoutError } from "./error.js";
import { compileSchema } from "./index.js";
import type { Limits } from "./limits.js";

/** A schema to compile, as one thread sends it to another. */
export interface SchemaJob {
  /** The schema's JSON. */
  text: string;
  strict: boolean;
  whitespace: boolean;
}

/** What became of it: the grammar, or why there is none. */
export type SchemaOutcome = { grammar: string } | { failure: SchemaFailure; timedOut: boolean };

/** Any error but a SchemaError passes. */
export function runSchemaJob({ text, strict, whitespace }: SchemaJob, limits: Partial<Limits>): SchemaOutcome {
  try {
    return compileSchema(JSON.parse(text), { strict, whitespace, limits });
  } catch (error) {
    if (error instanceof SchemaError) {
      return { failure: error.failure, timedOut: error instanceof SchemaTimeoutError };
    }
    throw error;
  }
}
