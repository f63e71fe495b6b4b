import { spawnSync } from "node:child_process";
import { cpSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterAll, describe, expect, it } from "vitest";
import {
  addonSettings,
  BuildError,
  buildOptions,
  checkToolkits,
  llamaSettings,
  parseArguments,
  usage,
} from "../../vendor/options.mjs";
import { checkTree, findSource, hashTree, readPin } from "../../vendor/source.mjs";

const build = fileURLToPath(new URL("../../vendor/build.mjs", import.meta.url));
const folders: string[] = [];
const temporary = () => {
  const folder = mkdtempSync(join(tmpdir(), "tokenloop-vendor-"));
  folders.push(folder);
  return folder;
};
afterAll(() => {
  for (const folder of folders) rmSync(folder, { recursive: true, force: true });
});

/** A tree small enough to hash, with what makes it look like llama.cpp. */
function fakeTree(): string {
  const root = temporary();
  for (const [path, content] of [
    ["CMakeLists.txt", "project(fake)"],
    ["include/llama.h", "// llama"],
    ["src/models/a.cpp", "a"],
    ["src/llama.cpp", "b"],
    ["vendor/nlohmann/json.hpp", "c"],
    ["tools/server/server.cpp", "not compiled"],
  ] as const) {
    mkdirSync(join(root, path, ".."), { recursive: true });
    writeFileSync(join(root, path), content);
  }
  return root;
}

const flagsOf = (args: string[], platform: NodeJS.Platform = "linux") =>
  parseArguments(args, platform).chosen.map(({ flag }) => flag);

describe("build options", () => {
  it("choose the CPU build of this machine by default, Metal on macOS", () => {
    expect(flagsOf([])).toEqual(["native"]);
    expect(flagsOf([], "darwin")).toEqual(["metal", "native"]);
    expect(flagsOf(["--vulkan"], "darwin")).toEqual(["vulkan", "native"]);
  });

  it.each([
    ["--cuda", { GGML_CUDA: "ON", GGML_CUDA_NCCL: "OFF", GGML_HIP: "OFF", GGML_METAL: "OFF", GGML_VULKAN: "OFF" }],
    ["--rocm", { GGML_HIP: "ON", GGML_CUDA: "OFF" }],
    ["--metal", { GGML_METAL: "ON", GGML_METAL_EMBED_LIBRARY: "ON", GGML_CUDA: "OFF" }],
    ["--vulkan", { GGML_VULKAN: "ON", GGML_CUDA: "OFF" }],
    ["--native", { GGML_NATIVE: "ON", GGML_CUDA: "OFF", GGML_METAL: "OFF" }],
    ["--portable", { GGML_NATIVE: "OFF", GGML_AVX2: "ON", GGML_FMA: "ON", GGML_F16C: "ON", GGML_BMI2: "ON" }],
  ])("%s sets what ggml understands, and switches the other backends off", (flag, settings) => {
    expect(llamaSettings(parseArguments([flag], "linux").chosen)).toMatchObject(settings);
  });

  it("keep llama.cpp's tree the same for --debug and --asan, and give the addon its settings", () => {
    const plain = llamaSettings(parseArguments([], "linux").chosen);
    for (const flag of ["--debug", "--asan", "--tsan"]) {
      expect(llamaSettings(parseArguments([flag], "linux").chosen)).toEqual(plain);
    }
    expect(addonSettings(parseArguments([], "linux").chosen)).toEqual({
      CMAKE_BUILD_TYPE: "Release",
      TOKENLOOP_SANITIZE: "",
    });
    expect(addonSettings(parseArguments(["--debug"]).chosen)).toMatchObject({ CMAKE_BUILD_TYPE: "Debug" });
    expect(addonSettings(parseArguments(["--asan"]).chosen)).toMatchObject({
      TOKENLOOP_SANITIZE: "address,undefined",
    });
    expect(addonSettings(parseArguments(["--tsan"]).chosen)).toMatchObject({ TOKENLOOP_SANITIZE: "thread" });
  });

  it("do not depend on their order, so that one choice has one tree", () => {
    const one = parseArguments(["--vulkan", "--portable"], "linux").chosen;
    expect(parseArguments(["--portable", "--vulkan"], "linux").chosen).toEqual(one);
  });

  it.each([
    [["--cuda", "--vulkan"], "--cuda and --vulkan exclude each other"],
    [["--native", "--portable"], "--native and --portable exclude each other"],
    [["--debug", "--asan"], "--debug and --asan exclude each other"],
    [["--cudaa"], "Unknown option --cudaa"],
    [["cuda"], "Unknown option cuda"],
    [["--cuda=1"], "Unknown option --cuda=1"],
  ])("refuse %j", (args, message) => {
    expect(() => parseArguments(args)).toThrow(BuildError);
    expect(() => parseArguments(args)).toThrow(message);
  });

  it("name the toolkit that is missing, and find one beside the PATH", () => {
    const cuda = parseArguments(["--cuda"], "linux").chosen;
    expect(() => checkToolkits(cuda, () => false)).toThrow(/--cuda needs the CUDA toolkit/);
    expect(checkToolkits(cuda, (program) => program === "nvcc")).toEqual([]);
    expect(checkToolkits(cuda, (program) => program.startsWith("/"))).toEqual(["/usr/local/cuda/bin"]);
    expect(checkToolkits(parseArguments([], "linux").chosen, () => false)).toEqual([]);
  });

  it("are all in --help", () => {
    const text = usage();
    for (const { flag, help } of buildOptions) expect(text).toContain(`${`--${flag}`.padEnd(24)}${help}\n`);
  });
});

