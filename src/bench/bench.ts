import { AnswerReader } from "./answer.js";
import { decodeSpeed, type Shape } from "./bare-loop.js";
import { type Driven, drive } from "./drive.js";
import { dateText, environment } from "./environment.js";
import { lengthsText, longest } from "./lengths.js";
import { Monitor } from "./monitor.js";
import { type Load, type Planned, planLoad } from "./plan.js";
import { promptText, type TokenRate, tokenRate } from "./prompts.js";
import { type BareLoop, type BenchRecord, measure } from "./record.js";
import { remarksOn } from "./remarks.js";
import type { Slo } from "./slo.js";
import { median, sum } from "./statistics.js";
import { RequestFailure, type Target } from "./target.js";

export interface BenchOptions {
  target: Target;
  load: Load;
  /** Requests before the load, which are not counted. */
  warmUp: number;
  slo: Slo;
  /** Fields of every request. */
  fields: Readonly<Record<string, unknown>>;
  /** For the record: what `fields` comes from. */
  described: Readonly<Record<string, unknown>>;
  timeoutMs: number;
  label: string;
  version: string;
  /** The bare loop's speed on a shape; or why nobody can know it. */
  bareLoop: { run(shape: Shape): Promise<number>; rounds: number } | { reason: string };
  signal: AbortSignal;
  onPhase(phase: "warm-up" | "load" | "bare loop", fraction: number): void;
}

export interface BenchResult {
  record: BenchRecord;
  driven: Driven;
}

/**
 * Runs a load on a target. Its order: two requests that measure how words become tokens, the warm-up, the load, and the
 * comparison with the bare loop.
 *
 * @throws {RequestFailure} the target refuses the first request, or the warm-up has no answer: there is nothing to measure.
 */
export async function runBench(options: BenchOptions): Promise<BenchResult> {
  const { target, load, fields, signal, timeoutMs, onPhase } = options;
  const started = new Date();
  const machine = environment();
  const { rate, exact } = await measureRate(target, load.seed, fields, signal);
  const send = (plan: readonly Planned[], load_: Load, phase: Parameters<typeof onPhase>[0], fields_ = fields) => {
    let done = 0;
    onPhase(phase, 0);
    const onAnswer = () => onPhase(phase, ++done / plan.length);
    return drive(plan, { target, load: load_, rate, fields: fields_, timeoutMs, signal, onAnswer });
  };

  if (options.warmUp > 0) {
    const plan = planLoad({ ...load, requests: options.warmUp, rate: Infinity, cancelShare: 0, seed: load.seed + 1 });
    // The load's own seed makes the text: the common prefix is warm, as it is in a server that has run for a while.
    const { answers } = await send(plan.map(otherWords), load, "warm-up");
    const failure = answers.find(({ ending }) => ending.kind === "failed")?.ending;
    if (failure?.kind === "failed" && answers.every(({ ending }) => ending.kind === "failed")) {
      throw new RequestFailure(failure.type, `The warm-up failed (${failure.type}): ${failure.message}`);
    }
  }

  const monitor = new Monitor(target);
  await monitor.start();
  const driven = await send(planLoad(load), load, "load");
  const measured = measure(driven, options.slo);
  const resources = await monitor.stop(measured.total_output_tokens);
  const bare_loop = await compareWithBareLoop(options, (plan, load_) => {
    const { response_format: _, tools: __, ...rest } = fields;
    return send(plan, load_, "bare loop", { ...rest, temperature: 0 });
  });

  const remarks = remarksOn(
    driven,
    { ...measured, resources, bare_loop },
    {
      rate: load.rate,
      loadAverage: machine.load_average,
      cores: machine.cpu_count,
      kind: target.kind,
    },
  );
  if (!exact) remarks.push("The target counts no tokens: the lengths of prompts are numbers of words.");
  const { requests, ...numbers } = measured;
  const record: BenchRecord = {
    date: dateText(started),
    endpoint_type: target.kind === "engine" ? "tokenloop" : "openai-chat",
    label: options.label,
    model_id: target.model,
    num_prompts: load.requests,
    request_rate: load.rate === Infinity ? "inf" : load.rate,
    burstiness: 1,
    max_concurrency: load.concurrency,
    ...(load.rampFrom === undefined
      ? {}
      : { ramp_up_strategy: "linear", ramp_up_start_rps: load.rampFrom, ramp_up_end_rps: load.rate }),
    tokenloop_version: options.version,
    ...numbers,
    resources,
    bare_loop,
    load: loadFields(options, rate),
    warm_up: { requests: options.warmUp, common_prefix_warm: options.warmUp > 0 && load.prefixShare > 0 },
    target: { ...target.about, system_fingerprint: driven.fingerprint ?? null },
    environment: machine,
    remarks,
    requests,
  };
  return { record, driven };
}

