import type OpenAI from "openai";
import { describe, expect, it } from "vitest";
import type { Completions } from "../../src/engine.js";
import type { FetchHandler } from "../../src/http/handler.js";
import type { ChatCompletionCreateParamsBase } from "../../src/openai/params.js";
import { knownFields } from "../../src/openai/request-schema.js";
import type { ChatCompletion, ChatCompletionChunk, ChatCompletionMessageParam } from "../../src/openai/types.js";
import type { ChatCompletionStream } from "../../src/stream.js";

/** Checked by the compiler: a value of type Ours can be used where the client's type is wanted. */
type Fits<Ours extends Theirs, Theirs> = Ours;

type Checks = [
  Fits<ChatCompletion, OpenAI.ChatCompletion>,
  Fits<ChatCompletionChunk, OpenAI.ChatCompletionChunk>,
  Fits<ChatCompletion["choices"][number]["message"], ChatCompletionMessageParam>,
  Fits<FetchHandler, NonNullable<NonNullable<ConstructorParameters<typeof OpenAI>[0]>["fetch"]>>,
  Fits<{ messages: [{ role: "user"; content: "x" }]; model: "m" }, ChatCompletionCreateParamsBase>,
];

/** What create() returns follows from `stream`; never called. */
async function overloads(completions: Completions): Promise<void> {
  const messages: ChatCompletionMessageParam[] = [];
  const whole: ChatCompletion = await completions.create({ messages });
  const stream: ChatCompletionStream = await completions.create({ messages, stream: true });
  const either: ChatCompletion | ChatCompletionStream = await completions.create({ messages, stream: Date.now() > 0 });
  // @ts-expect-error a misspelt field
  await completions.create({ messages, max_token: 1 });
  void [whole, stream, either];
}
void overloads;
void (0 as unknown as Checks);

describe("fields", () => {
  it("covers every field of the client's create params", () => {
    // A record that the compiler holds complete: a field that a new client version brings fails the build here.
    const theirs: Record<keyof OpenAI.ChatCompletionCreateParams, true> = {
      messages: true,
      model: true,
      audio: true,
      frequency_penalty: true,
      function_call: true,
      functions: true,
      logit_bias: true,
      logprobs: true,
      max_completion_tokens: true,
      max_tokens: true,
      metadata: true,
      modalities: true,
      moderation: true,
      n: true,
      parallel_tool_calls: true,
      prediction: true,
      presence_penalty: true,
      prompt_cache_key: true,
      prompt_cache_options: true,
      prompt_cache_retention: true,
      reasoning_effort: true,
      response_format: true,
      safety_identifier: true,
      seed: true,
      service_tier: true,
      stop: true,
      store: true,
      stream: true,
      stream_options: true,
      temperature: true,
      tool_choice: true,
      tools: true,
      top_logprobs: true,
      top_p: true,
      user: true,
      verbosity: true,
      web_search_options: true,
    };
    expect(Object.keys(theirs).filter((name) => !knownFields.has(name))).toEqual([]);
  });
});
