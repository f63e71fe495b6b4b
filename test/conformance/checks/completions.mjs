import { checkUsage } from "../invariants.mjs";
import { must, need, show } from "../outcome.mjs";

/** @typedef {import("../types.js").TextCompletion} TextCompletion */

const optional = ["/completions"];
const prompt = "Once upon a time";

/**
 * @param {import("../types.js").Context} context
 * @param {import("../types.js").Body} body
 */
async function post({ target }, body) {
  return target.post("/completions", { model: await target.model(), prompt, max_tokens: 8, temperature: 0, ...body });
}

/**
 * @param {import("../types.js").Context} context
 * @param {import("../types.js").Body} [body]
 */
async function complete(context, body = {}) {
  /** @type {TextCompletion} */
  const completion = (await post(context, body)).ok("textCompletion");
  const [first] = completion.choices;
  must(first !== undefined, "no choices");
  return { ...completion, first };
}

/** @type {import("../types.js").Check[]} */
export const completions = [
  {
    id: "completions.shape",
    title: "text completion: OpenAI's shape, and usage",
    optional,
    async run(context) {
      const { usage, first, choices } = await complete(context);
      must(choices.length === 1 && first.index === 0, "one choice, of index 0, was asked for");
      must(first.logprobs === null, "logprobs that were not asked for");
      must(usage, "no usage");
      checkUsage(usage);
      must(usage.completion_tokens <= 8, "more tokens than max_tokens");
    },
  },
  {
    id: "completions.stream",
    title: "text completion, streamed, says the same",
    optional,
    async run(context) {
      const { first } = await complete(context);
      /** @type {TextCompletion[]} */
      const chunks = (await post(context, { stream: true })).chunks("textChunk");
      must(new Set(chunks.map(({ id }) => id)).size === 1, "the id changes");
      const text = chunks.map(({ choices }) => choices[0]?.text ?? "").join("");
      need((await complete(context)).first.text === first.text, "the model does not repeat itself at temperature 0");
      must(text === first.text, `streamed ${show(text)}, whole ${show(first.text)}`);
      const reasons = chunks.flatMap(({ choices }) => choices).filter(({ finish_reason }) => finish_reason !== null);
      must(reasons.length === 1, `${reasons.length} finish_reasons`);
    },
  },
  {
    id: "completions.echo",
    title: "echo puts the prompt before the text",
    optional: [...optional, "echo"],
    async run(context) {
      const { first } = await complete(context, { echo: true });
      must(first.text.startsWith(prompt), `the text does not begin with the prompt: ${show(first.text)}`);
    },
  },
  {
    id: "completions.many",
    title: "several prompts and n: choices in order",
    optional: [...optional, "prompt", "n"],
    async run(context) {
      const { choices } = await complete(context, { prompt: [prompt, "One, two,"], n: 2 });
      must(
        show(choices.map(({ index }) => index)) === "[0,1,2,3]",
        `indices ${show(choices.map(({ index }) => index))}`,
      );
    },
  },
  {
    id: "completions.logprobs",
    title: "logprobs: one entry per token, alternatives by text",
    optional: [...optional, "logprobs"],
    async run(context) {
      const { first } = await complete(context, { logprobs: 3 });
      must(first.logprobs, "no logprobs");
      const { tokens, token_logprobs, top_logprobs, text_offset } = first.logprobs;
      const lengths = [tokens.length, token_logprobs.length, text_offset.length, top_logprobs?.length];
      must(new Set(lengths).size === 1, `lists of different lengths: ${show(lengths)}`);
      must(
        tokens.join("").startsWith(first.text),
        `the tokens say ${show(tokens.join(""))}, the text ${show(first.text)}`,
      );
    },
  },
  {
    id: "completions.errors",
    title: "400 for faulty bodies",
    async run(context) {
      const { target } = context;
      if ((await target.get("/completions")).status === 404 && (await post(context, {})).status === 404) return;
      for (const body of [{ prompt: 5 }, { prompt: undefined }, { temperature: 3 }, { n: 0 }, { stop: 5 }]) {
        (await post(context, body)).error(400, 422);
      }
    },
  },
];
