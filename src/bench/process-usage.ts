import { readFile } from "node:fs/promises";
import type { Usage } from "./target.js";

/** Kernel ticks per second in /proc/PID/stat: USER_HZ, which Linux fixes at 100 for programs. */
const ticksPerSecond = 100;

/** CPU since its start and memory of a process, from /proc; all undefined where there is none, and for one that has ended. */
export async function processUsage(pid: number): Promise<Usage> {
  const [stat, schedule, status] = await Promise.all(
    [`/proc/${pid}/stat`, `/proc/${pid}/task/${pid}/schedstat`, `/proc/${pid}/status`].map((file) =>
      // No such file: not Linux, or the process has ended meanwhile. Then the record has no such numbers.
      readFile(file, "utf8").catch(() => undefined),
    ),
  );
  return { cpuMs: parseCpu(stat), jsCpuMs: parseSchedule(schedule), rss: parseMemory(status) };
}

/** proc(5): fields 14 and 15, user and system time. The name before them is in brackets and may hold anything. */
function parseCpu(stat: string | undefined): number | undefined {
  const fields = stat?.slice(stat.lastIndexOf(")") + 2).split(" ");
  if (fields === undefined) return undefined;
  return ((Number(fields[11]) + Number(fields[12])) * 1000) / ticksPerSecond;
}

/** Nanoseconds that the thread ran come first. In Node, the process's first thread runs the JavaScript. */
function parseSchedule(schedule: string | undefined): number | undefined {
  return schedule === undefined ? undefined : Number(schedule.split(" ")[0]) / 1e6;
}

function parseMemory(status: string | undefined): number | undefined {
  const kilobytes = /^VmRSS:\s+(\d+) kB$/m.exec(status ?? "")?.[1];
  return kilobytes === undefined ? undefined : Number(kilobytes) * 1024;
}
