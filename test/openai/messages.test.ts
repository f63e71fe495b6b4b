import { describe, expect, it } from "vitest";
import { BadRequestError } from "../../src/errors.js";
import { limits } from "../../src/openai/limits.js";
import { toNativeRequest } from "../../src/openai/map.js";
import { validateRequest } from "../../src/openai/validate.js";

/** The messages as the addon gets them. */
function mapped(...messages: unknown[]): unknown {
  return JSON.parse(toNativeRequest(validateRequest({ messages }), 100, "").messages ?? "");
}

function refused(messages: unknown): BadRequestError {
  try {
    validateRequest(messages === undefined ? {} : { messages });
  } catch (error) {
    if (error instanceof BadRequestError) return error;
    throw error;
  }
  throw new Error(`accepted: ${JSON.stringify(messages)}`);
}

const user = { role: "user", content: "hi" };
const call = { id: "c1", type: "function", function: { name: "f", arguments: '{"a":1}' } };

describe("messages", () => {
  it("maps every role", () => {
    expect(
      mapped(
        { role: "developer", content: "d" },
        { role: "system", content: "s", name: null },
        { role: "user", content: "u", name: "Ann" },
        { role: "assistant", content: "a", refusal: null },
        { role: "assistant", content: null, tool_calls: [call] },
        { role: "tool", tool_call_id: "c1", content: "42" },
      ),
    ).toEqual([
      { role: "system", content: "d" },
      { role: "system", content: "s" },
      { role: "user", content: "u", name: "Ann" },
      { role: "assistant", content: "a" },
      { role: "assistant", content: "", tool_calls: [call] },
      { role: "tool", tool_call_id: "c1", content: "42" },
    ]);
  });

  it("joins text parts", () => {
    const content = [
      { type: "text", text: "a" },
      { type: "text", text: "b" },
    ];
    expect(mapped({ role: "user", content })).toEqual([{ role: "user", content: "a\nb" }]);
    expect(mapped({ role: "assistant", content: [{ type: "refusal", refusal: "no" }] })).toEqual([
      { role: "assistant", content: "no" },
    ]);
  });

  it("turns function_call into a tool call, and keeps thinking", () => {
    expect(mapped({ role: "assistant", function_call: call.function, reasoning_content: "hm" })).toEqual([
      {
        role: "assistant",
        content: "",
        reasoning_content: "hm",
        tool_calls: [{ id: "call_0", type: "function", function: call.function }],
      },
    ]);
  });

  it("takes an answer back as it was given", () => {
    const answer = { role: "assistant", content: "yes", refusal: null };
    expect(mapped(user, answer, user)).toEqual([user, { role: "assistant", content: "yes" }, user]);
  });

  it("replaces lone surrogates and keeps pairs", () => {
    expect(mapped({ role: "user", content: "a\uD800b\uDC00 🦙" })).toEqual([
      { role: "user", content: "a\uFFFDb\uFFFD 🦙" },
    ]);
  });

  it("lets a tool call without its result through", () => {
    expect(mapped(user, { role: "assistant", content: null, tool_calls: [call] }, user)).toHaveLength(3);
  });

  it("allows many messages, not more", () => {
    expect(mapped(...Array(limits.messages).fill(user))).toHaveLength(limits.messages);
    expect(refused(Array(limits.messages + 1).fill(user)).message).toContain(String(limits.messages));
  });

  const shapes: [unknown, string][] = [
    [undefined, "'messages'"],
    [null, "'messages'"],
    ["hi", "expected array, got 'hi'"],
    [[], "empty"],
    [["hi"], "messages[0]"],
    [[null], "messages[0]"],
    [[{ content: "x" }], "messages[0].role"],
    [[{ role: "user" }], "messages[0].content"],
    [[{ role: "user", content: null }], "messages[0].content"],
    [[user, { role: "alien", content: "x" }], "messages[1].role"],
    [[{ role: "asistant", content: "x" }], "'assistant'"],
    [[{ role: "function", name: "f", content: "x" }], "'tool'"],
    [[{ role: 5, content: "x" }], "messages[0].role"],
    [[{ role: "user", content: 5 }], "messages[0].content"],
    [[{ role: "user", content: {} }], "messages[0].content"],
    [[{ role: "user", content: [] }], "messages[0].content"],
    [[{ role: "user", content: ["x"] }], "messages[0].content[0]"],
    [[{ role: "user", content: [{ text: "x" }] }], "messages[0].content[0].type"],
    [[{ role: "user", content: [{ type: "text" }] }], "messages[0].content[0].text"],
    [[{ role: "user", content: [{ type: "text", text: 5 }] }], "messages[0].content[0].text"],
    [[{ role: "user", content: [{ type: "refusal", refusal: "x" }] }], "messages[0].content[0].type"],
    [[{ role: "user", content: "x", name: 5 }], "messages[0].name"],
    [[{ role: "user", content: "x", colour: "red" }], "messages[0].colour"],
    [[{ role: "tool", content: "x" }], "messages[0].tool_call_id"],
    [[{ role: "tool", content: "x", tool_call_id: "" }], "messages[0].tool_call_id"],
    [[{ role: "assistant" }], "messages[0].content"],
    [[{ role: "assistant", content: null }], "messages[0].content"],
    [[{ role: "assistant", tool_calls: [] }], "messages[0].content"],
    [[{ role: "assistant", tool_calls: [{ ...call, id: null }] }], "messages[0].tool_calls[0].id"],
    [[{ role: "assistant", tool_calls: [{ ...call, type: "custom" }] }], "messages[0].tool_calls[0].type"],
    [[{ role: "assistant", tool_calls: [{ ...call, function: { name: "f", arguments: {} } }] }], "arguments"],
    [[{ role: "assistant", tool_calls: [{ ...call, function: { arguments: "{}" } }] }], "function.name"],
    [[{ role: "user", content: "x", tool_calls: [call] }], "messages[0].tool_calls"],
  ];
  it.each(shapes)("refuses %j", (messages, text) => {
    const error = refused(messages);
    expect(error).toMatchObject({ param: "messages", status: 400, type: "invalid_request_error" });
    expect(error.message).toContain(text);
  });

  it.each([
    [{ type: "image_url", image_url: { url: "data:image/png;base64,AAAA" } }, "Images are not supported"],
    [{ type: "input_audio", input_audio: { data: "", format: "wav" } }, "Audio inputs are not supported"],
    [{ type: "file", file: { file_id: "f" } }, "Files are not supported"],
  ])("says that %j is not supported", (part, text) => {
    const error = refused([{ role: "user", content: [{ type: "text", text: "what?" }, part] }]);
    expect(error).toMatchObject({ param: "messages", status: 400, code: "unsupported_content" });
    expect(error.message).toContain(text);
  });
});
