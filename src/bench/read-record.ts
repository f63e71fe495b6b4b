import { readFile } from "node:fs/promises";
import type { AnyRecord } from "./compare.js";

const needed = ["duration", "output_throughput", "mean_ttft_ms"];

/** @throws {Error} naming the file: it cannot be read, or is no record of this bench or vLLM's. */
export async function readRecord(path: string): Promise<AnyRecord> {
  const text = await readFile(path, "utf8");
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    throw new Error(`${path}: not JSON`);
  }
  if (typeof value !== "object" || value === null) throw new Error(`${path}: not a record`);
  const record = value as AnyRecord;
  const missing = needed.find((name) => typeof record[name] !== "number");
  if (missing !== undefined) throw new Error(`${path}: not a record of a benchmark: '${missing}' is missing`);
  return record;
}
