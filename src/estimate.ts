import { bytesOf, type Choice, estimatorOf, fitMemory, fits } from "./fit.js";
import { checkFiles } from "./load.js";
import { type LoadOptions, validateLoadOptions } from "./load-options.js";
import type { NativeAddon, NativeDeviceEstimate, NativeMemoryEstimate } from "./native.js";

/** What a model and its context will take. All sizes are bytes. */
export interface MemoryEstimate extends NativeMemoryEstimate {
  devices: (NativeDeviceEstimate & { bytes: number })[];
  /** Over all devices. */
  bytes: number;
  /** Whether it fits into what is free now: 60 % of the CPU's memory, and of a GPU's all but 512 MiB. */
  fits: boolean;
  /** What was chosen for options given as "auto". */
  choices: Choice[];
}

/** `Engine.estimate`. */
export async function estimateMemory(addon: () => NativeAddon, options: LoadOptions): Promise<MemoryEstimate> {
  const { native, auto } = validateLoadOptions(options);
  await checkFiles(native);
  const estimator = estimatorOf(addon());
  const { options: chosen, choices } = await fitMemory(native, auto, estimator);
  const estimate = await estimator(chosen);
  const devices = estimate.devices.map((device) => ({ ...device, bytes: bytesOf(device) }));
  const bytes = devices.reduce((sum, device) => sum + device.bytes, 0);
  return { ...estimate, devices, bytes, fits: fits(estimate), choices };
}
