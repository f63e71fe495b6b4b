import { defineConfig } from "tsdown";

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
