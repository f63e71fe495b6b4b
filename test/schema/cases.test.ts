import { existsSync, readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { describe, expect, it } from "vitest";
import { compileSchema, SchemaError } from "../../src/schema/index.js";
import { accepts, Matcher } from "../support/gbnf-matcher.js";
import { parseGbnf } from "../support/gbnf-parse.js";

interface Row {
  id: string;
  schema: unknown;
  valid: unknown[];
  invalid: unknown[];
  valid_in_schema_order?: unknown[];
  valid_required_first?: unknown[];
  features?: string[];
}

interface BugRow {
  id: string;
  area: string;
  input: { schema?: unknown; schemas?: unknown[]; accept?: string[]; reject?: string[] };
  expected: unknown;
}

const repository = join(dirname(fileURLToPath(import.meta.url)), "..", "..");
const folder = [process.env.TOKENLOOP_SHARED, join(repository, "..", "shared")].find(
  (path) => path !== undefined && existsSync(join(path, "cases", "schemas.jsonl")),
);

function read<T>(name: string): T[] {
  if (folder === undefined) return [];
  const lines = readFileSync(join(folder, "cases", name), "utf8")
    .trim()
    .split("\n");
  return lines.map((line) => JSON.parse(line) as T);
}

/** A value's texts: as JSON.stringify has it, and whole numbers without exponent. */
function texts(value: unknown): string[] {
  const out = [JSON.stringify(value)];
  if (typeof value === "number" && Number.isInteger(value)) out.push(BigInt(value).toString());
  return out;
}

function compile(schema: unknown): Matcher | SchemaError {
  const before = performance.now();
  try {
    return new Matcher(parseGbnf(compileSchema(schema).grammar));
  } catch (error) {
    if (error instanceof SchemaError) return error;
    throw error;
  } finally {
    expect(performance.now() - before).toBeLessThan(1000);
  }
}

if (folder === undefined)
  console.warn("SKIPPED: no shared cases found; set TOKENLOOP_SHARED to the folder that holds cases/.");

describe.skipIf(folder === undefined)("shared cases", () => {
  const table: Record<string, { accepted: number; missed: number; refused: number; rows: number }> = {};
  const missed: string[] = [];
  const refusals: string[] = [];

  it.each(read<Row>("schemas.jsonl").map((row) => [row.id, row] as const))("%s", (_, row) => {
    const compiled = compile(row.schema);
    const group = row.id.split("/").slice(0, 2).join("/");
    table[group] ??= { accepted: 0, missed: 0, refused: 0, rows: 0 };
    const counts = table[group];
    counts.rows++;
    if (compiled instanceof SchemaError) {
      counts.refused++;
      refusals.push(`${row.id}: ${compiled.message}`);
      expect(compiled.status).toBe(400);
      return;
    }
    for (const value of row.invalid) {
      for (const text of texts(value)) expect(accepts(compiled, text), `accepted the invalid ${text}`).toBe(false);
    }
    row.valid.forEach((value, i) => {
      const others = [row.valid_in_schema_order?.[i], row.valid_required_first?.[i]].filter((v) => v !== undefined);
      const candidates = [value, ...others].flatMap((v) => (typeof v === "string" ? [v, ...texts(v)] : texts(v)));
      if (candidates.some((text) => accepts(compiled, text))) counts.accepted++;
      else {
        counts.missed++;
        missed.push(`${row.id}: ${JSON.stringify(value).slice(0, 120)}`);
      }
    });
  });

  const bugs = read<BugRow>("bugs.jsonl").filter(
    (row) =>
      (row.area === "grammar" || row.area === "schema" || row.area === "limits") &&
      (row.input.schema ?? row.input.schemas) !== undefined,
  );
  it.each(bugs.map((row) => [row.id, row] as const))("%s", (_, row) => {
    const { schema, schemas, accept, reject } = row.input;
    if (accept === undefined && reject === undefined) {
      for (const one of schemas ?? [schema]) expect(compile(one)).toBeInstanceOf(SchemaError);
      return;
    }
    const compiled = compile(schema);
    if (compiled instanceof SchemaError) throw compiled;
    for (const text of reject ?? []) expect(accepts(compiled, text), `accepted ${text}`).toBe(false);
    for (const text of accept ?? []) expect(accepts(compiled, text), `refused ${text}`).toBe(true);
  });

  it("shows what is covered", () => {
    console.table(table);
    console.log(["missed:", ...missed, "refused:", ...refusals].join("\n  "));
  });
});
