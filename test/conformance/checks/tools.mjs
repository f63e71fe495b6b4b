import { Ajv } from "ajv";
import { must, need, show } from "../outcome.mjs";
import { ask } from "./chat.mjs";
import { streamed } from "./stream.mjs";

const parameters = {
  type: "object",
  properties: { city: { type: "string", maxLength: 20 }, days: { type: "integer", minimum: 1, maximum: 9 } },
  required: ["city", "days"],
  additionalProperties: false,
};
const weather = {
  type: "function",
  function: { name: "get_weather", description: "The weather in a city.", parameters },
};
const clock = { type: "function", function: { name: "get_time", parameters: { type: "object", properties: {} } } };
const messages = [{ role: "user", content: "What is the weather in Paris for two days?" }];
const base = { messages, tools: [weather, clock], max_tokens: 256 };
const optional = ["tools", "tool_choice"];
const validate = new Ajv({ strict: false }).compile(parameters);

/** @param {{ name: string, arguments: string }} call */
function checkCall({ name, arguments: text }) {
  /** @type {unknown} */
  let value;
  try {
    value = JSON.parse(text);
  } catch {
    must(false, `arguments that are no JSON: ${show(text)}`);
  }
  must(name === "get_weather" || name === "get_time", `a call of ${show(name)}, which is not there`);
  if (name === "get_weather") must(validate(value), `arguments that the schema does not allow: ${show(text)}`);
}

/** @type {import("../types.js").Check[]} */
export const tools = [
  {
    id: "tools.required",
    title: "tool_choice required: a call, with arguments that its schema allows",
    optional,
    async run(context) {
      const { first } = await ask(context, { ...base, tool_choice: "required" });
      need(first.finish_reason !== "length", "the answer was cut off");
      must(first.finish_reason === "tool_calls", `finish_reason ${first.finish_reason}`);
      must(first.message.tool_calls !== undefined, "no tool_calls");
      for (const call of first.message.tool_calls) checkCall(call.function);
      const ids = first.message.tool_calls.map(({ id }) => id);
      must(new Set(ids).size === ids.length, `two calls have one id: ${show(ids)}`);
    },
  },
  {
    id: "tools.named",
    title: "a named tool_choice: a call of that function, streamed as whole",
    optional,
    async run(context) {
      const body = { ...base, tool_choice: { type: "function", function: { name: "get_weather" } } };
      const { first } = await ask(context, body);
      need(first.finish_reason !== "length", "the answer was cut off");
      must(
        first.message.tool_calls?.every((call) => call.function.name === "get_weather"),
        "another call, or none",
      );
      const { choices } = await streamed(context, body);
      const [choice] = choices;
      must(choice !== undefined && choice.toolCalls.length > 0, "no call in the stream");
      for (const call of choice.toolCalls) checkCall(call);
      must(
        choice.finishReason === first.finish_reason,
        `streamed ${choice.finishReason}, whole ${first.finish_reason}`,
      );
    },
  },
  {
    id: "tools.none",
    title: "tool_choice none: no call",
    optional,
    async run(context) {
      const { first } = await ask(context, { ...base, tool_choice: "none", max_tokens: 16 });
      must(first.message.tool_calls === undefined, "a call, though tool_choice is none");
      must(first.finish_reason !== "tool_calls", "finish_reason tool_calls");
    },
  },
  {
    id: "tools.auto",
    title: "tool_choice auto: text or well-formed calls, streamed by the rules",
    optional,
    async run(context) {
      const { choices } = await streamed(context, base);
      for (const { toolCalls, finishReason } of choices) {
        if (finishReason === "tool_calls") must(toolCalls.length > 0, "finish_reason tool_calls without a call");
        if (finishReason !== "length") for (const call of toolCalls) checkCall(call);
      }
    },
  },
  {
    id: "tools.result",
    title: "a conversation goes on after a tool's result",
    optional,
    async run(context) {
      const { first } = await ask(context, { ...base, tool_choice: "required" });
      need(first.message.tool_calls !== undefined, "no call to go on from");
      const results = first.message.tool_calls.map(({ id }) => ({ role: "tool", tool_call_id: id, content: "Sunny." }));
      const after = await ask(context, { ...base, messages: [...messages, first.message, ...results], max_tokens: 16 });
      must(typeof after.content === "string", "no content");
    },
  },
  {
    id: "tools.unknown-choice",
    title: "a tool_choice that names no tool is a 400",
    async run({ target }) {
      const tool_choice = { type: "function", function: { name: "nope" } };
      (await target.chat({ ...base, tool_choice })).error(400, 422);
    },
  },
];
