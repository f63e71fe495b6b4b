import { freemem } from "node:os";
import { fromNative } from "./errors.js";
import type { NativeAddon, NativeDeviceEstimate, NativeLoadOptions, NativeMemoryEstimate } from "./native.js";

/** A value that was chosen for an option given as "auto", and why. */
export interface Choice {
  option: AutoOption;
  value: number;
  reason: string;
}

/** The options that may be "auto". */
export type AutoOption = "contextSize" | "gpuLayers";

export type Estimator = (options: NativeLoadOptions) => Promise<NativeMemoryEstimate>;

export function estimatorOf(addon: NativeAddon): Estimator {
  return async (options) => {
    try {
      return await addon.estimateMemory(options);
    } catch (error) {
      throw fromNative(error);
    }
  };
}

/**
 * Of the CPU's memory this share is taken at most: the rest belongs to this process' own work and to others. Of a GPU's
 * everything but a margin for what the driver and the kernels need.
 */
const hostShare = 0.6;
const deviceMargin = 512 * 1024 * 1024;
/** Cells are given in llama.cpp's unit, and no fewer than this is chosen. */
const unit = 256;
const fewestCells = 512;
const mostCells = 16777216;
/** Cells that a choice of layers leaves room for, when the context is "auto", too. */
const usualCells = 8192;

/**
 * Chooses the values of options given as "auto" by what they would take, as llama.cpp says. Layers come first: a model on
 * the GPU with a smaller context beats one that is half on the CPU.
 */
export async function fitMemory(
  given: NativeLoadOptions,
  auto: readonly AutoOption[],
  estimate: Estimator,
): Promise<{ options: NativeLoadOptions; choices: Choice[] }> {
  let options = given;
  const choices: Choice[] = [];
  const choose = (choice: Choice) => {
    choices.push(choice);
    options = { ...options, [choice.option]: choice.value };
  };
  if (auto.includes("gpuLayers")) {
    const probe = auto.includes("contextSize") ? { ...options, contextSize: usualCells } : options;
    choose(await chooseLayers(probe, estimate));
  }
  if (auto.includes("contextSize")) choose(await chooseCells(options, estimate));
  return { options, choices };
}

async function chooseLayers(options: NativeLoadOptions, estimate: Estimator): Promise<Choice> {
  const option = "gpuLayers";
  const all = await estimate({ ...options, gpuLayers: -1 });
  const gpus = all.devices.filter(({ host }) => !host);
  if (gpus.length === 0) return { option, value: 0, reason: "There is no GPU that this build can use." };
  const names = gpus.map(({ name }) => name).join(", ");
  if (fits(all)) {
    return { option, value: -1, reason: `The whole model fits on ${names}: ${needs(gpus)}.` };
  }
  // The need grows with every layer: the largest number that fits is found by halving.
  let low = 0;
  let high = all.layers;
  let best: NativeMemoryEstimate | undefined;
  while (low < high) {
    const middle = Math.ceil((low + high) / 2);
    const found = await estimate({ ...options, gpuLayers: middle });
    if (fits(found)) {
      low = middle;
      best = found;
    } else {
      high = middle - 1;
    }
  }
  const room = best === undefined ? needs(gpus) : needs(best.devices.filter(({ host }) => !host));
  return { option, value: low, reason: `${low} of ${all.layers} layers fit on ${names}: ${room}.` };
}

async function chooseCells(options: NativeLoadOptions, estimate: Estimator): Promise<Choice> {
  const option = "contextSize";
  const small = await estimate({ ...options, contextSize: fewestCells });
  const training = small.trainingContext > 0 ? small.trainingContext : usualCells;
  const wanted = Math.min(mostCells, Math.ceil((training * options.parallel) / unit) * unit);
  const what = `${options.parallel} requests of the model's ${training} tokens`;
  const large = await estimate({ ...options, contextSize: wanted });
  if (fits(large)) return { option, value: wanted, reason: `Room for ${what}: ${needs(large.devices)}.` };

  // What a cell takes is the same for each, save for what batches and windows add: a line, and then a look.
  let cells = fewestCells;
  let room = needs(small.devices);
  for (let target = line(small, large); target > fewestCells; target = down(target * 0.9)) {
    const found = await estimate({ ...options, contextSize: target });
    if (!fits(found)) continue;
    cells = target;
    room = needs(found.devices);
    break;
  }
  return { option, value: cells, reason: `Memory is short for ${what}, which would be ${wanted} cells: ${room}.` };
}

/** The number of cells at which the fullest device is full, if need grows evenly between the two. */
function line(small: NativeMemoryEstimate, large: NativeMemoryEstimate): number {
  let cells = large.contextSize;
  large.devices.forEach((device, i) => {
    const before = small.devices[i];
    if (before === undefined) return;
    const perCell = (bytesOf(device) - bytesOf(before)) / (large.contextSize - small.contextSize);
    if (perCell <= 0) return;
    cells = Math.min(cells, small.contextSize + (budget(device) - bytesOf(before)) / perCell);
  });
  return down(Math.max(0, cells));
}

const down = (cells: number) => Math.floor(cells / unit) * unit;

export function bytesOf({ weights, cache, compute, output }: NativeDeviceEstimate): number {
  return weights + cache + compute + output;
}

/** Whether every device has room. One that does not say how much it has, has none to give. */
export function fits(estimate: NativeMemoryEstimate): boolean {
  return estimate.devices.every((device) => bytesOf(device) <= budget(device));
}

function budget(device: NativeDeviceEstimate): number {
  if (!device.host) return Math.max(0, device.free - deviceMargin);
  return hostShare * Math.min(device.free > 0 ? device.free : Infinity, availableMemory());
}

/** What the system, or the container's limit, leaves to this process. */
function availableMemory(): number {
  // From Node 20.13 on.
  const { availableMemory: available } = process as { availableMemory?: () => number };
  return available?.() ?? freemem();
}

function needs(devices: readonly NativeDeviceEstimate[]): string {
  return devices
    .filter((device) => bytesOf(device) > 0)
    .map((device) => `${mebibytes(bytesOf(device))} of ${mebibytes(budget(device))} on ${device.name}`)
    .join(", ");
}

export function mebibytes(bytes: number): string {
  const mebi = bytes / 2 ** 20;
  if (mebi >= 10 * 1024) return `${(mebi / 1024).toFixed(1)} GiB`;
  return `${mebi >= 10 || mebi === 0 ? Math.round(mebi) : mebi.toFixed(1)} MiB`;
}
