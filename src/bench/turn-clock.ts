/**
 * A clock that stands still within one turn of the event loop: what one turn hands out came together, as what one read
 * from a socket brings.
 */
export class TurnClock {
  #turn: number | undefined;

  /** performance.now() when it was first asked in this turn. */
  now(): number {
    if (this.#turn === undefined) {
      this.#turn = performance.now();
      setImmediate(() => {
        this.#turn = undefined;
      });
    }
    return this.#turn;
  }
}
