// Copies the source of llama.cpp that we compile to vendor/llama.cpp, so that the published package can build itself;
// `--remove` takes it away again. Run by `npm pack` and `npm publish`.
import { cpSync, existsSync, mkdirSync, realpathSync, rmSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { checkTree, compiledPaths, findSource, readPin, vendorFolder } from "./source.mjs";

/**
 * Exactly what the pin's hash covers, checked before and after the copy.
 * @param {string} target  is replaced
 */
export function stage(target) {
  rmSync(target, { recursive: true, force: true });
  const pin = readPin();
  const { path } = findSource(pin);
  checkTree(path, pin);
  for (const relative of compiledPaths) {
    if (!existsSync(join(path, relative))) continue;
    mkdirSync(dirname(join(target, relative)), { recursive: true });
    cpSync(join(path, relative), join(target, relative), { recursive: true });
  }
  checkTree(target, pin);
}

if (process.argv[1] !== undefined && realpathSync(process.argv[1]) === fileURLToPath(import.meta.url)) {
  const target = join(vendorFolder, "llama.cpp");
  if (process.argv.includes("--remove")) rmSync(target, { recursive: true, force: true });
  else stage(target);
}
