import { defineConfig } from "tsdown";

export default defineConfig([
  {
    entry: { index: "src/index.ts" },
    format: ["esm", "cjs"],
    dts: true,
    platform: "node",
    target: "node20",
    fixedExtension: false,
    clean: true,
    // import.meta.url finds the package's own folder, also in the CommonJS build.
    shims: true,
  },
  {
    entry: { "cli/main": "src/cli/main.ts" },
    format: ["esm"],
    dts: false,
    platform: "node",
    target: "node20",
    fixedExtension: false,
    clean: false,
  },
]);
