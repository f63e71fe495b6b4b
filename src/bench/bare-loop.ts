import { execFile } from "node:child_process";
import { existsSync } from "node:fs";
import { join } from "node:path";
import { promisify } from "node:util";
import { findPackageRoot } from "../package-root.js";
import type { Driven } from "./drive.js";
import { tokensOf } from "./latency.js";
import { sum } from "./statistics.js";

/** The shape that both sides run: so many streams at once, each with this prompt and this answer. */
export interface Shape {
  streams: number;
  promptTokens: number;
  outputTokens: number;
}

/** Fewest tokens that a speed is taken from. */
export const leastTokens = 32;

/** llama.cpp's loop alone (binding/bench/loop_bench.cc); only a clone that was built for its tests has it. */
export function bareLoopProgram(): string | undefined {
  const root = findPackageRoot()?.directory;
  const path = root === undefined ? undefined : join(root, "build", "test", "tokenloop_loop_bench");
  return path !== undefined && existsSync(path) ? path : undefined;
}

/** Tokens per second of the bare loop while all streams decode. @param threads 0: one per physical core */
export async function runBareLoop(
  program: string,
  model: string,
  shape: Shape,
  threads: number,
  signal: AbortSignal,
): Promise<number> {
  const counts = [shape.streams, shape.promptTokens, shape.outputTokens, ...(threads > 0 ? [threads] : [])];
  const { stdout } = await promisify(execFile)(program, [model, ...counts.map(String)], { signal });
  const { tokens_per_second: speed } = JSON.parse(stdout) as { tokens_per_second?: unknown };
  if (typeof speed !== "number") throw new Error(`${program} printed no tokens_per_second.`);
  return speed;
}

/**
 * Tokens per second while all streams of a run decode: from the moment when the last has its first text to the end of the
 * first that ends. Undefined when there are too few tokens in that time, or a request failed.
 */
export function decodeSpeed({ answers }: Driven): number | undefined {
  if (answers.length === 0 || answers.some(({ ending }) => ending.kind !== "completed")) return undefined;
  const begin = answers.reduce((latest, { pieces }) => Math.max(latest, pieces[0] ?? Infinity), 0);
  const end = answers.reduce((earliest, { pieces }) => Math.min(earliest, pieces.at(-1) ?? 0), Infinity);
  const tokens = sum(
    answers.map((answer) => {
      const inside = answer.pieces.filter((at) => at > begin && at <= end).length;
      return (inside * tokensOf(answer)) / Math.max(1, answer.pieces.length);
    }),
  );
  return tokens >= leastTokens ? (tokens * 1000) / (end - begin) : undefined;
}
