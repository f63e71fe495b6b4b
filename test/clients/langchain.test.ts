import { ChatOpenAI } from "@langchain/openai";
import { expect, it } from "vitest";
import { z } from "zod";
import { rejection } from "../support/scripted-engine.js";
import { answer, cancelled, inBothPlaces, type Place, question } from "./places.js";

const chat = ({ baseURL, fetch }: Place, more: object = {}) =>
  new ChatOpenAI({
    model: "nano",
    apiKey: "-",
    temperature: 0,
    maxRetries: 0,
    configuration: { baseURL, fetch },
    ...more,
  });

inBothPlaces((place) => {
  it("invokes, with usage", async () => {
    const message = await chat(place()).invoke(question);
    expect(message.content).toBe(answer);
    expect(message.usage_metadata).toMatchObject({
      output_tokens: expect.any(Number),
      total_tokens: expect.any(Number),
    });
    expect(message.response_metadata).toMatchObject({ finish_reason: "stop" });
  });

  it("streams", async () => {
    const parts: string[] = [];
    for await (const chunk of await chat(place()).stream(question)) parts.push(String(chunk.content));
    expect(parts.length).toBeGreaterThan(3);
    expect(parts.join("")).toBe(answer);
  });

  it("batches", async () => {
    const messages = await chat(place()).batch([question, question, question]);
    expect(messages.map(({ content }) => content)).toEqual([answer, answer, answer]);
  });

  it("gets structured output", async () => {
    const schema = z.object({ name: z.string().max(12), legs: z.number().int().min(0).max(8) });
    const structured = chat(place()).withStructuredOutput(schema, { method: "jsonSchema", name: "animal" });
    expect(schema.safeParse(await structured.invoke("Describe a fox.")).success).toBe(true);
  });

  it("aborts", async () => {
    await cancelled(place(), async () => {
      const controller = new AbortController();
      const stream = await chat(place()).stream("Count to 40.", { signal: controller.signal });
      await rejection(
        (async () => {
          for await (const _ of stream) controller.abort();
        })(),
      );
    });
  });

  it("gets errors with their status and field", async () => {
    const error = await rejection(chat(place(), { temperature: 5 }).invoke(question));
    expect(error).toMatchObject({ status: 400, param: "temperature", type: "invalid_request_error" });
  });
});
