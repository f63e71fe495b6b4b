import express from "express";
import { type Engine, toNodeListener } from "../../../src/index.js";

/** express: beside other routes. A body parser in front does no harm, if its limit is large enough. */
export function withExpress(engine: Engine) {
  const app = express();
  app.use(express.json({ limit: "16mb" }));
  app.get("/", (_request, response) => {
    response.send("home");
  });
  app.use("/v1", toNodeListener(engine.fetch));
  return app.listen(0, "127.0.0.1");
}
