const width = 30;

/** A bar on a terminal; silent anywhere else, so that logs stay clean. */
export class ProgressBar {
  readonly #stream: NodeJS.WritableStream & { isTTY?: boolean };
  readonly #label: string;
  #shown = "";

  constructor(stream: NodeJS.WritableStream & { isTTY?: boolean }, label: string) {
    this.#stream = stream;
    this.#label = label;
  }

  /** @param fraction 0..1 */
  update(fraction: number): void {
    if (!this.#stream.isTTY) return;
    const share = Math.min(1, Math.max(0, fraction));
    const full = Math.round(share * width);
    const bar = "█".repeat(full) + "░".repeat(width - full);
    const text = `${this.#label} ${bar} ${String(Math.round(share * 100)).padStart(3)} %`;
    if (text === this.#shown) return;
    this.#shown = text;
    this.#stream.write(`\r${text}`);
  }

  /** Takes the bar away. */
  end(): void {
    if (this.#shown !== "") this.#stream.write(`\r${" ".repeat(this.#shown.length)}\r`);
    this.#shown = "";
  }
}
