import { checkLogprobs, foldStream } from "../invariants.mjs";
import { must, need, show } from "../outcome.mjs";
import { pick } from "../random.mjs";
import { ask } from "./chat.mjs";

/** @typedef {import("../types.js").Chunk} Chunk */

/**
 * @param {import("../types.js").Context} context
 * @param {import("../types.js").Body} [body]
 */
export async function streamed({ target }, body = {}) {
  /** @type {Chunk[]} */
  const chunks = (await target.chat({ ...body, stream: true })).chunks("chunk");
  const options = /** @type {{ include_usage?: boolean } | undefined} */ (body.stream_options);
  const { n, logprobs } = /** @type {{ n?: number, logprobs?: boolean }} */ (body);
  return foldStream(chunks, {
    ...(n === undefined ? {} : { n }),
    ...(logprobs === undefined ? {} : { logprobs }),
    includeUsage: options?.include_usage === true,
  });
}

const usage = { stream_options: { include_usage: true } };

/** @type {import("../types.js").Check[]} */
export const stream = [
  {
    id: "stream.shape",
    title: "a stream keeps every invariant and says what the whole answer says",
    async run(context) {
      const whole = await ask(context);
      const again = await ask(context);
      need(whole.content === again.content, "the model does not repeat itself at temperature 0");
      const { choices } = await streamed(context);
      must(
        choices[0]?.content === whole.content,
        `streamed ${show(choices[0]?.content)}, whole ${show(whole.content)}`,
      );
      must(choices[0]?.finishReason === whole.first.finish_reason, "another finish_reason than the whole answer has");
    },
  },
  {
    id: "stream.usage",
    title: "include_usage adds one last chunk with the numbers of the whole answer",
    optional: ["stream_options"],
    async run(context) {
      const whole = await ask(context);
      const { usage: numbers } = await streamed(context, usage);
      must(numbers?.prompt_tokens === whole.usage.prompt_tokens, "another number of prompt tokens");
      const off = await streamed(context, { stream_options: { include_usage: false } });
      must(off.usage === undefined, "usage, though include_usage is false");
    },
  },
  {
    id: "stream.usage-after-stop",
    title: "the usage chunk also comes after a stop string and after max_tokens",
    optional: ["stream_options"],
    async run(context) {
      await streamed(context, { ...usage, max_tokens: 1 });
      await streamed(context, { ...usage, stop: [" ", "e", "a", "o", "1"].slice(0, 4), max_tokens: 24 });
    },
  },
  {
    id: "stream.n",
    title: "choices of one stream have a beginning and an end each",
    optional: ["n"],
    async run(context) {
      const { choices } = await streamed(context, { n: 3, temperature: 1, ...usage });
      must(choices.length === 3, `${choices.length} choices`);
    },
  },
  {
    id: "stream.logprobs",
    title: "streamed logprobs, joined, are those of the whole answer",
    optional: ["logprobs", "top_logprobs"],
    async run(context) {
      const body = { logprobs: true, top_logprobs: 2 };
      const { choices } = await streamed(context, body);
      const [choice] = choices;
      must(choice !== undefined, "no choice");
      checkLogprobs(choice.logprobs, choice.content, 2);
      const whole = await ask(context, body);
      need(whole.content === choice.content, "the model does not repeat itself at temperature 0");
      const tokens = (whole.first.logprobs?.content ?? []).map(({ token }) => token);
      must(show(tokens) === show(choice.logprobs.map(({ token }) => token)), "other tokens than in the whole answer");
    },
  },
  {
    id: "stream.stop",
    title: "nothing of a stop string comes out, and nothing twice",
    async run(context) {
      const whole = await ask(context, { max_tokens: 24 });
      need(whole.content.length >= 8, `the model says too little: ${show(whole.content)}`);
      const middle = Math.floor(whole.content.length / 2);
      const stop = whole.content.slice(middle, middle + 5);
      need(!/\p{Surrogate}/u.test(stop), "no stop string can be cut from the answer");
      const expected = await ask(context, { max_tokens: 24, stop });
      const { choices } = await streamed(context, { max_tokens: 24, stop });
      must(
        choices[0]?.content === expected.content,
        `streamed ${show(choices[0]?.content)}, whole ${show(expected.content)}`,
      );
      must(choices[0]?.finishReason === "stop", `finish_reason ${choices[0]?.finishReason}`);
    },
  },
  {
    id: "stream.error-before",
    title: "what is refused before it begins has a status, not a stream",
    async run({ target }) {
      (await target.chat({ messages: [], stream: true })).error(400, 422);
    },
  },
  {
    id: "stream.leave",
    title: "a client that leaves disturbs nobody",
    async run(context) {
      const { target } = context;
      for (let i = 0; i < 3; i++) {
        const controller = new AbortController();
        const response = await target.open("/chat/completions", {
          method: "POST",
          body: JSON.stringify(await target.withDefaults({ stream: true, max_tokens: 400 })),
          signal: controller.signal,
        });
        must(response.status === 200, `status ${response.status}`);
        const reader = response.body?.getReader();
        await reader?.read();
        controller.abort();
        await reader?.read().catch(() => undefined);
      }
      await ask(context);
    },
  },
  {
    id: "stream.random",
    title: "random requests: every invariant holds, streamed and whole",
    async run(context) {
      for (let i = 0; i < context.runs; i++) {
        const body = randomBody(context.random);
        try {
          await streamed(context, { ...body, ...(context.random() < 0.5 ? usage : {}) });
          await ask(context, body);
        } catch (error) {
          if (error instanceof Error) error.message += ` — asked with ${show(body)}`;
          throw error;
        }
      }
    },
  },
];

const prompts = [
  "Hello!",
  "Tell me a story about a fox.",
  "Count to 20.",
  "What does a dog say?",
  "歪 🦊?",
  "Say nothing.",
];

/** @param {() => number} random */
function randomBody(random) {
  const maybe = (/** @type {number} */ share, /** @type {object} */ fields) => (random() < share ? fields : {});
  const count = 1 + Math.floor(random() * 3);
  return {
    messages: Array.from({ length: 2 * count - 1 }, (_, i) => ({
      role: i % 2 === 0 ? "user" : "assistant",
      content: pick(random, prompts),
    })),
    temperature: pick(random, [0, 0.7, 2]),
    max_tokens: 1 + Math.floor(random() * 24),
    ...maybe(0.5, { seed: Math.floor(random() * 1000) }),
    ...maybe(0.5, { top_p: 0.1 + random() * 0.9 }),
    ...maybe(0.5, { stop: pick(random, [".", ["fox", ","], "\n", ["3", "dog", "the"]]) }),
    ...maybe(0.3, { presence_penalty: pick(random, [-2, 1.5]), frequency_penalty: pick(random, [2, -0.5]) }),
  };
}
