import { spawn } from "node:child_process";
import type { EngineOptions } from "../load-options.js";
import { engineOptions, type OptionRow } from "../options.js";

/** A `tokenloop serve` of our own. */
export interface ServeChild {
  readonly baseUrl: URL;
  readonly pid: number;
  stop(): Promise<void>;
}

/**
 * Starts the program that runs now, as a server on a free port of this machine.
 *
 * @throws {Error} with what it printed, when it ends before it serves.
 */
export async function startServer(model: string, options: EngineOptions, signal: AbortSignal): Promise<ServeChild> {
  const program = process.argv[1];
  if (program === undefined) throw new Error("--serve needs the command line of tokenloop.");
  const flags = engineOptions.flatMap((row: OptionRow & { name: keyof EngineOptions }) =>
    flagOf(row, options[row.name]),
  );
  const child = spawn(process.execPath, [program, "serve", model, "--port", "0", ...flags], {
    stdio: ["ignore", "pipe", "pipe"],
    // Ctrl-C at the terminal is ours to handle: the server ends when the run has.
    detached: true,
  });
  const closed = new Promise<void>((resolve) => child.once("close", () => resolve()));
  const stop = async () => {
    child.kill("SIGTERM");
    await closed;
  };
  let printed = "";
  try {
    const baseUrl = await new Promise<URL>((resolve, reject) => {
      const onData = (data: Buffer) => {
        printed += data.toString();
        const url = /https?:\/\/\S+\/v1(?=\s)/.exec(printed)?.[0];
        if (url !== undefined) resolve(new URL(url));
      };
      child.stdout.on("data", onData);
      child.stderr.on("data", onData);
      child.once("error", reject);
      child.once("close", () => reject(new Error(`tokenloop serve did not start: ${printed.trim()}`)));
      signal.addEventListener("abort", () => reject(signal.reason), { once: true });
    });
    return { baseUrl, pid: child.pid ?? 0, stop };
  } catch (error) {
    if (child.exitCode === null && child.pid !== undefined) await stop();
    throw error;
  }
}

function flagOf({ flag, type }: OptionRow, value: unknown): string[] {
  if (flag === undefined || value === undefined) return [];
  if (type === "boolean") return [value === true ? `--${flag}` : `--no-${flag}`];
  return [`--${flag}=${String(value)}`];
}
