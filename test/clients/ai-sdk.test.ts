import { createOpenAICompatible } from "@ai-sdk/openai-compatible";
import { APICallError, generateText, Output, streamText } from "ai";
import { expect, it } from "vitest";
import { z } from "zod";
import { rejection } from "../support/scripted-engine.js";
import { answer, cancelled, inBothPlaces, type Place, question } from "./places.js";

const model = ({ baseURL, fetch }: Place) =>
  createOpenAICompatible({
    name: "tokenloop",
    baseURL,
    apiKey: "-",
    fetch,
    supportsStructuredOutputs: true,
    includeUsage: true,
  })("nano");

inBothPlaces((place) => {
  const common = () => ({ model: model(place()), temperature: 0, maxRetries: 0 });

  it("generates text, with usage", async () => {
    const { text, finishReason, usage } = await generateText({ ...common(), prompt: question });
    expect([text, finishReason]).toEqual([answer, "stop"]);
    expect(usage.totalTokens).toBe((usage.inputTokens ?? 0) + (usage.outputTokens ?? 0));
    expect(usage.outputTokens).toBeGreaterThan(5);
  });

  it("streams text", async () => {
    const result = streamText({ ...common(), prompt: question, maxOutputTokens: 4 });
    const parts: string[] = [];
    for await (const part of result.textStream) parts.push(part);
    expect(parts.length).toBeGreaterThan(1);
    expect(answer.startsWith(parts.join(""))).toBe(true);
    expect(await result.finishReason).toBe("length");
    expect((await result.usage).outputTokens).toBe(4);
  });

  it("gets structured output", async () => {
    const schema = z.object({ name: z.string().max(12), legs: z.number().int().min(0).max(8) });
    const { output } = await generateText({
      ...common(),
      prompt: "Describe a fox.",
      output: Output.object({ schema }),
    });
    expect(schema.safeParse(output).success).toBe(true);
  });

  it("aborts", async () => {
    await cancelled(place(), async () => {
      const controller = new AbortController();
      const { textStream } = streamText({
        ...common(),
        prompt: "Count to 40.",
        abortSignal: controller.signal,
        onError: () => undefined,
      });
      for await (const _ of textStream) controller.abort();
    });
  });

  it("gets errors in the class it knows", async () => {
    const error = await rejection(generateText({ ...common(), prompt: question, temperature: 5 }));
    expect(APICallError.isInstance(error)).toBe(true);
    expect(error).toMatchObject({ statusCode: 400, isRetryable: false });
    expect((error as APICallError).message).toContain("temperature");
  });
});
