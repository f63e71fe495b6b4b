import { BadRequestError } from "../errors.js";
import { isObject, type PlainObject } from "./plain.js";

/** Part types that OpenAI knows and a text model cannot take. */
const media: ReadonlyMap<string, string> = new Map([
  ["image_url", "Images"],
  ["input_audio", "Audio inputs"],
  ["file", "Files"],
]);

/**
 * Messages as the chat template gets them. The schema has checked their shapes; here `developer` becomes `system` (no
 * template knows it), text parts become one string joined by newlines, as llama.cpp does it, and the deprecated
 * function_call becomes a tool call. Calls without a result are let through: OpenAI refuses them, but a template can
 * render them.
 *
 * @throws {BadRequestError} param "messages": parts that are no text, an assistant message that says nothing.
 */
export function toTemplateMessages(messages: readonly PlainObject[]): PlainObject[] {
  return messages.map((message, index) => {
    const path = `messages[${index}]`;
    const mapped: PlainObject = { role: message.role === "developer" ? "system" : message.role };
    const content = joinContent(message.content, message.role, `${path}.content`);
    if (message.role !== "assistant") {
      mapped.content = content;
      copy(message, mapped, ["name", "tool_call_id"]);
      return mapped;
    }
    const calls = toolCalls(message, index);
    // A message with an empty content says "nothing"; one without any is a slip.
    const said = content ?? message.refusal;
    if (said === undefined && calls.length === 0) {
      throw new BadRequestError(
        `Missing required parameter: '${path}.content' (may be left out only beside 'tool_calls').`,
        "messages",
        "missing_required_parameter",
      );
    }
    mapped.content = said ?? "";
    if (calls.length > 0) mapped.tool_calls = calls;
    copy(message, mapped, ["name", "reasoning_content"]);
    return mapped;
  });
}

function copy(from: PlainObject, to: PlainObject, keys: readonly string[]): void {
  for (const key of keys) {
    if (from[key] !== undefined) to[key] = from[key];
  }
}

function toolCalls(message: PlainObject, index: number): unknown[] {
  if (Array.isArray(message.tool_calls) && message.tool_calls.length > 0) return message.tool_calls;
  if (message.function_call === undefined) return [];
  return [{ id: `call_${index}`, type: "function", function: message.function_call }];
}

function joinContent(content: unknown, role: unknown, path: string): string | undefined {
  if (!Array.isArray(content)) return typeof content === "string" ? content : undefined;
  return content.map((part: unknown, index) => partText(part, role, `${path}[${index}]`)).join("\n");
}

function partText(part: unknown, role: unknown, path: string): string {
  const type = isObject(part) ? part.type : undefined;
  const key = type === "refusal" && role === "assistant" ? "refusal" : "text";
  if (isObject(part) && type === key) {
    const text = part[key];
    if (typeof text === "string") return text;
    throw new BadRequestError(
      `Missing required parameter: '${path}.${key}'.`,
      "messages",
      "missing_required_parameter",
    );
  }
  const kind = media.get(String(type));
  if (kind !== undefined) {
    throw new BadRequestError(`${kind} are not supported: '${path}' must be text.`, "messages", "unsupported_content");
  }
  throw new BadRequestError(`Invalid value for '${path}.type': expected 'text'.`, "messages");
}
