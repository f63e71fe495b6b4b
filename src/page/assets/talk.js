import { AnswerView } from "./answer-view.js";
import { element } from "./dom.js";
import { streamChat } from "./server.js";

/** @typedef {import("./types.js").Message} Message */
/** @typedef {import("./types.js").ToolCall} ToolCall */

/** One conversation: what was said, and the answer that is coming. */
export class Talk {
  /** @type {Message[]} */
  #messages = [];
  /** @type {AbortController | undefined} */
  #running;
  /** @type {{ calls: ToolCall[], results(): string[], lock(): void } | undefined} */
  #asked;
  /** Whether the last question has had no answer, and will not have one if another follows. */
  #failed = false;
  /** Grows with each reset: what belongs to an older conversation is dropped. */
  #generation = 0;
  #log;
  #options;
  #onChange;
  #say;

  /**
   * @param {HTMLElement} log
   * @param {() => { system: string, body: Record<string, unknown> }} options of the next request
   * @param {(isRunning: boolean) => void} onChange
   * @param {(text: string) => void} say tells it to a screen reader
   */
  constructor(log, options, onChange, say) {
    this.#log = log;
    this.#options = options;
    this.#onChange = onChange;
    this.#say = say;
  }

  get isRunning() {
    return this.#running !== undefined;
  }

  /** @param {string} text */
  send(text) {
    if (this.isRunning) return;
    this.#takeResults();
    // Templates want turns in turn: no two questions in a row.
    if (this.#failed && this.#messages.at(-1)?.role === "user") this.#messages.pop();
    this.#messages.push({ role: "user", content: text });
    this.#log.append(element("article", { class: "question", "aria-label": "You" }, text));
    void this.#answer();
  }

  stop() {
    this.#running?.abort();
  }

  reset() {
    this.stop();
    this.#generation++;
    this.#running = undefined;
    this.#asked = undefined;
    this.#messages = [];
    this.#onChange(false);
  }

  /** The results of the tools that were called last, as far as they were given. */
  #takeResults() {
    const asked = this.#asked;
    if (asked === undefined) return;
    this.#asked = undefined;
    asked.lock();
    const results = asked.results();
    for (const [i, { id }] of asked.calls.entries()) {
      this.#messages.push({ role: "tool", tool_call_id: id, content: results[i] ?? "" });
    }
  }

  async #answer() {
    const { system, body } = this.#options();
    const messages = system === "" ? this.#messages : [{ role: "system", content: system }, ...this.#messages];
    const controller = new AbortController();
    const generation = this.#generation;
    this.#running = controller;
    this.#failed = false;
    this.#onChange(true);
    const view = new AnswerView(body.response_format !== undefined);
    this.#log.append(view.element);
    this.#log.setAttribute("aria-busy", "true");
    view.element.dispatchEvent(new CustomEvent("grown", { bubbles: true, detail: "force" }));
    this.#say("Answering.");
    const answer = new Answer(view);
    try {
      const request = { messages, stream_options: { include_usage: true }, ...body };
      for await (const chunk of streamChat(request, controller.signal)) answer.take(chunk);
      if (generation === this.#generation) this.#finish(answer, view);
    } catch (error) {
      if (generation !== this.#generation) return;
      this.#break(answer, view, error, controller.signal.aborted);
    } finally {
      if (generation === this.#generation) {
        this.#running = undefined;
        this.#log.setAttribute("aria-busy", "false");
        this.#onChange(false);
      }
    }
  }

  /** @param {Answer} answer @param {AnswerView} view */
  #finish(answer, view) {
    const calls = answer.calls();
    this.#messages.push(answer.message(calls));
    const timing = answer.timing();
    view.end(answer.finishReason === "length" ? "reached the limit" : "", timing);
    if (calls.length > 0) {
      const form = view.askResults(calls, () => {
        this.#takeResults();
        void this.#answer();
      });
      this.#asked = { calls, ...form };
      this.#say(`Calls ${calls.map(({ function: { name } }) => name).join(", ")}.`);
    } else {
      this.#say(`Answer complete. ${answer.text}`);
    }
    view.element.dispatchEvent(new CustomEvent("grown", { bubbles: true }));
  }

  /** @param {Answer} answer @param {AnswerView} view @param {unknown} error @param {boolean} wasStopped */
  #break(answer, view, error, wasStopped) {
    if (wasStopped) {
      // A call that is not whole cannot be answered.
      this.#messages.push(answer.message([]));
      view.end("stopped", answer.timing());
      this.#say("Stopped.");
      return;
    }
    this.#failed = true;
    view.fail(error instanceof Error ? error.message : String(error), () => {
      if (!this.isRunning) void this.#answer();
    });
  }
}

/** What has come of an answer. */
class Answer {
  text = "";
  #thought = "";
  /** @type {ToolCall[]} */
  #calls = [];
  /** @type {string | undefined} */
  finishReason;
  /** @type {import("./types.js").Chunk["usage"]} */
  #usage;
  /** @type {import("./types.js").Chunk["timings"]} */
  #timings;
  #sent = performance.now();
  /** @type {number | undefined} */
  #first;
  #view;

  /** @param {AnswerView} view */
  constructor(view) {
    this.#view = view;
  }

  /** @param {import("./types.js").Chunk} chunk */
  take({ choices = [], usage, timings }) {
    this.#usage = usage ?? this.#usage;
    this.#timings = timings ?? this.#timings;
    const [choice] = choices;
    const delta = choice?.delta ?? {};
    this.finishReason = choice?.finish_reason ?? this.finishReason;
    if (delta.content || delta.reasoning_content || delta.tool_calls) this.#first ??= performance.now();
    if (delta.reasoning_content) {
      this.#thought += delta.reasoning_content;
      this.#view.addThought(delta.reasoning_content);
    }
    if (delta.content) {
      this.text += delta.content;
      this.#view.addText(delta.content);
    }
    for (const part of delta.tool_calls ?? []) this.#takeCall(part);
  }

  /** @param {import("./types.js").ToolCallDelta} part */
  #takeCall({ index, id, function: called }) {
    const call = this.#calls[index] ?? { id: "", type: "function", function: { name: "", arguments: "" } };
    this.#calls[index] = call;
    if (id !== undefined) call.id = id;
    call.function.name += called?.name ?? "";
    call.function.arguments += called?.arguments ?? "";
  }

  calls() {
    return this.#calls.filter((call) => call !== undefined);
  }

  /** @param {ToolCall[]} calls @returns {Message} */
  message(calls) {
    return {
      role: "assistant",
      content: this.text,
      ...(this.#thought === "" ? {} : { reasoning_content: this.#thought }),
      ...(calls.length === 0 ? {} : { tool_calls: calls }),
    };
  }

  /** @returns {import("./types.js").Timing} */
  timing() {
    return {
      tokens: this.#usage?.completion_tokens,
      tokensPerSecond: this.#timings?.predicted_per_second || undefined,
      firstTokenMs: this.#first === undefined ? undefined : this.#first - this.#sent,
      totalMs: performance.now() - this.#sent,
      promptTokens: this.#usage?.prompt_tokens,
      cachedTokens: this.#usage?.prompt_tokens_details?.cached_tokens,
    };
  }
}
