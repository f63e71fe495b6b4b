import { execFile } from "node:child_process";
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { afterAll, describe, expect, it } from "vitest";
import { coloursFor } from "../../src/bench/colour.js";
import { compareRecords, compareText, mismatches } from "../../src/bench/compare.js";
import { benchOptions } from "../../src/bench/flags.js";
import { runCli } from "../../src/cli/run.js";
import { nanoModel } from "../models/nano.js";
import { modelFile } from "../support/scripted-engine.js";
import { ScriptedIo } from "../support/scripted-io.js";

const root = fileURLToPath(new URL("../..", import.meta.url));
const folder = mkdtempSync(join(tmpdir(), "tokenloop-bench-"));
afterAll(() => rmSync(folder, { recursive: true, force: true }));
const file = (name: string, text: string) => {
  const path = join(folder, name);
  writeFileSync(path, text);
  return path;
};
const read = (name: string) => JSON.parse(readFileSync(join(folder, name), "utf8"));

describe("tokenloop bench", () => {
  it("lists its options", async () => {
    const io = new ScriptedIo();
    expect(await runCli(["bench", "--help"], io)).toBe(0);
    for (const { flag } of benchOptions) expect(io.stdout.text).toContain(`--${flag}`);
  });

  it.each([
    [[], "one URL"],
    [["a", "b"], "one URL"],
    [["http://127.0.0.1:1", "--parallel", "2"], "for a MODEL"],
    [["http://127.0.0.1:1", "--serve"], "for a MODEL"],
    [["http://"], "not a URL"],
    [[modelFile, "--model", "x"], "for a URL"],
    [[modelFile, "--requests", "0"], "--requests"],
    [[modelFile, "--concurrency", "1.5"], "--concurrency"],
    [[modelFile, "--rate", "0"], "--rate"],
    [[modelFile, "--ramp-from", "2"], "--ramp-from needs a --rate"],
    [[modelFile, "--prefix-share", "1.5"], "--prefix-share"],
    [[modelFile, "--prompt-tokens", "9..3"], "--prompt-tokens"],
    [[modelFile, "--output-tokens", "@/no/such"], "--output-tokens"],
    [[modelFile, "--goodput", "speed:3"], "--goodput"],
    [[modelFile, "--schema", "/no/such"], "--schema"],
    [[modelFile, "--tools", file("object.json", "{}")], "--tools"],
    [[modelFile, "--extra-body", "[1]"], "--extra-body"],
    [[modelFile, "--extra-body", "{"], "--extra-body"],
    [["compare", "a.json"], "two records"],
  ])("%j is a wrong command line", async (args, text) => {
    const io = new ScriptedIo();
    expect(await runCli(["bench", ...args], io)).toBe(2);
    expect(io.stderr.text).toContain(text);
  });

  it("measures an engine and leaves a record and a page", async () => {
    const io = new ScriptedIo({ script: { pieces: ["a", "b", "c"], delay: 1 } });
    const out = join(folder, "scripted");
    const flags = ["--requests", "6", "--concurrency", "2", "--bare-rounds", "0", "--label", "x", "--out", out];
    expect(await runCli(["bench", modelFile, ...flags], io)).toBe(0);
    expect(io.loadOptions).toMatchObject({ parallel: 2, contextSize: 2 * (128 + 64 + 64) });
    expect(io.stdout.text).toContain("6 completed, 0 failed");
    expect(io.stdout.text).not.toContain("\u001b[");
    expect(read("scripted.json")).toMatchObject({ completed: 6, label: "x, in process", max_concurrency: 2 });
    expect(readFileSync(`${out}.html`, "utf8")).toContain("x, in process");
  });

  it("is refused what the target refuses, with its reason", async () => {
    const io = new ScriptedIo();
    const schema = file("schema.json", '{"type":"never"}');
    const out = join(folder, "refused");
    expect(await runCli(["bench", modelFile, "--schema", schema, "--out", out], io)).toBe(1);
    expect(io.stderr.text).toContain("Schema at '/type'");
    expect(readdirSync(folder)).not.toContain("refused.json");
  });

  it("ends without a record when it is interrupted", async () => {
    const io = new ScriptedIo({ script: { pieces: ["a"], delay: 5 } });
    const status = runCli(["bench", modelFile, "--rate", "1", "--out", join(folder, "never")], io);
    await new Promise((resolve) => setTimeout(resolve, 150));
    io.signal("SIGINT");
    expect(await status).toBe(130);
    expect(readdirSync(folder)).not.toContain("never.json");
  });
});

