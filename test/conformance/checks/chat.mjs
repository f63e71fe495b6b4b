import { checkLogprobs, checkUsage } from "../invariants.mjs";
import { must, need, show } from "../outcome.mjs";

/** @typedef {import("../types.js").Completion} Completion */
/** @typedef {import("../types.js").Choice} Choice */

/**
 * @param {import("../types.js").Context} context
 * @param {import("../types.js").Body} [body]
 * @returns {Promise<Completion & { first: Choice, content: string }>}
 */
export async function ask({ target }, body = {}) {
  /** @type {Completion} */
  const completion = (await target.chat(body)).ok("completion");
  const [first] = completion.choices;
  must(first !== undefined, "no choices");
  return { ...completion, first, content: first.message.content ?? "" };
}

/** @type {import("../types.js").Check[]} */
export const chat = [
  {
    id: "chat.shape",
    title: "an answer has OpenAI's shape, with the keys that may be null",
    async run(context) {
      const answer = await ask(context);
      must(answer.choices.length === 1, `${answer.choices.length} choices, one was asked for`);
      must(answer.first.index === 0, `the only choice has index ${answer.first.index}`);
      must(answer.first.logprobs === null, "logprobs that were not asked for");
      must(typeof answer.first.message.content === "string", "no content");
      must(Math.abs(answer.created - Date.now() / 1000) < 3600, `created is not now: ${answer.created}`);
    },
  },
  {
    id: "chat.ids",
    title: "answers that run side by side have ids of their own",
    async run(context) {
      const answers = await Promise.all(Array.from({ length: 6 }, () => ask(context)));
      must(new Set(answers.map(({ id }) => id)).size === answers.length, "two answers have one id");
    },
  },
  {
    id: "chat.usage",
    title: "usage adds up and keeps to max_tokens",
    async run(context) {
      for (const max_tokens of [1, 5]) {
        const { usage, first } = await ask(context, { max_tokens });
        checkUsage(usage);
        must(usage.completion_tokens <= max_tokens, `${usage.completion_tokens} tokens, max_tokens is ${max_tokens}`);
        must(first.finish_reason === "length", `finish_reason ${first.finish_reason} after max_tokens`);
      }
    },
  },
  {
    id: "chat.max-completion-tokens",
    title: "max_completion_tokens limits as max_tokens does",
    async run(context) {
      const { usage, first } = await ask(context, { max_tokens: undefined, max_completion_tokens: 3 });
      must(usage.completion_tokens <= 3, `${usage.completion_tokens} tokens, max_completion_tokens is 3`);
      must(first.finish_reason === "length", `finish_reason ${first.finish_reason}`);
    },
  },
  {
    id: "chat.null",
    title: "null means the default",
    async run(context) {
      const nulls = ["top_p", "stop", "n", "logit_bias", "presence_penalty", "response_format", "seed", "user"];
      await ask(context, { ...Object.fromEntries(nulls.map((name) => [name, null])), stream: false });
    },
  },
  {
    id: "chat.harmless",
    title: "fields that mean nothing to a local server are accepted",
    async run(context) {
      await ask(context, { user: "u", store: false, metadata: { a: "b" }, service_tier: "auto", logit_bias: {} });
    },
  },
  {
    id: "chat.roles",
    title: "every role and text in parts are accepted",
    async run(context) {
      const call = { id: "call_1", type: "function", function: { name: "look_up", arguments: '{"word":"fox"}' } };
      await ask(context, {
        messages: [
          { role: "system", content: "You are brief." },
          { role: "user", content: [{ type: "text", text: "What is a fox?" }] },
          { role: "assistant", content: null, tool_calls: [call] },
          { role: "tool", tool_call_id: "call_1", content: "An animal." },
          { role: "assistant", content: "An animal." },
          { role: "user", content: "Thanks.", name: "anna" },
        ],
      });
      await ask(context, {
        messages: [
          { role: "developer", content: "Be brief." },
          { role: "user", content: "Hi" },
        ],
      });
    },
  },
  {
    id: "chat.unicode",
    title: "odd characters in messages do no harm",
    async run(context) {
      for (const content of ["歪 🦊 \u2028 \u0000 </s> <|im_end|>", "", "a\ud800b", "\\ud800"]) {
        await ask(context, { messages: [{ role: "user", content }], max_tokens: 2 });
      }
    },
  },
  {
    id: "chat.n",
    title: "n answers have the indices 0 to n-1 and share one prompt",
    optional: ["n"],
    async run(context) {
      const { choices, usage } = await ask(context, { n: 3, temperature: 1 });
      must(show(choices.map(({ index }) => index)) === "[0,1,2]", `indices ${show(choices.map(({ index }) => index))}`);
      const alone = await ask(context, {});
      must(usage.prompt_tokens === alone.usage.prompt_tokens, "the prompt is counted more than once");
      checkUsage(usage);
    },
  },
  {
    id: "chat.stop",
    title: "a stop string ends the answer and is not in it",
    async run(context) {
      const whole = await ask(context, { max_tokens: 24 });
      const again = await ask(context, { max_tokens: 24 });
      need(whole.content === again.content, "the model does not repeat itself at temperature 0");
      need(whole.content.length >= 8, `the model says too little: ${show(whole.content)}`);
      const middle = Math.floor(whole.content.length / 2);
      const stop = whole.content.slice(middle, middle + 3);
      need(!/\p{Surrogate}/u.test(stop), "no stop string can be cut from the answer");
      for (const form of [stop, ["§§§", stop]]) {
        const { content, first } = await ask(context, { max_tokens: 24, stop: form });
        must(
          content === whole.content.slice(0, whole.content.indexOf(stop)),
          `${show(content)} with the stop ${show(stop)}`,
        );
        must(first.finish_reason === "stop", `finish_reason ${first.finish_reason} after a stop string`);
      }
      const { content } = await ask(context, { max_tokens: 24, stop: ["§§§"] });
      must(content === whole.content, "a stop string that does not come changes the answer");
    },
  },
  {
    id: "chat.seed",
    title: "the same seed gives the same answer",
    optional: ["seed"],
    async run(context) {
      const body = { temperature: 1, seed: 42, max_tokens: 12 };
      const first = await ask(context, body);
      const second = await ask(context, body);
      must(first.content === second.content, `${show(first.content)}, then ${show(second.content)}`);
    },
  },
  {
    id: "chat.logit-bias",
    title: "logit_bias 100 all but forces a token",
    optional: ["logit_bias"],
    async run(context) {
      const plain = await ask(context, { max_tokens: 2 });
      let changed = 0;
      for (const id of ["40", "41", "42"]) {
        const logit_bias = { [id]: 100 };
        const once = await ask(context, { max_tokens: 1, logit_bias });
        const twice = await ask(context, { max_tokens: 2, logit_bias });
        if (twice.content === plain.content) continue;
        const repeated = once.content.repeat(2);
        must([once.content, repeated].includes(twice.content), `token ${id} gives ${show(twice.content)}`);
        changed++;
      }
      must(changed > 0, "the answer does not change");
    },
  },
  {
    id: "chat.logprobs",
    title: "logprobs are those of the answer's tokens",
    optional: ["logprobs", "top_logprobs"],
    async run(context) {
      for (const top of [0, 3]) {
        const { first, content } = await ask(context, { logprobs: true, top_logprobs: top });
        must(first.logprobs?.content, "no logprobs");
        checkLogprobs(first.logprobs.content, content, top);
      }
    },
  },
  {
    id: "chat.headers",
    title: "an answer has a request id",
    async run({ target }) {
      const { headers } = await target.chat({});
      must(headers.get("x-request-id"), "no x-request-id header");
    },
  },
  {
    id: "chat.crowd",
    title: "eight at once get what each gets alone",
    async run(context) {
      const bodies = Array.from({ length: 8 }, (_, i) => ({
        messages: [{ role: "user", content: `Count to ${i + 3}.` }],
      }));
      const together = await Promise.all(bodies.map((body) => ask(context, body)));
      for (const answer of together) checkUsage(answer.usage);
      must(new Set(together.map(({ id }) => id)).size === 8, "two answers have one id");
    },
  },
];
