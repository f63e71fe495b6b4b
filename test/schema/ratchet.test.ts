import { readFileSync, writeFileSync } from "node:fs";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { Engine } from "../../src/engine.js";
import { compileSchema, SchemaError } from "../../src/schema/index.js";
import { nanoModel } from "../models/nano.js";
import { nanoPieces } from "../models/nano-pieces.js";
import { ensureModel } from "../models/qwen3.js";
import { qwen3Pieces } from "../models/qwen3-pieces.js";
import { random } from "../support/gbnf-sample.js";
import { loadTestAddon, type ParsedGrammar } from "../support/test-addon.js";
import { Tokens } from "../support/tokens.js";
import { ownRows, type Row, sharedRows } from "./rows.js";

/**
 * Every row through the native engine: byte by byte, and through masks over nano's and Qwen3's tokens, in the model's own
 * segmentation and in others. ratchet.json holds what has been reached for each; getting worse is a failure, and so is,
 * always, a text that is accepted and must not be.
 */
const ratchetPath = new URL("ratchet.json", import.meta.url);
const ratchet = JSON.parse(readFileSync(ratchetPath, "utf8")) as Record<string, string>;
const update = process.env.TOKENLOOP_UPDATE_RATCHET !== undefined;

/** From best to worst. Behind "stricter-than-schema" stands how many texts are not accepted that might be. */
const categories = ["exact", "stricter-than-schema", "refused-with-pointer"] as const;

function rank(category: string): number {
  const [name = "", count = "0"] = category.split(" ");
  return categories.indexOf(name as (typeof categories)[number]) * 1000 + Number(count);
}

const addon = loadTestAddon();
interface Model {
  name: string;
  tokens: Tokens;
  engine: Engine;
}
let models: Model[];
beforeAll(async () => {
  const load = (model: string) => Engine.load({ model, contextSize: 512, threads: 1 });
  models = [
    { name: "nano", tokens: new Tokens(nanoPieces()), engine: await load(nanoModel()) },
    { name: "Qwen3", tokens: new Tokens(qwen3Pieces()), engine: await load(await ensureModel("tiny-qwen3")) },
  ];
});
afterAll(() => Promise.all(models.map(({ engine }) => engine.close())));

/** Runs within a second of this process's time, whatever else the machine is at. */
function quickly<T>(what: string, run: () => T): T {
  const before = process.cpuUsage();
  const result = run();
  const { user, system } = process.cpuUsage(before);
  expect((user + system) / 1000, `${what}, milliseconds`).toBeLessThan(1000);
  return result;
}

/** What is not accepted though it might be, and why. */
const notes: string[] = [];

/** The grammar, or undefined where it is refused as it has to be: saying where. */
function compile(schema: unknown, note: (text: string) => void): ParsedGrammar | undefined {
  let text: string;
  try {
    text = compileSchema(schema).grammar;
  } catch (error) {
    if (!(error instanceof SchemaError)) throw error;
    expect(error.status).toBe(400);
    expect(error.pointer).toBeTypeOf("string");
    expect(error.message).toContain(error.pointer.slice(0, 100));
    note(error.message);
    return undefined;
  }
  const parsed = addon.grammar(text);
  if (parsed.error) throw new Error(`our own engine refuses the schema's grammar: ${parsed.error.message}`);
  return parsed;
}

function byBytes(parsed: ParsedGrammar, text: string): boolean {
  const state = parsed.start();
  return state.acceptBytes(Buffer.from(text)) && state.canEnd();
}

/** As an answer would come about: each token must be in the mask before it. */
function byTokens(
  parsed: ParsedGrammar,
  { tokens }: Model,
  masker: ReturnType<ParsedGrammar["masker"]>,
  ids: number[],
) {
  const state = parsed.start();
  for (const id of ids) {
    const allowed = masker.allows(state, id);
    if (allowed === null) throw new Error("too ambiguous for a mask");
    const taken = state.acceptToken(id, tokens.piece(id));
    if (taken !== allowed) throw new Error(`the mask and the matcher disagree on token ${id}`);
    if (!taken) return false;
  }
  return state.canEnd();
}

