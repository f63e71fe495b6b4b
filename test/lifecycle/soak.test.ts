import { execFile } from "node:child_process";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { expect, it } from "vitest";

/** A few seconds of what test/bench/soak.mjs does for ten minutes, or for as long as TOKENLOOP_SOAK_MINUTES says. */
const minutes = process.env.TOKENLOOP_SOAK_MINUTES ?? "0.12";

it("leaves nothing behind after a mixed load", { timeout: Number(minutes) * 60_000 + 60_000 }, async () => {
  const script = fileURLToPath(new URL("../bench/soak.mjs", import.meta.url));
  const { stdout } = await promisify(execFile)(process.execPath, [script, "--minutes", minutes]).catch((error) => {
    // Exit code 1 with a report: something is left or has grown, and the report says what.
    if (error.code === 1 && String(error.stdout).includes('"faults"')) return error as { stdout: string };
    throw error;
  });
  const report = JSON.parse(stdout.trim().split("\n").at(-1) ?? "") as Record<string, unknown>;
  expect(report.faults).toEqual([]);
  expect(report.errors).toBe(0);
  expect(report.answers).toBeGreaterThan(20);
  expect(report.cancelled).toBeGreaterThan(0);
});
