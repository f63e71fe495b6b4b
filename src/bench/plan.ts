import { arrivals } from "./arrivals.js";
import { drawLength, type Lengths } from "./lengths.js";
import { Random } from "./random.js";

/** A load: what is sent, and when. */
export interface Load {
  requests: number;
  /** Most requests at a time; the others wait at the client. */
  concurrency: number;
  /** Mean requests per second of a Poisson process; Infinity: as fast as the concurrency lets them. */
  rate: number;
  rampFrom?: number | undefined;
  promptTokens: Lengths;
  outputTokens: Lengths;
  /** Part of each prompt that is the same in all of them, 0..1. */
  prefixShare: number;
  /** Part of the requests that are cancelled at a random place of their answer, 0..1. */
  cancelShare: number;
  seed: number;
}

/** One request to be. */
export interface Planned {
  readonly index: number;
  /** Seconds from the start. */
  readonly at: number;
  readonly promptTokens: number;
  /** Most tokens of the answer. */
  readonly outputTokens: number;
  /** Cancelled once this many pieces of text have come; 0: as soon as it is sent. */
  readonly cancelAfter: number | undefined;
  readonly seed: number;
}

/** The requests of a load, by its seed alone. What is drawn for one thing does not depend on how much is drawn for another. */
export function planLoad(load: Load): Planned[] {
  const root = new Random(load.seed);
  const random = {
    prompt: root.fork("prompt"),
    output: root.fork("output"),
    cancel: root.fork("cancel"),
    place: root.fork("place"),
  };
  const times = arrivals(load.requests, load, root.fork("arrival"));
  return times.map((at, index) => {
    const promptTokens = drawLength(load.promptTokens, index, random.prompt);
    const outputTokens = drawLength(load.outputTokens, index, random.output);
    const cancelled = random.cancel.next() < load.cancelShare;
    const place = random.place.integer(0, Math.max(0, outputTokens - 1));
    return {
      index,
      at,
      promptTokens,
      outputTokens,
      cancelAfter: cancelled ? place : undefined,
      seed: (load.seed + index) >>> 0,
    };
  });
}
