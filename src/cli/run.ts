import { AbortError, BadRequestError } from "../errors.js";
import { findPackageRoot } from "../package-root.js";
import { didYouMean } from "../suggest.js";
import { bench } from "./bench.js";
import { build } from "./build.js";
import { chat } from "./chat.js";
import { inspect } from "./inspect.js";
import { exit, type Io, UsageError } from "./io.js";
import { serve } from "./serve.js";

type Command = (args: readonly string[], io: Io) => Promise<number>;

const commands: ReadonlyMap<string, Command> = new Map([
  ["serve", serve],
  ["chat", chat],
  ["inspect", inspect],
  ["bench", bench],
  ["build", build],
]);

const help = `Usage: tokenloop COMMAND [options]

  serve MODEL   serves OpenAI's chat completions over HTTP, of one model or those of a configuration
  chat [MODEL]  talks with a model
  inspect MODEL what is in a GGUF file, and what memory it takes
  bench TARGET  measures a server or a model under load
  build         compiles the native addon on this machine

  --help        help, also for each command
  --version     version

A flag holds before the environment (TOKENLOOP_CONTEXT_SIZE for --context-size), and that before a configuration file.
`;

/** Runs one command. The result is the exit status: 0, 1 for a failure, 2 for a wrong command line, 130 for Ctrl-C. */
export async function runCli(args: readonly string[], io: Io): Promise<number> {
  const [name, ...rest] = args;
  if (name === "--help" || name === "-h" || name === "help") {
    io.stdout.write(help);
    return exit.ok;
  }
  if (name === "--version" || name === "-v") {
    io.stdout.write(`${findPackageRoot()?.version ?? "unknown"}\n`);
    return exit.ok;
  }
  try {
    if (name === undefined) throw new UsageError("A command is missing.");
    const command = commands.get(name);
    if (command === undefined) throw new UsageError(`Unknown command '${name}'.${didYouMean(name, commands.keys())}`);
    return await command(rest, io);
  } catch (error) {
    return report(error, io);
  }
}

function report(error: unknown, io: Io): number {
  if (error instanceof AbortError) return exit.interrupted;
  const message = error instanceof Error ? error.message : String(error);
  if (error instanceof UsageError) {
    io.stderr.write(`error: ${message}\nSee tokenloop --help.\n`);
    return exit.usage;
  }
  io.stderr.write(`error: ${message}\n`);
  // A flag out of range is found by the checks of Engine.load.
  return error instanceof BadRequestError && error.code === "invalid_option" ? exit.usage : exit.failure;
}
