import { describe, expect, it } from "vitest";
import { dryBreakers, samplerNames, samplingOptions } from "../../src/options.js";
import { loadTestAddon } from "../support/test-addon.js";

describe("the option table", () => {
  it("has llama.cpp's own defaults for every sampling option", () => {
    const { samplers, dry_sequence_breakers, ...theirs } = loadTestAddon().llamaSamplingDefaults();
    expect(samplers).toEqual(samplerNames.map(([name]) => name));
    expect(dry_sequence_breakers).toEqual(dryBreakers);
    expect(Object.keys(theirs).sort()).toEqual(samplingOptions.map(({ name }) => name).sort());
    // llama.cpp keeps them as float.
    for (const row of samplingOptions) expect(Math.fround(row.default), row.name).toBe(theirs[row.name]);
  });
});
