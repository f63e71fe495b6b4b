import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { toNodeListener } from "../http/node.js";
import { engineOptions, type OptionRow } from "../options.js";
import { engineFlags, flagHelp, parseFlags } from "./args.js";
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
    description: "Address to listen on. There is no authentication: think before you open it.",
  },
  { name: "modelId", type: "string", default: "", flag: "model-id", description: "Id that answers carry." },
] as const satisfies readonly OptionRow[];

const rows: readonly OptionRow[] = [...serveOptions, ...engineOptions];

export const serveHelp = `Usage: tokenloop serve MODEL [options]

Serves OpenAI's chat completions at http://HOST:PORT/v1.

${flagHelp(rows)}
`;

/** Milliseconds that connections have to end by themselves after a signal. */
const graceMs = 2000;

/** Runs until SIGINT or SIGTERM: then no more connections, running answers end, and the model goes. */
export async function serve(args: readonly string[], io: Io): Promise<number> {
  const parsed = parseFlags(args, rows);
  if (parsed.values.has("help")) {
    io.stdout.write(serveHelp);
    return exit.ok;
  }
  const [model, ...rest] = parsed.positionals;
  if (model === undefined || rest.length > 0) throw new UsageError("tokenloop serve needs one MODEL (a GGUF file).");
  const port = parsed.values.get("port") ?? 8080;
  const host = String(parsed.values.get("host") ?? "127.0.0.1");
  if (typeof port !== "number" || !Number.isInteger(port) || port < 0 || port > 65535) {
    throw new UsageError("--port must be an integer from 0 to 65535.");
  }
  const modelId = parsed.values.get("modelId");

  const engine = await loadWithProgress(io, {
    model,
    ...engineFlags(parsed),
    ...(typeof modelId === "string" ? { modelId } : {}),
  });
  const server = createServer(toNodeListener(engine.fetch));
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
    io.stdout.write(`tokenloop serves ${engine.info.id} at ${urlOf(server)}/v1\n`);
    await stopped;
    io.stderr.write("Stopping.\n");
  } finally {
    const closed = closeServer(server);
    await engine.close();
    await closed;
  }
  return exit.ok;
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
  if (!server.listening) return Promise.resolve();
  return new Promise((resolve) => {
    const force = setTimeout(() => server.closeAllConnections(), graceMs);
    server.close(() => {
      clearTimeout(force);
      resolve();
    });
    server.closeIdleConnections();
  });
}
