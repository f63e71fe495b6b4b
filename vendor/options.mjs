// The one table of build options: flag, what it needs on this machine, what it sets in CMake.

/**
 * @typedef {object} BuildOption
 * @property {string} flag         long flag without the dashes
 * @property {string} help         one line for --help
 * @property {"backend" | "cpu" | "kind"} group  at most one option of a group can be chosen
 * @property {string[]} [tools]    programs that must be found, any one of them
 * @property {string} [toolkit]    what to install when they are not
 * @property {Record<string, string>} [llama]  CMake settings of llama.cpp's tree
 * @property {Record<string, string>} [addon]  CMake settings of the addon's tree
 */

/** @type {readonly BuildOption[]} */
export const buildOptions = [
  {
    flag: "cuda",
    group: "backend",
    help: "NVIDIA GPUs",
    tools: ["nvcc", "/usr/local/cuda/bin/nvcc"],
    toolkit: "the CUDA toolkit (nvcc on the PATH)",
    // NCCL serves several GPUs with tensor parallelism and would be one more library to ship.
    llama: { GGML_CUDA: "ON", GGML_CUDA_NCCL: "OFF" },
  },
  {
    flag: "rocm",
    group: "backend",
    help: "AMD GPUs (ROCm, HIP)",
    tools: ["hipcc", "/opt/rocm/bin/hipcc"],
    toolkit: "ROCm (hipcc on the PATH)",
    llama: { GGML_HIP: "ON" },
    // Where the addon's own CMakeLists.txt finds hip, hipblas and rocblas.
    addon: { CMAKE_PREFIX_PATH: process.env.ROCM_PATH ?? "/opt/rocm" },
  },
  {
    flag: "metal",
    group: "backend",
    help: "Apple GPUs (the default on macOS)",
    tools: ["xcrun"],
    toolkit: "Xcode or its command line tools, on macOS",
    llama: { GGML_METAL: "ON", GGML_METAL_EMBED_LIBRARY: "ON" },
  },
  {
    flag: "vulkan",
    group: "backend",
    help: "any GPU with a Vulkan driver",
    tools: ["glslc"],
    toolkit: "the Vulkan SDK (glslc on the PATH)",
    llama: { GGML_VULKAN: "ON" },
  },
  {
    flag: "native",
    group: "cpu",
    help: "every instruction that this machine's CPU has (the default)",
    llama: { GGML_NATIVE: "ON" },
  },
  {
    flag: "portable",
    group: "cpu",
    help: "for other machines: x64 with AVX2, FMA, F16C and BMI2; arm64 as the compiler's default",
    llama: {
      GGML_NATIVE: "OFF",
      GGML_SSE42: "ON",
      GGML_AVX: "ON",
      GGML_AVX2: "ON",
      GGML_FMA: "ON",
      GGML_F16C: "ON",
      GGML_BMI2: "ON",
    },
  },
  {
    flag: "debug",
    group: "kind",
    help: "the addon without optimisation, with assertions (llama.cpp stays optimised)",
    addon: { CMAKE_BUILD_TYPE: "Debug" },
  },
  {
    flag: "asan",
    group: "kind",
    help: "the addon's own files with AddressSanitizer and UBSan, in build/asan (llama.cpp without)",
    addon: { TOKENLOOP_SANITIZE: "address,undefined" },
  },
  {
    flag: "tsan",
    group: "kind",
    help: "the addon's own files with ThreadSanitizer, in build/tsan; for build/tsan/test/tokenloop_loop_test",
    addon: { TOKENLOOP_SANITIZE: "thread" },
  },
];

/** Options that choose nothing in CMake. */
export const switches = {
  "allow-llama-mismatch": "build a llama.cpp whose hash is not the pinned one",
  help: "this text",
};

/** A mistake of the caller's: printed without a stack. */
export class BuildError extends Error {}

/**
 * @param {readonly string[]} args
 * @param {NodeJS.Platform} platform
 * @returns {{ chosen: BuildOption[], allowMismatch: boolean, help: boolean }}
 * @throws {BuildError} for an unknown flag, or two of a group.
 */
export function parseArguments(args, platform = process.platform) {
  /** @type {Map<string, BuildOption>} */
  const byGroup = new Map();
  let allowMismatch = false;
  let help = false;
  for (const arg of args) {
    const option = buildOptions.find(({ flag }) => arg === `--${flag}`);
    if (option !== undefined) {
      const other = byGroup.get(option.group);
      if (other !== undefined && other !== option) {
        throw new BuildError(`--${other.flag} and --${option.flag} exclude each other.`);
      }
      byGroup.set(option.group, option);
    } else if (arg === "--allow-llama-mismatch") {
      allowMismatch = true;
    } else if (arg === "--help" || arg === "-h") {
      help = true;
    } else {
      throw new BuildError(`Unknown option ${arg}. ${usage()}`);
    }
  }
  const byFlag = (/** @type {string} */ name) =>
    /** @type {BuildOption} */ (buildOptions.find(({ flag }) => flag === name));
  if (!byGroup.has("cpu")) byGroup.set("cpu", byFlag("native"));
  if (!byGroup.has("backend") && platform === "darwin") byGroup.set("backend", byFlag("metal"));
  // A fixed order, so that the same choice has the same tree whatever the order of the flags.
  return { chosen: buildOptions.filter((option) => byGroup.get(option.group) === option), allowMismatch, help };
}

/**
 * CMake settings of llama.cpp's tree. Backends that were not chosen are off, also where ggml would find them by itself.
 * @param {readonly BuildOption[]} chosen
 * @returns {Record<string, string>}
 */
export function llamaSettings(chosen) {
  const off = { GGML_CUDA: "OFF", GGML_HIP: "OFF", GGML_METAL: "OFF", GGML_VULKAN: "OFF", GGML_BLAS: "OFF" };
  return Object.assign({}, off, ...chosen.map(({ llama }) => llama ?? {}));
}

/**
 * CMake settings of the addon's tree.
 * @param {readonly BuildOption[]} chosen
 * @returns {Record<string, string>}
 */
export function addonSettings(chosen) {
  return Object.assign(
    { CMAKE_BUILD_TYPE: "Release", TOKENLOOP_SANITIZE: "" },
    ...chosen.map(({ addon }) => addon ?? {}),
  );
}

/**
 * @param {readonly BuildOption[]} chosen
 * @param {(program: string) => boolean} found  whether a program can be run
 * @returns {string[]} folders of the tools that are not on the PATH, where CMake has to be told of them
 * @throws {BuildError} naming the toolkit that is missing.
 */
export function checkToolkits(chosen, found) {
  /** @type {string[]} */
  const folders = [];
  for (const { flag, tools, toolkit } of chosen) {
    if (tools === undefined) continue;
    const tool = tools.find(found);
    if (tool === undefined) {
      throw new BuildError(`--${flag} needs ${toolkit}: none of ${tools.join(", ")} was found.`);
    }
    if (tool.includes("/")) folders.push(tool.slice(0, tool.lastIndexOf("/")));
  }
  return folders;
}

/** The text of --help. */
export function usage() {
  const rows = [
    ...buildOptions.map(({ flag, help }) => [`--${flag}`, help]),
    ...Object.entries(switches).map(([flag, help]) => [`--${flag}`, help]),
  ];
  const lines = rows.map(([flag, help]) => `  ${flag?.padEnd(24)}${help}`);
  return [
    "Usage: npm run build -- [options]   (in a clone)",
    "       npx tokenloop build [options]",
    "",
    ...lines,
  ].join("\n");
}
