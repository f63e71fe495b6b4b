import { Worker } from "node:worker_threads";
import { EngineClosedError, InternalError, RateLimitError, type TokenloopError } from "../errors.js";
import type { SchemaJob, SchemaOutcome } from "./job.js";
import { schemaWorkerFile } from "./worker-file.js";

export interface CompileThreadOptions {
  /** The worker's program. Default: the package's own. */
  file?: string | undefined;
  /** Milliseconds for one schema, from when the thread takes it up. Default 1000. */
  deadline?: number;
}

const startMilliseconds = 10_000;
const megabytes = 512;
/** Schemas that may wait, at most 256 KiB each. */
const maxWaiting = 512;

interface Waiting {
  job: SchemaJob;
  resolve(outcome: SchemaOutcome): void;
  reject(error: TokenloopError): void;
}

/**
 * A thread of its own for schemas that take long. It starts with the first job, takes them one by one, and keeps the
 * process alive only while there are any. What ends it (a deadline, its memory, a crash) is the end of the job that it
 * was at; the next one gets a new thread.
 *
 * | state | job arrives | ready | outcome | deadline | thread ends |
 * |---|---|---|---|---|---|
 * | none | start → starting | | | | |
 * | starting | waits | next → busy | | fail the first, → none or start | the same |
 * | idle | → busy | | | | → none |
 * | busy | waits | | resolve, next → busy or idle | refuse the job, → none or start | fail the job, the same |
 */
export class CompileThread {
  readonly #file: string | undefined;
  readonly #deadline: number;
  readonly #waiting: Waiting[] = [];
  #worker: Worker | undefined;
  #ready = false;
  #current: Waiting | undefined;
  #timer: NodeJS.Timeout | undefined;
  #closed = false;

  constructor({ file = schemaWorkerFile(), deadline = 1000 }: CompileThreadOptions = {}) {
    this.#file = file;
    this.#deadline = deadline;
  }

  /**
   * Compiles a schema. Rejects with RateLimitError (too many are waiting), EngineClosedError, or InternalError (the
   * thread could not be started, or crashed).
   */
  run(job: SchemaJob): Promise<SchemaOutcome> {
    return new Promise((resolve, reject) => {
      if (this.#closed) throw new EngineClosedError();
      if (this.#waiting.length >= maxWaiting) throw new RateLimitError("Too many schemas are waiting to be compiled.");
      this.#waiting.push({ job, resolve, reject });
      this.#next();
    });
  }

  /** Ends the thread; what waits for it is rejected. Idempotent. */
  async close(): Promise<void> {
    this.#closed = true;
    const worker = this.#worker;
    const error = new EngineClosedError("The engine was closed while the schema was compiled.");
    this.#abandon()?.reject(error);
    for (const { reject } of this.#waiting.splice(0)) reject(error);
    await worker?.terminate();
  }

  #next(): void {
    if (this.#current !== undefined) return;
    if (this.#waiting.length === 0) {
      this.#worker?.unref();
      return;
    }
    if (this.#worker === undefined) this.#start();
    this.#worker?.ref();
    if (!this.#ready) return;
    this.#current = this.#waiting.shift();
    this.#worker?.postMessage(this.#current?.job);
    this.#arm(this.#deadline, () => {
      this.#abandon()?.resolve(refusal(`it takes longer than ${this.#deadline} ms.`, true));
      this.#next();
    });
  }

  #start(): void {
    if (this.#file === undefined) {
      this.#failAll("tokenloop's own folder was not found; do not bundle tokenloop");
      return;
    }
    let worker: Worker;
    try {
      // Nothing of the process's command line or environment is the worker's business.
      worker = new Worker(this.#file, {
        name: "tokenloop-schema",
        argv: [],
        execArgv: [],
        env: {},
        resourceLimits: { maxOldGenerationSizeMb: megabytes },
      });
    } catch (error) {
      this.#failAll(error instanceof Error ? error.message : String(error), error);
      return;
    }
    this.#worker = worker;
    // Once a worker is abandoned nothing that it says or does counts.
    const listen = (event: string, act: (value: unknown) => void) =>
      worker.on(event, (value: unknown) => {
        if (this.#worker === worker) act(value);
      });
    listen("message", (message) => this.#onMessage(message as "ready" | SchemaOutcome));
    listen("error", (error) => this.#onEnd(error));
    listen("messageerror", (error) => this.#onEnd(error));
    listen("exit", (code) => this.#onEnd(new Error(`it exited with code ${String(code)}`)));
    this.#arm(startMilliseconds, () => this.#onEnd(new Error(`it did not start within ${startMilliseconds} ms`)));
  }

  #onMessage(message: "ready" | SchemaOutcome): void {
    this.#disarm();
    if (message === "ready") this.#ready = true;
    else {
      this.#current?.resolve(message);
      this.#current = undefined;
    }
    this.#next();
  }

  #onEnd(error: unknown): void {
    const current = this.#abandon();
    const code = error instanceof Error && "code" in error ? error.code : undefined;
    const message = error instanceof Error ? error.message : String(error);
    if (code === "ERR_WORKER_OUT_OF_MEMORY" && current !== undefined) {
      current.resolve(refusal(`it takes more than ${megabytes} MiB.`, false));
    } else if (current !== undefined) {
      current.reject(failed(message, error));
    } else {
      this.#failFirst(message, error);
    }
    this.#next();
  }

  #failAll(message: string, cause?: unknown): void {
    while (this.#waiting.length > 0) this.#failFirst(message, cause);
  }

  /** The thread never came to the first job; for the others it is started again. */
  #failFirst(message: string, cause?: unknown): void {
    this.#waiting.shift()?.reject(failed(message, cause));
  }

  /** Gives up the worker, if there is one, and the job that it is at. */
  #abandon(): Waiting | undefined {
    this.#disarm();
    const worker = this.#worker;
    const current = this.#current;
    this.#worker = undefined;
    this.#current = undefined;
    this.#ready = false;
    // Its end is not awaited: it can do no harm, and holds nothing but memory.
    if (worker !== undefined) void worker.terminate();
    return current;
  }

  #arm(milliseconds: number, act: () => void): void {
    this.#disarm();
    const timer = setTimeout(() => {
      // This thread may have been busy itself, and the answer be there: messages come before immediates.
      setImmediate(() => {
        if (this.#timer === timer) act();
      });
    }, milliseconds);
    this.#timer = timer;
  }

  #disarm(): void {
    clearTimeout(this.#timer);
    this.#timer = undefined;
  }
}

function failed(message: string, cause: unknown): InternalError {
  return new InternalError(`The thread that compiles schemas failed: ${message}.`, "schema_thread_failed", cause);
}

function refusal(reason: string, timedOut: boolean): SchemaOutcome {
  return { failure: { reason, pointer: "", keyword: "", code: "unsupported_schema" }, timedOut };
}
