import { execFile, spawnSync } from "node:child_process";
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  realpathSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { publint } from "publint";
import { formatMessage } from "publint/utils";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { hashTree, readPin } from "../../vendor/source.mjs";
import { stage } from "../../vendor/stage.mjs";
import { nanoModel } from "../models/nano.js";

// The package as a stranger gets it: packed, unpacked in a folder of its own, used from both module systems.
const root = fileURLToPath(new URL("../..", import.meta.url));
const run = promisify(execFile);
const folder = realpathSync(mkdtempSync(join(tmpdir(), "tokenloop-pack-")));
const installed = join(folder, "node_modules", "tokenloop");
let tarball: string;
let files: string[];

/** npm's own script, because npm itself is a shell script on Windows. */
async function npm(args: string[]): Promise<string> {
  const script = process.env.npm_execpath;
  const [program, first] = script === undefined ? ["npm", []] : [process.execPath, [script]];
  return (await run(program, [...first, ...args], { cwd: root, maxBuffer: 1 << 26 })).stdout;
}

beforeAll(async () => {
  // Without its scripts: the 35 MB of llama.cpp are staged below, not into the checkout that other tests use.
  const output = await npm(["pack", "--ignore-scripts", "--json", "--pack-destination", folder]);
  const [pack] = JSON.parse(output) as [{ filename: string; files: { path: string }[] }];
  tarball = join(folder, pack.filename);
  files = pack.files.map(({ path }) => path);
  mkdirSync(installed, { recursive: true });
  // A relative name: some tars take "C:" for a host.
  await run("tar", ["-xzf", pack.filename, "--strip-components=1", "-C", installed], { cwd: folder });
  for (const dependency of ["node-gyp-build", "@types", "yaml"]) {
    symlinkSync(join(root, "node_modules", dependency), join(folder, "node_modules", dependency), "junction");
  }
  writeFileSync(join(folder, "package.json"), "{}");
});

afterAll(() => rmSync(folder, { recursive: true, force: true }));

describe("the package", () => {
  it("brings what it needs and nothing of the tests", () => {
    expect(files).toEqual(
      expect.arrayContaining([
        "CMakeLists.txt",
        "LICENSE",
        "README.md",
        "binding/addon.cc",
        "dist/cli/main.js",
        "dist/index.cjs",
        "dist/index.d.cts",
        "dist/index.d.ts",
        "dist/index.js",
        "dist/testing.cjs",
        "dist/testing.d.cts",
        "dist/testing.d.ts",
        "dist/testing.js",
        "dist/schema-worker.js",
        "package.json",
        "vendor/CMakeLists.txt",
        "vendor/build.mjs",
        "vendor/llama.cpp.json",
        "vendor/options.mjs",
        "vendor/source.mjs",
      ]),
    );
    const allowed = /^(CMakeLists\.txt|LICENSE|README\.md|package\.json|(binding|dist|prebuilds|vendor)\/.+)$/;
    expect(files.filter((file) => !allowed.test(file))).toEqual([]);
    expect(files.filter((file) => /^binding\/(bench|test_addon)\/|\.(gguf|tgz)$|\.test\./.test(file))).toEqual([]);
    expect(files.filter((file) => file.endsWith(".node") && !file.startsWith("prebuilds/"))).toEqual([]);
  });

  it("runs nothing at installation, and needs two packages", () => {
    const { scripts, dependencies, peerDependencies, peerDependenciesMeta } = JSON.parse(
      readFileSync(join(installed, "package.json"), "utf8"),
    );
    for (const name of ["preinstall", "install", "postinstall", "prepare"]) expect(scripts).not.toHaveProperty(name);
    // npm's own rule: a package with binding.gyp is compiled at installation even without a script.
    expect(files).not.toContain("binding.gyp");
    expect(Object.keys(dependencies)).toEqual(["node-gyp-build", "yaml"]);
    for (const name of Object.keys(peerDependencies)) expect(peerDependenciesMeta[name]).toEqual({ optional: true });
  });

  it("satisfies publint", async () => {
    const { messages, pkg } = await publint({ pkgDir: installed, pack: false, strict: true });
    expect(messages.map((message) => formatMessage(message, pkg, { color: false }))).toEqual([]);
  });

  it("gives every module resolution its types (attw)", () => {
    const attw = join(root, "node_modules", "@arethetypeswrong", "cli", "dist", "index.js");
    const { status, stdout } = spawnSync(process.execPath, [attw, tarball, "--format", "json"], { encoding: "utf8" });
    const { analysis } = JSON.parse(stdout) as { analysis: { types: unknown; problems: unknown[] } };
    expect(analysis.types).toBeTruthy();
    expect(analysis.problems).toEqual([]);
    expect(status).toBe(0);
  });
});

