import { Ajv2020 } from "ajv/dist/2020.js";
import { expect, it } from "vitest";
import { compileSchema, SchemaError } from "../../src/schema/index.js";
import { accepts, Matcher } from "../support/gbnf-matcher.js";
import { parseGbnf } from "../support/gbnf-parse.js";
import { random, sample } from "../support/gbnf-sample.js";
import { randomSchema, randomValue } from "./random-schema.js";

/**
 * ajv is the judge, both ways: what the grammar lets through must be valid, and valid values must get through, as far
 * as keys stand in the schema's order (so values are taken from the grammar's own samples, and mutated).
 */
const seed = Number(process.env.TOKENLOOP_SEED ?? 1);
const schemas = Number(process.env.TOKENLOOP_FUZZ ?? 1500);

it(`random schemas, random texts: ajv agrees (seed ${seed})`, { timeout: 600_000 }, () => {
  const ajv = new Ajv2020({ strict: false, validateFormats: false, logger: false, addUsedSchema: false });
  const next = random(seed);
  const counts = { schemas: 0, refused: 0, empty: 0, samples: 0, mutants: 0, valid: 0, noVerdict: 0 };
  const reasons: Record<string, number> = {};
  for (let i = 0; i < schemas; i++) {
    const schema = randomSchema(next, 3);
    const shown = JSON.stringify(schema);
    const compiled = ajv.compile(schema as object);
    // ajv's own code fails on a few combinations (dependentSchemas inside applicators): no verdict then.
    const validate = (value: unknown): boolean | undefined => {
      try {
        return compiled(value);
      } catch {
        counts.noVerdict++;
        return undefined;
      }
    };
    counts.schemas++;
    let grammar: string;
    try {
      grammar = compileSchema(schema, { whitespace: i % 4 === 0 }).grammar;
    } catch (error) {
      if (!(error instanceof SchemaError)) throw new Error(`crashed on ${shown}`, { cause: error });
      counts.refused++;
      const reason = `${error.code} ${error.keyword}`;
      reasons[reason] = (reasons[reason] ?? 0) + 1;
      if (error.message.includes("no value satisfies")) {
        counts.empty++;
        for (let k = 0; k < 20; k++) {
          const value = randomValue(next, 2);
          expect(validate(value), `refused as empty, but ${JSON.stringify(value)} fits ${shown}`).not.toBe(true);
        }
      }
      continue;
    }
    const matcher = new Matcher(parseGbnf(grammar));
    for (let k = 0; k < 6; k++) {
      const text = sample(matcher, next, 40);
      if (text === undefined) continue;
      counts.samples++;
      const value: unknown = JSON.parse(text);
      if (validate(value) === false) throw new Error(`${text} is not valid under ${shown}:\n${grammar}`);
    }
    for (let k = 0; k < 6; k++) {
      // Values made without the grammar: scalars and arrays of them have no order of keys to differ in.
      const value = randomValue(next, 1);
      const text = JSON.stringify(value);
      const valid = validate(value);
      counts.mutants++;
      if (valid) counts.valid++;
      if (accepts(matcher, text) !== valid)
        throw new Error(`${text} is ${valid ? "" : "in"}valid under ${shown}:\n${grammar}`);
    }
  }
  console.log(JSON.stringify({ ...counts, reasons }));
  expect(counts.noVerdict).toBeLessThan(counts.samples / 100);
  expect(counts.samples).toBeGreaterThan(counts.schemas);
  expect(counts.refused - counts.empty).toBeLessThan(counts.schemas / 3);
});
