import { element } from "./dom.js";

/** @typedef {{ kind: "prose" | "code", language: string, text: string }} Block */

/**
 * Shows a model's text: paragraphs as they are, and fenced code in boxes of its own. Everything is text; what looks like
 * HTML shows as what was written. Called again with more text, it only adds: what is selected stays selected.
 *
 * @param {HTMLElement} place
 * @param {string} text
 */
export function showText(place, text) {
  const blocks = blocksOf(text);
  for (const [i, block] of blocks.entries()) {
    const there = place.children[i];
    const kind = `${block.kind} ${block.language}`;
    if (there instanceof HTMLElement && there.dataset.kind === kind) {
      grow(there.querySelector("code") ?? there, block.text);
      continue;
    }
    const made = block.kind === "code" ? codeBox(block) : element("div", { class: "prose" }, block.text);
    made.dataset.kind = kind;
    if (there === undefined) place.append(made);
    else there.replaceWith(made);
  }
  while (place.children.length > blocks.length) place.lastElementChild?.remove();
}

/** @param {string} text @returns {Block[]} */
function blocksOf(text) {
  /** @type {Block[]} */
  const blocks = [];
  const push = (/** @type {string} */ prose) => {
    const trimmed = prose.replace(/^\n+|\s+$/g, "");
    if (trimmed !== "") blocks.push({ kind: "prose", language: "", text: trimmed });
  };
  // A fence that is still open while the text streams is code already.
  const fence = /^```([\w+#.-]*)[^\n]*\n([\s\S]*?)(?:^```[ \t]*(?:\n|$)|$(?![\s\S]))/gm;
  let end = 0;
  for (const match of text.matchAll(fence)) {
    push(text.slice(end, match.index));
    const [whole, language = "", code = ""] = match;
    blocks.push({ kind: "code", language, text: code.replace(/\n$/, "") });
    end = match.index + whole.length;
  }
  push(text.slice(end));
  return blocks;
}

/** @param {Element} place @param {string} text */
function grow(place, text) {
  const node = place.firstChild;
  if (!(node instanceof Text) || !text.startsWith(node.data)) place.textContent = text;
  else if (text.length > node.data.length) node.appendData(text.slice(node.data.length));
}

/** @param {Block} block */
function codeBox({ language, text }) {
  const code = element("code", {}, text);
  return element(
    "div",
    { class: "code-box" },
    element(
      "div",
      { class: "code-head" },
      element("span", {}, language || "code"),
      copyButton(() => code.textContent ?? ""),
    ),
    element("pre", { tabindex: "0", "aria-label": `${language} code`.trim() }, code),
  );
}

/** @param {() => string} text */
export function copyButton(text) {
  const button = element("button", { type: "button", class: "quiet" }, "Copy");
  button.addEventListener("click", async () => {
    try {
      await navigator.clipboard.writeText(text());
      button.textContent = "Copied";
    } catch {
      // Browsers give the clipboard to secure pages only.
      button.textContent = "Not allowed";
    }
    setTimeout(() => {
      button.textContent = "Copy";
    }, 1500);
  });
  return button;
}

/** JSON with line breaks, anything else as it is. @param {string} text */
export function prettyJson(text) {
  try {
    return JSON.stringify(JSON.parse(text), null, 2);
  } catch {
    return text;
  }
}
