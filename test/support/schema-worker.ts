import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { build } from "vite";

/** Where tests that run on the sources find the worker (vitest.config.ts puts this in worker-file.ts's place). */
export function schemaWorkerFile(): string {
  return join(folder, "worker.js");
}

const root = fileURLToPath(new URL("../..", import.meta.url));
const folder = join(root, "node_modules", ".cache", "tokenloop-tests");

/** Before all tests: the worker as its sources are now. A thread of plain Node runs no TypeScript. */
export async function setup(): Promise<void> {
  await build({
    configFile: false,
    logLevel: "error",
    root,
    build: { ssr: join(root, "src", "schema", "worker.ts"), outDir: folder, emptyOutDir: true, target: "node20" },
  });
}
