import { alt, type Expr, never, type Range, type Rules, repeat, seq } from "./gbnf.js";

/** Prints what `root` reaches as GBNF; undefined when nothing can match `root`. Throws RangeError beyond the bounds. */
export function printGrammar(rules: Rules, root: string, maxBytes: number, maxRules: number): string | undefined {
  const productive = findProductive(rules);
  if (!productive.has(root)) return undefined;
  const out: string[] = [];
  // A rule that is only another name for a rule is skipped; a ring of names is not productive, so this ends.
  const aliases = new Map<string, string>();
  const resolve = (name: string): string => {
    let at = aliases.get(name);
    if (at !== undefined) return at;
    at = name;
    for (let body = rules.map.get(at); body !== undefined; body = rules.map.get(at)) {
      const only = body.kind === "rule" || body.kind === "alt" ? prune(body, productive) : body;
      if (only.kind !== "rule") break;
      at = only.name;
    }
    aliases.set(name, at);
    return at;
  };
  const seen = new Set([root]);
  const queue = [root];
  let bytes = 0;
  for (let name = queue.shift(); name !== undefined; name = queue.shift()) {
    const expr = prune(rules.map.get(name) ?? never, productive);
    const body = show(expr, 0, (alias) => {
      const next = resolve(alias);
      if (!seen.has(next)) {
        seen.add(next);
        queue.push(next);
      }
      return next;
    });
    const line = `${name} ::= ${body}\n`;
    bytes += Buffer.byteLength(line);
    if (bytes > maxBytes || out.length >= maxRules) throw new RangeError("grammar too large");
    out.push(line);
  }
  return out.join("");
}

/** The rules that match at least one finite text: a work list over who waits for whom, linear in the grammar. */
function findProductive(rules: Rules): Set<string> {
  const productive = new Set<string>();
  const users = new Map<string, string[]>();
  const queue: string[] = [];
  for (const [name, expr] of rules.map) {
    eachRule(expr, (used) => {
      const list = users.get(used);
      if (list === undefined) users.set(used, [name]);
      else list.push(name);
    });
    queue.push(name);
  }
  for (let name = queue.pop(); name !== undefined; name = queue.pop()) {
    const expr = rules.map.get(name);
    if (productive.has(name) || expr === undefined || !isProductive(expr, productive)) continue;
    productive.add(name);
    for (const user of users.get(name) ?? []) if (!productive.has(user)) queue.push(user);
  }
  return productive;
}

function eachRule(expr: Expr, visit: (name: string) => void): void {
  if (expr.kind === "rule") visit(expr.name);
  else if (expr.kind === "seq" || expr.kind === "alt") for (const item of expr.items) eachRule(item, visit);
  else if (expr.kind === "repeat") eachRule(expr.item, visit);
}

function isProductive(expr: Expr, productive: ReadonlySet<string>): boolean {
  switch (expr.kind) {
    case "never":
      return false;
    case "rule":
      return productive.has(expr.name);
    case "seq":
      return expr.items.every((item) => isProductive(item, productive));
    case "alt":
      return expr.items.some((item) => isProductive(item, productive));
    case "repeat":
      return expr.min === 0 || isProductive(expr.item, productive);
    default:
      return true;
  }
}

function prune(expr: Expr, productive: ReadonlySet<string>): Expr {
  switch (expr.kind) {
    case "rule":
      return productive.has(expr.name) ? expr : never;
    case "seq":
      return seq(...expr.items.map((item) => prune(item, productive)));
    case "alt":
      return alt(...expr.items.map((item) => prune(item, productive)));
    case "repeat":
      return repeat(prune(expr.item, productive), expr.min, expr.max);
    default:
      return expr;
  }
}

/** `level`: 0 alternatives may stand bare, 1 inside a sequence, 2 under a repetition. */
function show(expr: Expr, level: number, visit: (name: string) => string): string {
  switch (expr.kind) {
    case "never":
      throw new Error("A part that never matches was left in the grammar.");
    case "rule":
      return visit(expr.name);
    case "text":
      return level === 2 && [...expr.text].length > 1 ? `(${quote(expr.text)})` : quote(expr.text);
    case "chars":
      return showClass(expr.ranges, expr.negated);
    case "seq": {
      if (expr.items.length === 0) return '""';
      const body = expr.items.map((item) => show(item, 1, visit)).join(" ");
      return level === 2 ? `(${body})` : body;
    }
    case "alt": {
      const body = expr.items.map((item) => show(item, 0, visit)).join(" | ");
      return level > 0 ? `(${body})` : body;
    }
    case "repeat": {
      const body = show(expr.item, 2, visit) + suffix(expr.min, expr.max);
      // A repetition of a repetition needs its own group: "a"?* means nothing.
      return level === 2 ? `(${body})` : body;
    }
  }
}

function suffix(min: number, max: number): string {
  if (max === Number.POSITIVE_INFINITY) return min === 0 ? "*" : min === 1 ? "+" : `{${min},}`;
  if (min === 0 && max === 1) return "?";
  return min === max ? `{${min}}` : `{${min},${max}}`;
}

export function quote(value: string): string {
  let out = '"';
  for (const char of value) {
    const code = char.codePointAt(0) ?? 0;
    if (char === '"') out += '\\"';
    else if (char === "\\") out += "\\\\";
    else if (char === "\n") out += "\\n";
    else if (char === "\r") out += "\\r";
    else if (char === "\t") out += "\\t";
    else out += code < 0x20 || code === 0x7f ? hex(code) : char;
  }
  return `${out}"`;
}

function showClass(ranges: readonly Range[], negated: boolean): string {
  const body = ranges.map(([from, to]) => {
    if (from === to) return classChar(from);
    return to === from + 1 ? classChar(from) + classChar(to) : `${classChar(from)}-${classChar(to)}`;
  });
  return `[${negated ? "^" : ""}${body.join("")}]`;
}

function classChar(code: number): string {
  // Letters, digits and a few harmless marks stay readable; whatever a parser could stumble over is written by number.
  if ((code >= 48 && code <= 57) || (code >= 65 && code <= 90) || (code >= 97 && code <= 122)) {
    return String.fromCharCode(code);
  }
  if (code < 0x80)
    return " !#$%&'()*+,./:;<=>?@_`{|}~".includes(String.fromCharCode(code)) ? String.fromCharCode(code) : hex(code);
  return code > 0xffff
    ? `\\U${code.toString(16).toUpperCase().padStart(8, "0")}`
    : `\\u${code.toString(16).toUpperCase().padStart(4, "0")}`;
}

function hex(code: number): string {
  return `\\x${code.toString(16).toUpperCase().padStart(2, "0")}`;
}
