/**
 * llama.cpp parses and runs templates by recursion and has no bound of its own: what is nested too deep overflows its
 * thread's stack, which ends the process. These are a tenth of what the stack holds, and many times what templates have.
 */
const mostNested = 200;
const mostInTag = 4000;
const templateBytes = 1024 * 1024;

const opening = new Set(["if", "for", "macro", "call", "filter", "set", "generation"]);

/**
 * What is wrong with a Jinja template, or undefined. Only its size and nesting are looked at: whether it can be parsed, and
 * what it does, is found when it is used.
 */
export function templateFault(template: string): string | undefined {
  if (template.length > templateBytes) return `it is longer than ${templateBytes / 1024 / 1024} MiB`;
  let blocks = 0;
  let branches = 0;
  for (const { content, statement } of tags(template)) {
    const fault = tagFault(content);
    if (fault !== undefined) return fault;
    if (!statement) continue;
    const word = /^\s*([a-z]+)/.exec(content)?.[1] ?? "";
    if (word === "elif") branches++;
    // A set with a value has no end.
    else if (opening.has(word) && !(word === "set" && content.includes("="))) blocks++;
    else if (word.startsWith("end")) blocks = Math.max(0, blocks - 1);
    if (blocks > mostNested) return `its blocks are nested deeper than ${mostNested}`;
    if (branches > mostInTag) return `it has more than ${mostInTag} branches`;
  }
  return undefined;
}

/** What is between `{{` or `{%` and its end; comments and text are passed over. */
function* tags(template: string): Generator<{ content: string; statement: boolean }> {
  const begin = /\{[{%#]/g;
  for (let match = begin.exec(template); match !== null; match = begin.exec(template)) {
    const kind = match[0].charAt(1);
    const close = kind === "{" ? "}}" : `${kind}}`;
    const start = match.index + 2;
    const end = kind === "#" ? template.indexOf(close, start) : tagEnd(template, start, close);
    const stop = end < 0 ? template.length : end;
    if (kind !== "#") yield { content: template.slice(start, stop).replace(/^[-+]/, ""), statement: kind === "%" };
    begin.lastIndex = stop;
  }
}

/** Where the tag ends: not inside a string, nor at the braces of a dictionary. */
function tagEnd(template: string, start: number, close: string): number {
  let quote = "";
  let braces = 0;
  for (let at = start; at < template.length; at++) {
    const char = template.charAt(at);
    if (quote !== "") {
      if (char === "\\") at++;
      else if (char === quote) quote = "";
    } else if (char === '"' || char === "'") quote = char;
    else if (braces === 0 && template.startsWith(close, at)) return at;
    else if (char === "{") braces++;
    else if (char === "}") braces = Math.max(0, braces - 1);
  }
  return -1;
}

function tagFault(content: string): string | undefined {
  let depth = 0;
  let count = 0;
  // Strings as a whole, words, and every other character by itself.
  for (const [token] of content.matchAll(/"(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*'|\w+|[^\s\w]/gs)) {
    if (++count > mostInTag) return `one of its expressions has more than ${mostInTag} parts`;
    if (token === "(" || token === "[" || token === "{") depth++;
    else if (token === ")" || token === "]" || token === "}") depth--;
    if (depth > mostNested) return `its brackets are nested deeper than ${mostNested}`;
  }
  return undefined;
}
