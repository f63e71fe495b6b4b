import { describe, expect, it } from "vitest";
import { samplingOptions } from "../../src/options.js";
import { loadTestAddon } from "../support/test-addon.js";

describe("the option table", () => {
  it("has llama.cpp's own defaults for every sampling option", () => {
    const theirs = loadTestAddon().llamaSamplingDefaults();
    expect(Object.keys(theirs).sort()).toEqual(samplingOptions.map(({ name }) => name).sort());
    // llama.cpp keeps them as float.
    for (const row of samplingOptions) expect(Math.fround(row.default), row.name).toBe(theirs[row.name]);
  });
});
