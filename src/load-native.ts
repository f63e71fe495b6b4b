import { existsSync, readdirSync } from "node:fs";
import { createRequire } from "node:module";
import { join, resolve } from "node:path";
import { NativeLoadError } from "./errors.js";
import type { NativeAddon } from "./native.js";
import { findPackageRoot } from "./package-root.js";

/** One file that was tried, or would have been, and what came of it. */
interface Attempt {
  path: string;
  reason: string;
}

/**
 * Loads the addon. node-gyp-build chooses the file: a build of this machine (build/Release) before a published one
 * (prebuilds/). TOKENLOOP_NATIVE=path overrides it, e.g. for a build with AddressSanitizer.
 *
 * @throws {NativeLoadError} one error that lists every path, each reason, and what to do.
 */
export function loadNative(
  env: NodeJS.ProcessEnv = process.env,
  root: string | undefined = findPackageRoot()?.directory,
): NativeAddon {
  // Not named `require`: a CommonJS build writes import.meta.url with the `require` of its own.
  const nodeRequire = createRequire(import.meta.url);
  const override = env.TOKENLOOP_NATIVE;
  if (override !== undefined && override !== "") {
    const path = resolve(override);
    const attempt = tryLoad(nodeRequire, path);
    if ("addon" in attempt) return attempt.addon;
    throw loadError([attempt], ["TOKENLOOP_NATIVE names this file: correct or unset it."], attempt.cause);
  }

  if (root === undefined) {
    const reason = "tokenloop's package.json was not found above this module";
    throw loadError(
      [{ path: import.meta.url, reason }],
      ["Do not bundle tokenloop: mark it as external, so that its native file stays beside it."],
    );
  }

  const gypBuild = nodeRequire("node-gyp-build") as { resolve(directory: string): string };
  let chosen: string;
  try {
    chosen = gypBuild.resolve(root);
  } catch {
    throw loadError(notFound(root), advice());
  }
  const attempt = tryLoad(nodeRequire, chosen);
  if ("addon" in attempt) return attempt.addon;
  // node-gyp-build takes one file and has no fallback: the others are named so that nobody wonders about them.
  const others = candidates(root)
    .filter((path) => path !== chosen)
    .map((path) => ({ path, reason: `not tried: ${chosen} comes first` }));
  throw loadError([attempt, ...others], advice(), attempt.cause);
}

function tryLoad(nodeRequire: NodeJS.Require, path: string): { addon: NativeAddon } | (Attempt & { cause: unknown }) {
  if (!existsSync(path)) return { path, reason: "no such file", cause: undefined };
  try {
    const loaded: unknown = nodeRequire(path);
    if (isAddon(loaded)) return { addon: loaded };
    return { path, reason: "loaded, but it is not tokenloop's addon (or one of another version)", cause: undefined };
  } catch (error) {
    return { path, reason: error instanceof Error ? error.message : String(error), cause: error };
  }
}

function isAddon(value: unknown): value is NativeAddon {
  if (typeof value !== "object" || value === null) return false;
  const { buildInfo, loadModel } = value as Partial<Record<keyof NativeAddon, unknown>>;
  return typeof buildInfo === "function" && typeof loadModel === "function";
}

/** The places that node-gyp-build looks in, with what is there. */
function notFound(root: string): Attempt[] {
  return searched(root).map((directory) => {
    const files = nativeFiles(directory);
    const present = files.length > 0 ? `has ${files.join(", ")}, none of which fits this platform` : "no .node file";
    return { path: directory, reason: existsSync(directory) ? present : "no such folder" };
  });
}

function searched(root: string): string[] {
  return [join(root, "build", "Release"), join(root, "build", "Debug"), join(root, "prebuilds", platformName())];
}

function candidates(root: string): string[] {
  return searched(root).flatMap((directory) => nativeFiles(directory).map((file) => join(directory, file)));
}

function nativeFiles(directory: string): string[] {
  return existsSync(directory) ? readdirSync(directory).filter((file) => file.endsWith(".node")) : [];
}

function platformName(): string {
  return `${process.platform}-${process.arch}`;
}

function advice(): string[] {
  return [
    "In a clone, run `npm run build`; as a dependency, run `npx tokenloop build` (needs CMake and a C++20 compiler).",
    "tokenloop needs Node 20 or newer; after a change of Node, platform or libc, build again.",
  ];
}

function loadError(attempts: readonly Attempt[], help: readonly string[], cause?: unknown): NativeLoadError {
  const libc = process.platform === "linux" ? `, ${libcName()}` : "";
  const lines = [
    `The native addon could not be loaded (Node ${process.versions.node}, ${platformName()}${libc}).`,
    "Tried:",
    ...attempts.map(({ path, reason }) => `  - ${path}: ${reason}`),
    "What to do:",
    ...help.map((line) => `  - ${line}`),
  ];
  return new NativeLoadError(lines.join("\n"), cause);
}

function libcName(): string {
  const report: unknown = process.report?.getReport();
  if (typeof report !== "object" || report === null) return "unknown libc";
  const { header } = report as { header?: { glibcVersionRuntime?: unknown } };
  return typeof header?.glibcVersionRuntime === "string" ? `glibc ${header.glibcVersionRuntime}` : "musl";
}
