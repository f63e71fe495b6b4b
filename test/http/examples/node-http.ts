import { createServer } from "node:http";
import { type Engine, toNodeListener } from "../../../src/index.js";

/** node:http: the whole server is the engine's. */
export function nodeHttp(engine: Engine) {
  return createServer(toNodeListener(engine.fetch)).listen(0, "127.0.0.1");
}
