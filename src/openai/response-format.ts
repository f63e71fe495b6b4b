import { BadRequestError } from "../errors.js";
import type { SchemaRequest } from "../schema/compiler.js";
import { isObject, type PlainObject } from "./plain.js";

/**
 * The schema of the whole answer, which `response_format` or `grammar_json_functions` asks for; undefined for text.
 * Takes the fields as the request's schema allows them.
 *
 * @throws {BadRequestError} param "response_format": json_schema without a schema. Two fields that each say what the
 * whole answer is: the first of response_format, grammar_json_functions, grammar. "json_whitespace": the answer is no JSON.
 */
export function toJsonFormat(request: PlainObject): SchemaRequest | undefined {
  const given: [param: string, schema: Omit<SchemaRequest, "param" | "whitespace"> | undefined][] = [
    ["response_format", ofResponseFormat(request.response_format)],
    ["grammar_json_functions", ofFunctions(request.grammar_json_functions)],
  ];
  const asked = given.filter(([, schema]) => schema !== undefined).map(([param]) => param);
  if (request.grammar !== undefined) asked.push("grammar");
  if (asked.length > 1) {
    const [first = "", second] = asked;
    throw new BadRequestError(`'${first}' and '${second}' exclude each other.`, first);
  }
  const { json_whitespace: space } = request;
  for (const [param, schema] of given) {
    if (schema !== undefined) return { ...schema, param, whitespace: space === "model" };
  }
  if (space === undefined) return undefined;
  const message = "'json_whitespace' is only allowed where 'response_format' or 'grammar_json_functions' ask for JSON.";
  throw new BadRequestError(message, "json_whitespace");
}

/** `json_object` is any JSON object. */
function ofResponseFormat(format: unknown): { schema: unknown; strict?: boolean } | undefined {
  if (!isObject(format) || format.type === "text") return undefined;
  if (format.type === "json_object") return { schema: { type: "object" } };
  const { json_schema: named } = format;
  if (!isObject(named)) throw missing("json_schema");
  // A schema of true is one; OpenAI's shape wants an object.
  if (!isObject(named.schema)) throw missing("json_schema.schema");
  return { schema: named.schema, strict: named.strict === true };
}

/**
 * LocalAI's field: the answer is one of these objects, a call of a function as JSON. As there, all properties of a call
 * are in it and no others; what is in them is up to their schemas.
 */
function ofFunctions(functions: unknown): { schema: unknown } | undefined {
  if (!isObject(functions)) return undefined;
  const { oneOf, anyOf, $defs } = functions;
  if ((oneOf === undefined) === (anyOf === undefined)) {
    const message = "'grammar_json_functions' must have one of 'oneOf' and 'anyOf'.";
    throw new BadRequestError(message, "grammar_json_functions");
  }
  const calls = (oneOf ?? anyOf) as PlainObject[];
  const closed = calls.map((call) => ({
    required: Object.keys(call.properties as PlainObject),
    additionalProperties: false,
    ...call,
    type: "object",
  }));
  return { schema: { [oneOf === undefined ? "anyOf" : "oneOf"]: closed, ...($defs === undefined ? {} : { $defs }) } };
}

function missing(path: string): BadRequestError {
  return new BadRequestError(`Missing required parameter: 'response_format.${path}'.`, "response_format", "missing");
}
