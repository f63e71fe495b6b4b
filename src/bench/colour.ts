/** Escape sequences on a terminal, nothing anywhere else or with NO_COLOR. */
export interface Colours {
  bold(text: string): string;
  dim(text: string): string;
  good(text: string): string;
  bad(text: string): string;
}

export function coloursFor(stream: { isTTY?: boolean }, noColour = process.env.NO_COLOR): Colours {
  const on = stream.isTTY === true && (noColour === undefined || noColour === "");
  const sgr = (code: number) => (text: string) => (on ? `\u001b[${code}m${text}\u001b[0m` : text);
  return { bold: sgr(1), dim: sgr(2), good: sgr(32), bad: sgr(31) };
}
