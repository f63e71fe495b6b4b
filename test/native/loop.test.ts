import { execFile } from "node:child_process";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { describe, expect, it } from "vitest";

/** binding/test_loop, built beside the addon; the builds with --asan and --tsan have their own. */
const program =
  process.env.TOKENLOOP_LOOP_TEST ?? fileURLToPath(new URL("../../build/test/tokenloop_loop_test", import.meta.url));
/** TOKENLOOP_LOOP_SEEDS=5000 takes about a minute. */
const seeds = Number(process.env.TOKENLOOP_LOOP_SEEDS ?? 600);

interface Report {
  seeds: number;
  answers: number;
  wrong: string[];
  [count: string]: number | string[];
}

describe("the token loop on a scripted model", () => {
  it("gives each request the text that it gets alone, whatever runs beside it", { timeout: 600_000 }, async () => {
    const { stdout } = await promisify(execFile)(program, ["1", String(seeds)]).catch((error) => {
      // With exit code 1 it says on its last line what was wrong; anything else is a crash.
      if (error.code === 1 && String(error.stdout).startsWith("{")) return error as { stdout: string };
      throw error;
    });
    const report = JSON.parse(stdout) as Report;
    console.log(`loop: ${stdout.trim()}`);
    expect(report.wrong).toEqual([]);
    expect(report.seeds).toBe(seeds);
    // Every means of the loop was in use, or the mixes would show nothing.
    const used = [
      "cached_tokens",
      "preemptions",
      "parkings",
      "pauses",
      "evictions",
      "accepted",
      "cancelled",
      "timed_out",
    ];
    for (const count of used) expect(report[count], count).toBeGreaterThan(seeds / 100);
  });
});
