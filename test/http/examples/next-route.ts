import type { Engine } from "../../../src/index.js";

/**
 * A route handler as Next.js has them, in app/v1/[...path]/route.ts. There, one engine for all requests is a promise at
 * module level: `const engine = Engine.load({ model })`.
 */
export function routeHandlers(engine: Promise<Engine>) {
  async function handle(request: Request): Promise<Response> {
    return (await engine).fetch(request);
  }
  return { GET: handle, POST: handle };
}
