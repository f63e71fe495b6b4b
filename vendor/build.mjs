#!/usr/bin/env node
// Builds the addon: llama.cpp first, in a tree of its own that is built once per pin and options, then binding/.
// `npm run build` in a clone, `npx tokenloop build` elsewhere. Downloads nothing.
import { spawn, spawnSync } from "node:child_process";
import { createHash } from "node:crypto";
import { existsSync, mkdirSync, readFileSync, realpathSync, rmSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { availableParallelism } from "node:os";
import { delimiter, dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { addonSettings, BuildError, checkToolkits, llamaSettings, parseArguments, usage } from "./options.mjs";
import { checkTree, findSource, readPin, vendorFolder } from "./source.mjs";

const root = dirname(vendorFolder);
const started = Date.now();

/** @param {string} text */
function log(text) {
  process.stderr.write(`[${((Date.now() - started) / 1000).toFixed(0).padStart(3)} s] ${text}\n`);
}

/** @param {string} program */
function found(program) {
  return spawnSync(program, ["--version"], { stdio: "ignore" }).error === undefined;
}

/** @param {Record<string, string>} settings */
const defines = (settings) => Object.entries(settings).map(([name, value]) => `-D${name}=${value}`);

/**
 * Runs a program and shows its progress: lines "[n/m] ..." (ninja) and "[ n%] ..." (make) become one line on a terminal
 * and one per tenth elsewhere. Everything else is shown only when the program fails.
 * @param {string} program
 * @param {string[]} args
 * @param {NodeJS.ProcessEnv} env
 * @returns {Promise<void>}
 */
function run(program, args, env = process.env) {
  return new Promise((resolve, reject) => {
    const child = spawn(program, args, { cwd: root, env, stdio: ["ignore", "pipe", "pipe"] });
    const terminal = process.stderr.isTTY === true;
    /** @type {string[]} */
    const tail = [];
    let shown = -1;
    const onLine = (/** @type {string} */ line) => {
      tail.push(line);
      if (tail.length > 200) tail.shift();
      const ninja = /^\[(\d+)\/(\d+)\]/.exec(line);
      const make = /^\[ *(\d+)%\]/.exec(line);
      const percent = ninja ? Math.floor((100 * Number(ninja[1])) / Number(ninja[2])) : make ? Number(make[1]) : -1;
      if (percent < 0) return;
      if (terminal) process.stderr.write(`\r\u001b[K${line.slice(0, (process.stderr.columns ?? 80) - 1)}`);
      else if (Math.floor(percent / 10) > shown) log(`${percent} %`);
      shown = Math.max(shown, Math.floor(percent / 10));
    };
    for (const stream of [child.stdout, child.stderr]) {
      let rest = "";
      stream.setEncoding("utf8");
      stream.on("data", (text) => {
        const lines = (rest + text).split(/\r?\n/);
        rest = lines.pop() ?? "";
        lines.forEach(onLine);
      });
      stream.on("end", () => {
        if (rest !== "") onLine(rest);
      });
    }
    child.on("error", (error) => reject(new BuildError(`${program} cannot be run: ${error.message}`)));
    child.on("close", (code) => {
      if (terminal && shown >= 0) process.stderr.write("\r\u001b[K");
      if (code === 0) resolve();
      else reject(new BuildError(`${tail.join("\n")}\n${program} failed with code ${code}.`));
    });
  });
}

/** Compiler launcher and environment, so that a clone in another folder finds what this one compiled. */
function compilerCache() {
  if (process.env.TOKENLOOP_NO_CCACHE || !found("ccache")) return { settings: {}, env: process.env };
  return {
    settings: { CMAKE_C_COMPILER_LAUNCHER: "ccache", CMAKE_CXX_COMPILER_LAUNCHER: "ccache" },
    env: { CCACHE_NOHASHDIR: "1", ...process.env, CCACHE_BASEDIR: realpathSync(root) },
  };
}

function generator() {
  if (process.env.CMAKE_GENERATOR) return [];
  return found("ninja") ? ["-G", "Ninja"] : process.platform === "win32" ? [] : ["-G", "Unix Makefiles"];
}

// cmake-js links the C runtime statically; llama.cpp's libraries must do the same, or nothing links. llama.cpp stays
// optimised in a debug build, so the runtime is the release one there, too.
const windowsRuntime = "MultiThreaded";

/** Path of cmake-js's program. A package has no right to compile at installation, so cmake-js is an optional peer. */
function cmakeJsProgram() {
  const require = createRequire(import.meta.url);
  try {
    for (const name of ["node-addon-api", "node-api-headers"]) require.resolve(name);
    return join(dirname(require.resolve("cmake-js/package.json")), "bin", "cmake-js");
  } catch {
    const { peerDependencies } = JSON.parse(readFileSync(join(root, "package.json"), "utf8"));
    const packages = Object.entries(peerDependencies).map(([name, range]) => `"${name}@${range}"`);
    throw new BuildError(
      `Building needs cmake-js and two sets of headers: npm install --no-save ${packages.join(" ")}`,
    );
  }
}

/** @param {string[]} args */
async function main(args) {
  const { chosen, allowMismatch, help } = parseArguments(args);
  if (help) {
    process.stdout.write(`${usage()}\n`);
    return;
  }
  const folders = checkToolkits(chosen, found);
  cmakeJsProgram();
  if (!found("cmake")) throw new BuildError("CMake was not found. Install CMake 3.21 or newer and a C++20 compiler.");

  const pin = readPin();
  const source = findSource(pin);
  if (!allowMismatch) checkTree(source.path, pin);

  const parallel = ["--parallel", String(process.env.TOKENLOOP_BUILD_JOBS ?? availableParallelism())];
  const settings = llamaSettings(chosen);
  const backend = chosen.find(({ group }) => group === "backend")?.flag ?? "cpu";
  // Another compiler, another tree: CMake never changes the compiler of one that is configured.
  const { CC = "", CXX = "" } = process.env;
  const key = createHash("sha256")
    .update(JSON.stringify([pin, source.path, settings, ...(CC + CXX === "" ? [] : [CC, CXX])]))
    .digest("hex")
    .slice(0, 12);
  const tree = join(root, "build", "llama", `${backend}-${key}`);
  const cache = compilerCache();
  if (folders.length > 0) cache.env = { ...cache.env, PATH: [...folders, process.env.PATH].join(delimiter) };
  mkdirSync(tree, { recursive: true });

  log(
    `llama.cpp ${pin.version} (build ${pin.build}) from ${source.origin}, for ${chosen.map(({ flag }) => flag).join(", ")}`,
  );
  // Written at the end of a configuration: a cache without it is one that was broken off.
  if (!existsSync(join(tree, "llama-targets.cmake"))) {
    await run(
      "cmake",
      [
        ...["-S", vendorFolder, "-B", tree, ...generator()],
        ...defines({
          CMAKE_BUILD_TYPE: "Release",
          LLAMA_CPP_DIR: source.path,
          LLAMA_BUILD_NUMBER: String(pin.build),
          LLAMA_BUILD_COMMIT: pin.commit,
          ...settings,
          ...cache.settings,
          ...(process.platform === "win32" ? { CMAKE_MSVC_RUNTIME_LIBRARY: windowsRuntime } : {}),
        }),
      ],
      cache.env,
    );
  }
  await run(
    "cmake",
    ["--build", tree, "--config", "Release", "--target", "tokenloop_llama_all", ...parallel],
    cache.env,
  );

  const addon = addonSettings(chosen);
  const debug = addon.CMAKE_BUILD_TYPE === "Debug";
  const kind = chosen.find(({ group }) => group === "kind")?.flag;
  // Only the release build goes where the loader looks.
  const out = kind === undefined ? join(root, "build") : join(root, "build", kind);
  log(`the addon, in ${kind === undefined ? "build" : `build/${kind}`}`);
  const variables = {
    ...addon,
    TOKENLOOP_LLAMA_BUILD: tree,
    ...cache.settings,
    ...(process.platform === "win32" ? { CMAKE_MSVC_RUNTIME_LIBRARY: windowsRuntime } : {}),
  };
  const cmakeJs = (/** @type {string} */ command) =>
    run(
      process.execPath,
      [
        cmakeJsProgram(),
        command,
        ...["--directory", root, "--out", out, "--parallel", parallel[1] ?? "2"],
        ...(debug ? ["--debug"] : []),
        ...Object.entries(variables).map(([name, value]) => `--CD${name}=${value}`),
      ],
      cache.env,
    );
  // Not cmake-js's `compile`: it keeps the settings of the first configuration, and when a build fails it deletes the
  // whole output folder, llama.cpp's tree with it.
  const stamp = join(out, "configured-with.json");
  const wanted = JSON.stringify({ root, variables, node: process.version });
  if (!existsSync(join(out, "CMakeCache.txt")) || !existsSync(stamp) || readFileSync(stamp, "utf8") !== wanted) {
    // Anew, for the cache knows the old settings, and a generator that may have changed since.
    for (const old of [stamp, join(out, "CMakeCache.txt")]) rmSync(old, { force: true });
    await cmakeJs("configure");
    writeFileSync(stamp, wanted);
  }
  await cmakeJs("build");
  log("done");
}

if (process.argv[1] !== undefined && realpathSync(process.argv[1]) === fileURLToPath(import.meta.url)) {
  main(process.argv.slice(2)).catch((error) => {
    process.stderr.write(`${error instanceof BuildError ? error.message : error.stack}\n`);
    process.exitCode = 1;
  });
}
