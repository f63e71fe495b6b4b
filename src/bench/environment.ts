import { arch, cpus, loadavg, platform, release, totalmem } from "node:os";

/** The machine and the program that sends the load, as they are now. */
export function environment(): Record<string, unknown> & { cpu_count: number; load_average: number } {
  const processors = cpus();
  return {
    node: process.version,
    platform: `${platform()} ${release()} ${arch()}`,
    cpu: processors[0]?.model ?? "unknown",
    cpu_count: processors.length,
    memory_bytes: totalmem(),
    /** Of the last minute, before the run. */
    load_average: loadavg()[0] ?? 0,
  };
}

/** YYYYMMDD-HHMMSS, local time: vLLM's. */
export function dateText(date: Date): string {
  const two = (value: number) => String(value).padStart(2, "0");
  const day = `${date.getFullYear()}${two(date.getMonth() + 1)}${two(date.getDate())}`;
  return `${day}-${two(date.getHours())}${two(date.getMinutes())}${two(date.getSeconds())}`;
}
