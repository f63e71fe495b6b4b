// Run as a child process by exit.test.ts: `node child.mjs SCENARIO`. Prints "generating" once tokens flow, then ends the
// process in the way that the scenario names, in the middle of the generation.
import { fileURLToPath } from "node:url";
import { isMainThread, parentPort, Worker, workerData } from "node:worker_threads";
import { Engine } from "../../dist/index.js";

const model = fileURLToPath(new URL("../models/nano/nano.gguf", import.meta.url));
// Nothing but the context ends this answer: the end of generation is banned.
const endless = {
  messages: [{ role: "user", content: "Count to 40." }],
  temperature: 0,
  logit_bias: { 1502: -100 },
  stream: true,
};

/** Four endless streams; resolves when each has sent something. `onChunk` sees every chunk. */
async function generate(engine, onChunk = () => undefined) {
  const streams = await Promise.all([1, 2, 3, 4].map(() => engine.chat.completions.create(endless)));
  await Promise.all(
    streams.map(
      (stream) =>
        new Promise((resolve, reject) => {
          (async () => {
            for await (const chunk of stream) {
              resolve();
              onChunk(chunk);
            }
          })().catch(reject);
        }),
    ),
  );
}

const withSchema = (schema) => ({
  ...endless,
  stream: false,
  max_tokens: 5,
  response_format: { type: "json_schema", json_schema: { name: "x", schema } },
});
/** Its grammar takes a second of another thread. */
const slow = withSchema({ allOf: Array.from({ length: 30 }, (_, i) => ({ pattern: `^(a|b)*a(a|b){${i + 8}}$` })) });
/** Its grammar is made there, too, at once. */
const quick = withSchema({ type: "string", pattern: "^[a-z]+$" });
/** Resolves when that thread is at work. */
async function compile(engine) {
  await engine.chat.completions.create(quick);
  void engine.chat.completions.create(slow).catch(() => undefined);
  await new Promise((resolve) => setTimeout(resolve, 20));
}

/** Shows the parent that the scenario came as far as it should. */
const reached = () => process.stdout.write("generating\n");

/** A worker, terminated as soon as it says how far it has come. */
async function terminateWorker(what) {
  const worker = new Worker(fileURLToPath(import.meta.url), { workerData: what });
  await new Promise((resolve) => worker.once("message", resolve));
  // 1: terminated. 0, or none when it is over: it had nothing more to do, which one that closes may be first with.
  const code = await worker.terminate();
  if (![0, 1, undefined].includes(code)) {
    console.error(`the worker ended with ${code}`);
    process.exit(3);
  }
}

const scenarios = {
  async exit() {
    const engine = await Engine.load({ model, threads: 1 });
    await generate(engine);
    reached();
    process.exit(7);
  },
  async "exit-in-consumer"() {
    const engine = await Engine.load({ model, threads: 1 });
    let chunks = 0;
    await generate(engine, () => {
      if (++chunks === 20) {
        reached();
        process.exit(7);
      }
    });
    await new Promise((resolve) => setTimeout(resolve, 5000));
  },
  async "exit-while-loading"() {
    void Engine.load({
      model,
      threads: 1,
      onProgress: () => {
        reached();
        process.exit(7);
      },
    });
    await new Promise((resolve) => setTimeout(resolve, 5000));
  },
  async "exit-while-closing"() {
    const engine = await Engine.load({ model, threads: 1 });
    await generate(engine);
    void engine.close();
    reached();
    process.exit(7);
  },
  async throw() {
    const engine = await Engine.load({ model, threads: 1 });
    let chunks = 0;
    const streams = await Promise.all([1, 2].map(() => engine.chat.completions.create(endless)));
    // Nobody catches what these consumers throw: an unhandled rejection ends the process with 1.
    for (const stream of streams) {
      (async () => {
        for await (const _ of stream) {
          if (++chunks !== 10) continue;
          reached();
          throw new Error("from the consumer");
        }
      })();
    }
  },
  async "throw-in-timer"() {
    const engine = await Engine.load({ model, threads: 1 });
    await generate(engine);
    reached();
    setTimeout(() => {
      throw new Error("elsewhere");
    }, 1);
  },
  async worker() {
    await terminateWorker("generating");
    // The process is healthy: another engine works, here and in a new worker.
    const engine = await Engine.load({ model, threads: 1 });
    await generate(engine);
    await Promise.all([terminateWorker("generating"), engine.close()]);
    reached();
    process.exitCode = 7;
  },
  async "worker-while-loading"() {
    for (let round = 0; round < 4; round++) await terminateWorker("loading");
    reached();
    process.exitCode = 7;
  },
  async "worker-while-closing"() {
    for (let round = 0; round < 4; round++) await terminateWorker("closing");
    reached();
    process.exitCode = 7;
  },
  async "worker-and-exit"() {
    const worker = new Worker(fileURLToPath(import.meta.url), { workerData: "generating" });
    await new Promise((resolve) => worker.once("message", resolve));
    const engine = await Engine.load({ model, threads: 1 });
    await generate(engine);
    reached();
    process.exit(7);
  },
  async "exit-while-compiling"() {
    await compile(await Engine.load({ model, threads: 1 }));
    reached();
    process.exit(7);
  },
  async "worker-while-compiling"() {
    for (let round = 0; round < 4; round++) await terminateWorker("compiling");
    reached();
    process.exitCode = 7;
  },
  async "idle-after-compiling"() {
    // What compiles schemas keeps the process while it does, and no longer.
    const engine = await Engine.load({ model, threads: 1 });
    await engine.chat.completions.create(quick);
    const error = await engine.chat.completions.create(slow).catch((reason) => reason);
    if (error?.status === 400) reached();
    process.exitCode = 7;
  },
  async idle() {
    // A loaded engine that nobody uses does not keep the process.
    const engine = await Engine.load({ model, threads: 1 });
    await engine.chat.completions.create({ ...endless, stream: false, max_tokens: 5 });
    reached();
    process.exitCode = 7;
  },
  async unread() {
    // A stream that nobody reads keeps it until the answer is whole.
    const engine = await Engine.load({ model, threads: 1 });
    await engine.chat.completions.create({ ...endless, max_tokens: 50 });
    reached();
    process.exitCode = 7;
  },
};

if (isMainThread) {
  await scenarios[process.argv[2]]();
} else {
  const report = () => parentPort.postMessage(workerData);
  const onProgress = workerData === "loading" ? report : undefined;
  const engine = await Engine.load({ model, threads: 1, onProgress });
  if (workerData === "compiling") await compile(engine);
  else await generate(engine);
  if (workerData === "closing") void engine.close();
  report();
}