describe("tokenloop bench compare", () => {
  const a = {
    label: "old",
    date: "1",
    model_id: "m",
    duration: 1,
    output_throughput: 100,
    mean_ttft_ms: 10,
    p99_itl_ms: 5,
    load: { seed: 1 },
    resources: { rss_peak_bytes: 100 },
  };
  const b = { ...a, label: "new", output_throughput: 110, mean_ttft_ms: 12, resources: { rss_peak_bytes: 101 } };

  it("says what is better, worse and the same", () => {
    expect(compareRecords(a, b).map(({ name, verdict }) => [name, verdict])).toEqual([
      ["output_throughput", 1],
      ["mean_ttft_ms", -1],
      ["p99_itl_ms", 0],
      ["rss_peak_bytes", 0],
    ]);
  });

  it("says what makes it unfair", () => {
    expect(mismatches(a, b)).toEqual([]);
    expect(mismatches(a, { ...b, load: { seed: 2 }, model_id: "n" })).toEqual([
      'model_id: "m" and "n"',
      "seed: 1 and 2",
    ]);
  });

  it("has colour on a terminal only", () => {
    expect(compareText(a, b, coloursFor({}))).not.toContain("\u001b");
    expect(compareText(a, b, coloursFor({ isTTY: true }, "1"))).not.toContain("\u001b");
    expect(compareText(a, b, coloursFor({ isTTY: true }, ""))).toContain("\u001b[32m");
  });

  it("reads records, vLLM's too, and refuses other files", async () => {
    const io = new ScriptedIo();
    const first = file("a.json", JSON.stringify(a));
    const vllm = file("vllm.json", JSON.stringify({ duration: 1, output_throughput: 50, mean_ttft_ms: 10 }));
    expect(await runCli(["bench", "compare", first, vllm], io)).toBe(0);
    expect(io.stdout.text).toMatch(/output_throughput +100\.0 +50\.00 +0\.500 {2}worse/);
    expect(await runCli(["bench", "compare", first, file("c.json", "{}")], io)).toBe(1);
    expect(io.stderr.text).toContain("c.json: not a record");
  });
});

describe("the built program", () => {
  it("makes one record of the engine and one of its server with one command", async () => {
    const program = join(root, "dist", "cli", "main.js");
    const load = ["--requests", "10", "--concurrency", "2", "--prompt-tokens", "60..80", "--prefix-share", "0.5"];
    const more = ["--output-tokens", "24", "--threads", "1", "--bare-rounds", "1", "--cancel-share", "0.2"];
    // The end of an answer, forbidden: nano's prompts are noise here.
    const endless = ["--extra-body", '{"logit_bias":{"1502":-100}}'];
    const out = join(folder, "both");
    const args = [program, "bench", nanoModel(), "--serve", "--out", out, ...load, ...more, ...endless];
    const { stdout, stderr } = await promisify(execFile)(process.execPath, args, { cwd: root });
    expect(stderr).toBe("");
    for (const which of ["engine", "serve"]) {
      const record = read(`both-${which}.json`);
      expect(record.errors_by_type).toEqual({});
      expect(record.completed + record.cancelled).toBe(10);
      expect(record.cancelled).toBeGreaterThan(0);
      expect(record.total_output_tokens).toBe(24 * record.completed);
      // Prompts come out as long as asked, give or take how words split.
      const mean = record.total_input_tokens / record.completed;
      expect(mean).toBeGreaterThan(55);
      expect(mean).toBeLessThan(90);
      expect(record.cached_share).toBeGreaterThan(0.2);
      expect(record.median_ttft_ms).toBeGreaterThan(0);
      expect(record.bare_loop.ratio).toBeGreaterThan(0);
      expect(record.environment.cpu_count).toBeGreaterThan(0);
      if (process.platform === "linux") expect(record.resources.cpu_us_per_output_token).toBeGreaterThan(0);
      expect(readFileSync(join(folder, `both-${which}.html`), "utf8")).toContain("<svg ");
    }
    expect(read("both-engine.json").target.llama_build).toBeGreaterThan(0);
    expect(read("both-serve.json").target.base_url).toMatch(/^http:\/\/127\.0\.0\.1:\d+\/v1$/);
    expect(stdout).toContain("output_throughput");
    expect(stdout).not.toContain("Not the same load");
  });
});
