import { spawn } from "node:child_process";
import { fileURLToPath } from "node:url";
import { describe, expect, it } from "vitest";

const child = fileURLToPath(new URL("child.mjs", import.meta.url));
const cli = fileURLToPath(new URL("../../dist/cli/main.js", import.meta.url));
const model = fileURLToPath(new URL("../models/nano/nano.gguf", import.meta.url));
const rounds = 20;

interface End {
  code: number | null;
  signal: NodeJS.Signals | null;
  stdout: string;
  stderr: string;
}

function run(
  args: string[],
  onStdout: (text: string, kill: (signal: NodeJS.Signals) => void) => void = () => undefined,
): Promise<End> {
  return new Promise((resolve, reject) => {
    const process_ = spawn(process.execPath, args, { stdio: ["ignore", "pipe", "pipe"] });
    let stdout = "";
    let stderr = "";
    process_.stdout.on("data", (data) => {
      stdout += data;
      onStdout(stdout, (signal) => process_.kill(signal));
    });
    process_.stderr.on("data", (data) => {
      stderr += data;
    });
    process_.on("error", reject);
    process_.on("close", (code, signal) => resolve({ code, signal, stdout, stderr }));
  });
}

/** `stderr` of each run, and only that: nothing else may be said on the way out. */
async function repeat(
  times: number,
  body: () => Promise<End>,
  code: number,
  stderr: RegExp,
  stdout = /./,
): Promise<void> {
  for (let round = 0; round < times; round++) {
    const end = await body();
    expect({ round, code: end.code, signal: end.signal }, end.stderr).toEqual({ round, code, signal: null });
    expect(end.stderr).toMatch(stderr);
    expect(end.stdout).toMatch(stdout);
  }
}

describe("a process that ends in the middle of a generation does not crash", () => {
  const quiet = /^$/;
  const scenarios: [name: string, code: number, times: number, stderr: RegExp][] = [
    ["exit", 7, rounds, quiet],
    ["exit-in-consumer", 7, rounds, quiet],
    ["exit-while-loading", 7, rounds, quiet],
    ["exit-while-closing", 7, rounds, quiet],
    ["throw", 1, rounds, /Error: from the consumer/],
    ["throw-in-timer", 1, rounds, /Error: elsewhere/],
    ["worker", 7, rounds, quiet],
    ["worker-and-exit", 7, rounds, quiet],
    ["worker-while-loading", 7, rounds, quiet],
    ["worker-while-closing", 7, rounds, quiet],
    ["exit-while-compiling", 7, rounds, quiet],
    ["worker-while-compiling", 7, rounds, quiet],
    ["idle-after-compiling", 7, 3, quiet],
    ["idle", 7, 3, quiet],
    ["unread", 7, 3, quiet],
  ];
  for (const [name, code, times, stderr] of scenarios) {
    it(`${name}, ${times} times`, () => repeat(times, () => run([child, name]), code, stderr, /generating/), 180_000);
  }

  // Windows has no SIGTERM: kill() ends the process there and then.
  it.skipIf(process.platform === "win32")(
    `SIGTERM while serving, ${rounds} times`,
    () =>
      repeat(
        rounds,
        () => {
          let asked = false;
          return run([cli, "serve", model, "--port", "0", "--threads", "1", "--drain-ms", "0"], (stdout, kill) => {
            const url = /http:\/\/127\.0\.0\.1:\d+/.exec(stdout)?.[0];
            if (url === undefined || asked) return;
            asked = true;
            const body = JSON.stringify({
              messages: [{ role: "user", content: "Count to 40." }],
              logit_bias: { 1502: -100 },
              stream: true,
            });
            fetch(`${url}/v1/chat/completions`, {
              method: "POST",
              headers: { "content-type": "application/json" },
              body,
            })
              .then(async (response) => {
                const reader = response.body?.getReader();
                await reader?.read();
                kill("SIGTERM");
                for (;;) if ((await reader?.read())?.done) return;
              })
              // The connection may break off: the server is going.
              .catch((error: unknown) => expect(error).toBeInstanceOf(TypeError));
          });
        },
        0,
        /^(Stopping\.\n)?$/,
      ),
    180_000,
  );
});
