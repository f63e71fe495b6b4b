import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { afterAll, describe, expect, it } from "vitest";
import { NativeLoadError } from "../../src/errors.js";
import { loadNative } from "../../src/load-native.js";
import { findPackageRoot } from "../../src/package-root.js";
import { closest } from "../../src/suggest.js";

const directory = mkdtempSync(join(tmpdir(), "tokenloop-load-"));
afterAll(() => rmSync(directory, { recursive: true, force: true }));

function failure(path: string, root?: string): NativeLoadError {
  try {
    loadNative({ TOKENLOOP_NATIVE: path }, root);
  } catch (error) {
    if (error instanceof NativeLoadError) return error;
    throw error;
  }
  throw new Error("loaded");
}

describe("loadNative", () => {
  it("names the path, the reason and what to do", () => {
    const missing = join(directory, "missing.node");
    expect(failure(missing)).toMatchObject({ code: "native_load_failed", status: 500 });
    expect(failure(missing).message).toContain(`${missing}: no such file`);
    expect(failure(missing).message).toContain("TOKENLOOP_NATIVE");
    expect(failure(missing).message).toContain(`Node ${process.versions.node}, ${process.platform}-${process.arch}`);

    const broken = join(directory, "broken.node");
    writeFileSync(broken, "this is no shared object");
    expect(failure(broken).message).toContain(`${broken}: `);
    expect(failure(broken).cause).toBeInstanceOf(Error);

    const foreign = join(directory, "foreign.cjs");
    writeFileSync(foreign, "module.exports = { hello() {} };");
    expect(failure(foreign).message).toContain("not tokenloop's addon");
  });

  it("lists every place when there is no file", () => {
    const root = join(directory, "empty");
    mkdirSync(join(root, "build", "Debug"), { recursive: true });
    const { message } = failure("", root);
    expect(message).toContain(`${join(root, "build", "Release")}: no such folder`);
    expect(message).toContain(`${join(root, "build", "Debug")}: no .node file`);
    expect(message).toContain(`${join(root, "prebuilds", `${process.platform}-${process.arch}`)}: no such folder`);
    expect(message).toContain("npm run build");
    expect(message).toContain("npx tokenloop build");
  });

  it("names the file that was chosen, why it failed, and those that were passed over", () => {
    const root = join(directory, "broken");
    const chosen = join(root, "build", "Release", "tokenloop.node");
    const other = join(root, "prebuilds", `${process.platform}-${process.arch}`, "tokenloop.node");
    for (const file of [chosen, other]) {
      mkdirSync(dirname(file), { recursive: true });
      writeFileSync(file, "this is no shared object");
    }
    const error = failure("", root);
    expect(error.message).toContain(`${other}: not tried: ${chosen} comes first`);
    expect(error.message).toContain(`  - ${chosen}: `);
    expect(error.cause).toBeInstanceOf(Error);
  });

  it("takes the file that TOKENLOOP_NATIVE names", () => {
    const good = join(directory, "good.cjs");
    writeFileSync(good, "module.exports = { buildInfo: () => ({ llamaBuild: 7 }), loadModel() {} };");
    expect(loadNative({ TOKENLOOP_NATIVE: good }).buildInfo()).toEqual({ llamaBuild: 7 });
  });
});

describe("findPackageRoot", () => {
  it("finds tokenloop's package.json, and only that", () => {
    expect(findPackageRoot()?.version).toMatch(/^\d+\.\d+\.\d+/);
    writeFileSync(join(directory, "package.json"), '{"name":"other"}');
    expect(findPackageRoot(join(directory, "x.js"))).toBeUndefined();
    writeFileSync(join(directory, "package.json"), '{"name":"tokenloop","version":"9.8.7"}');
    expect(findPackageRoot(join(directory, "dist", "cjs", "x.js"))).toEqual({ directory, version: "9.8.7" });
    writeFileSync(join(directory, "package.json"), "not json");
    expect(findPackageRoot(join(directory, "x.js"))).toBeUndefined();
  });
});

describe("closest", () => {
  it.each([
    ["temperatur", "temperature"],
    ["Top-P", "top_p"],
    ["maxtokens", "max_tokens"],
    ["zzz", undefined],
    ["", undefined],
    ["x".repeat(100), undefined],
  ])("%s is meant to be %s", (name, expected) => {
    expect(closest(name, ["temperature", "top_p", "max_tokens"])).toBe(expected);
  });
});
