import type { Answer } from "./answer.js";
import type { Driven } from "./drive.js";
import type { BenchRecord } from "./record.js";
import { summarise } from "./statistics.js";

/** What a run says against its own numbers. */
export function remarksOn(
  driven: Driven,
  record: Pick<BenchRecord, "client_wait_ms" | "resources" | "completed" | "bare_loop">,
  context: { rate: number; loadAverage: number; cores: number; kind: "engine" | "server" },
): string[] {
  const completed = driven.answers.filter(({ ending }) => ending.kind === "completed");
  const remarks: string[] = [];
  const say = (holds: boolean, text: string) => {
    if (holds) remarks.push(text);
  };
  const short = completed.filter(endedEarly).length;
  say(
    short > 0,
    `${short} of ${completed.length} answers ended before the length that was asked for: tokens and times are of what came.`,
  );
  const uncounted = completed.filter(({ completionTokens }) => completionTokens === undefined).length;
  say(uncounted > 0, `${uncounted} answers came without a usage: their pieces of text are counted as tokens.`);
  const mute = completed.filter(({ pieces }) => pieces.length === 0).length;
  say(mute > 0, `${mute} answers had no text: they count as completed and have no latency.`);
  say(
    completed.length > 0 && completed.length < 1000,
    `${completed.length} completed requests: a p99.9 of TTFT, TPOT or E2E latency is close to the largest value.`,
  );
  say(
    context.loadAverage > context.cores / 2,
    `The machine was busy before the start: a load average of ${context.loadAverage.toFixed(1)} on ${context.cores} CPUs.`,
  );
  const wait = record.client_wait_ms.median;
  say(
    context.rate !== Infinity && wait > 10,
    `The concurrency held requests back (median ${wait.toFixed(0)} ms): latencies begin when a request is sent, not when it is due.`,
  );
  const late = record.resources.event_loop_delay_ms.p99;
  say(
    context.kind === "server" && late > 5,
    `The client's own event loop was late (p99 ${late.toFixed(1)} ms): that is in the server's latencies.`,
  );
  const { bare_loop: bare } = record;
  if (bare.ratio === null) {
    remarks.push(`No ratio to the bare loop: ${bare.reason}`);
  } else {
    const ratios = summarise(bare.ours.map((ours, i) => ours / (bare.bare[i] ?? ours)));
    const spread = ratios.maximum / ratios.minimum;
    say(
      spread > 1.2,
      `The ratios to the bare loop go from ${ratios.minimum.toFixed(2)} to ${ratios.maximum.toFixed(2)}: the machine did other things beside.`,
    );
  }
  return remarks;
}

function endedEarly({ completionTokens, pieces, wantedTokens, finishReason }: Answer): boolean {
  return finishReason !== "length" && (completionTokens ?? pieces.length) < wantedTokens;
}
