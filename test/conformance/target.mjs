import { Ajv } from "ajv";
import { must, Refusal, show } from "./outcome.mjs";
import { schemas } from "./schemas.mjs";

const ajv = new Ajv({ allErrors: true, strict: false });
const validators = Object.fromEntries(Object.entries(schemas).map(([name, schema]) => [name, ajv.compile(schema)]));

/**
 * Holds a value against one of the suite's schemas.
 *
 * @template {keyof typeof schemas} Name
 * @param {Name} name
 * @param {unknown} value
 */
export function checkShape(name, value) {
  const validate = validators[name];
  if (validate === undefined || validate(value)) return;
  const faults = (validate.errors ?? []).map(({ instancePath, message }) => `${instancePath || "/"} ${message}`);
  must(false, `not the shape of a ${name}: ${[...new Set(faults)].join("; ")} in ${show(value)}`);
}

/** One answer, read to its end. */
export class Answer {
  /**
   * @param {string} path
   * @param {Response} response
   * @param {string} text
   */
  constructor(path, response, text) {
    this.path = path;
    this.status = response.status;
    this.headers = response.headers;
    this.text = text;
  }

  /** @returns {unknown} */
  json() {
    const type = this.headers.get("content-type") ?? "nothing";
    must(/^application\/json\b/.test(type), `content-type is ${type}, expected application/json`);
    try {
      return JSON.parse(this.text);
    } catch {
      must(false, `the body is no JSON: ${show(this.text)}`);
      return undefined;
    }
  }

  /**
   * The body of a 200, in the given shape.
   *
   * @template Type
   * @param {keyof typeof schemas} name
   * @returns {Type}
   */
  ok(name) {
    this.expectOk();
    const body = this.json();
    checkShape(name, body);
    return /** @type {Type} */ (body);
  }

  /** @throws {Refusal} the server says what it does not do. */
  expectOk() {
    if (this.status === 200) return;
    if (this.status >= 400 && this.status < 502) {
      const { error } = this.error(this.status);
      const route = [404, 405, 501].includes(this.status) ? this.path : "";
      throw new Refusal(`status ${this.status}: ${error.message}`, [error.param ?? "", error.code ?? "", route]);
    }
    must(false, `status ${this.status}, expected 200: ${show(this.text)}`);
  }

  /**
   * The body of an error.
   *
   * @param {...number} statuses
   * @returns {import("./types.js").ErrorBody}
   */
  error(...statuses) {
    must(
      statuses.includes(this.status),
      `status ${this.status}, expected ${statuses.join(" or ")}: ${show(this.text)}`,
    );
    const body = this.json();
    checkShape("error", body);
    return /** @type {import("./types.js").ErrorBody} */ (body);
  }

  /**
   * The chunks of a stream that ends as it should.
   *
   * @template Type
   * @param {keyof typeof schemas} name
   * @returns {Type[]}
   */
  chunks(name) {
    this.expectOk();
    const type = this.headers.get("content-type") ?? "nothing";
    must(/^text\/event-stream\b/.test(type), `content-type is ${type}, expected text/event-stream`);
    const events = eventsOf(this.text);
    must(events.at(-1) === "[DONE]", `the last event is ${show(events.at(-1))}, expected [DONE]`);
    return events.slice(0, -1).map((event) => {
      /** @type {unknown} */
      let chunk;
      try {
        chunk = JSON.parse(event);
      } catch {
        must(false, `an event is no JSON: ${show(event)}`);
      }
      must(!(typeof chunk === "object" && chunk !== null && "error" in chunk), `an error on the way: ${show(chunk)}`);
      checkShape(name, chunk);
      return /** @type {Type} */ (chunk);
    });
  }
}

/**
 * The data of server-sent events. Comments (a colon first) keep connections alive and are dropped.
 *
 * @param {string} text
 */
export function eventsOf(text) {
  must(
    text.endsWith("\n\n") || text.endsWith("\r\n\r\n"),
    `the stream does not end with an empty line: ${show(text.slice(-80))}`,
  );
  const events = [];
  for (const block of text.split(/\r?\n\r?\n/)) {
    const lines = block.split(/\r?\n/).filter((line) => line !== "" && !line.startsWith(":"));
    if (lines.length === 0) continue;
    for (const line of lines)
      must(/^(data|event|id|retry):/.test(line), `not a line of an event stream: ${show(line)}`);
    const data = lines.filter((line) => line.startsWith("data:")).map((line) => line.slice(5).replace(/^ /, ""));
    events.push(data.join("\n"));
  }
  return events;
}

/** The server under test. */
export class Target {
  #model = "";

  /** @param {import("./types.js").TargetOptions} options */
  constructor({ baseURL, fetch: fetch_ = fetch, apiKey, model = "", timeout = 120_000 }) {
    this.baseURL = baseURL.replace(/\/$/, "");
    this.fetch = fetch_;
    this.apiKey = apiKey;
    this.timeout = timeout;
    this.#model = model;
  }

  /** The model to ask for. */
  async model() {
    if (this.#model === "") {
      /** @type {import("./types.js").ModelList} */
      const { data } = (await this.get("/models")).ok("modelList");
      must(data[0] !== undefined, "no model is there; name one with --model");
      this.#model = data[0].id;
    }
    return this.#model;
  }

  /** @param {string} path */
  get(path) {
    return this.#send(path, {});
  }

  /**
   * @param {string} path
   * @param {string | import("./types.js").Body} body
   * @param {RequestInit} init
   */
  async post(path, body, init = {}) {
    return this.#send(path, { method: "POST", body: typeof body === "string" ? body : JSON.stringify(body), ...init });
  }

  /**
   * A chat request that names the model and asks for little, unless told otherwise.
   *
   * @param {import("./types.js").Body} body
   */
  async chat(body) {
    return this.post("/chat/completions", await this.withDefaults(body));
  }

  /**
   * @param {import("./types.js").Body} body
   * @returns {Promise<import("./types.js").Body>}
   */
  async withDefaults(body) {
    return { model: await this.model(), messages: hello, max_tokens: 16, temperature: 0, ...body };
  }

  /**
   * @param {string} path
   * @param {RequestInit} init
   */
  async open(path, init) {
    const headers = new Headers(init.headers);
    if (init.body !== undefined && !headers.has("content-type")) headers.set("content-type", "application/json");
    if (this.apiKey !== undefined && !headers.has("authorization"))
      headers.set("authorization", `Bearer ${this.apiKey}`);
    return this.fetch(`${this.baseURL}${path}`, { signal: AbortSignal.timeout(this.timeout), ...init, headers });
  }

  /**
   * @param {string} path
   * @param {RequestInit} init
   */
  async #send(path, init) {
    const response = await this.open(path, init);
    return new Answer(path, response, await response.text());
  }
}

export const hello = [{ role: "user", content: "Tell me a story about a fox." }];