/** Texts that no request of the load has. */
const otherWords = (planned: Planned): Planned => ({ ...planned, index: 1_000_000_000 + planned.index });

function loadFields({ load, described, timeoutMs, fields }: BenchOptions, rate: TokenRate): Record<string, unknown> {
  return {
    seed: load.seed,
    prompt_tokens: lengthsText(load.promptTokens),
    output_tokens: lengthsText(load.outputTokens),
    prefix_share: load.prefixShare,
    cancel_share: load.cancelShare,
    timeout_ms: timeoutMs,
    ...described,
    request_fields: fields,
    tokens_per_word: rate.perWord,
    template_tokens: rate.overhead,
  };
}

/** Words of the longer of the two prompts that show how words become tokens. */
const probeWords = 65;

async function measureRate(target: Target, seed: number, fields: BenchOptions["fields"], signal: AbortSignal) {
  const tokens = async (words: number) => {
    const reader = new AnswerReader();
    // A cache that knew the text would answer the same, but the load must not find it there.
    const content = promptText(words, 0, seed, 2_000_000_000 + words);
    const body = { messages: [{ role: "user", content }], max_tokens: 1, stream_options: { include_usage: true } };
    await target.send({ ...body, ...fields, max_tokens: 1 }, signal, (chunk, at) => reader.read(chunk, at));
    return reader.promptTokens;
  };
  const one = await tokens(1);
  const more = await tokens(probeWords);
  const exact = one !== undefined && more !== undefined && more > one;
  return { rate: exact ? tokenRate(one, more, probeWords - 1) : { overhead: 0, perWord: 1 }, exact };
}

async function compareWithBareLoop(
  { load, bareLoop, signal }: BenchOptions,
  send: (plan: readonly Planned[], load: Load) => Promise<Driven>,
): Promise<BareLoop> {
  if ("reason" in bareLoop) return { ratio: null, reason: bareLoop.reason };
  const shape: Shape = {
    streams: load.concurrency,
    promptTokens: longest(load.promptTokens),
    outputTokens: longest(load.outputTokens),
  };
  const same: Load = {
    ...load,
    requests: shape.streams,
    rate: Infinity,
    promptTokens: { kind: "fixed", value: shape.promptTokens },
    outputTokens: { kind: "fixed", value: shape.outputTokens },
    prefixShare: 0,
    cancelShare: 0,
  };
  const bare: number[] = [];
  const ours: number[] = [];
  for (let round = 0; round < bareLoop.rounds; round++) {
    signal.throwIfAborted();
    bare.push(await bareLoop.run(shape));
    const speed = decodeSpeed(await send(planLoad({ ...same, seed: load.seed + 100 + round }), same));
    if (speed === undefined) {
      const reason =
        "the answers end before there is anything to compare; make them longer, or keep the model from ending.";
      return { ratio: null, reason };
    }
    ours.push(speed);
  }
  if (sum(bare) === 0) return { ratio: null, reason: "it was not asked for." };
  return { bare, ours, ratio: median(ours.map((speed, i) => speed / (bare[i] ?? speed))) };
}
