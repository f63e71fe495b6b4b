import { BadRequestError } from "../errors.js";
import { didYouMean } from "../suggest.js";
import { isObject } from "./plain.js";
import type { ValidatorError } from "./validator.generated.js";

/** Turns ajv's finding into OpenAI's error: `param` is the top-level field, the message has the whole path. */
export function schemaError(error: ValidatorError, body: unknown): BadRequestError {
  const steps = error.instancePath.split("/").slice(1).map(unescapePointer);
  const { keyword, params } = error;
  if (keyword === "required") {
    const path = pathOf([...steps, String(params.missingProperty)], body);
    return new BadRequestError(`Missing required parameter: '${path}'.`, topLevel(path), "missing_required_parameter");
  }
  const path = pathOf(steps, body);
  const param = topLevel(path);
  const value = valueAt(steps, body);
  switch (keyword) {
    case "type":
      return new BadRequestError(
        `Invalid type for '${path}': expected ${typeName(params.type)}, got ${describe(value)}.`,
        param,
        "invalid_type",
      );
    case "additionalProperties": {
      const name = String(params.additionalProperty);
      return new BadRequestError(`Unknown parameter: '${path}.${clip(name)}'.`, param, "unknown_parameter");
    }
    case "discriminator": {
      const role = isObject(value) ? value.role : undefined;
      const hint = typeof role === "string" ? didYouMean(role, roles) : "";
      const old = role === "function" ? " The deprecated role 'function' is not supported: use 'tool'." : hint;
      return new BadRequestError(
        `Invalid value for '${path}.role': expected one of ${list(roles)}, got ${describe(role)}.${old}`,
        param,
      );
    }
    case "enum":
      return new BadRequestError(
        `Invalid value for '${path}': expected one of ${list(params.allowedValues)}, got ${describe(value)}.`,
        param,
      );
    case "minimum":
    case "maximum":
    case "exclusiveMinimum":
      return new BadRequestError(
        `Invalid value for '${path}': must be ${String(params.comparison)} ${String(params.limit)}, got ${describe(value)}.`,
        param,
      );
    case "minLength":
      return new BadRequestError(`Invalid value for '${path}': must not be an empty string.`, param);
    case "maxLength":
      return new BadRequestError(`'${path}' is too long: at most ${String(params.limit)} characters.`, param);
    case "minItems":
      return new BadRequestError(`'${path}' must not be empty.`, param, "empty_array");
    case "maxItems":
      return new BadRequestError(`'${path}' is too long: at most ${String(params.limit)} items.`, param);
    case "maxProperties":
      return new BadRequestError(`'${path}' is too large: at most ${String(params.limit)} entries.`, param);
    default:
      return new BadRequestError(`Invalid value for '${path}': ${error.message ?? keyword}.`, param);
  }
}

const roles = ["developer", "system", "user", "assistant", "tool"];

function unescapePointer(step: string): string {
  return step.replaceAll("~1", "/").replaceAll("~0", "~");
}

/** `["messages", "0", "content"]` → `messages[0].content`. */
function pathOf(steps: readonly string[], body: unknown): string {
  let path = "";
  let at: unknown = body;
  for (const step of steps) {
    path += Array.isArray(at) ? `[${step}]` : `${path === "" ? "" : "."}${clip(step)}`;
    at = member(at, step);
  }
  return path;
}

function topLevel(path: string): string {
  return /^[^.[]*/.exec(path)?.[0] ?? path;
}

function valueAt(steps: readonly string[], body: unknown): unknown {
  return steps.reduce(member, body);
}

function member(value: unknown, step: string): unknown {
  if (Array.isArray(value)) return value[Number(step)];
  return isObject(value) && Object.hasOwn(value, step) ? value[step] : undefined;
}

function typeName(type: unknown): string {
  return (Array.isArray(type) ? type : [type]).map(String).join(" or ");
}

function list(values: unknown): string {
  return Array.isArray(values) ? values.map((value) => `'${String(value)}'`).join(", ") : "";
}

/** A value for a message: short, and never a user's whole text. */
function describe(value: unknown): string {
  if (value === undefined) return "nothing";
  if (typeof value === "string") return `'${clip(value)}'`;
  if (Array.isArray(value)) return "an array";
  if (typeof value === "object" && value !== null) return "an object";
  return typeof value === "number" || typeof value === "boolean" ? String(value) : `a ${typeof value}`;
}

function clip(text: string): string {
  return text.length > 40 ? `${text.slice(0, 40)}…` : text;
}
