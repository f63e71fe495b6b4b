import fastify from "fastify";
import { type Engine, toNodeListener } from "../../../src/index.js";

/** fastify: in a scope of its own, in which bodies are left to the engine. */
export async function withFastify(engine: Engine) {
  const app = fastify();
  app.get("/", async () => "home");
  app.register(async (scope) => {
    const listener = toNodeListener(engine.fetch);
    scope.removeAllContentTypeParsers();
    scope.addContentTypeParser("*", (_request, _payload, done) => done(null));
    scope.all("/v1/*", (request, reply) => {
      reply.hijack();
      listener(request.raw, reply.raw);
    });
  });
  await app.listen({ port: 0, host: "127.0.0.1" });
  return app.server;
}
