import { stat } from "node:fs/promises";
import { type ConfigRemark, readHostConfig } from "../host/config-file.js";
import { ModelHost } from "../host/host.js";
import type { HostEvent } from "../host/runtime.js";
import type { HostConfig } from "../host/spec.js";
import type { HandlerOptions } from "../http/access.js";
import type { FetchHandler } from "../http/handler.js";
import type { EngineOptions } from "../load-options.js";
import { type LiveModel, liveModel } from "../page/live.js";
import type { Io } from "./io.js";

/** What a server serves. */
export interface Served {
  handler(access: HandlerOptions): FetchHandler;
  /** For the line that says so. */
  name: string;
  /** What the chat page shows of the batch. */
  look(): LiveModel[];
  /** Takes no more requests and resolves when those that are there are done. */
  drain(): Promise<void>;
  close(): Promise<void>;
}

/** Whether a path names a configuration and not a model: a folder, or a YAML or JSON file. */
export async function isConfiguration(path: string): Promise<boolean> {
  if (/\.(ya?ml|json)$/i.test(path)) return true;
  // What cannot be looked at is taken for a model: its load says what is wrong with the path.
  const info = await stat(path).catch(() => undefined);
  return info?.isDirectory() ?? false;
}

/** The models of a configuration, which is read again on SIGHUP. Flags hold for all of them. */
export async function openHost(io: Io, path: string, flags: EngineOptions): Promise<Served> {
  const read = async (): Promise<HostConfig> => {
    const { config, remarks } = await readHostConfig(path);
    for (const remark of remarks) io.stderr.write(`warning: ${remarkText(remark)}\n`);
    return { ...config, models: config.models.map((model) => ({ ...model, options: { ...model.options, ...flags } })) };
  };
  const host = await ModelHost.create(await read(), {
    load: (options) => io.load(options),
    estimate: (options) => io.estimate(options),
    onEvent: (event) => io.stderr.write(`${eventText(event)}\n`),
  });
  const release = io.onSignal(["SIGHUP"], () => {
    const reload = async () => {
      try {
        await host.reload(await read());
        io.stderr.write(`Read ${path} again: ${names(host)}.\n`);
      } catch (error) {
        io.stderr.write(`error: ${error instanceof Error ? error.message : String(error)}\nNothing has changed.\n`);
      }
    };
    void reload();
  });
  return {
    handler: (access) => host.handler(access),
    name: names(host),
    look: () => host.loaded().map(({ name, engine }) => liveModel(name, engine.info.parallel, engine.stats())),
    drain: () => host.drain(),
    close: () => {
      release();
      return host.close();
    },
  };
}

const names = (host: ModelHost) =>
  host
    .status()
    .map(({ name }) => name)
    .join(", ");

const remarkText = ({ file, line, key, reason }: ConfigRemark) => `${file}:${line}: ${key}: ${reason}`;

function eventText({ type, model, reason, ms }: HostEvent): string {
  const took = ms === undefined ? "" : ` in ${Math.round(ms)} ms`;
  return `${model}: ${type}${took}${reason === undefined ? "" : ` (${reason})`}`;
}
