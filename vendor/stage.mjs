// Copies the source of llama.cpp that we compile to vendor/llama.cpp, so that the published package can build itself;
// `--remove` takes it away again. Run by `npm pack` and `npm publish`.
import { cpSync, existsSync, mkdirSync, rmSync } from "node:fs";
import { dirname, join } from "node:path";
import { checkTree, compiledPaths, findSource, readPin, vendorFolder } from "./source.mjs";

const target = join(vendorFolder, "llama.cpp");
rmSync(target, { recursive: true, force: true });
if (!process.argv.includes("--remove")) {
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
