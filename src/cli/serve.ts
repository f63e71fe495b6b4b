import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import type { HandlerOptions } from "../http/access.js";
import { toNodeListener } from "../http/node.js";
import type { EngineOptions } from "../load-options.js";
import { engineOptions, type OptionRow } from "../options.js";
import { liveModel } from "../page/live.js";
import { withPage } from "../page/page.js";
import { engineFlags, flagHelp, type Parsed, parseFlags } from "./args.js";
import { isConfiguration, openHost, type Served } from "./host.js";
import { exit, type Io, UsageError } from "./io.js";
import { loadWithProgress } from "./load.js";

const serveOptions = [
  {
    name: "port",
    type: "integer",
    minimum: 0,
    maximum: 65535,
    default: 8080,
    flag: "port",
    description: "TCP port; 0 takes a free one.",
  },
  {
    name: "host",
    type: "string",
    default: "127.0.0.1",
    flag: "host",
    description: "Address to listen on. One that others can reach needs --api-key, or --no-auth.",
  },
  {
    name: "apiKey",
    type: "string",
    default: "",
    flag: "api-key",
    description:
      "Keys that requests must bear, separated by commas; in TOKENLOOP_API_KEY nobody sees them in a list of processes.",
  },
  {
    name: "auth",
    type: "boolean",
    default: true,
    flag: "auth",
    description: "--no-auth serves others without a key: whoever reaches the address, can use the model.",
  },
  {
    name: "cors",
    type: "string",
    default: "",
    flag: "cors",
    description: "Origins of web pages that may use it, separated by commas; * for all.",
  },
  {
    name: "allowedHosts",
    type: "string",
    default: "",
    flag: "allowed-hosts",
    description:
      "Names by which it may be called, separated by commas; * for any. On a loopback address without keys: its own names, else any.",
  },
  {
    name: "drainMs",
    type: "integer",
    minimum: 0,
    maximum: 86400000,
    default: 30000,
    flag: "drain-ms",
    description: "Milliseconds that running answers have to end after SIGINT or SIGTERM.",
  },
  { name: "modelId", type: "string", default: "", flag: "model-id", description: "Id that answers carry." },
] as const satisfies readonly OptionRow[];

const rows: readonly OptionRow[] = [...serveOptions, ...engineOptions];

export const serveHelp = `Usage: tokenloop serve MODEL|CONFIG [options]

Serves OpenAI's chat completions at http://HOST:PORT/v1, and a chat page at http://HOST:PORT/.
MODEL is a GGUF file. CONFIG describes several models: a YAML or JSON file, or a folder of models with LocalAI's YAML
files; it is read again on SIGHUP. Engine options given as flags hold for all of them.

${flagHelp(rows)}
`;

/** Milliseconds that connections have to end by themselves once the model has gone. */
const graceMs = 2000;

/** Milliseconds that a client has for a request's head, and for all of it. Answers take as long as they take. */
const headersMs = 10_000;
const requestMs = 120_000;

/**
 * Runs until SIGINT or SIGTERM: then no more connections, running answers have --drain-ms to end, and the model goes. A
 * second signal ends the process at once.
 */
export async function serve(args: readonly string[], io: Io): Promise<number> {
  const parsed = parseFlags(args, rows, io.env);
  if (parsed.values.has("help")) {
    io.stdout.write(serveHelp);
    return exit.ok;
  }
  const [model, ...rest] = parsed.positionals;
  if (model === undefined || rest.length > 0) {
    throw new UsageError("tokenloop serve needs one MODEL (a GGUF file) or one CONFIG.");
  }
  const port = parsed.values.get("port") ?? 8080;
  const host = String(parsed.values.get("host") ?? "127.0.0.1");
  if (typeof port !== "number" || !Number.isInteger(port) || port < 0 || port > 65535) {
    throw new UsageError("--port must be an integer from 0 to 65535.");
  }
  const drainMs = parsed.values.get("drainMs") ?? 30_000;
  if (typeof drainMs !== "number" || !Number.isInteger(drainMs) || drainMs < 0 || drainMs > 86_400_000) {
    throw new UsageError("--drain-ms must be an integer from 0 to 86400000.");
  }
  const access = accessOf(parsed, host);
  const modelId = parsed.values.get("modelId");

  const served = await open(io, model, engineFlags(parsed), typeof modelId === "string" ? modelId : undefined);
  const server = createServer(
    { headersTimeout: headersMs, requestTimeout: requestMs, connectionsCheckingInterval: 1000 },
    // The page's files are for everybody; what it asks for, a key included, is the handler's to judge.
    toNodeListener(withPage(served.handler(access), served.look)),
  );
  const stopped = new Promise<void>((resolve) => {
    let asked = false;
    io.onSignal(["SIGINT", "SIGTERM"], (signal) => {
      // A second signal is for somebody who will not wait.
      if (asked) process.exit(signal === "SIGINT" ? 130 : 143);
      asked = true;
      resolve();
    });
  });
  try {
    await listen(server, port, host);
    io.stdout.write(`tokenloop serves ${served.name} at ${urlOf(server)}/v1 (chat page: ${urlOf(server)}/)\n`);
    await stopped;
    io.stderr.write("Stopping.\n");
    // No new connections from here on; those that are there get a 503 for new requests.
    server.close();
    server.closeIdleConnections();
    await within(served.drain(), drainMs);
  } finally {
    await served.close();
    await closeServer(server);
  }
  return exit.ok;
}

