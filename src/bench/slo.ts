import type { Latency } from "./latency.js";

/** Most milliseconds that an answer may take to count as good. */
export type Slo = Partial<Record<"ttft" | "tpot" | "e2el", number>>;

const names = ["ttft", "tpot", "e2el"] as const;

/**
 * vLLM's notation: `ttft:500,tpot:50`.
 *
 * @throws {RangeError} an unknown name, or no positive number behind it.
 */
export function parseSlo(text: string): Slo {
  const slo: Slo = {};
  for (const part of text.split(/[,\s]+/).filter((each) => each !== "")) {
    const [name, value, ...rest] = part.split(":");
    const known = names.find((each) => each === name);
    const limit = Number(value);
    if (known === undefined || rest.length > 0 || !(limit > 0)) {
      throw new RangeError(`'${part}' is not NAME:MILLISECONDS with one of ${names.join(", ")}`);
    }
    slo[known] = limit;
  }
  return slo;
}

/** An answer of one token has no time per token, and none that is too long. */
export function isGood(latency: Latency, slo: Slo): boolean {
  return names.every((name) => {
    const limit = slo[name];
    return limit === undefined || (latency[name] ?? 0) <= limit;
  });
}
