import type { MemoryEstimate } from "../estimate.js";
import { mebibytes } from "../fit.js";
import { describeModel, type ModelDescription } from "../gguf/describe.js";
import { checkModelFile } from "../gguf/index.js";
import { engineOptions, type OptionRow } from "../options.js";
import { engineFlags, flagHelp, parseFlags } from "./args.js";
import { exit, type Io, UsageError } from "./io.js";

/** Options that change what a model takes. */
const memoryOptions = ["contextSize", "parallel", "batchSize", "microBatchSize", "gpuLayers", "prefixCache"];
const more = ["draftTokens", "draftModel", "flashAttention", "cacheTypeK", "cacheTypeV", "kvUnified"];

const inspectOptions = [
  {
    name: "json",
    type: "boolean",
    default: false,
    flag: "json",
    description: "One JSON object in place of text: { model, memory }. Sizes are bytes.",
  },
] as const satisfies readonly OptionRow[];

const rows: readonly OptionRow[] = [
  ...inspectOptions,
  ...engineOptions.filter(({ name }) => [...memoryOptions, ...more].includes(name)),
];

export const inspectHelp = `Usage: tokenloop inspect MODEL [options]

Says what is in a GGUF file, and what it takes with these options: weights, KV cells, compute buffers. Nothing is loaded.
A damaged file is refused with what is wrong in it; the exit status is then 1.

${flagHelp(rows)}
`;

export async function inspect(args: readonly string[], io: Io): Promise<number> {
  const parsed = parseFlags(args, rows, io.env);
  if (parsed.values.has("help")) {
    io.stdout.write(inspectHelp);
    return exit.ok;
  }
  const [path, ...rest] = parsed.positionals;
  if (path === undefined || rest.length > 0) throw new UsageError("tokenloop inspect needs one MODEL (a GGUF file).");
  const memory = await io.estimate({ model: path, ...engineFlags(parsed) });
  const model = await describeModel(await checkModelFile(path));
  if (parsed.values.get("json") === true) io.stdout.write(`${JSON.stringify({ model, memory }, null, 2)}\n`);
  else io.stdout.write(`${[...modelLines(model), "", ...memoryLines(memory)].join("\n")}\n`);
  return exit.ok;
}

function modelLines(model: ModelDescription): string[] {
  const { vocabulary } = model;
  const template = model.chatTemplate === undefined ? "none" : `${model.chatTemplate.split("\n").length} lines`;
  const special = Object.entries(model.specialTokens).map(
    ([role, { id, text }]) => `${role} ${id} ${JSON.stringify(text)}`,
  );
  return [
    line("model", model.name ?? "(no name)"),
    line("architecture", model.architecture),
    line("parameters", count(model.parameters)),
    line("quantisation", model.fileType ?? "(not said)"),
    line("file", `${mebibytes(model.fileBytes)}${model.files > 1 ? ` in ${model.files} files` : ""}`),
    line("context", `${model.trainingContext ?? "?"} tokens`),
    line("layers", `${model.layers ?? "?"} of width ${model.embeddingLength ?? "?"}`),
    ...(model.experts ? [line("experts", String(model.experts))] : []),
    ...(model.slidingWindow ? [line("sliding window", `${model.slidingWindow} tokens`)] : []),
    line(
      "vocabulary",
      `${vocabulary.tokens} tokens (${[vocabulary.model, vocabulary.pre].filter(Boolean).join(", ")})`,
    ),
    ...special.map((text, i) => line(i === 0 ? "special tokens" : "", text)),
    line("chat template", template),
    ...model.tensors.map((tensors, i) =>
      line(i === 0 ? "tensors" : "", `${tensors.count} ${tensors.type}, ${mebibytes(tensors.bytes)}`),
    ),
  ];
}

function memoryLines(memory: MemoryEstimate): string[] {
  const of = (device: MemoryEstimate["devices"][number]) =>
    `${mebibytes(device.bytes)}: weights ${mebibytes(device.weights)}, KV cells ${mebibytes(device.cache)}, ` +
    `compute ${mebibytes(device.compute)}, logits ${mebibytes(device.output)}; ${mebibytes(device.free)} free`;
  return [
    line("with", `${memory.contextSize} cells, ${memory.sequences} sequences`),
    ...memory.devices.filter(({ bytes }) => bytes > 0).map((device) => line(`  ${device.name}`, of(device))),
    line("in all", `${mebibytes(memory.bytes)}, which ${memory.fits ? "fits" : "does not fit"} into what is free now`),
    ...memory.choices.map(({ option, value, reason }) => line("auto", `${option} ${value}. ${reason}`)),
  ];
}

const line = (label: string, text: string) => `${label.padEnd(15)} ${text}`;

function count(parameters: number): string {
  for (const [unit, name] of [
    [1e9, "billion"],
    [1e6, "million"],
  ] as const) {
    if (parameters >= unit) return `${(parameters / unit).toFixed(2)} ${name}`;
  }
  return String(parameters);
}
