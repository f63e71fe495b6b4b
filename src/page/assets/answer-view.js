import { element } from "./dom.js";
import { copyButton, prettyJson, showText } from "./text.js";

/** How an answer looks, while it comes and after. */
export class AnswerView {
  #text = "";
  #thought = "";
  #isJson;
  #frame = 0;
  #began = performance.now();
  #body = element("div", { class: "body" });
  #thinking = element("div", { class: "thought" });
  #summary = element("summary", {}, "Thinking…");
  #details = element("details", { class: "reasoning", hidden: true }, this.#summary, this.#thinking);
  #calls = element("div", { class: "calls" });
  #foot = element("footer");
  element = element(
    "article",
    { class: "answer", "aria-busy": "true", "aria-label": "Answer" },
    this.#details,
    this.#body,
    this.#calls,
    this.#foot,
  );

  /** @param {boolean} isJson whether the answer is JSON, which is laid out when it is whole */
  constructor(isJson) {
    this.#isJson = isJson;
    this.element.classList.add("waiting");
  }

  /** @param {string} text */
  addText(text) {
    if (this.#text === "" && this.#thought !== "") this.#endThought();
    this.#text += text;
    this.#paint();
  }

  /** @param {string} text */
  addThought(text) {
    if (this.#thought === "") {
      this.#details.hidden = false;
      this.#details.open = true;
    }
    this.#thought += text;
    this.#paint();
  }

  /** Once for each frame, however many tokens came. */
  #paint() {
    this.element.classList.remove("waiting");
    if (this.#frame !== 0) return;
    this.#frame = requestAnimationFrame(() => {
      this.#frame = 0;
      this.#show();
    });
  }

  #show() {
    this.#thinking.textContent = this.#thought.trim();
    if (this.#isJson) this.#body.replaceChildren(element("pre", { class: "json" }, this.#text));
    else showText(this.#body, this.#text);
    this.element.dispatchEvent(new CustomEvent("grown", { bubbles: true }));
  }

  #endThought() {
    const seconds = ((performance.now() - this.#began) / 1000).toFixed(1);
    this.#summary.textContent = `Thought for ${seconds} s`;
    this.#details.open = false;
  }

  /** @param {string} note "": nothing to say @param {import("./types.js").Timing | undefined} timing */
  end(note, timing) {
    cancelAnimationFrame(this.#frame);
    this.#frame = 0;
    if (this.#isJson) this.#text = prettyJson(this.#text);
    if (this.#thought !== "" && this.#details.open) this.#endThought();
    this.#show();
    this.element.classList.remove("waiting");
    this.element.setAttribute("aria-busy", "false");
    if (note !== "") this.#foot.append(element("span", { class: "note" }, note));
    if (timing !== undefined) this.#foot.append(...timingNodes(timing));
    if (this.#text !== "") this.#foot.append(copyButton(() => this.#text));
  }

  /** @param {string} message @param {() => void} retry */
  fail(message, retry) {
    this.end("", undefined);
    const again = element("button", { type: "button" }, "Try again");
    const box = element("div", { class: "error", role: "alert" }, element("p", {}, message), again);
    again.addEventListener("click", () => {
      this.element.remove();
      retry();
    });
    this.#foot.before(box);
  }

  /**
   * Shows calls of tools, with a place for the result of each.
   *
   * @param {readonly import("./types.js").ToolCall[]} calls
   * @param {() => void} submit
   * @returns {{ results(): string[], lock(): void }}
   */
  askResults(calls, submit) {
    const inputs = calls.map(({ function: { name } }, i) =>
      element("textarea", { rows: "2", class: "code", "aria-label": `Result of ${name}, call ${i + 1}` }),
    );
    const cards = calls.map(({ function: { name, arguments: given } }, i) => {
      const input = /** @type {HTMLTextAreaElement} */ (inputs[i]);
      return element(
        "section",
        { class: "call", "aria-label": `Call of ${name}` },
        element("h3", {}, element("span", { class: "call-kind" }, "calls"), ` ${name}`),
        element("pre", {}, prettyJson(given)),
        element("label", { class: "call-result" }, "Result", input),
      );
    });
    const send = element(
      "button",
      { type: "submit", class: "primary" },
      calls.length > 1 ? "Send results" : "Send result",
    );
    const form = element("form", {}, ...cards, send);
    form.addEventListener("submit", (event) => {
      event.preventDefault();
      submit();
    });
    this.#calls.append(form);
    inputs[0]?.focus();
    return {
      results: () => inputs.map(({ value }) => value),
      lock() {
        for (const input of inputs) input.readOnly = true;
        send.remove();
      },
    };
  }
}

/** @param {import("./types.js").Timing} timing */
function timingNodes({ tokens, tokensPerSecond, firstTokenMs, totalMs, promptTokens, cachedTokens }) {
  const parts = [
    tokens === undefined ? undefined : `${tokens} token${tokens === 1 ? "" : "s"}`,
    tokensPerSecond === undefined ? undefined : `${tokensPerSecond.toFixed(tokensPerSecond < 10 ? 1 : 0)} tokens/s`,
    firstTokenMs === undefined ? undefined : `first after ${seconds(firstTokenMs)}`,
    `${seconds(totalMs)} in all`,
    promptTokens === undefined
      ? undefined
      : `prompt of ${promptTokens}${cachedTokens ? `, ${cachedTokens} cached` : ""}`,
  ];
  return parts.filter((part) => part !== undefined).map((part) => element("span", {}, part));
}

const seconds = (/** @type {number} */ ms) => (ms < 1000 ? `${Math.round(ms)} ms` : `${(ms / 1000).toFixed(1)} s`);
