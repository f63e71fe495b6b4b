import { existsSync } from "node:fs";
import { join } from "node:path";
import { createInterface, type Interface } from "node:readline";
import type { Engine } from "../engine.js";
import { AbortError } from "../errors.js";
import type { ChatCompletionMessageParam } from "../openai/types.js";
import { engineOptions, type OptionRow, samplingOptions } from "../options.js";
import { findPackageRoot } from "../package-root.js";
import { engineFlags, flagHelp, parseFlags, samplingFlags } from "./args.js";
import { exit, type Io, UsageError } from "./io.js";
import { loadWithProgress } from "./load.js";

const chatOptions = [
  { name: "system", type: "string", default: "", flag: "system", description: "System message." },
  {
    name: "max_tokens",
    type: "integer",
    minimum: 1,
    default: "",
    flag: "max-tokens",
    description: "Most tokens in one answer; default: until the context is full.",
  },
] as const satisfies readonly OptionRow[];

const rows: readonly OptionRow[] = [...chatOptions, ...samplingOptions, ...engineOptions];

export const chatHelp = `Usage: tokenloop chat [MODEL] [options]

Talks with a model. Ctrl-C ends the running answer, a second one leaves; so does Ctrl-D. Without a terminal on standard
input each line is answered in turn. MODEL may be left out in a clone of tokenloop, which brings a small one.

${flagHelp(rows)}
`;

export async function chat(args: readonly string[], io: Io): Promise<number> {
  const parsed = parseFlags(args, rows, io.env);
  if (parsed.values.has("help")) {
    io.stdout.write(chatHelp);
    return exit.ok;
  }
  const [given, ...rest] = parsed.positionals;
  const model = given ?? bundledModel();
  if (model === undefined || rest.length > 0) throw new UsageError("tokenloop chat needs one MODEL (a GGUF file).");

  const engine = await loadWithProgress(io, { model, ...engineFlags(parsed) });
  try {
    const system = parsed.values.get("system");
    const maxTokens = parsed.values.get("max_tokens");
    const talk = new Talk(engine, io, {
      ...samplingFlags(parsed),
      ...(typeof maxTokens === "number" ? { max_tokens: maxTokens } : {}),
    });
    if (typeof system === "string" && system !== "") talk.messages.push({ role: "system", content: system });
    return await converse(talk, engine, io);
  } finally {
    await engine.close();
  }
}

/** The model that a clone brings along. */
function bundledModel(): string | undefined {
  const root = findPackageRoot()?.directory;
  const path = root === undefined ? undefined : join(root, "test", "models", "nano", "nano.gguf");
  return path !== undefined && existsSync(path) ? path : undefined;
}

/** Reads lines until the input ends or somebody leaves. */
async function converse(talk: Talk, engine: Engine, io: Io): Promise<number> {
  const interactive = io.stdin.isTTY === true;
  const lines = createInterface({
    input: io.stdin,
    terminal: interactive,
    ...(interactive ? { output: io.stdout } : {}),
  });
  let status: number = exit.ok;
  const interrupt = () => {
    if (talk.cancel()) return;
    status = exit.interrupted;
    lines.close();
  };
  // readline takes Ctrl-C from the terminal; without one it comes as a signal.
  lines.on("SIGINT", interrupt);
  const release = io.onSignal(["SIGINT"], interrupt);
  const releaseTerm = io.onSignal(["SIGTERM"], () => {
    talk.cancel();
    status = 143;
    lines.close();
  });
  try {
    if (interactive) io.stdout.write(`${engine.info.id}. Ctrl-C ends an answer, or leaves.\n`);
    for await (const line of prompted(lines, interactive)) {
      if (line.trim() === "") continue;
      const answered = await talk.say(line);
      if (!answered && !interactive) status = exit.failure;
      if (status >= exit.interrupted) break;
    }
  } finally {
    release();
    releaseTerm();
    lines.close();
  }
  return status;
}

async function* prompted(lines: Interface, interactive: boolean): AsyncGenerator<string> {
  lines.setPrompt("> ");
  if (interactive) lines.prompt();
  for await (const line of lines) {
    yield line;
    if (interactive) lines.prompt();
  }
}

/** One conversation. */
class Talk {
  readonly messages: ChatCompletionMessageParam[] = [];
  readonly #engine: Engine;
  readonly #io: Io;
  readonly #options: Record<string, number>;
  #running: AbortController | undefined;

  constructor(engine: Engine, io: Io, options: Record<string, number>) {
    this.#engine = engine;
    this.#io = io;
    this.#options = options;
  }

  /** Ends the running answer; false when there is none, or it is being ended already. */
  cancel(): boolean {
    if (this.#running === undefined || this.#running.signal.aborted) return false;
    this.#running.abort();
    return true;
  }

  /** Streams the answer to the output. False when there was an error, which is shown. */
  async say(text: string): Promise<boolean> {
    this.messages.push({ role: "user", content: text });
    const controller = new AbortController();
    this.#running = controller;
    let answer = "";
    try {
      const stream = await this.#engine.chat.completions.create(
        { ...this.#options, messages: this.messages, stream: true },
        { signal: controller.signal },
      );
      for await (const chunk of stream) {
        const delta = chunk.choices[0]?.delta.content ?? "";
        answer += delta;
        this.#io.stdout.write(delta);
      }
      this.#io.stdout.write("\n");
      this.messages.push({ role: "assistant", content: answer });
      return true;
    } catch (error) {
      if (error instanceof AbortError) {
        this.#io.stdout.write(" [cancelled]\n");
        this.messages.push({ role: "assistant", content: answer });
        return true;
      }
      // A turn without an answer must not stay in the conversation.
      this.messages.pop();
      this.#io.stderr.write(
        `${answer === "" ? "" : "\n"}error: ${error instanceof Error ? error.message : String(error)}\n`,
      );
      return false;
    } finally {
      this.#running = undefined;
    }
  }
}
