import { BadRequestError } from "../errors.js";
import { limits } from "./limits.js";

/** An object without a prototype: nothing in it but the caller's own keys, `__proto__` being one like any other. */
export type PlainObject = { [key: string]: unknown };

/** Whether the value is an object with keys, and no array. */
export function isObject(value: unknown): value is PlainObject {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/**
 * A copy that is safe to validate and to send on: own enumerable keys only, null and undefined values left out (null
 * means absent everywhere in a request), lone surrogates replaced. Check the size first: it recurses.
 */
export function toPlain(value: unknown): unknown {
  if (typeof value === "string") return wellFormed(value);
  if (Array.isArray(value)) return Array.from(value, toPlain);
  if (!isObject(value)) return value;
  const copy: PlainObject = Object.create(null);
  for (const key of Object.keys(value)) {
    const member = value[key];
    if (member !== null && member !== undefined) copy[wellFormed(key)] = toPlain(member);
  }
  return copy;
}

/** Replaces lone surrogates by U+FFFD, as the String method toWellFormed does from ES2024 on. */
export function wellFormed(text: string): string {
  return text.replace(/\p{Surrogate}/gu, "\uFFFD");
}

/** Refuses what is nested too deep (also a cycle) or has too many values, field by field so that the error can say which. */
export function checkSize(body: PlainObject): void {
  let values = 0;
  const visit = (value: unknown, depth: number, param: string): void => {
    if (typeof value !== "object" || value === null) return;
    if (depth > limits.depth) {
      throw new BadRequestError(`'${param}' is nested too deep: at most ${limits.depth} levels.`, param);
    }
    const members: readonly unknown[] = Array.isArray(value) ? value : Object.values(value);
    values += members.length;
    if (values > limits.values) {
      throw new BadRequestError(`'${param}' is too large: at most ${limits.values} values in one request.`, param);
    }
    for (const member of members) visit(member, depth + 1, param);
  };
  // The body itself is the first level.
  for (const [key, value] of Object.entries(body)) visit(value, 2, key);
}
