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
              onChunk(chunk);
              resolve();
            }
          })().catch(reject);
        }),
    ),
  );
}

const scenarios = {
  async exit() {
    const engine = await Engine.load({ model, threads: 1 });
    await generate(engine);
    process.exit(7);
  },
  async "exit-in-consumer"() {
    const engine = await Engine.load({ model, threads: 1 });
    let chunks = 0;
    await generate(engine, () => {
      if (++chunks === 20) process.exit(7);
    });
    await new Promise((resolve) => setTimeout(resolve, 5000));
  },
  async "exit-while-loading"() {
    void Engine.load({ model, threads: 1, onProgress: () => process.exit(7) });
    await new Promise((resolve) => setTimeout(resolve, 5000));
  },
  async "exit-while-closing"() {
    const engine = await Engine.load({ model, threads: 1 });
    await generate(engine);
    void engine.close();
    process.exit(7);
  },
  async throw() {
    const engine = await Engine.load({ model, threads: 1 });
    let chunks = 0;
    const streams = await Promise.all([1, 2].map(() => engine.chat.completions.create(endless)));
    // Nobody catches what these consumers throw: an unhandled rejection ends the process with 1.
    for (const stream of streams) {
      (async () => {
        for await (const _ of stream) if (++chunks === 10) throw new Error("from the consumer");
      })();
    }
  },
  async "throw-in-timer"() {
    const engine = await Engine.load({ model, threads: 1 });
    await generate(engine);
    setTimeout(() => {
      throw new Error("elsewhere");
    }, 1);
  },
  async worker() {
    const worker = new Worker(fileURLToPath(import.meta.url), { workerData: "endless" });
    await new Promise((resolve) => worker.once("message", resolve));
    const code = await worker.terminate();
    if (code !== 1) process.exit(3);
    // The process is healthy: another engine works, here and in a new worker.
    const engine = await Engine.load({ model, threads: 1 });
    await generate(engine);
    const second = new Worker(fileURLToPath(import.meta.url), { workerData: "endless" });
    await new Promise((resolve) => second.once("message", resolve));
    await Promise.all([second.terminate(), engine.close()]);
    process.exitCode = 7;
  },
  async "worker-and-exit"() {
    const worker = new Worker(fileURLToPath(import.meta.url), { workerData: "endless" });
    await new Promise((resolve) => worker.once("message", resolve));
    const engine = await Engine.load({ model, threads: 1 });
    await generate(engine);
    process.exit(7);
  },
  async idle() {
    // A loaded engine that nobody uses does not keep the process.
    const engine = await Engine.load({ model, threads: 1 });
    await engine.chat.completions.create({ ...endless, stream: false, max_tokens: 5 });
    process.exitCode = 7;
  },
  async unread() {
    // A stream that nobody reads keeps it until the answer is whole.
    const engine = await Engine.load({ model, threads: 1 });
    await engine.chat.completions.create({ ...endless, max_tokens: 50 });
    process.exitCode = 7;
  },
};

if (isMainThread) {
  await scenarios[process.argv[2]]();
} else if (workerData === "endless") {
  const engine = await Engine.load({ model, threads: 1 });
  await generate(engine);
  parentPort.postMessage("generating");
}
