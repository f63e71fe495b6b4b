import { fileURLToPath } from "node:url";
import { defineConfig } from "vitest/config";

const schemaWorker = fileURLToPath(new URL("test/support/schema-worker.ts", import.meta.url));

export default defineConfig({
  // On the sources, the thread that compiles schemas runs what globalSetup made of them.
  resolve: { alias: [{ find: /^\.\/worker-file\.js$/, replacement: schemaWorker }] },
  test: {
    globalSetup: schemaWorker,
    // The chat page's style sheet is read as text, and must not come empty.
    css: true,
    include: ["test/**/*.test.ts"],
    exclude: ["test/bench/**"],
    // Each file in a process of its own: a crash of the addon is then one file's failure.
    pool: "forks",
    maxWorkers: 2,
    testTimeout: 60_000,
    hookTimeout: 120_000,
    reporters: ["default", "./test/support/reporter.ts"],
  },
});
