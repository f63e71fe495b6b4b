import { invalid, type Place, type SchemaError, SchemaTimeoutError, unsupported } from "./error.js";

/** Bounds on one schema; beyond any of them it is refused with 400. */
export interface Limits {
  /** Schemas inside schemas. Default 64. */
  depth: number;
  /** Size as compact JSON, in UTF-16 code units. Default 262144. */
  bytes: number;
  /** Named properties in all. Default 5000. */
  properties: number;
  /** Enum values in all. Default 5000. */
  enumValues: number;
  /** The grammar's size in bytes: our grammar engine's own limit. Default 1 MiB. */
  grammarBytes: number;
  /** The grammar's rules: our grammar engine's own limit. Default 20000. */
  grammarRules: number;
  /** Time for one schema in milliseconds. Default 1000. */
  milliseconds: number;
}

export const defaultLimits: Limits = {
  depth: 64,
  bytes: 256 * 1024,
  properties: 5000,
  enumValues: 5000,
  grammarBytes: 1024 * 1024,
  grammarRules: 20_000,
  milliseconds: 1000,
};

export function isJsonObject(value: unknown): value is { readonly [key: string]: unknown } {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

function isPlain(value: object): boolean {
  const prototype: unknown = Object.getPrototypeOf(value);
  return prototype === null || Object.getPrototypeOf(prototype) === null;
}

/** Checks that `document` is plain JSON within the limits. Iterative, so that no nesting can exhaust the stack. */
export function measure(document: unknown, limits: Limits): void {
  // A schema and the keyword that holds it are two levels of JSON, a map of schemas three.
  const maxDepth = limits.depth * 3;
  const queue: [value: unknown, depth: number][] = [[document, 0]];
  let size = 0;
  for (let item = queue.pop(); item !== undefined; item = queue.pop()) {
    const [value, depth] = item;
    if (depth > maxDepth) throw refuse(`nested deeper than ${maxDepth} levels of JSON.`);
    if (typeof value === "string") size += value.length + 2;
    else if (Array.isArray(value)) {
      size += value.length + 1;
      if (size > limits.bytes) break;
      for (const inner of value) queue.push([inner, depth + 1]);
    } else if (isJsonObject(value)) {
      // A Map, a Date or a validator's object would read as a schema without keywords, which allows anything.
      if (!isPlain(value)) throw invalid({ pointer: "" }, "", "not a plain JSON object.");
      size += 2;
      for (const [key, inner] of Object.entries(value)) {
        size += key.length + 4;
        if (inner !== undefined) queue.push([inner, depth + 1]);
      }
    } else if (value === null || typeof value === "boolean" || Number.isFinite(value)) size += 4;
    else throw invalid({ pointer: "" }, "", `a ${typeof value} is not JSON.`);
    if (size > limits.bytes) break;
  }
  if (size > limits.bytes) throw refuse(`larger than ${limits.bytes} bytes.`);
}

function refuse(message: string): SchemaError {
  return unsupported({ pointer: "" }, "", message);
}

/** The time that one schema may take; looked at between pieces of work that are themselves bounded. */
export class Deadline {
  private readonly end: number;
  private calls = 0;

  constructor(private readonly milliseconds: number) {
    this.end = performance.now() + milliseconds;
  }

  check(place: Place): void {
    if (++this.calls % 16 === 0 && performance.now() > this.end) {
      throw new SchemaTimeoutError(place, this.milliseconds);
    }
  }
}
