// What the benches share: TypeScript modules for plain Node, programs run with their output read, statistics.
import { execFileSync } from "node:child_process";
import { fileURLToPath } from "node:url";
import { build } from "vite";

export const here = (path) => fileURLToPath(new URL(path, import.meta.url));

/** A TypeScript module of the project; vite makes it one that plain Node runs. */
export async function importTypeScript(path, name) {
  const outDir = here(`../../node_modules/.cache/tokenloop-bench/${name}`);
  await build({
    configFile: false,
    logLevel: "error",
    root: here("../.."),
    build: {
      ssr: here(path),
      outDir,
      emptyOutDir: true,
      target: "node20",
      rollupOptions: { output: { entryFileNames: "module.js" } },
    },
  });
  return import(`${outDir}/module.js`);
}

/** What a program prints. Its standard error goes to ours, unless `quiet`. */
export const run = (program, args, { env = {}, input, quiet = false } = {}) =>
  execFileSync(program, args, {
    env: { ...process.env, ...env },
    encoding: "utf8",
    input: input ?? "",
    maxBuffer: 1 << 28,
    stdio: ["pipe", "pipe", quiet ? "ignore" : "inherit"],
  });

/** The value below which this share of the values lies. */
export function quantile(values, share) {
  const sorted = Float64Array.from(values).sort();
  return sorted[Math.min(sorted.length - 1, Math.floor(share * sorted.length))] ?? Number.NaN;
}
export const median = (values) => quantile(values, 0.5);
