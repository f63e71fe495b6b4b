import { spawn } from "node:child_process";
import { existsSync } from "node:fs";
import { join } from "node:path";
import { findPackageRoot } from "../package-root.js";
import { exit, type Io } from "./io.js";

/** Compiles the addon on this machine: runs vendor/build.mjs of the package, with the arguments as they are. */
export async function build(args: readonly string[], io: Io): Promise<number> {
  const root = findPackageRoot()?.directory;
  const script = root === undefined ? undefined : join(root, "vendor", "build.mjs");
  if (root === undefined || script === undefined || !existsSync(script)) {
    io.stderr.write("error: vendor/build.mjs is missing: this copy of tokenloop has no sources to build from.\n");
    return exit.failure;
  }
  const child = spawn(process.execPath, [script, ...args], { cwd: root, stdio: "inherit" });
  // A terminal sends Ctrl-C to the child as well: wait for it to end instead of leaving it behind.
  const release = io.onSignal(["SIGINT"], () => undefined);
  const releaseTerm = io.onSignal(["SIGTERM"], (signal) => child.kill(signal));
  try {
    return await new Promise<number>((resolve, reject) => {
      child.once("error", reject);
      child.once("close", (code) => resolve(code ?? exit.failure));
    });
  } finally {
    release();
    releaseTerm();
  }
}
