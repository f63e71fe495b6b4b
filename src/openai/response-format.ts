import { BadRequestError } from "../errors.js";
import { compileSchema } from "../schema/index.js";
import { isObject, type PlainObject } from "./plain.js";

/** A response_format that asks for JSON: the schema, and whether OpenAI's strict subset is demanded. */
export interface JsonFormat {
  schema: unknown;
  strict: boolean;
}

/**
 * What `response_format` asks for; undefined for text. `json_object` is any JSON object.
 *
 * @throws {BadRequestError} param "response_format": json_schema without a schema, or with one that is none.
 */
export function toJsonFormat(format: PlainObject | undefined): JsonFormat | undefined {
  if (format === undefined || format.type === "text") return undefined;
  if (format.type === "json_object") return { schema: { type: "object" }, strict: false };
  const { json_schema: named } = format;
  if (!isObject(named)) throw missing("json_schema");
  // A schema of true is one; OpenAI's shape wants an object.
  if (!isObject(named.schema)) throw missing("json_schema.schema");
  return { schema: named.schema, strict: named.strict === true };
}

function missing(path: string): BadRequestError {
  return new BadRequestError(`Missing required parameter: 'response_format.${path}'.`, "response_format", "missing");
}

const keptGrammars = 128;
const keptCharacters = 8 << 20;

/** Grammars of the schemas that an engine was asked for lately, so that a schema costs only once. */
export class SchemaCache {
  readonly #grammars = new Map<string, string>();
  #characters = 0;

  /**
   * The grammar of a schema: every text of it is a JSON document that the schema allows.
   *
   * @throws {SchemaError} 400 with the JSON pointer of what no grammar can express.
   */
  grammar({ schema, strict }: JsonFormat): string {
    const key = `${strict ? "strict" : "plain"} ${JSON.stringify(schema)}`;
    const known = this.#grammars.get(key);
    if (known !== undefined) {
      // The most recently used one goes to the end.
      this.#grammars.delete(key);
      this.#grammars.set(key, known);
      return known;
    }
    const { grammar } = compileSchema(schema, { strict });
    this.#grammars.set(key, grammar);
    this.#characters += key.length + grammar.length;
    for (const [oldest, text] of this.#grammars) {
      if (this.#grammars.size <= keptGrammars && this.#characters <= keptCharacters) break;
      this.#grammars.delete(oldest);
      this.#characters -= oldest.length + text.length;
    }
    return grammar;
  }
}
