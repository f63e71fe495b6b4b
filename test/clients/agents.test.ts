import { Agent, OpenAIChatCompletionsModel, run, setTracingDisabled } from "@openai/agents";
import OpenAI from "openai";
import { beforeAll, expect, it } from "vitest";
import { z } from "zod";
import { rejection } from "../support/scripted-engine.js";
import { answer, cancelled, inBothPlaces, type Place, question } from "./places.js";

beforeAll(() => setTracingDisabled(true));

const model = ({ baseURL, fetch }: Place) =>
  new OpenAIChatCompletionsModel(new OpenAI({ baseURL, apiKey: "-", fetch, maxRetries: 0 }), "nano");

inBothPlaces((place) => {
  const agent = (modelSettings: { temperature: number } = { temperature: 0 }) =>
    new Agent({ name: "Guide", instructions: "You are a guide.", model: model(place()), modelSettings });

  it("runs", async () => {
    const result = await run(agent(), question);
    expect(result.finalOutput).toBe(answer);
    expect(result.rawResponses[0]?.usage.outputTokens).toBeGreaterThan(5);
  });

  it("streams", async () => {
    const result = await run(agent(), question, { stream: true });
    let text = "";
    for await (const part of result.toTextStream()) text += part;
    await result.completed;
    expect(text).toBe(answer);
    expect(result.finalOutput).toBe(answer);
  });

  it("gets structured output", async () => {
    const outputType = z.object({ name: z.string().max(12), legs: z.number().int().min(0).max(8) });
    const typed = new Agent({
      name: "Biologist",
      model: model(place()),
      outputType,
      modelSettings: { temperature: 0 },
    });
    const { finalOutput } = await run(typed, "Describe a fox.");
    expect(outputType.safeParse(finalOutput).success).toBe(true);
  });

  it("aborts", async () => {
    await cancelled(place(), async () => {
      const controller = new AbortController();
      const result = await run(agent(), "Count to 40.", { stream: true, signal: controller.signal });
      await rejection(
        (async () => {
          for await (const _ of result.toTextStream()) controller.abort();
          await result.completed;
          throw new Error("ended");
        })(),
      );
    });
  });

  it("gets errors of the client's classes", async () => {
    const error = await rejection(run(agent({ temperature: 5 }), question));
    expect(error).toBeInstanceOf(OpenAI.BadRequestError);
    expect(error).toMatchObject({ status: 400, param: "temperature" });
  });
});
