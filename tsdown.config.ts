import { readFileSync } from "node:fs";
import { dirname, resolve } from "node:path";
import { defineConfig } from "tsdown";

/** `import text from "./file?raw"`: the file's text, as vite has it; the chat page's files come into the bundle so. */
const raw = {
  name: "raw",
  resolveId: (source: string, importer: string | undefined) =>
    source.endsWith("?raw") && importer !== undefined ? `\0${resolve(dirname(importer), source)}` : null,
  load: (id: string) =>
    id.startsWith("\0") && id.endsWith("?raw")
      ? { code: `export default ${JSON.stringify(readFileSync(id.slice(1, -4), "utf8"))}`, moduleType: "js" as const }
      : null,
};

const common = { platform: "node", target: "node20", fixedExtension: false } as const;

export default defineConfig([
  // The command line shares its code with the library; the worker is found by its name (src/schema/worker-file.ts).
  {
    ...common,
    entry: {
      index: "src/index.ts",
      testing: "src/testing/index.ts",
      "cli/main": "src/cli/main.ts",
      "schema-worker": "src/schema/worker.ts",
    },
    format: ["esm"],
    plugins: [raw],
    dts: { entry: ["src/index.ts", "src/testing/index.ts"] },
    clean: true,
  },
  // import.meta.url finds the package's own folder, also in the CommonJS build.
  {
    ...common,
    entry: { index: "src/index.ts", testing: "src/testing/index.ts" },
    format: ["cjs"],
    dts: true,
    shims: true,
    clean: false,
  },
]);