/** One model, or those of a configuration. */
async function open(io: Io, path: string, options: EngineOptions, modelId: string | undefined): Promise<Served> {
  if (await isConfiguration(path)) {
    if (modelId !== undefined) throw new UsageError("--model-id is for one MODEL: a CONFIG has a name for each.");
    return openHost(io, path, options);
  }
  const engine = await loadWithProgress(io, { model: path, ...options, ...(modelId === undefined ? {} : { modelId }) });
  return {
    handler: (access) => engine.handler(access),
    name: engine.info.id,
    look: () => [liveModel(engine.info.id, engine.info.parallel, engine.stats())],
    drain: () => engine.drain(),
    close: () => engine.close(),
  };
}

/** Resolves with the promise, or when the time is up. */
async function within(promise: Promise<void>, milliseconds: number): Promise<void> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<void>((resolve) => {
    timer = setTimeout(resolve, milliseconds);
  });
  await Promise.race([promise, late]);
  clearTimeout(timer);
}

/** @throws {UsageError} others could use it without a key, and nobody said that they may. */
function accessOf(parsed: Parsed, host: string): HandlerOptions {
  const listOf = (name: string) =>
    String(parsed.values.get(name) ?? "")
      .split(",")
      .map((each) => each.trim())
      .filter((each) => each !== "");
  const apiKeys = listOf("apiKey");
  const local = isLoopback(host);
  if (apiKeys.length === 0 && !local && parsed.values.get("auth") !== false) {
    throw new UsageError(`Others can reach ${host}: give --api-key, or --no-auth if they all may use the model.`);
  }
  const cors = listOf("cors");
  const names = listOf("allowedHosts");
  // A page of a name that is made to point to this machine would count as local, too.
  const hosts = names.length > 0 ? names : local && apiKeys.length === 0 ? [...loopbackNames, hostName(host)] : ["*"];
  return {
    apiKeys,
    cors: cors.includes("*") ? "*" : cors,
    ...(hosts.includes("*") ? {} : { hosts }),
  };
}

const loopbackNames = ["localhost", "127.0.0.1", "[::1]"];

function isLoopback(host: string): boolean {
  return host === "localhost" || host === "::1" || /^127(\.\d{1,3}){3}$/.test(host);
}

/** As a URL has it. */
function hostName(host: string): string {
  return host.includes(":") ? `[${host}]` : host;
}

function listen(server: Server, port: number, host: string): Promise<void> {
  return new Promise((resolve, reject) => {
    server.once("error", reject);
    server.listen(port, host, () => {
      server.off("error", reject);
      resolve();
    });
  });
}

function urlOf(server: Server): string {
  const { address, port, family } = server.address() as AddressInfo;
  return `http://${family === "IPv6" ? `[${address}]` : address}:${port}`;
}

function closeServer(server: Server): Promise<void> {
  return new Promise((resolve) => {
    const force = setTimeout(() => server.closeAllConnections(), graceMs);
    // It calls back, with an error, for a server that is closing already, too: only then once that is done.
    server.close(() => {
      clearTimeout(force);
      resolve();
    });
    server.closeIdleConnections();
  });
}
