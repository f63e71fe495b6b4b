import { existsSync, readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

/** A schema, or a grammar, and texts that it must take or must not. */
export interface Row {
  id: string;
  keywords: string[];
  /** Several are each refused. */
  schemas: unknown[];
  /** Instead of a schema. */
  grammar?: string;
  /** Each in the spellings and orders of keys of which one must be taken. */
  accept: string[][];
  reject: string[];
  /** Nothing can be taken: whatever it is, it must be refused. */
  refused: boolean;
}

interface SchemaRow {
  id: string;
  schema: unknown;
  features?: string[];
  valid: unknown[];
  invalid: unknown[];
  valid_in_schema_order?: unknown[];
  valid_required_first?: unknown[];
}

interface BugRow {
  id: string;
  area: string;
  input: {
    schema?: unknown;
    schemas?: unknown[];
    grammar?: string;
    accept?: string[];
    reject?: string[];
    request?: { grammar?: string; response_format?: { json_schema?: { schema?: unknown } } };
  };
}

const here = dirname(fileURLToPath(import.meta.url));
const shared = [process.env.TOKENLOOP_SHARED, join(here, "..", "..", "..", "shared")].find(
  (path) => path !== undefined && existsSync(join(path, "cases", "schemas.jsonl")),
);

function lines<T>(path: string): T[] {
  return readFileSync(path, "utf8")
    .split("\n")
    .filter((line) => line.trim() !== "")
    .map((line) => JSON.parse(line) as T);
}

/** A value's texts: as JSON.stringify has it, and whole numbers without exponent. */
function texts(value: unknown): string[] {
  const out = [JSON.stringify(value)];
  if (typeof value === "number" && Number.isInteger(value)) out.push(BigInt(value).toString());
  return out;
}

function fromSchema(row: SchemaRow): Row {
  return {
    id: row.id,
    keywords: row.features ?? [],
    schemas: [row.schema],
    accept: row.valid.map((value, i) =>
      [value, row.valid_in_schema_order?.[i], row.valid_required_first?.[i]]
        .filter((one) => one !== undefined)
        .flatMap((one) => (typeof one === "string" ? [one, ...texts(one)] : texts(one))),
    ),
    reject: row.invalid.flatMap(texts),
    refused: false,
  };
}

function fromBug({ id, area, input }: BugRow): Row | undefined {
  const schema = input.schema ?? input.request?.response_format?.json_schema?.schema;
  const schemas = input.schemas ?? (schema === undefined ? [] : [schema]);
  const grammar = typeof input.request?.grammar === "string" ? input.request.grammar : undefined;
  if (schemas.length === 0 && grammar === undefined) return undefined;
  return {
    id,
    keywords: [area],
    schemas,
    ...(grammar === undefined ? {} : { grammar }),
    accept: (input.accept ?? []).map((text) => [text]),
    reject: input.reject ?? [],
    refused: input.accept === undefined && input.reject === undefined,
  };
}

interface OwnRow {
  id: string;
  schema?: unknown;
  grammar?: string;
  accept?: string[];
  reject?: string[];
}

/** Rows that would be long to write down. */
function largeRows(): OwnRow[] {
  const text = (length: number, character = "x"): string => JSON.stringify(character.repeat(length));
  const zeros = (count: number): string => JSON.stringify(Array(count).fill(0));
  let deep: unknown = { type: "null" };
  for (let i = 0; i < 300; i++) deep = { type: "array", items: deep, minItems: 1 };
  return [
    {
      id: "string/length-of-thousands",
      schema: { type: "string", minLength: 2100, maxLength: 2200 },
      accept: [text(2100), text(2200, "é")],
      reject: [text(2099), text(2201)],
    },
    {
      id: "string/length-exactly-2000",
      schema: { type: "string", maxLength: 2000 },
      accept: [text(2000), text(0)],
      reject: [text(2001)],
    },
    {
      id: "array/counts-of-thousands",
      schema: { type: "array", items: { enum: [0] }, minItems: 2500, maxItems: 2600 },
      accept: [zeros(2500)],
      reject: [zeros(2499), zeros(2601)],
    },
    {
      id: "limits/enum-of-thousands",
      schema: { enum: Array.from({ length: 3000 }, (_, i) => `v${i}`) },
      accept: ['"v0"', '"v2999"', '"v17"'],
      reject: ['"v3000"', '"v"', '"v017"'],
    },
    {
      id: "pattern/thousands-deep",
      schema: { type: "string", pattern: `${"(".repeat(3000)}a${")".repeat(3000)}` },
    },
    { id: "limits/depth", schema: deep },
    { id: "gbnf/sixty-thousand-parentheses", grammar: `root ::= ${"(".repeat(60_000)}"a"${")".repeat(60_000)}` },
  ];
}

/** The project's own rows. */
export function ownRows(): Row[] {
  const rows = [...lines<OwnRow>(join(here, "rows.jsonl")), ...largeRows()];
  return rows.map(({ id, schema, grammar, accept, reject }) => ({
    id,
    keywords: [id.split("/")[0] ?? ""],
    schemas: schema === undefined ? [] : [schema],
    ...(grammar === undefined ? {} : { grammar }),
    accept: (accept ?? []).map((text) => [text]),
    reject: reject ?? [],
    refused: accept === undefined && reject === undefined,
  }));
}

/** Real-world cases that may lie beside the checkout; undefined where they do not. */
export function sharedRows(): Row[] | undefined {
  if (shared === undefined) return undefined;
  const areas = ["grammar", "schema", "limits"];
  const bugs = lines<BugRow>(join(shared, "cases", "bugs.jsonl")).filter(({ area }) => areas.includes(area));
  return [
    ...lines<SchemaRow>(join(shared, "cases", "schemas.jsonl")).map(fromSchema),
    ...bugs.flatMap((row) => fromBug(row) ?? []),
  ];
}
