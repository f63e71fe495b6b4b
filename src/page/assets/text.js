import { element } from "./dom.js";

/**
 * A model's text as nodes: paragraphs as they are, and fenced code in boxes of its own. Everything is text; what looks like
 * HTML shows as what was written.
 *
 * @param {string} text
 * @returns {Node[]}
 */
export function textNodes(text) {
  const nodes = [];
  // A fence that is still open while the text streams is code already.
  const fence = /^```([\w+#.-]*)[^\n]*\n([\s\S]*?)(?:^```[ \t]*(?:\n|$)|$(?![\s\S]))/gm;
  let end = 0;
  for (const match of text.matchAll(fence)) {
    pushText(nodes, text.slice(end, match.index));
    const [whole, language = "", code = ""] = match;
    nodes.push(codeBox(language, code.replace(/\n$/, "")));
    end = match.index + whole.length;
  }
  pushText(nodes, text.slice(end));
  return nodes;
}

/** @param {Node[]} nodes @param {string} text */
function pushText(nodes, text) {
  const trimmed = text.replace(/^\n+|\s+$/g, "");
  if (trimmed !== "") nodes.push(element("div", { class: "prose" }, trimmed));
}

/** @param {string} language @param {string} code */
function codeBox(language, code) {
  const copy = copyButton(() => code);
  return element(
    "div",
    { class: "code-box" },
    element("div", { class: "code-head" }, element("span", {}, language || "code"), copy),
    element("pre", { tabindex: "0", "aria-label": `${language} code` }, element("code", {}, code)),
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
