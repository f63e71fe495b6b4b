interface Waiter<T> {
  resolve(result: IteratorResult<T, undefined>): void;
  reject(error: unknown): void;
}

/**
 * What a producer has ready for one asynchronous consumer. Written by hand: an async generator costs twice as much per
 * item. An error is kept as a value until somebody asks for the next item, so an unread one is no unhandled rejection.
 */
export class DeliveryQueue<T> {
  #items: T[] = [];
  #weights: number[] = [];
  #head = 0;
  #waiters: Waiter<T>[] = [];
  #closed = false;
  #error: { value: unknown } | undefined;
  readonly #onTaken: (weight: number) => void;

  /** `onTaken` hears of the weight of each item that the consumer takes. */
  constructor(onTaken: (weight: number) => void = () => undefined) {
    this.#onTaken = onTaken;
  }

  push(item: T, weight = 0): void {
    if (this.#closed) return;
    const waiter = this.#waiters.shift();
    if (waiter === undefined) {
      this.#items.push(item);
      this.#weights.push(weight);
      return;
    }
    waiter.resolve({ done: false, value: item });
    this.#onTaken(weight);
  }

  /** No more items. With an error, whoever asks after the last item gets it: once, later callers get `done`. */
  close(error?: unknown): void {
    if (this.#closed) return;
    this.#closed = true;
    if (error !== undefined) this.#error = { value: error };
    for (const waiter of this.#waiters.splice(0)) this.#settle(waiter);
  }

  /** Drops what is ready and an error that nobody has seen. */
  clear(): void {
    this.#items = [];
    this.#weights = [];
    this.#head = 0;
    this.#error = undefined;
  }

  next(): Promise<IteratorResult<T, undefined>> {
    const item = this.#take();
    if (item !== undefined) return Promise.resolve({ done: false, value: item.value });
    return new Promise((resolve, reject) => {
      const waiter = { resolve, reject };
      if (this.#closed) this.#settle(waiter);
      else this.#waiters.push(waiter);
    });
  }

  /** Everything that is ready now, without waiting. */
  takeReady(): T[] {
    const ready = this.#items.slice(this.#head);
    const weight = this.#weights.slice(this.#head).reduce((sum, each) => sum + each, 0);
    this.#items = [];
    this.#weights = [];
    this.#head = 0;
    if (ready.length > 0) this.#onTaken(weight);
    return ready;
  }

  #take(): { value: T } | undefined {
    if (this.#head >= this.#items.length) return undefined;
    const value = this.#items[this.#head] as T;
    const weight = this.#weights[this.#head] ?? 0;
    this.#head++;
    // Compacting at half keeps taking an item O(1) and lets read items go.
    if (this.#head > 64 && this.#head * 2 > this.#items.length) {
      this.#items = this.#items.slice(this.#head);
      this.#weights = this.#weights.slice(this.#head);
      this.#head = 0;
    }
    this.#onTaken(weight);
    return { value };
  }

  #settle(waiter: Waiter<T>): void {
    const error = this.#error;
    this.#error = undefined;
    if (error !== undefined) waiter.reject(error.value);
    else waiter.resolve({ done: true, value: undefined });
  }
}
