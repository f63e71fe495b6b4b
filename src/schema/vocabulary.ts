/** Which keywords hold what. Everything that is not listed here is an annotation, as the standard says. */
export type Shape = "schema" | "schemas" | "schema-map";

/** Keywords whose values hold further schemas. `items` and `dependencies` come in two shapes: see load.ts. */
export const applicators: Readonly<Record<string, Shape>> = {
  additionalProperties: "schema",
  unevaluatedProperties: "schema",
  propertyNames: "schema",
  contains: "schema",
  additionalItems: "schema",
  unevaluatedItems: "schema",
  not: "schema",
  if: "schema",
  // biome-ignore lint/suspicious/noThenProperty: JSON Schema's own keyword
  then: "schema",
  else: "schema",
  allOf: "schemas",
  anyOf: "schemas",
  oneOf: "schemas",
  prefixItems: "schemas",
  properties: "schema-map",
  patternProperties: "schema-map",
  $defs: "schema-map",
  definitions: "schema-map",
  dependentSchemas: "schema-map",
};

export const typeNames = ["null", "boolean", "integer", "number", "string", "array", "object"] as const;

const isString = (value: unknown): boolean => typeof value === "string";
const isNumber = (value: unknown): boolean => typeof value === "number" && Number.isFinite(value);
const isCount = (value: unknown): boolean => typeof value === "number" && Number.isInteger(value) && value >= 0;
const isBoolean = (value: unknown): boolean => typeof value === "boolean";
const isStrings = (value: unknown): boolean => Array.isArray(value) && value.every(isString);
const isType = (value: unknown): boolean => typeNames.some((name) => name === value);

/** What the value of each assertion must look like, and how to say so. */
export const assertions: Readonly<Record<string, readonly [check: (value: unknown) => boolean, expected: string]>> = {
  $ref: [isString, "a string"],
  $anchor: [isString, "a string"],
  $id: [isString, "a string"],
  type: [
    (value) => isType(value) || (Array.isArray(value) && value.length > 0 && value.every(isType)),
    `one or more of ${typeNames.join(", ")}`,
  ],
  enum: [(value) => Array.isArray(value) && value.length > 0, "an array with at least one value"],
  const: [(value) => value !== undefined, "a JSON value"],
  nullable: [isBoolean, "true or false"],
  minLength: [isCount, "a whole number from 0"],
  maxLength: [isCount, "a whole number from 0"],
  pattern: [isString, "a string"],
  format: [isString, "a string"],
  minimum: [isNumber, "a number"],
  maximum: [isNumber, "a number"],
  exclusiveMinimum: [(value) => isNumber(value) || isBoolean(value), "a number"],
  exclusiveMaximum: [(value) => isNumber(value) || isBoolean(value), "a number"],
  multipleOf: [(value) => isNumber(value) && Number(value) > 0, "a number above 0"],
  minItems: [isCount, "a whole number from 0"],
  maxItems: [isCount, "a whole number from 0"],
  uniqueItems: [isBoolean, "true or false"],
  minContains: [isCount, "a whole number from 0"],
  maxContains: [isCount, "a whole number from 0"],
  required: [isStrings, "an array of strings"],
  minProperties: [isCount, "a whole number from 0"],
  maxProperties: [isCount, "a whole number from 0"],
  dependentRequired: [
    (value) => typeof value === "object" && value !== null && Object.values(value).every(isStrings),
    "an object of arrays of strings",
  ],
};

/** Keywords of the standard that we know and cannot express in any form. */
export const refused: readonly string[] = ["$dynamicRef", "$recursiveRef"];

/** Annotations of the standard and of OpenAPI: they never constrain a value. Strict mode takes these and no others. */
export const annotations: ReadonlySet<string> = new Set([
  "title",
  "description",
  "default",
  "example",
  "examples",
  "deprecated",
  "readOnly",
  "writeOnly",
  "$comment",
  "$schema",
  "$id",
  "$anchor",
  "$vocabulary",
  "$dynamicAnchor",
  "$recursiveAnchor",
  "contentEncoding",
  "contentMediaType",
  "contentSchema",
]);
