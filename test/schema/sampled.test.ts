import { Ajv2020 } from "ajv/dist/2020.js";
import { beforeAll, describe, expect, it } from "vitest";
import { compileSchema, SchemaError } from "../../src/schema/index.js";
import { nanoPieces } from "../models/nano-pieces.js";
import { qwen3Pieces } from "../models/qwen3-pieces.js";
import { random } from "../support/gbnf-sample.js";
import { type GrammarMasker, loadTestAddon, type ParsedGrammar } from "../support/test-addon.js";
import { Tokens } from "../support/tokens.js";
import { formatJudges } from "./format-judges.js";
import { randomDocument } from "./random-schema.js";

/**
 * Random schemas, answers of a model whose logits are noise, and ajv's verdict on them: each must be valid. The masks are
 * those that an engine's sampler gets. TOKENLOOP_SAMPLES takes more of them, TOKENLOOP_SEED others.
 */
const seed = Number(process.env.TOKENLOOP_SEED ?? 1);
const wanted = Number(process.env.TOKENLOOP_SAMPLES ?? 20_000);
const samplesPerSchema = 8;
/** Tokens, after which what ends a value is chosen where it is allowed; and after which the answer is given up. */
const patience = 24;
const most = 400;

const addon = loadTestAddon();
let models: [name: string, tokens: Tokens, share: number][];
beforeAll(() => {
  models = [
    ["nano", new Tokens(nanoPieces()), 0.85],
    ["Qwen3", new Tokens(qwen3Pieces()), 0.15],
  ];
});

/** Undefined when it does not come to an end. */
function sample(parsed: ParsedGrammar, masker: GrammarMasker, tokens: Tokens, next: () => number): string | undefined {
  const state = parsed.start();
  const answer: Buffer[] = [];
  const closers = ['"', "}", "]", '"}', '"]'].flatMap((text) => tokens.greedy(text).slice(0, 1));
  for (let i = 0; i < most; i++) {
    const late = i >= patience;
    if (state.canEnd() && (late || next() < 0.2)) return Buffer.concat(answer).toString();
    const closer = late ? closers.find((id) => masker.allows(state, id)) : undefined;
    const id = closer ?? masker.pick(state, next());
    if (id === null) throw new Error("too ambiguous for a mask");
    if (id === -1) {
      expect(state.canEnd(), `nothing goes on after ${Buffer.concat(answer)}`).toBe(true);
      return Buffer.concat(answer).toString();
    }
    const piece = tokens.piece(id);
    expect(state.acceptToken(id, piece), `${piece} was allowed after ${Buffer.concat(answer)}`).toBe(true);
    answer.push(piece);
  }
  return undefined;
}

describe(`random schemas, random weights (seed ${seed})`, () => {
  it.each([0, 1])("ajv finds every answer valid, model %i", { timeout: 1_800_000 }, (which) => {
    const [name, tokens, share] = models[which] as (typeof models)[number];
    const ajv = new Ajv2020({ strict: false, logger: false, addUsedSchema: false });
    for (const [format, judge] of Object.entries(formatJudges)) ajv.addFormat(format, judge);
    const next = random(seed + 1000 * which);
    const counts = { schemas: 0, refused: 0, samples: 0, givenUp: 0, beyondDoubles: 0, noVerdict: 0 };
    let longest = 0;
    while (counts.samples < wanted * share) {
      const schema = randomDocument(next);
      counts.schemas++;
      let grammar: string;
      try {
        grammar = compileSchema(schema, { whitespace: next() < 0.2 }).grammar;
      } catch (error) {
        if (!(error instanceof SchemaError)) throw error;
        counts.refused++;
        continue;
      }
      const parsed = addon.grammar(grammar);
      if (parsed.error) throw new Error(`${parsed.error.message}: ${JSON.stringify(schema)}`);
      const masker = parsed.masker(tokens.vocabulary);
      const validate = ajv.compile(schema as object);
      for (let k = 0; k < samplesPerSchema; k++) {
        const before = performance.now();
        const text = sample(parsed, masker, tokens, next);
        longest = Math.max(longest, performance.now() - before);
        if (text === undefined) {
          counts.givenUp++;
          continue;
        }
        // JSON.parse rounds such numbers, and ajv judges what is left.
        if (/\d{16}/.test(text.replaceAll(".", ""))) {
          counts.beyondDoubles++;
          continue;
        }
        counts.samples++;
        let valid: boolean;
        try {
          valid = validate(JSON.parse(text));
        } catch (error) {
          // ajv's own code fails on a few combinations; a text that is no JSON is our fault.
          if (error instanceof SyntaxError) throw new Error(`${text} is no JSON`, { cause: error });
          counts.noVerdict++;
          continue;
        }
        if (!valid) throw new Error(`${text} is not valid under ${JSON.stringify(schema)}:\n${grammar}`);
      }
    }
    console.log(`${name}, seed ${seed}: ${JSON.stringify(counts)}, longest answer ${longest.toFixed(0)} ms`);
    expect(counts.givenUp).toBeLessThan(counts.samples / 20);
    expect(counts.beyondDoubles).toBeLessThan(counts.samples / 5);
    expect(counts.noVerdict).toBeLessThan(counts.samples / 50);
  });
});