describe("llama.cpp's source", () => {
  const pin = readPin();

  it("is taken from LLAMA_CPP_DIR before vendor/llama.cpp before the npm package", () => {
    const own = fakeTree();
    const vendor = temporary();
    cpSync(fakeTree(), join(vendor, "llama.cpp"), { recursive: true });
    expect(findSource(pin, { env: { LLAMA_CPP_DIR: own }, vendor })).toEqual({ path: own, origin: "LLAMA_CPP_DIR" });
    expect(findSource(pin, { env: {}, vendor }).origin).toBe("vendor/llama.cpp");
    expect(findSource(pin, { env: {}, vendor: fileURLToPath(new URL("..", import.meta.url)) }).origin).toBe(
      pin.package,
    );
  });

  it("is missed with one message that names every place", () => {
    const find = () => findSource({ ...pin, package: "no-such-package" }, { env: {}, vendor: temporary() });
    expect(find).toThrow(BuildError);
    expect(find).toThrow(/LLAMA_CPP_DIR .*llama\.cpp.*no-such-package.*npm ci/s);
  });

  it("is not looked for elsewhere when LLAMA_CPP_DIR is wrong", () => {
    expect(() => findSource(pin, { env: { LLAMA_CPP_DIR: temporary() } })).toThrow(/LLAMA_CPP_DIR=.*include\/llama\.h/);
  });

  it("has the pinned hash", () => {
    expect(() => checkTree(findSource(pin).path, pin)).not.toThrow();
  });
});

describe("the hash of a tree", () => {
  it("covers content and names of what is compiled, and nothing else", () => {
    const root = fakeTree();
    const before = hashTree(root);
    expect(before).toMatch(/^[0-9a-f]{64}$/);
    expect(hashTree(fakeTree())).toBe(before);

    writeFileSync(join(root, "tools/server/server.cpp"), "changed");
    writeFileSync(join(root, "README.md"), "new");
    expect(hashTree(root)).toBe(before);

    writeFileSync(join(root, "src/llama.cpp"), "B");
    const changed = hashTree(root);
    expect(changed).not.toBe(before);

    writeFileSync(join(root, "src/llama.cpp"), "b");
    writeFileSync(join(root, "src/models/new.cpp"), "");
    expect(hashTree(root)).not.toBe(before);
    rmSync(join(root, "src/models/new.cpp"));
    expect(hashTree(root)).toBe(before);
  });

  it("is named with the one expected when they differ", () => {
    const root = fakeTree();
    const pin = { ...readPin(), treeHash: "0".repeat(64) };
    expect(() => checkTree(root, pin)).toThrow(BuildError);
    expect(() => checkTree(root, pin)).toThrow(
      new RegExp(`${hashTree(root)}.*${pin.treeHash}.*--allow-llama-mismatch`),
    );
  });
});

describe("build.mjs", () => {
  const run = (args: string[], env: NodeJS.ProcessEnv = {}) =>
    spawnSync(process.execPath, [build, ...args], { encoding: "utf8", env: { ...process.env, ...env } });

  it("prints its options and builds nothing", () => {
    const { status, stdout, stderr } = run(["--help"]);
    expect({ status, stderr }).toEqual({ status: 0, stderr: "" });
    expect(stdout).toBe(`${usage()}\n`);
  });

  it("ends with 1 and a message without a stack", () => {
    const unknown = run(["--frobnicate"]);
    expect(unknown.status).toBe(1);
    expect(unknown.stderr).toContain("Unknown option --frobnicate");
    expect(unknown.stderr).not.toMatch(/^ +at /m);

    const foreign = fakeTree();
    const mismatch = run([], { LLAMA_CPP_DIR: foreign });
    expect(mismatch.status).toBe(1);
    expect(mismatch.stderr).toContain(hashTree(foreign));
    expect(mismatch.stderr).toContain(readPin().treeHash);
  });

  it("says what to install when a toolkit is missing", () => {
    // An empty folder is the whole PATH: neither glslc nor cmake.
    const rest = Object.fromEntries(Object.entries(process.env).filter(([name]) => !/^path$/i.test(name)));
    const bare = (args: string[]) =>
      spawnSync(process.execPath, [build, ...args], { encoding: "utf8", env: { ...rest, PATH: temporary() } });
    const vulkan = bare(["--vulkan"]);
    expect(vulkan.status).toBe(1);
    expect(vulkan.stderr).toContain("--vulkan needs the Vulkan SDK");
    expect(bare(["--native"]).stderr).toContain("CMake was not found");
  });
});
