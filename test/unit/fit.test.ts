import { describe, expect, it } from "vitest";
import { type AutoOption, fitMemory } from "../../src/fit.js";
import { validateLoadOptions } from "../../src/load-options.js";
import type { NativeLoadOptions, NativeMemoryEstimate } from "../../src/native.js";

const mebi = 2 ** 20;

interface Machine {
  /** MiB; 0: there is none. */
  gpu: number;
  host: number;
  /** MiB of a layer, KiB of a cell and layer. */
  layer: number;
  cell: number;
  layers: number;
  training: number;
}

/** A model whose layers each take the same, with their cells, wherever they are. */
function estimator(machine: Machine) {
  const asked: NativeLoadOptions[] = [];
  const estimate = (options: NativeLoadOptions): Promise<NativeMemoryEstimate> => {
    asked.push(options);
    const onGpu = machine.gpu === 0 ? 0 : options.gpuLayers < 0 ? machine.layers : options.gpuLayers;
    const use = (layers: number) => ({
      weights: layers * machine.layer * mebi,
      cache: layers * machine.cell * 1024 * options.contextSize,
      compute: 0,
      output: 0,
    });
    const of = (name: string, host: boolean, size: number, layers: number) => ({
      ...use(layers),
      name,
      host,
      total: size * mebi,
      free: size * mebi,
    });
    const devices = [of("CPU", true, machine.host, machine.layers - onGpu)];
    if (machine.gpu > 0) devices.unshift(of("GPU0", false, machine.gpu, onGpu));
    return Promise.resolve({
      contextSize: options.contextSize,
      trainingContext: machine.training,
      layers: machine.layers,
      sequences: 8,
      devices,
    });
  };
  return { estimate, asked };
}

async function choose(machine: Partial<Machine>, auto: AutoOption[], more: Partial<NativeLoadOptions> = {}) {
  const all: Machine = { gpu: 0, host: 1000, layer: 10, cell: 1, layers: 10, training: 1024, ...machine };
  const { estimate, asked } = estimator(all);
  const { native } = validateLoadOptions({ model: "m.gguf", parallel: 4, contextSize: 2048 });
  const { options, choices } = await fitMemory({ ...native, ...more }, auto, estimate);
  return { options, choices, asked, estimate };
}

describe("fitMemory", () => {
  it("leaves everything alone where nothing is auto", async () => {
    const { choices, asked } = await choose({}, []);
    expect([choices, asked]).toEqual([[], []]);
  });

  it("gives each request the training context where memory allows", async () => {
    const { options, choices } = await choose({}, ["contextSize"]);
    expect(options.contextSize).toBe(4096);
    expect(choices).toMatchObject([{ option: "contextSize", value: 4096 }]);
    expect(choices[0]?.reason).toMatch(/Room for 4 requests of the model's 1024 tokens: 140 MiB of 600 MiB on CPU/);
  });

  it("takes as many cells as fit where it does not", async () => {
    // 100 MiB of weights of 600; 10 KiB a cell.
    const { options, choices, asked } = await choose({ training: 1 << 20 }, ["contextSize"]);
    expect(options.contextSize).toBe(500 * 1024 * 0.1 - ((500 * 1024 * 0.1) % 256));
    expect(choices[0]?.reason).toContain("Memory is short");
    expect(asked.length).toBeLessThan(5);
  });

  it("takes the least where not even that fits", async () => {
    const { options } = await choose({ host: 100, training: 1 << 20 }, ["contextSize"]);
    expect(options.contextSize).toBe(512);
  });

  it("says that there is no GPU", async () => {
    const { options, choices } = await choose({}, ["gpuLayers"]);
    expect(options.gpuLayers).toBe(0);
    expect(choices[0]?.reason).toContain("no GPU");
  });

  it("takes all layers where they fit, else as many as do", async () => {
    const whole = await choose({ gpu: 1024 }, ["gpuLayers"]);
    expect(whole.options.gpuLayers).toBe(-1);
    expect(whole.choices[0]?.reason).toContain("The whole model fits on GPU0");
    // 12 MiB a layer with its cells; 512 MiB of the GPU stay free.
    const part = await choose({ gpu: 512 + 50 }, ["gpuLayers"]);
    expect(part.options.gpuLayers).toBe(4);
    expect(part.choices[0]?.reason).toBe("4 of 10 layers fit on GPU0: 48 MiB of 50 MiB on GPU0.");
    expect((await choose({ gpu: 500 }, ["gpuLayers"])).options.gpuLayers).toBe(0);
  });

  it("puts layers before cells", async () => {
    // With 8,192 cells all layers take 180 MiB.
    const { options, choices } = await choose({ gpu: 512 + 200, training: 1 << 20 }, ["contextSize", "gpuLayers"]);
    expect(choices.map(({ option }) => option)).toEqual(["gpuLayers", "contextSize"]);
    expect(options.gpuLayers).toBe(-1);
    expect(options.contextSize).toBe(10240);
  });
});

describe('"auto"', () => {
  it("is for some options only", () => {
    expect(validateLoadOptions({ model: "m", contextSize: "auto", gpuLayers: "auto" }).auto).toEqual([
      "contextSize",
      "gpuLayers",
    ]);
    const wrong = { model: "m", parallel: "auto" } as unknown as Parameters<typeof validateLoadOptions>[0];
    expect(() => validateLoadOptions(wrong)).toThrow("from 1 to 256");
    const typo = { model: "m", contextSize: "automatic" } as unknown as Parameters<typeof validateLoadOptions>[0];
    expect(() => validateLoadOptions(typo)).toThrow('or "auto"');
  });
});
