import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { afterAll, beforeAll, describe } from "vitest";
import { type Engine, toNodeListener } from "../../src/index.js";
import { loadNano } from "../support/engine.js";

/** How a client is told where the engine is. */
export interface Place {
  baseURL: string;
  fetch: typeof fetch;
  engine: Engine;
}

/** Runs the tests twice on nano: with engine.fetch in place of fetch, and over a socket. */
export function inBothPlaces(tests: (place: () => Place) => void): void {
  let engine: Engine;
  let server: Server;
  beforeAll(async () => {
    engine = await loadNano();
    server = createServer(toNodeListener(engine.fetch));
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  });
  afterAll(async () => {
    server.closeAllConnections();
    server.close();
    await engine.close();
  });
  describe("in process", () => {
    tests(() => ({ baseURL: "http://local/v1", fetch: engine.fetch, engine }));
  });
  describe("over a socket", () => {
    tests(() => {
      const { port } = server.address() as AddressInfo;
      return { baseURL: `http://127.0.0.1:${port}/v1`, fetch, engine };
    });
  });
}

export const question = "What is the capital of France?";
export const answer = "The capital of France is Paris.";

/** Waits until the engine has cancelled one more request than before. */
export async function cancelled({ engine }: Place, act: () => Promise<void>): Promise<void> {
  const before = engine.stats().cancelled;
  await act();
  const start = Date.now();
  while (engine.stats().cancelled === before) {
    if (Date.now() - start > 5000) throw new Error("Nothing was cancelled.");
    await new Promise((resolve) => setTimeout(resolve, 5));
  }
}
