import { byId } from "./dom.js";
import { useApiKey } from "./server.js";

const examples = {
  schema: {
    type: "object",
    properties: { name: { type: "string" }, age: { type: "integer", minimum: 0 } },
    required: ["name", "age"],
    additionalProperties: false,
  },
  tools: [
    {
      type: "function",
      function: {
        name: "get_weather",
        description: "Current weather of a city",
        parameters: {
          type: "object",
          properties: { city: { type: "string" } },
          required: ["city"],
        },
      },
    },
  ],
};

const dialog = byId("options", HTMLDialogElement);
const form = byId("options-form", HTMLFormElement);
const system = byId("system", HTMLTextAreaElement);
const schema = byId("schema", HTMLTextAreaElement);
const tools = byId("tools", HTMLTextAreaElement);
const key = byId("api-key", HTMLInputElement);
const chosen = () => String(new FormData(form).get("form") ?? "text");

/** Sets the dialog up. @param {() => void} onChange after it was closed with options that can be used */
export function setUpOptions(onChange) {
  byId("open-options", HTMLButtonElement).addEventListener("click", () => dialog.showModal());
  form.addEventListener("change", showSchemaBox);
  for (const button of form.querySelectorAll("button[data-example]")) {
    button.addEventListener("click", () => {
      const name = /** @type {keyof typeof examples} */ (button.getAttribute("data-example"));
      const box = name === "schema" ? schema : tools;
      box.value = JSON.stringify(examples[name], null, 2);
      box.focus();
      box.setSelectionRange(0, 0);
      box.scrollTop = 0;
      showErrors();
    });
  }
  for (const box of [schema, tools]) box.addEventListener("input", showErrors);
  // "Done" with JSON that cannot be read goes to the box with the fault; Escape closes, and the fault shows at sending.
  form.addEventListener("submit", (event) => {
    const faulty = showErrors();
    if (faulty === undefined) return;
    event.preventDefault();
    faulty.focus();
  });
  dialog.addEventListener("close", () => {
    useApiKey(key.value.trim());
    onChange();
  });
  showSchemaBox();
}

export function openOptions() {
  dialog.showModal();
  showErrors()?.focus();
}

function showSchemaBox() {
  byId("schema-box", HTMLDivElement).hidden = chosen() !== "json_schema";
  showErrors();
}

/** The first box with a fault. */
function showErrors() {
  const faults = [
    { box: schema, message: chosen() === "json_schema" ? schemaFault() : "", place: "schema-error" },
    { box: tools, message: toolsFault(), place: "tools-error" },
  ];
  for (const { box, message, place } of faults) {
    byId(place, HTMLParagraphElement).textContent = message;
    box.toggleAttribute("aria-invalid", message !== "");
  }
  return faults.find(({ message }) => message !== "")?.box;
}

function schemaFault() {
  if (schema.value.trim() === "") return "A schema is missing.";
  return jsonFault(schema.value);
}

function toolsFault() {
  if (tools.value.trim() === "") return "";
  return jsonFault(tools.value) || (Array.isArray(JSON.parse(tools.value)) ? "" : "Expected a JSON array.");
}

/** @param {string} text */
function jsonFault(text) {
  try {
    JSON.parse(text);
    return "";
  } catch (error) {
    return error instanceof Error ? error.message : String(error);
  }
}

/** Whether requests can be made of what was entered. */
export function optionsAreValid() {
  return showErrors() === undefined;
}

/** Of the next request. Only when they are valid. */
export function requestOptions() {
  /** @type {Record<string, unknown>} */
  const body = {};
  const numbers = { temperature: "temperature", max_tokens: "max-tokens", seed: "seed" };
  for (const [name, id] of Object.entries(numbers)) {
    const { valueAsNumber } = byId(id, HTMLInputElement);
    if (!Number.isNaN(valueAsNumber)) body[name] = valueAsNumber;
  }
  const kind = chosen();
  if (kind === "json_object") body.response_format = { type: kind };
  if (kind === "json_schema") {
    body.response_format = { type: kind, json_schema: { name: "answer", schema: JSON.parse(schema.value) } };
  }
  if (tools.value.trim() !== "") body.tools = JSON.parse(tools.value);
  return { system: system.value.trim(), body };
}

/** What is set, in words: it must not be forgotten behind a closed dialog. */
export function optionsText() {
  const { system: said, body } = requestOptions();
  return [
    said === "" ? "" : "system message",
    body.temperature === undefined ? "" : `temperature ${body.temperature}`,
    body.max_tokens === undefined ? "" : `at most ${body.max_tokens} tokens`,
    body.seed === undefined ? "" : `seed ${body.seed}`,
    { text: "", json_object: "JSON", json_schema: "JSON of a schema" }[chosen()] ?? "",
    Array.isArray(body.tools) && body.tools.length > 0
      ? `${body.tools.length} tool${body.tools.length > 1 ? "s" : ""}`
      : "",
  ]
    .filter((part) => part !== "")
    .join(", ");
}
