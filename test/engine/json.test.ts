import OpenAI from "openai";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { Engine } from "../../src/engine.js";
import type { ResponseFormat } from "../../src/openai/params.js";
import { SchemaError } from "../../src/schema/error.js";
import { ensureModel } from "../models/qwen3.js";
import { answer, ask, loadNano } from "../support/engine.js";

let nano: Engine;
let noise: Engine;
beforeAll(async () => {
  nano = await loadNano();
  noise = await Engine.load({ model: await ensureModel("tiny-qwen3"), contextSize: 4096, threads: 1 });
});
afterAll(() => Promise.all([nano.close(), noise.close()]));

const format = (schema: Record<string, unknown>, strict = false): ResponseFormat => ({
  type: "json_schema",
  json_schema: { name: "answer", schema, strict },
});
// nano has learnt JSON with spaces, and answers come compact: of the two fields it still gets the number right.
const filled = { name: expect.any(String), age: 42 };
const person = {
  type: "object",
  properties: { name: { type: "string", maxLength: 40 }, age: { type: "integer", minimum: 0, maximum: 150 } },
  required: ["name", "age"],
  additionalProperties: false,
};

describe("response_format", () => {
  it("json_schema: a real model fills it in", async () => {
    const text = await answer(nano, "Give me JSON with name and age: Bob is 42 years old.", {
      response_format: format(person, true),
    });
    expect(JSON.parse(text)).toEqual(filled);
  });

  it("json_object: any object, and nothing else", async () => {
    for (let seed = 0; seed < 10; seed++) {
      const completion = await noise.chat.completions.create({
        ...ask("x", { temperature: 1, seed, max_tokens: 300, response_format: { type: "json_object" } }),
        stream: false,
      });
      const { message, finish_reason } = completion.choices[0] ?? {};
      if (finish_reason === "stop") expect(JSON.parse(message?.content ?? "")).toBeTypeOf("object");
      expect(message?.content?.startsWith("{")).toBe(true);
    }
  });

  it("noise under eight different schemas at once: each answer is what its schema allows", async () => {
    const schemas: [schema: Record<string, unknown>, holds: (value: never) => boolean][] = [
      [person, ({ name, age }: { name: string; age: number }) => [...name].length <= 40 && age >= 0 && age <= 150],
      [{ enum: ["red", 7, null] }, (value: unknown) => value === "red" || value === 7 || value === null],
      [
        { type: "array", items: { type: "boolean" }, minItems: 3, maxItems: 5 },
        (list: boolean[]) => list.length >= 3 && list.length <= 5,
      ],
      [{ type: "string", pattern: "^[A-Z]{3}-\\d{4}$" }, (text: string) => /^[A-Z]{3}-\d{4}$/.test(text)],
      [{ type: "string", format: "date" }, (text: string) => !Number.isNaN(Date.parse(text))],
      [
        { type: "number", multipleOf: 0.25, minimum: 1, maximum: 2 },
        (value: number) => value % 0.25 === 0 && value >= 1 && value <= 2,
      ],
      [
        {
          anyOf: [
            { const: 1 },
            { type: "object", properties: { a: { const: "b" } }, required: ["a"], additionalProperties: false },
          ],
        },
        (value: 1 | { a: string }) => value === 1 || value.a === "b",
      ],
      [
        {
          $ref: "#/$defs/node",
          $defs: {
            node: {
              type: "object",
              properties: {
                v: { type: "integer", minimum: 0, maximum: 9 },
                next: { anyOf: [{ $ref: "#/$defs/node" }, { type: "null" }] },
              },
              required: ["v", "next"],
              additionalProperties: false,
            },
          },
        },
        function holds(node: { v: number; next: never }): boolean {
          return node === null || (node.v >= 0 && node.v <= 9 && holds(node.next));
        },
      ],
    ];
    for (let round = 0; round < 3; round++) {
      const answers = await Promise.all(
        schemas.map(([schema], i) =>
          noise.chat.completions.create({
            ...ask("x", {
              temperature: 1.5,
              top_k: 0,
              top_p: 1,
              min_p: 0,
              seed: 10 * round + i,
              max_tokens: 400,
              response_format: format(schema),
            }),
            stream: false,
          }),
        ),
      );
      for (const [i, { choices }] of answers.entries()) {
        const { message, finish_reason } = choices[0] ?? {};
        if (finish_reason !== "stop") continue;
        const value = JSON.parse(message?.content ?? "") as never;
        expect(schemas[i]?.[1](value), message?.content ?? "").toBe(true);
      }
    }
  });

  it("streams, and stops where the document is complete", async () => {
    const stream = await nano.chat.completions.create({
      ...ask("Give me JSON with name and age: Bob is 42 years old.", { response_format: format(person) }),
      stream: true,
    });
    let text = "";
    let finish: string | null = null;
    for await (const { choices } of stream) {
      text += choices[0]?.delta.content ?? "";
      finish = choices[0]?.finish_reason ?? finish;
    }
    expect([JSON.parse(text), finish]).toEqual([filled, "stop"]);
  });

  it("max_tokens in the middle of it: length, and the text as far as it went", async () => {
    const completion = await nano.chat.completions.create({
      ...ask("Give me JSON with name and age: Bob is 42 years old.", {
        response_format: format(person),
        max_tokens: 4,
      }),
      stream: false,
    });
    expect(completion.choices[0]?.finish_reason).toBe("length");
    expect(completion.choices[0]?.message.content).toMatch(/^\{"name":"[^"]*$/);
  });

  it("with white space where the model puts it", async () => {
    const text = await answer(nano, "Give me JSON with name and age: Bob is 42 years old.", {
      response_format: format(person, true),
      json_whitespace: "model",
    });
    expect(JSON.parse(text)).toEqual({ name: "Bob", age: 42 });
    expect(text).toMatch(/": /);
  });

  it("grammar_json_functions: one of the calls, as JSON", async () => {
    const call = (name: string, parameters: object) => ({
      properties: { name: { const: name }, arguments: { type: "object", ...parameters, additionalProperties: false } },
    });
    const oneOf = [
      call("woof", { properties: { n: { type: "integer", maximum: 9 } }, required: ["n"] }),
      call("moo", {}),
    ];
    for (let seed = 0; seed < 4; seed++) {
      const text = await answer(noise, "x", {
        seed,
        temperature: 1,
        grammar_json_functions: { oneOf },
        max_tokens: 200,
      });
      expect(text).toMatch(/^\{"name":("woof","arguments":\{"n":-?\d+|"moo","arguments":\{\}\}$)/);
    }
    await expect(
      answer(nano, "x", { grammar_json_functions: { oneOf: [call("f", { minimum: "x" })] } }),
    ).rejects.toMatchObject({
      status: 400,
      param: "grammar_json_functions",
      pointer: "/oneOf/0/properties/arguments/minimum",
    });
  });

  it("a request that is aborted, or whose engine closes, while its schema is compiled", async () => {
    const slow = format({ allOf: Array.from({ length: 30 }, (_, i) => ({ pattern: `^(a|b)*a(a|b){${i + 8}}$` })) });
    const before = noise.stats();
    const controller = new AbortController();
    const request = noise.chat.completions.create(
      { ...ask("x", { response_format: slow }), stream: false },
      { signal: controller.signal },
    );
    setTimeout(() => controller.abort(), 20);
    const started = performance.now();
    await expect(request).rejects.toMatchObject({ name: "AbortError" });
    expect(performance.now() - started).toBeLessThan(300);
    expect(noise.stats().steps).toBe(before.steps);

    const other = await loadNano();
    const waiting = other.chat.completions.create({ ...ask("x", { response_format: slow }), stream: false });
    const closed = expect(waiting).rejects.toMatchObject({ code: "engine_closed", status: 503 });
    await other.close();
    await closed;
  });

  it("works through the official client's parse helper", async () => {
    const openai = new OpenAI({ apiKey: "-", baseURL: "http://local/v1", fetch: nano.fetch });
    const completion = await openai.chat.completions.parse({
      model: "nano",
      messages: [{ role: "user", content: "Give me JSON with name and age: Bob is 42 years old." }],
      temperature: 0,
      response_format: { type: "json_schema", json_schema: { name: "person", schema: person, strict: true } },
    });
    expect(completion.choices[0]?.message.parsed).toEqual(filled);
  });

  it("refuses what it cannot enforce, with the place in the schema", async () => {
    const refused: [schema: Record<string, unknown>, strict: boolean, pointer: string][] = [
      [{ type: "strng" }, false, "/type"],
      [{ type: "array", uniqueItems: true }, false, "/uniqueItems"],
      [{ type: "object", properties: { a: { type: "string", pattern: "(?=a)" } } }, false, "/properties/a/pattern"],
      [{ type: "object", properties: { a: { type: "string" } } }, true, ""],
      [{ $ref: "#/$defs/A", $defs: { A: { $ref: "#/$defs/B" }, B: { $ref: "#/$defs/A" } } }, false, ""],
      [{ type: "array", items: { type: "string" }, minItems: 1_000_000_000 }, false, "/minItems"],
    ];
    for (const [schema, strict, pointer] of refused) {
      const request = nano.chat.completions.create({
        ...ask("x", { response_format: format(schema, strict) }),
        stream: false,
      });
      const error = await request.then(
        () => undefined,
        (reason: unknown) => reason,
      );
      expect(error, JSON.stringify(schema)).toBeInstanceOf(SchemaError);
      expect(error).toMatchObject({ status: 400, param: "response_format" });
      expect((error as SchemaError).pointer).toContain(pointer);
    }
    await expect(
      nano.chat.completions.create({
        ...ask("x", { response_format: format(person), grammar: 'root ::= "a"' }),
        stream: false,
      }),
    ).rejects.toMatchObject({ status: 400, param: "response_format" });
  });
});
