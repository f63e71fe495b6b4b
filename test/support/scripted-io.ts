import { PassThrough, Writable } from "node:stream";
import type { Io } from "../../src/cli/io.js";
import { loadEngine } from "../../src/engine.js";
import { estimateMemory } from "../../src/estimate.js";
import type { LoadOptions } from "../../src/load-options.js";
import { ScriptedNative, type ScriptedOptions } from "../../src/testing/scripted-native.js";

/** An Io that records, over the scripted addon. */
export class ScriptedIo implements Io {
  readonly stdin = new PassThrough();
  readonly stdout = new Recorder();
  readonly stderr = new Recorder();
  env: Record<string, string> = {};
  readonly native: ScriptedNative;
  loadOptions: LoadOptions | undefined;
  #handlers: [NodeJS.Signals, (signal: NodeJS.Signals) => void][] = [];

  constructor(options: ScriptedOptions = {}) {
    this.native = new ScriptedNative(options);
  }

  load(options: LoadOptions) {
    this.loadOptions = options;
    return loadEngine(() => this.native, options);
  }

  estimate(options: LoadOptions) {
    return estimateMemory(() => this.native, options);
  }

  onSignal(signals: readonly NodeJS.Signals[], handler: (signal: NodeJS.Signals) => void): () => void {
    const added = signals.map((signal): [NodeJS.Signals, typeof handler] => [signal, handler]);
    this.#handlers.push(...added);
    return () => {
      this.#handlers = this.#handlers.filter((entry) => !added.includes(entry));
    };
  }

  signal(name: NodeJS.Signals): void {
    for (const [signal, handler] of [...this.#handlers]) if (signal === name) handler(name);
  }
}

export class Recorder extends Writable {
  isTTY = false;
  text = "";

  override _write(chunk: Buffer, _encoding: BufferEncoding, done: () => void): void {
    this.text += chunk.toString();
    done();
  }
}
