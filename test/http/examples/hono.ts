import { serve } from "@hono/node-server";
import { Hono } from "hono";
import type { Engine } from "../../../src/index.js";

/** hono, wherever it runs: Request in, Response out. */
export function withHono(engine: Engine) {
  const app = new Hono();
  app.get("/", (context) => context.text("home"));
  app.all("/v1/*", (context) => engine.fetch(context.req.raw));
  return serve({ fetch: app.fetch, port: 0, hostname: "127.0.0.1" });
}
