// Where llama.cpp's source is, and whether it is the pinned one.
import { createHash } from "node:crypto";
import { existsSync, readdirSync, readFileSync, statSync } from "node:fs";
import { createRequire } from "node:module";
import { dirname, join, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { BuildError } from "./options.mjs";

export const vendorFolder = dirname(fileURLToPath(import.meta.url));

/**
 * @typedef {object} Pin
 * @property {string} package         npm package that carries the source
 * @property {string} packageVersion
 * @property {string} subdirectory    of llama.cpp in that package
 * @property {string} version         llama.cpp's own
 * @property {number} build
 * @property {string} commit
 * @property {string} treeHash        of what we compile, see hashTree
 */

/** @returns {Pin} */
export function readPin() {
  return JSON.parse(readFileSync(join(vendorFolder, "llama.cpp.json"), "utf8"));
}

/** What we compile or ship, relative to llama.cpp's root. */
export const compiledPaths = [
  "CMakeLists.txt",
  "LICENSE",
  "cmake",
  "common",
  "ggml",
  "include",
  "licenses",
  "src",
  "vendor/CMakeLists.txt",
  "vendor/hash",
  "vendor/miniaudio",
  "vendor/nlohmann",
  "vendor/sheredom",
  "vendor/stb",
];

/**
 * The source tree, the first that exists: LLAMA_CPP_DIR, vendor/llama.cpp (in the published package), the npm package
 * that the pin names.
 * @param {Pin} pin
 * @param {{ env?: NodeJS.ProcessEnv, vendor?: string }} [where]
 * @returns {{ path: string, origin: string }}
 * @throws {BuildError} when there is none, or LLAMA_CPP_DIR holds none.
 */
export function findSource(pin, { env = process.env, vendor = vendorFolder } = {}) {
  const isTree = (/** @type {string} */ path) => existsSync(join(path, "include", "llama.h"));
  const own = env.LLAMA_CPP_DIR;
  if (own !== undefined && own !== "") {
    const path = resolve(own);
    if (!isTree(path)) throw new BuildError(`LLAMA_CPP_DIR=${own} holds no llama.cpp (no include/llama.h).`);
    return { path, origin: "LLAMA_CPP_DIR" };
  }
  const staged = join(vendor, "llama.cpp");
  if (isTree(staged)) return { path: staged, origin: "vendor/llama.cpp" };
  try {
    const manifest = createRequire(join(vendor, "source.mjs")).resolve(`${pin.package}/package.json`);
    const path = join(dirname(manifest), pin.subdirectory);
    if (isTree(path)) return { path, origin: pin.package };
  } catch {
    // Not installed: the message below says what to do.
  }
  throw new BuildError(
    `llama.cpp's source was not found. Tried LLAMA_CPP_DIR (not set), ${staged}, and the npm package ${pin.package}. ` +
      "In a clone, run `npm ci` first; elsewhere set LLAMA_CPP_DIR to a checkout of llama.cpp " +
      `at commit ${pin.commit}.`,
  );
}

/**
 * SHA-256 over the sorted lines "path NUL sha256 of the file", for all files under `compiledPaths`.
 * @param {string} root
 * @returns {string} hexadecimal
 */
export function hashTree(root) {
  /** @type {string[]} */
  const files = [];
  const walk = (/** @type {string} */ relative) => {
    for (const entry of readdirSync(join(root, relative), { withFileTypes: true })) {
      const path = `${relative}/${entry.name}`;
      if (entry.isDirectory()) walk(path);
      else if (entry.isFile()) files.push(path);
    }
  };
  for (const path of compiledPaths) {
    if (!existsSync(join(root, path))) continue;
    if (statSync(join(root, path)).isFile()) files.push(path);
    else walk(path);
  }
  const tree = createHash("sha256");
  for (const file of files.sort()) {
    const content = createHash("sha256")
      .update(readFileSync(join(root, file)))
      .digest("hex");
    tree.update(`${file}\0${content}\n`);
  }
  return tree.digest("hex");
}

/**
 * @param {string} root
 * @param {Pin} pin
 * @throws {BuildError} when the tree is not the pinned one.
 */
export function checkTree(root, pin) {
  const hash = hashTree(root);
  if (hash === pin.treeHash) return;
  throw new BuildError(
    `${root} is not the pinned llama.cpp ${pin.version} (build ${pin.build}, commit ${pin.commit}): ` +
      `its hash is ${hash}, expected ${pin.treeHash}. Pass --allow-llama-mismatch to build it all the same.`,
  );
}