describe("unpacked", () => {
  const native = join(root, "build", "Release", "tokenloop.node");
  const answer = `
    const engine = await Engine.load({ model: process.argv[2], threads: 1 });
    const messages = [{ role: "user", content: "What is the capital of France?" }];
    const { choices } = await engine.chat.completions.create({ messages, temperature: 0 });
    console.log(choices[0].message.content);
    // A pattern: its grammar is made on the thread for schemas, which has a file of its own.
    const json_schema = { name: "code", schema: { type: "string", pattern: "^[A-Z]{3}-\\\\d{4}$" } };
    const forced = await engine.chat.completions.create({ messages, response_format: { type: "json_schema", json_schema } });
    console.log(forced.choices[0].message.content);
    await engine.close();`;

  it.each([
    ["ESM", "answer.mjs", `import { Engine } from "tokenloop";${answer}`],
    ["CommonJS", "answer.cjs", `const { Engine } = require("tokenloop");(async () => {${answer}})();`],
  ])("answers from %s", async (_, name, source) => {
    writeFileSync(join(folder, name), source);
    const env = { ...process.env, TOKENLOOP_NATIVE: native };
    const { stdout } = await run(process.execPath, [join(folder, name), nanoModel()], { env });
    expect(stdout).toMatch(/Paris.*\n"[A-Z]{3}-\d{4}"\n$/);
  });

  const test = `
    const { engine } = await scriptedEngine({ script: "No model is needed." });
    const messages = [{ role: "user", content: "Hi" }];
    console.log((await engine.chat.completions.create({ messages })).choices[0].message.content);
    await engine.close();`;

  it.each([
    ["ESM", "scripted.mjs", `import { scriptedEngine } from "tokenloop/testing";${test}`],
    ["CommonJS", "scripted.cjs", `const { scriptedEngine } = require("tokenloop/testing");(async () => {${test}})();`],
  ])("tests without a model or a binary, from %s", async (_, name, source) => {
    writeFileSync(join(folder, name), source);
    const { stdout } = await run(process.execPath, [join(folder, name)]);
    expect(stdout).toBe("No model is needed.\n");
  });

  it("says what to do where no binary fits", async () => {
    const source = `import { Engine } from "tokenloop";
      await Engine.load({ model: process.argv[2] }).catch(({ code, message }) => console.log(JSON.stringify({ code, message })));`;
    writeFileSync(join(folder, "missing.mjs"), source);
    const { stdout } = await run(process.execPath, [join(folder, "missing.mjs"), nanoModel()]);
    const { code, message } = JSON.parse(stdout) as { code: string; message: string };
    expect(code).toBe("native_load_failed");
    expect(message).toContain(join(installed, "build", "Release"));
    expect(message).toContain("npx tokenloop build");
  });

  it("has types for both module systems", async () => {
    const use = `
      export async function use(): Promise<string | null | undefined> {
        const engine = await tokenloop.Engine.load({ model: "x.gguf" });
        const completion = await engine.chat.completions.create({ messages: [{ role: "user", content: "Hi" }] });
        // @ts-expect-error an option that does not exist
        await tokenloop.Engine.load({ model: "x.gguf", contextsize: 1 });
        return completion.choices[0]?.message.content;
      }`;
    const scripted = `
      export async function test(): Promise<tokenloop.Engine> {
        // @ts-expect-error a script without an answer
        await testing.scriptedEngine({ script: { piece: 1 } });
        return (await testing.scriptedEngine({ script: ({ messages }) => messages?.[0]?.content ?? "" })).engine;
      }`;
    const imports = (from: (name: string) => string) =>
      `import ${from("tokenloop")};import ${from("testing")};${use}${scripted}`;
    const specifier = (name: string) => (name === "testing" ? "tokenloop/testing" : name);
    writeFileSync(
      join(folder, "types.mts"),
      imports((name) => `* as ${name} from "${specifier(name)}"`),
    );
    writeFileSync(
      join(folder, "types.cts"),
      imports((name) => `${name} = require("${specifier(name)}")`),
    );
    const compilerOptions = {
      module: "NodeNext",
      target: "ES2022",
      // What the declarations use must be there for a consumer without extra libraries, too.
      lib: ["ES2022", "ESNext.Disposable"],
      strict: true,
      noEmit: true,
      types: ["node"],
      skipLibCheck: false,
    };
    writeFileSync(
      join(folder, "tsconfig.json"),
      JSON.stringify({ compilerOptions, files: ["types.mts", "types.cts"] }),
    );
    const tsc = join(root, "node_modules", "typescript", "bin", "tsc");
    const { stdout, status } = spawnSync(process.execPath, [tsc, "-p", folder], { encoding: "utf8" });
    expect({ stdout, status }).toEqual({ stdout: "", status: 0 });
  });

  it("has a command line that knows its version", async () => {
    const { version } = JSON.parse(readFileSync(join(root, "package.json"), "utf8")) as { version: string };
    const { stdout } = await run(process.execPath, [join(installed, "dist", "cli", "main.js"), "--version"]);
    expect(stdout).toBe(`${version}\n`);
  });

  it("builds with the staged source of llama.cpp, which is exactly the pinned one", async () => {
    const staged = join(installed, "vendor", "llama.cpp");
    stage(staged);
    expect(hashTree(staged)).toBe(readPin().treeHash);
    expect(existsSync(join(staged, "tools"))).toBe(false);
    // Where cmake-js is missing, the build says what to install before it does anything.
    const main = join(installed, "dist", "cli", "main.js");
    const { status, stderr } = spawnSync(process.execPath, [main, "build"], { cwd: folder, encoding: "utf8" });
    expect(status).toBe(1);
    expect(stderr).toMatch(/npm install --no-save .*cmake-js@/);
    expect(existsSync(join(installed, "build"))).toBe(false);
  });
});
