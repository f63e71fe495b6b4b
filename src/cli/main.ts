#!/usr/bin/env node
import { Engine } from "../engine.js";
import type { Io } from "./io.js";
import { runCli } from "./run.js";

const io: Io = {
  stdin: process.stdin,
  stdout: process.stdout,
  stderr: process.stderr,
  env: process.env,
  load: (options) => Engine.load(options),
  estimate: (options) => Engine.estimate(options),
  onSignal(signals, handler) {
    for (const signal of signals) process.on(signal, handler);
    return () => {
      for (const signal of signals) process.off(signal, handler);
    };
  },
};

// A reader that has gone (`tokenloop chat | head -1`) is the end, not an error.
process.stdout.on("error", (error: NodeJS.ErrnoException) => process.exit(error.code === "EPIPE" ? 0 : 1));

runCli(process.argv.slice(2), io).then(
  (status) => {
    process.exitCode = status;
    // A terminal's standard input would keep the process alive.
    process.stdin.unref?.();
  },
  (error: unknown) => {
    process.stderr.write(`${String(error)}\n`);
    process.exitCode = 1;
  },
);
