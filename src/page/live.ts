import type { NativeStats } from "../native.js";

/** What the page shows of one loaded model: its name, its places, and the counters of its loop. */
export type LiveModel = { id: string; parallel: number } & Pick<NativeStats, (typeof shown)[number]>;

const shown = [
  "queued",
  "prefilling",
  "decoding",
  "paused",
  "cells",
  "cellsUsed",
  "cellsCached",
  "promptTokens",
  "cachedTokens",
  "generatedTokens",
  "steps",
  "sharedSteps",
] as const satisfies readonly (keyof NativeStats)[];

export function liveModel(id: string, parallel: number, stats: NativeStats): LiveModel {
  return { id, parallel, ...pick(stats) };
}

function pick(stats: NativeStats): Pick<NativeStats, (typeof shown)[number]> {
  return Object.fromEntries(shown.map((name) => [name, stats[name]])) as Pick<NativeStats, (typeof shown)[number]>;
}

/** Milliseconds between two looks, and after which an unchanged state is sent again: the connection is still there. */
const lookMs = 250;
const repeatMs = 5000;

/**
 * The states as server-sent events, `{ models: LiveModel[] }` each, whenever one differs from the last. Ends when `look`
 * throws: the engine is closed.
 */
export function liveEvents(look: () => LiveModel[]): ReadableStream<Uint8Array> {
  const encoder = new TextEncoder();
  let timer: NodeJS.Timeout | undefined;
  let last = "";
  let sentAt = 0;
  return new ReadableStream({
    start(controller) {
      const send = () => {
        // A reader that is behind gets the newest state when it is back, not all that it missed.
        if ((controller.desiredSize ?? 0) <= 0) return;
        try {
          const state = JSON.stringify({ models: look() });
          if (state === last && performance.now() - sentAt < repeatMs) return;
          last = state;
          sentAt = performance.now();
          controller.enqueue(encoder.encode(`data: ${state}\n\n`));
        } catch {
          clearInterval(timer);
          controller.close();
        }
      };
      timer = setInterval(send, lookMs);
      send();
    },
    cancel() {
      clearInterval(timer);
    },
  });
}
