import { CompileThread, type CompileThreadOptions } from "./compile-thread.js";
import { SchemaError } from "./error.js";
import { runSchemaJob, type SchemaJob, type SchemaOutcome } from "./job.js";
import { defaultLimits, measure } from "./limits.js";

export interface SchemaRequest {
  schema: unknown;
  /** Enforce OpenAI's subset for `strict: true`. Default false. */
  strict?: boolean;
  /** Allow white space between tokens (CompileOptions). Default false. */
  whitespace?: boolean;
  /** The field that an error names. Default "response_format". */
  param?: string;
}

const smallLength = 1000;
/** Milliseconds that a small schema may take at once, before it goes to the thread after all. */
const smallMilliseconds = 5;
/** Keywords that a few characters of can mean much work: automata, their products, and large tables. */
const costly =
  /"(?:pattern|patternProperties|propertyNames|format|multipleOf|minimum|maximum|exclusiveMinimum|exclusiveMaximum|allOf|not|if|oneOf|contains|uniqueItems|unevaluatedProperties|unevaluatedItems|dependentRequired|dependentSchemas|dependencies|minProperties|maxProperties|\$ref)"/;
/** Bytes that the outcomes kept may take with their schemas, two for a character. */
const keptBytes = 32 << 20;

/**
 * Grammars of the schemas that an engine is asked for. A schema costs once: outcomes are kept, refusals too, the most
 * recently used ones, and those who ask for a schema while it is compiled wait for that. Small schemas are compiled at
 * once, all others on a thread of their own, so that the caller's is held up for a few milliseconds at most.
 */
export class SchemaCompiler {
  readonly #thread: CompileThread;
  readonly #kept = new Map<string, SchemaOutcome>();
  readonly #running = new Map<string, Promise<SchemaOutcome>>();
  #bytes = 0;

  constructor(options?: CompileThreadOptions) {
    this.#thread = new CompileThread(options);
  }

  /** Characters that the outcomes kept take, with their schemas. */
  get bytes(): number {
    return this.#bytes;
  }

  /**
   * The grammar of a schema: every text of it is a JSON document that the schema allows. At once where that takes no
   * time. The promise rejects with what is thrown, or as CompileThread.run says.
   *
   * @throws {SchemaError} 400 with the JSON pointer of what no grammar can express.
   */
  grammar({ schema, strict = false, whitespace = false, param }: SchemaRequest): string | Promise<string> {
    const text = toText(schema, param);
    const key = `${strict ? "s" : "-"}${whitespace ? "w" : "-"}${text}`;
    const known = this.#kept.get(key);
    if (known !== undefined) {
      // The most recently used one goes to the end.
      this.#kept.delete(key);
      this.#kept.set(key, known);
      return settle(known, param);
    }
    const job = { text, strict, whitespace };
    const running = this.#running.get(key) ?? this.#compile(key, job);
    return running instanceof Promise ? running.then((outcome) => settle(outcome, param)) : settle(running, param);
  }

  /** Ends the thread; grammars that it is at are rejected with EngineClosedError. */
  close(): Promise<void> {
    return this.#thread.close();
  }

  #compile(key: string, job: SchemaJob): SchemaOutcome | Promise<SchemaOutcome> {
    if (job.text.length <= smallLength && !costly.test(job.text)) {
      const outcome = runSchemaJob(job, { milliseconds: smallMilliseconds });
      if (!timedOut(outcome)) return this.#keep(key, outcome);
    }
    const running = this.#thread
      .run(job)
      .then((outcome) => this.#keep(key, outcome))
      .finally(() => this.#running.delete(key));
    this.#running.set(key, running);
    return running;
  }

  #keep(key: string, outcome: SchemaOutcome): SchemaOutcome {
    // What took too long once need not again.
    if (timedOut(outcome)) return outcome;
    this.#kept.set(key, outcome);
    this.#bytes += size(key, outcome);
    for (const [oldest, one] of this.#kept) {
      if (this.#bytes <= keptBytes || this.#kept.size === 1) break;
      this.#kept.delete(oldest);
      this.#bytes -= size(oldest, one);
    }
    return outcome;
  }
}

function timedOut(outcome: SchemaOutcome): boolean {
  return "failure" in outcome && outcome.timedOut;
}

function size(key: string, outcome: SchemaOutcome): number {
  const text = "grammar" in outcome ? outcome.grammar.length : outcome.failure.reason.length;
  return 2 * (key.length + text) + 256;
}

function settle(outcome: SchemaOutcome, param: string | undefined): string {
  if ("grammar" in outcome) return outcome.grammar;
  throw new SchemaError(outcome.failure, param);
}

/** As JSON, which is the schema's name in the cache and what the thread gets. */
function toText(schema: unknown, param: string | undefined): string {
  try {
    measure(schema, defaultLimits);
  } catch (error) {
    throw error instanceof SchemaError ? new SchemaError(error.failure, param) : error;
  }
  return JSON.stringify(schema);
}
