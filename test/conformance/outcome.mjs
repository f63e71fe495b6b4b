// How a check ends when it does not pass.

/** The server does something that it must not. */
export class Violation extends Error {}

/** What is checked cannot be told here, e.g. because the model chose not to. */
export class Skipped extends Error {}

/** The server says that it does not have a thing; `names` are the field and code that it gave. */
export class Refusal extends Error {
  /**
   * @param {string} message
   * @param {string[]} names
   */
  constructor(message, names) {
    super(message);
    this.names = names;
  }
}

/**
 * @param {unknown} condition
 * @param {string} message what is wrong where it does not hold
 * @returns {asserts condition}
 */
export function must(condition, message) {
  if (!condition) throw new Violation(message);
}

/**
 * @param {unknown} condition
 * @param {string} why
 * @returns {asserts condition}
 */
export function need(condition, why) {
  if (!condition) throw new Skipped(why);
}

/** @param {unknown} value */
export function show(value) {
  const json = JSON.stringify(value) ?? String(value);
  return json.length > 300 ? `${json.slice(0, 300)}…` : json;
}
