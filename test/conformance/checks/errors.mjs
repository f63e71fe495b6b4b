import { must, show } from "../outcome.mjs";
import { hello } from "../target.mjs";

const user = { role: "user", content: "Hi" };

/** Bodies with one fault each, and the field that is at fault. */
const faulty = /** @type {const} */ ([
  ["messages", { messages: undefined }],
  ["messages", { messages: [] }],
  ["messages", { messages: "Hi" }],
  ["messages", { messages: [{ role: "user" }] }],
  ["messages", { messages: [{ content: "Hi" }] }],
  ["messages", { messages: [{ role: "alien", content: "Hi" }] }],
  ["messages", { messages: [{ role: "user", content: 5 }] }],
  ["messages", { messages: [{ role: "user", content: [{ type: "text" }] }] }],
  ["messages", { messages: [user, { role: "tool", content: "x" }] }],
  ["temperature", { temperature: 2.5 }],
  ["temperature", { temperature: -0.1 }],
  ["temperature", { temperature: "hot" }],
  ["top_p", { top_p: 1.1 }],
  ["top_p", { top_p: -0.5 }],
  ["presence_penalty", { presence_penalty: -2.5 }],
  ["frequency_penalty", { frequency_penalty: 3 }],
  ["n", { n: 0 }],
  ["n", { n: 1.5 }],
  ["n", { n: 129 }],
  ["max_tokens", { max_tokens: -5 }],
  ["max_tokens", { max_tokens: "many" }],
  ["seed", { seed: 1.5 }],
  ["stop", { stop: ["1", "2", "3", "4", "5"] }],
  ["stop", { stop: 5 }],
  ["logit_bias", { logit_bias: { 5: 101 } }],
  ["logit_bias", { logit_bias: { 999999999: 1 } }],
  ["top_logprobs", { top_logprobs: 2 }],
  ["top_logprobs", { logprobs: true, top_logprobs: 21 }],
  ["top_logprobs", { logprobs: true, top_logprobs: -1 }],
  ["stream_options", { stream_options: { include_usage: true } }],
  ["stream", { stream: "yes" }],
  ["response_format", { response_format: { type: "xml" } }],
  ["response_format", { response_format: "json" }],
  ["response_format", { response_format: { type: "json_schema" } }],
  [
    "response_format",
    { response_format: { type: "json_schema", json_schema: { name: "x", schema: { type: "strng" } } } },
  ],
  ["tools", { tools: "all" }],
  ["tools", { tools: [{ type: "function" }] }],
  ["tools", { tools: [{ type: "function", function: { name: "a b" } }] }],
  ["tools", { tools: [{ type: "function", function: { name: "f", parameters: "x" } }] }],
  ["tool_choice", { tool_choice: "required" }],
]);

/** @type {import("../types.js").Check[]} */
export const errors = [
  ...faulty.map(([param, fields]) => ({
    id: `errors.${param}`,
    title: `400 that names '${param}' for ${show(fields)}`,
    /** @param {import("../types.js").Context} context */
    async run({ target }) {
      const { error } = (await target.chat(fields)).error(400, 422);
      must(error.type === "invalid_request_error", `type is ${show(error.type)}, expected "invalid_request_error"`);
      // A whole path is as good: messages[0].content. Of tools that are missing, tool_choice may say so, too.
      must(error.param?.match(/^\w+/)?.[0] === param, `param is ${show(error.param)}, expected ${show(param)}`);
    },
  })),
  {
    id: "errors.json",
    title: "400 for a body that is no JSON, or no object",
    async run({ target }) {
      for (const body of ["{", "", "[]", '"x"', "null", '{"messages":[{"role":"user","content":"Hi"}],}']) {
        (await target.post("/chat/completions", body)).error(400, 422);
      }
    },
  },
  {
    id: "errors.depth",
    title: "a body that is nested deep does no harm",
    async run({ target }) {
      const deep = `${"[".repeat(50_000)}${"]".repeat(50_000)}`;
      (await target.post("/chat/completions", `{"messages":${deep}}`)).error(400, 413, 422);
    },
  },
  {
    id: "errors.route",
    title: "404 for an unknown route",
    async run({ target }) {
      (await target.get("/no/such/route")).error(404);
    },
  },
  {
    id: "errors.method",
    title: "GET on POST's route is refused",
    async run({ target }) {
      (await target.get("/chat/completions")).error(404, 405);
    },
  },
  {
    id: "errors.context",
    title: "a prompt that does not fit is a 400 with code context_length_exceeded",
    async run({ target }) {
      const answer = await target.chat({
        messages: [{ role: "user", content: "fox ".repeat(300_000) }],
        max_tokens: 1,
      });
      // A context as large as that is none of the suite's business.
      if (answer.status === 200 || answer.status === 413) return;
      const { error } = answer.error(400);
      must(error.code === "context_length_exceeded", `code is ${show(error.code)}`);
    },
  },
  {
    id: "errors.key",
    title: "where keys are needed, a wrong one is a 401",
    async run({ target }) {
      if (target.apiKey === undefined) return;
      const body = JSON.stringify(await target.withDefaults({ messages: hello }));
      for (const authorization of ["Bearer wrong", "Basic eDp5"]) {
        (await target.post("/chat/completions", body, { headers: { authorization } })).error(401);
      }
    },
  },
  {
    id: "errors.alive",
    title: "after all of that, the server answers",
    async run({ target }) {
      (await target.chat({})).ok("completion");
    },
  },
];
