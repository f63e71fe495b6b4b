import { OpenAI } from "@llamaindex/openai";
import { expect, it } from "vitest";
import { z } from "zod";
import { rejection } from "../support/scripted-engine.js";
import { answer, cancelled, inBothPlaces, type Place, question } from "./places.js";

const llm = ({ baseURL, fetch }: Place, more: object = {}) =>
  new OpenAI({
    model: "nano",
    apiKey: "-",
    baseURL,
    temperature: 0,
    maxRetries: 0,
    additionalSessionOptions: { fetch },
    ...more,
  });

const messages = [{ role: "user" as const, content: question }];

inBothPlaces((place) => {
  it("chats and completes", async () => {
    const { message } = await llm(place()).chat({ messages });
    expect(message.content).toBe(answer);
    expect((await llm(place()).complete({ prompt: question })).text).toBe(answer);
  });

  it("streams", async () => {
    let text = "";
    for await (const { delta } of await llm(place()).chat({ messages, stream: true })) text += delta;
    expect(text).toBe(answer);
  });

  it("gets structured output", async () => {
    const responseFormat = z.object({ name: z.string(), legs: z.number().int() });
    const { message } = await llm(place()).chat({ messages, responseFormat });
    expect(responseFormat.safeParse(JSON.parse(String(message.content))).success).toBe(true);
  });

  it("is aborted through its fetch: it has no signal of its own, and does not end what it leaves", async () => {
    await cancelled(place(), async () => {
      const { signal, abort } = controlled();
      const aborting: typeof fetch = (url, init) => place().fetch(url, { ...init, signal });
      const client = llm({ ...place(), fetch: aborting });
      const stream = await client.chat({ messages: [{ role: "user", content: "Count to 40." }], stream: true });
      await rejection(
        (async () => {
          for await (const _ of stream) abort();
          throw new Error("ended");
        })(),
      );
    });
  });

  it("gets errors with their status and field", async () => {
    const error = await rejection(llm(place(), { temperature: 5 }).chat({ messages }));
    expect(error).toMatchObject({ status: 400, param: "temperature", type: "invalid_request_error" });
  });
});

function controlled(): { signal: AbortSignal; abort(): void } {
  const controller = new AbortController();
  return { signal: controller.signal, abort: () => controller.abort() };
}
