import { element, svg } from "./dom.js";
import { liveStates } from "./server.js";

/** @typedef {import("./types.js").LiveModel} LiveModel */

/** Seconds that the curve goes back, and states in a second. */
const span = 30;
const perSecond = 4;

/** Shows the batch for as long as the page is looked at. @param {HTMLElement} place */
export function showBatch(place) {
  /** @type {Map<string, ModelView>} */
  const views = new Map();
  const nothing = element("p", { class: "small" }, "No model is loaded.");
  nothing.hidden = true;
  place.append(nothing);
  /** @type {AbortController | undefined} */
  let looking;

  const look = async () => {
    looking = new AbortController();
    const { signal } = looking;
    while (!signal.aborted) {
      try {
        for await (const { models } of liveStates(signal)) show(models);
      } catch {
        // It may come back: a server that restarts is no reason to reload the page.
      }
      if (signal.aborted) return;
      place.classList.add("gone");
      await new Promise((resolve) => setTimeout(resolve, 2000));
    }
  };
  const show = (/** @type {LiveModel[]} */ models) => {
    place.classList.remove("gone");
    for (const model of models) {
      const view = views.get(model.id) ?? new ModelView(model.id);
      if (!views.has(model.id)) {
        views.set(model.id, view);
        place.append(view.element);
      }
      view.show(model);
    }
    for (const [id, view] of views) {
      if (models.some((model) => model.id === id)) continue;
      view.element.remove();
      views.delete(id);
    }
    place.classList.toggle("several", views.size > 1);
    nothing.hidden = views.size > 0;
  };
  // The server is silent while nothing changes; the curve goes on.
  setInterval(() => {
    if (!place.classList.contains("gone")) for (const view of views.values()) view.tick();
  }, 1000 / perSecond);
  document.addEventListener("visibilitychange", () => {
    if (document.hidden) looking?.abort();
    else void look();
  });
  void look();
}

/** One model's batch: its places, its cells, its speed. */
class ModelView {
  #title = element("h3");
  #places = element("div", { class: "places", role: "img" });
  #sentence = element("p", { class: "sentence" });
  #cells = element("div", { class: "cells", role: "img" });
  #used = element("span", { class: "used" });
  #cached = element("span", { class: "cached" });
  #cellText = element("p", { class: "small" });
  #curve = svg("path", { class: "curve" });
  #under = svg("path", { class: "under" });
  #speed = element("p", { class: "speed" });
  #facts = element("p", { class: "small" });
  /** @type {{ at: number, tokens: number }[]} */
  #history = [];
  element;

  /** @param {string} id */
  constructor(id) {
    this.#title.textContent = id;
    this.#cells.append(this.#used, this.#cached);
    const chart = svg(
      "svg",
      { viewBox: "0 0 240 56", preserveAspectRatio: "none", "aria-hidden": "true" },
      this.#under,
      this.#curve,
    );
    this.element = element(
      "section",
      { class: "model-batch" },
      this.#title,
      this.#places,
      this.#sentence,
      this.#speed,
      element("div", { class: "chart" }, chart),
      this.#cells,
      this.#cellText,
      this.#facts,
    );
  }

  tick() {
    this.#showSpeed(this.#history.at(-1)?.tokens ?? 0);
  }

  /** @param {LiveModel} model */
  show(model) {
    this.#showPlaces(model);
    this.#showCells(model);
    this.#showSpeed(model.generatedTokens);
    const shared = model.steps === 0 ? 0 : model.sharedSteps / model.steps;
    const prompts = model.promptTokens + model.cachedTokens;
    const cached = prompts === 0 ? 0 : model.cachedTokens / prompts;
    this.#facts.textContent =
      model.steps === 0
        ? "Nothing computed yet."
        : `${percent(shared)} of all steps were shared; ${percent(cached)} of all prompt tokens came from the cache.`;
  }

  /** @param {LiveModel} model */
  #showPlaces({ parallel, decoding, prefilling, paused, queued }) {
    while (this.#places.childElementCount < parallel) this.#places.append(element("i"));
    while (this.#places.childElementCount > parallel) this.#places.lastElementChild?.remove();
    for (const [i, place] of [...this.#places.children].entries()) {
      place.className = i < decoding ? "decoding" : i < decoding + prefilling ? "prefilling" : "";
    }
    const parts = [
      decoding === 0 ? "" : `${decoding} decoding`,
      prefilling === 0 ? "" : `${prefilling} reading ${prefilling === 1 ? "its prompt" : "their prompts"}`,
      paused === 0 ? "" : `${paused} waiting for a reader`,
      queued === 0 ? "" : `${queued} in the queue`,
    ].filter((part) => part !== "");
    const text = parts.length === 0 ? `Idle, ${parallel} places free` : parts.join(", ");
    if (this.#sentence.textContent !== text) this.#sentence.textContent = text;
    this.#places.setAttribute("aria-label", `${decoding + prefilling} of ${parallel} places taken`);
  }

  /** @param {LiveModel} model */
  #showCells({ cells, cellsUsed, cellsCached }) {
    const share = (/** @type {number} */ count) => `${cells === 0 ? 0 : (100 * count) / cells}%`;
    this.#used.style.width = share(cellsUsed);
    this.#cached.style.width = share(cellsCached);
    const text = `${cellsUsed} cells in use, ${cellsCached} kept for reuse, of ${cells}`;
    this.#cellText.textContent = text;
    this.#cells.setAttribute("aria-label", text);
  }

  /** @param {number} tokens generated so far */
  #showSpeed(tokens) {
    const now = performance.now();
    this.#history.push({ at: now, tokens });
    while ((this.#history[0]?.at ?? now) < now - (span + 1) * 1000) this.#history.shift();
    const rates = this.#rates(now);
    const current = rates.at(-1) ?? 0;
    this.#speed.replaceChildren(element("b", {}, current.toFixed(0)), " tokens/s");
    const highest = rates.reduce((most, rate) => Math.max(most, rate), 1);
    const points = rates.map(
      (rate, i) => `${((i * 240) / (rates.length - 1)).toFixed(1)} ${(54 - (rate / highest) * 50).toFixed(1)}`,
    );
    this.#curve.setAttribute("d", `M${points.join("L")}`);
    this.#under.setAttribute("d", `M0 56L${points.join("L")}L240 56Z`);
  }

  /** Tokens per second in each quarter of a second of the curve, over the second before it. @param {number} now */
  #rates(now) {
    return Array.from({ length: span * perSecond }, (_, i) => {
      const at = now - ((span * perSecond - 1 - i) * 1000) / perSecond;
      return Math.max(0, this.#tokensAt(at) - this.#tokensAt(at - 1000));
    });
  }

  /** Between two states the tokens are taken to come evenly. @param {number} at */
  #tokensAt(at) {
    const after = this.#history.findIndex((each) => each.at >= at);
    const next = this.#history[after] ?? this.#history.at(-1);
    const before = this.#history[after - 1];
    if (next === undefined) return 0;
    if (before === undefined || next.at === before.at) return next.tokens;
    return before.tokens + ((next.tokens - before.tokens) * (at - before.at)) / (next.at - before.at);
  }
}

const percent = (/** @type {number} */ share) => `${Math.round(share * 100)} %`;
