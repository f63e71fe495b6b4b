import { invalid, type SchemaError, unsupported } from "./error.js";
import { isJsonObject } from "./limits.js";
import type { Entry, SchemaDocument } from "./load.js";
import { annotations } from "./vocabulary.js";

/** OpenAI's limits for `strict: true`. */
const maxProperties = 5000;
const maxLevels = 10;
const maxEnumValues = 1000;
const maxCharacters = 120_000;
const longEnum = 250;
const maxLongEnumCharacters = 15_000;

/** What the subset has beyond annotations. Lengths are taken as well: we enforce them exactly. */
const keywords: ReadonlySet<string> = new Set([
  "type",
  "properties",
  "required",
  "additionalProperties",
  "items",
  "enum",
  "const",
  "anyOf",
  "$ref",
  "$defs",
  "definitions",
  "pattern",
  "format",
  "minLength",
  "maxLength",
  "minimum",
  "maximum",
  "exclusiveMinimum",
  "exclusiveMaximum",
  "multipleOf",
  "minItems",
  "maxItems",
]);

const formats: ReadonlySet<string> = new Set([
  "date-time",
  "time",
  "date",
  "duration",
  "email",
  "hostname",
  "ipv4",
  "ipv6",
  "uuid",
]);

/** Refuses what OpenAI's subset for `strict: true` does not hold, as OpenAI would. */
export function checkStrict(document: SchemaDocument, root: unknown): void {
  if (!isJsonObject(root) || root.type !== "object" || Object.hasOwn(root, "anyOf")) {
    throw unsupported({ pointer: "" }, "type", "in strict mode the root must be an object, and not anyOf.");
  }
  const totals = { properties: 0, enumValues: 0, characters: 0 };
  for (const entry of document.all()) {
    checkKeywords(entry);
    checkObject(entry);
    count(entry, totals);
  }
  checkLevels(document);
}

function checkKeywords(entry: Entry): void {
  for (const keyword of Object.keys(entry.schema)) {
    if (!keywords.has(keyword) && !annotations.has(keyword)) throw notAllowed(entry, keyword);
  }
  const { format, items } = entry.schema;
  if (typeof format === "string" && !formats.has(format)) throw notAllowed(entry, "format");
  if (Array.isArray(items)) throw notAllowed(entry, "items");
}

function checkObject(entry: Entry): void {
  const { schema } = entry;
  const { type } = schema;
  const isObject = type === "object" || (Array.isArray(type) && type.includes("object"));
  if (!isObject) {
    for (const keyword of ["properties", "required", "additionalProperties"]) {
      if (Object.hasOwn(schema, keyword))
        throw invalid(entry, keyword, "in strict mode it needs type 'object' beside it.");
    }
    return;
  }
  if (schema.additionalProperties !== false) {
    throw invalid(entry, "additionalProperties", "in strict mode it is required and must be false.");
  }
  const names = isJsonObject(schema.properties) ? Object.keys(schema.properties) : [];
  const required = new Set(Array.isArray(schema.required) ? schema.required : []);
  const missing = names.find((name) => !required.has(name));
  if (missing !== undefined) {
    throw invalid(entry, "required", `in strict mode every property must be in it; '${missing}' is missing.`);
  }
  const extra = [...required].find((name) => !names.includes(name));
  if (extra !== undefined) throw invalid(entry, "required", `'${String(extra)}' is not among the properties.`);
}

function count(entry: Entry, totals: { properties: number; enumValues: number; characters: number }): void {
  const { schema } = entry;
  const over = (keyword: string, what: string): SchemaError =>
    unsupported(entry, keyword, `strict mode allows at most ${what}.`);
  const length = (names: readonly string[]): number => names.reduce((sum, name) => sum + name.length, 0);
  for (const keyword of ["properties", "$defs", "definitions"]) {
    const names = isJsonObject(schema[keyword]) ? Object.keys(schema[keyword]) : [];
    if (keyword === "properties") totals.properties += names.length;
    totals.characters += length(names);
  }
  const values = Array.isArray(schema.enum) ? schema.enum : [];
  const strings = values.filter((value): value is string => typeof value === "string");
  totals.enumValues += values.length;
  totals.characters += length(strings) + (typeof schema.const === "string" ? schema.const.length : 0);
  if (totals.properties > maxProperties) throw over("properties", `${maxProperties} properties in all`);
  if (totals.enumValues > maxEnumValues) throw over("enum", `${maxEnumValues} enum values in all`);
  if (values.length > longEnum && length(strings) > maxLongEnumCharacters) {
    throw over("enum", `${maxLongEnumCharacters} characters in an enum of more than ${longEnum} values`);
  }
  if (totals.characters > maxCharacters) {
    throw over("", `${maxCharacters} characters in names, enum values and consts`);
  }
}

/** Objects and arrays inside each other, references not followed; the loader has bounded the recursion. */
function checkLevels(document: SchemaDocument): void {
  for (const entry of document.all()) {
    const steps = entry.pointer.split("/");
    let level = 1;
    for (let i = 1; i < steps.length; i++) {
      const step = steps[i];
      if (step === "$defs" || step === "definitions" || step === "properties") {
        if (step === "properties") level++;
        i++;
      } else if (step === "items") level++;
      else if (step === "anyOf") i++;
    }
    if (level > maxLevels) throw unsupported(entry, "", `strict mode allows at most ${maxLevels} levels.`);
  }
}

function notAllowed(entry: Entry, keyword: string): SchemaError {
  return unsupported(entry, keyword, `'${keyword}' with this value is not part of the strict subset.`);
}
