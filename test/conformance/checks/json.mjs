import { Ajv } from "ajv";
import { must, need, show } from "../outcome.mjs";
import { ask } from "./chat.mjs";
import { streamed } from "./stream.mjs";

const schema = {
  type: "object",
  properties: {
    name: { type: "string", maxLength: 12 },
    legs: { type: "integer", minimum: 0, maximum: 8 },
    colours: { type: "array", items: { enum: ["red", "grey"] }, minItems: 1, maxItems: 2 },
  },
  required: ["name", "legs", "colours"],
  additionalProperties: false,
};
const format = { response_format: { type: "json_schema", json_schema: { name: "animal", schema, strict: true } } };
const messages = [{ role: "user", content: "Describe a fox as JSON." }];
const validate = new Ajv({ strict: false }).compile(schema);

/** @param {string} content */
function parse(content) {
  try {
    return /** @type {unknown} */ (JSON.parse(content));
  } catch {
    must(false, `no JSON: ${show(content)}`);
    return undefined;
  }
}

/** @type {import("../types.js").Check[]} */
export const json = [
  {
    id: "json.schema",
    title: "json_schema: the answer is what the schema allows, at any temperature",
    optional: ["response_format"],
    async run(context) {
      for (const temperature of [0, 1, 2]) {
        const { content, first } = await ask(context, { ...format, messages, temperature, seed: 7, max_tokens: 200 });
        need(first.finish_reason === "stop", "the answer was cut off");
        must(validate(parse(content)), `not what the schema allows: ${show(content)}`);
      }
    },
  },
  {
    id: "json.stream",
    title: "json_schema, streamed",
    optional: ["response_format"],
    async run(context) {
      const { choices } = await streamed(context, { ...format, messages, max_tokens: 200 });
      need(choices[0]?.finishReason === "stop", "the answer was cut off");
      must(validate(parse(choices[0]?.content ?? "")), `not what the schema allows: ${show(choices[0]?.content)}`);
    },
  },
  {
    id: "json.object",
    title: "json_object: the answer is a JSON object",
    optional: ["response_format"],
    async run(context) {
      const body = { response_format: { type: "json_object" }, messages, temperature: 1, max_tokens: 200 };
      // Without a schema a model may go on for long: one of some answers is enough.
      let content = "";
      for (let seed = 1; seed <= 8 && content === ""; seed++) {
        const answer = await ask(context, { ...body, seed });
        if (answer.first.finish_reason === "stop") content = answer.content;
      }
      need(content !== "", "every answer was cut off");
      const value = parse(content);
      must(typeof value === "object" && value !== null && !Array.isArray(value), `no object: ${show(content)}`);
    },
  },
];
