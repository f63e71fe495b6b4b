// Formats binding/ and test/ with clang-format, or checks them (`--check`). Another version lays out some lines differently, so only
// one is believed; where it is missing, this says so and goes on: the formatting is checked where it is installed.
import { spawnSync } from "node:child_process";
import { readdirSync } from "node:fs";
import { dirname, join } from "node:path";
import { vendorFolder } from "./source.mjs";

const version = 14;
const program = [`clang-format-${version}`, "clang-format"].find((name) =>
  spawnSync(name, ["--version"], { encoding: "utf8" }).stdout?.includes(` version ${version}.`),
);

const files = ["binding", "test"]
  .flatMap((folder) => readdirSync(join(dirname(vendorFolder), folder), { recursive: true, withFileTypes: true }))
  .filter((entry) => entry.isFile() && /\.(cc|h)$/.test(entry.name))
  .map((entry) => join(entry.parentPath, entry.name));

if (program === undefined) {
  console.warn(`!! clang-format ${version} was not found: the C++ files were NOT checked.`);
} else {
  const mode = process.argv.includes("--check") ? ["--dry-run", "--Werror"] : ["-i"];
  const { status } = spawnSync(program, [...mode, ...files], { stdio: "inherit" });
  if (status === 0) console.log(`clang-format: ${files.length} files.`);
  process.exitCode = status ?? 1;
}
