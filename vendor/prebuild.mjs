#!/usr/bin/env node
// Fills prebuilds/<platform>-<arch>/ for publication. prebuildify knows only node-gyp, but runs whatever it is told to in
// node-gyp's place: this very file, which ignores node-gyp's arguments and starts our build.
import { spawnSync } from "node:child_process";
import { createRequire } from "node:module";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

const self = fileURLToPath(import.meta.url);
const root = dirname(dirname(self));
const options = (process.env.TOKENLOOP_PREBUILD_OPTIONS ?? "--portable").split(" ").filter((option) => option !== "");

/** @param {string[]} args */
function run(args, env = process.env) {
  const { status } = spawnSync(process.execPath, args, { cwd: root, stdio: "inherit", env });
  if (status !== 0) process.exit(status ?? 1);
}

if (process.argv[2] === "rebuild") {
  run([join(root, "vendor", "build.mjs"), ...options]);
} else {
  const prebuildify = join(dirname(createRequire(import.meta.url).resolve("prebuildify/package.json")), "bin.js");
  // prebuildify starts a program, on Windows through a shell: there a script cannot be one, here it has to be executable.
  const nodeGyp = process.platform === "win32" ? `"${process.execPath}" "${self}"` : self;
  run([prebuildify, "--napi", "--tag-libc", "--strip", "--node-gyp", nodeGyp, "--name", "tokenloop"]);
}