async function judge(row: Row): Promise<string> {
  const note = (text: string) => row.refused || notes.push(`${row.id}: ${text}`);
  const compiled = quickly("compiling", () => {
    if (row.grammar === undefined) return row.schemas.map((schema) => compile(schema, note));
    const parsed = addon.grammar(row.grammar);
    if (parsed.error) expect(parsed.error).toMatchObject({ line: expect.any(Number), column: expect.any(Number) });
    return [parsed.error ? undefined : parsed];
  });
  const [parsed] = compiled;
  if (row.refused) expect(compiled, "must be refused").toEqual(compiled.map(() => undefined));
  if (parsed === undefined) return "refused-with-pointer";

  const maskers = models.map(({ tokens }) => parsed.masker(tokens.vocabulary));
  for (const masker of maskers) quickly("the first mask", () => masker.mask(parsed.start()));
  const next = random(row.id.length);
  const accepts = async (text: string): Promise<boolean> => {
    const verdict = byBytes(parsed, text);
    for (const [i, model] of models.entries()) {
      const { tokens, engine } = model;
      // A long text takes long to cut, and says little that a short one does not.
      const ways = [[...(await engine.tokenize(text))], tokens.greedy(text)];
      if (text.length < 500) ways.push(tokens.random(text, next), tokens.random(text, next));
      for (const ids of ways) {
        expect(Buffer.concat(ids.map((id) => tokens.piece(id))).toString()).toBe(text);
        const masker = maskers[i] as (typeof maskers)[number];
        expect(byTokens(parsed, model, masker, ids), `${text} in ${model.name}'s tokens ${ids}`).toBe(verdict);
      }
    }
    return verdict;
  };
  for (const text of row.reject) expect(await accepts(text), `accepted ${text}`).toBe(false);
  let missed = 0;
  for (const ways of row.accept) {
    let taken = false;
    for (const text of ways) taken = (await accepts(text)) || taken;
    if (taken) continue;
    missed++;
    note(`not ${ways[0]?.slice(0, 100)}`);
  }
  return missed === 0 ? "exact" : `stricter-than-schema ${missed}`;
}

const reached: Record<string, string> = {};
const table: Record<string, Record<string, number>> = {};

function count(row: Row, category: string): void {
  const [name = "", missed = "0"] = category.split(" ");
  const whole = name === "refused-with-pointer";
  for (const keyword of row.keywords) {
    table[keyword] ??= { rows: 0, exact: 0, stricter: 0, refused: 0, "valid accepted": 0, not: 0 };
    const cells = table[keyword];
    const add = (cell: string, by: number) => {
      cells[cell] = (cells[cell] ?? 0) + by;
    };
    add("rows", 1);
    add(name === "exact" ? "exact" : whole ? "refused" : "stricter", 1);
    add("valid accepted", whole ? 0 : row.accept.length - Number(missed));
    add("not", whole ? row.accept.length : Number(missed));
  }
}

function run(rows: Row[]): void {
  it.each(rows.map((row) => [row.id, row] as const))("%s", async (id, row) => {
    const category = await judge(row);
    reached[id] = category;
    count(row, category);
    const known = ratchet[id];
    if (update || known === undefined) return;
    expect(rank(category), `${id} was "${known}", and is "${category}"`).toBeLessThanOrEqual(rank(known));
  });
}

describe("rows of our own", () => run(ownRows()));

const rows = sharedRows();
if (rows === undefined)
  console.warn("SKIPPED: no shared cases found; set TOKENLOOP_SHARED to the folder that holds cases/.");
describe.skipIf(rows === undefined)("shared cases", () => run(rows ?? []));

afterAll(() => {
  const counts: Record<string, number> = {};
  for (const category of Object.values(reached)) {
    const [name = ""] = category.split(" ");
    counts[name] = (counts[name] ?? 0) + 1;
  }
  console.log(JSON.stringify(counts));
  console.table(table);
  console.log(["not accepted:", ...notes].join("\n  "));
  const better = Object.entries(reached).filter(([id, category]) => rank(category) < rank(ratchet[id] ?? category));
  const fresh = Object.keys(reached).filter((id) => ratchet[id] === undefined);
  if (update) {
    // Rows that were not run stay: the shared cases may be elsewhere.
    const all = Object.entries({ ...ratchet, ...reached }).sort(([x], [y]) => (x < y ? -1 : 1));
    writeFileSync(ratchetPath, `${JSON.stringify(Object.fromEntries(all), null, 2)}\n`);
  } else if (better.length + fresh.length > 0) {
    const list = [...better.map(([id, category]) => `${id}: ${ratchet[id]} -> ${category}`), ...fresh].join("\n  ");
    console.warn(
      `Better than test/schema/ratchet.json, or not in it; keep that with\n` +
        `  TOKENLOOP_UPDATE_RATCHET=1 npx vitest run test/schema/ratchet.test.ts\n  ${list}`,
    );
  }
});
