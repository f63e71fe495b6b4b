// `npm run demo`: what the engine does, in a few seconds, with the model that the repository brings.
import { performance } from "node:perf_hooks";
import { fileURLToPath } from "node:url";
import { Engine } from "../../dist/index.js";

const model = fileURLToPath(new URL("../models/nano/nano.gguf", import.meta.url));
const user = (content) => ({ messages: [{ role: "user", content }], temperature: 0 });
const heading = (text) => console.log(`\n--- ${text}`);
const print = (text) => process.stdout.write(text);

heading("Load a model, off the JavaScript thread");
const started = performance.now();
const engine = await Engine.load({ model, parallel: 8 });
const { info } = engine;
console.log(
  `${info.id}: ${(info.parameters / 1e6).toFixed(1)} M parameters, context ${info.contextSize}, ` +
    `llama.cpp build ${info.build.llamaBuild} on ${info.build.devices.join(", ")}, ${Math.round(performance.now() - started)} ms`,
);

heading("A streamed chat");
const messages = [];
for (const question of ["Hello!", "What is the capital of France?", "What does a cow say?"]) {
  messages.push({ role: "user", content: question });
  print(`you   ${question}\nnano  `);
  let answer = "";
  for await (const chunk of await engine.chat.completions.create({ messages, temperature: 0, stream: true })) {
    const text = chunk.choices[0]?.delta.content ?? "";
    answer += text;
    print(text);
    await new Promise((resolve) => setTimeout(resolve, 8)); // nano is faster than anyone reads
  }
  messages.push({ role: "assistant", content: answer });
  print("\n");
}

heading("Cancel in the middle of an answer");
const controller = new AbortController();
let aborted = 0;
print("nano  ");
try {
  let words = 0;
  const stream = await engine.chat.completions.create(
    { ...user("Count to 40."), stream: true },
    { signal: controller.signal },
  );
  for await (const chunk of stream) {
    print(chunk.choices[0]?.delta.content ?? "");
    if (++words === 20) {
      aborted = performance.now();
      controller.abort();
    }
  }
} catch (error) {
  const ms = (performance.now() - aborted).toFixed(1);
  const { sequences, cellsUsed } = engine.stats();
  console.log(`\n${error.name} after ${ms} ms; sequences ${sequences}, KV cells in use ${cellsUsed}`);
}

heading("Eight requests at once, in shared batches");
const before = engine.stats();
const questions = [
  "Count to 40.",
  ...["fox", "bear", "owl", "dog", "cat", "horse"].map((animal) => `Tell me a story about a ${animal}.`),
  "What is the capital of Japan?",
];
const began = performance.now();
const answers = await Promise.all(questions.map((question) => engine.chat.completions.create(user(question))));
const seconds = (performance.now() - began) / 1000;
answers.forEach((answer, i) => {
  const text = answer.choices[0].message.content;
  console.log(`${questions[i]}\n      ${text.length > 90 ? `${text.slice(0, 50)} … ${text.slice(-35)}` : text}`);
});
const after = engine.stats();
const tokens = after.generatedTokens - before.generatedTokens;
const steps = after.steps - before.steps;
console.log(
  `${tokens} tokens in ${steps} steps: ${(tokens / steps).toFixed(1)} per step, up to ${after.peakSequences} sequences in one, ` +
    `${Math.round(tokens / seconds)} tokens per second`,
);

await engine.close();
console.log(`
Serve it to any OpenAI client:
  npx tokenloop serve test/models/nano/nano.gguf --port 8080
Talk to it:
  npx tokenloop chat`);
