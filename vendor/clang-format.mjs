// Formats binding/ with clang-format, or checks it (`--check`). Where clang-format is missing, says so and goes on: the
// formatting is checked where it is installed.
import { spawnSync } from "node:child_process";
import { readdirSync } from "node:fs";
import { dirname, join } from "node:path";
import { vendorFolder } from "./source.mjs";

const binding = join(dirname(vendorFolder), "binding");
const files = readdirSync(binding, { recursive: true, withFileTypes: true })
  .filter((entry) => entry.isFile() && /\.(cc|h)$/.test(entry.name))
  .map((entry) => join(entry.parentPath, entry.name));
const mode = process.argv.includes("--check") ? ["--dry-run", "--Werror"] : ["-i"];
const { error, status } = spawnSync("clang-format", [...mode, ...files], { stdio: "inherit" });
if (error !== undefined) console.warn("!! clang-format was not found: the C++ files were NOT checked.");
else {
  if (status === 0) console.log(`clang-format: ${files.length} files.`);
  process.exitCode = status ?? 1;
}
