import { Context } from "./context.js";
import { Emitter } from "./emit.js";
import { invalid, SchemaError, unsupported } from "./error.js";
import { chars, type Expr, empty, repeat, rule } from "./gbnf.js";
import { printGrammar } from "./gbnf-print.js";
import { Deadline, defaultLimits, type Limits } from "./limits.js";
import { SchemaDocument } from "./load.js";
import { checkStrict } from "./strict.js";

export { SchemaError, type SchemaErrorCode } from "./error.js";
export type { Limits } from "./limits.js";

export interface CompileOptions {
  /** Enforce OpenAI's subset for `strict: true` with its limits. Default false. */
  strict?: boolean;
  /** Allow up to 8 characters of white space between tokens. Default false: compact JSON. */
  whitespace?: boolean;
  /** Bounds on the schema; unset ones keep their default. */
  limits?: Partial<Limits>;
}

const maxSpace = 8;

/**
 * Turns a JSON Schema (draft 2020-12, draft-07's spellings too) into a GBNF grammar whose texts are JSON documents that
 * satisfy the schema, all of it. Keys come in the schema's order, JSON is compact.
 *
 * Strings under a pattern, format or name constraint have one spelling: characters as they are, short escapes where
 * JSON demands one, \u00XX for other control characters. Numbers under bounds or `multipleOf` have no exponent.
 *
 * @throws {SchemaError} 400 with a JSON pointer, for what is no schema and for what no grammar can express.
 */
export function compileSchema(schema: unknown, options: CompileOptions = {}): { grammar: string } {
  const limits: Limits = { ...defaultLimits, ...options.limits };
  const document = new SchemaDocument(schema, limits);
  if (options.strict === true) checkStrict(document, schema);
  const space: Expr = options.whitespace === true ? rule("space") : empty;
  const emitter = new Emitter(new Context(document, new Deadline(limits.milliseconds)), space);
  const white = chars([
    [9, 10],
    [13, 13],
    [32, 32],
  ]);
  if (options.whitespace === true) emitter.rules.set("space", repeat(white, 0, maxSpace));
  if (document.root.length === 0) emitter.rules.set("root", emitter.json.value());
  else emitter.node(document.root);
  emitter.finish();
  return { grammar: print(emitter, limits) };
}

function print(emitter: Emitter, limits: Limits): string {
  try {
    const grammar = printGrammar(emitter.rules, "root", limits.grammarBytes, limits.grammarRules);
    if (grammar === undefined) throw invalid({ pointer: "" }, "", "no value satisfies it.");
    return grammar;
  } catch (error) {
    if (error instanceof SchemaError || !(error instanceof RangeError)) throw error;
    throw unsupported(
      { pointer: "" },
      "",
      `its grammar would be larger than ${limits.grammarBytes} bytes or ${limits.grammarRules} rules.`,
    );
  }
}
