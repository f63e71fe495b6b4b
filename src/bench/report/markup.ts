/** Markup, as against text. */
export interface Markup {
  readonly markup: string;
}

type Part = Markup | string | number | readonly (Markup | string)[];

/** A template whose values are escaped, unless they are markup themselves. */
export function html(strings: TemplateStringsArray, ...values: readonly Part[]): Markup {
  const markup = strings.reduce((text, string, i) => text + render(values[i - 1] ?? "") + string);
  return { markup };
}

function render(part: Part): string {
  if (typeof part === "string") return escaped(part);
  if (typeof part === "number") return String(Math.round(part * 100) / 100);
  return "markup" in part ? part.markup : part.map(render).join("");
}

function escaped(text: string): string {
  return text.replace(/[&<>"']/g, (character) => `&#${character.charCodeAt(0)};`);
}
