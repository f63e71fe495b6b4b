import type { Engine } from "../engine.js";
import type { HandlerEngine } from "../http/handler.js";
import { isObject } from "../openai/plain.js";
import type { ModelSlot } from "./slot.js";
import { sumStats } from "./stats.js";

/** What a handler needs of a host. */
export interface HostParts {
  slots(): readonly ModelSlot[];
  loaded(): Engine[];
  named(id: string): ModelSlot | undefined;
  create(body: unknown, signal: AbortSignal): ReturnType<HandlerEngine["chat"]>;
  /** Has the model of this name, or the default one, loaded for as long as it is used. */
  using<Result>(
    model: unknown,
    signal: AbortSignal | undefined,
    use: (engine: Engine) => Promise<Result>,
  ): Promise<Result>;
  state(): ReturnType<HandlerEngine["state"]>;
}

/** A host as one engine: what names no model is the default model's, and statistics are those of all together. */
export function handledBy(host: HostParts): HandlerEngine {
  const entry = ({ spec: { name }, created }: ModelSlot) => ({ id: name, created });
  const modelOf = (body: unknown) => (isObject(body) ? body.model : undefined);
  return {
    models: () => host.slots().map(entry),
    findModel: (id) => {
      const slot = host.named(id);
      return slot && entry(slot);
    },
    chat: (body, signal) => host.create(body, signal),
    single: {
      complete: (body, signal) =>
        host.using(modelOf(body), signal, (engine) => engine.handled().single.complete(body, signal)),
      tokenize: (text, special, parse) =>
        host.using(undefined, undefined, (engine) => engine.handled().single.tokenize(text, special, parse)),
      pieces: (tokens) => host.using(undefined, undefined, (engine) => engine.handled().single.pieces(tokens)),
      applyTemplate: (body) =>
        host.using(body.model, undefined, (engine) => engine.handled().single.applyTemplate(body)),
      stats: () => sumStats(host.loaded()),
    },
    state: () => host.state(),
  };
}
