import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { afterEach, describe, expect, it } from "vitest";
import type { Answer } from "../../src/bench/answer.js";
import { decodeSpeed } from "../../src/bench/bare-loop.js";
import { type BenchOptions, runBench } from "../../src/bench/bench.js";
import { drive } from "../../src/bench/drive.js";
import { EventReader } from "../../src/bench/events.js";
import { latencyOf } from "../../src/bench/latency.js";
import { type Load, planLoad } from "../../src/bench/plan.js";
import { measure, throughput } from "../../src/bench/record.js";
import { reportHtml } from "../../src/bench/report/report.js";
import { serverTarget } from "../../src/bench/server-target.js";
import { sum } from "../../src/bench/statistics.js";
import type { OnChunk, Target } from "../../src/bench/target.js";

const load: Load = {
  requests: 12,
  concurrency: 3,
  rate: Infinity,
  promptTokens: { kind: "fixed", value: 40 },
  outputTokens: { kind: "fixed", value: 5 },
  prefixShare: 0,
  cancelShare: 0,
  seed: 1,
};

const sleep = (ms: number) => new Promise((resolve) => setTimeout(resolve, ms));

/** Answers with `pieces` pieces of text, one each 2 ms; counts a word as a token. */
class FakeTarget implements Target {
  readonly kind = "server";
  readonly model = "fake";
  readonly about = {};
  running = 0;
  peak = 0;
  aborted = 0;
  bodies: Record<string, unknown>[] = [];

  async send(body: Record<string, unknown>, signal: AbortSignal, onChunk: OnChunk): Promise<void> {
    this.bodies.push(body);
    this.peak = Math.max(this.peak, ++this.running);
    try {
      const { content } = (body.messages as { content: string }[])[0] ?? { content: "" };
      const words = content.split(" ").length;
      for (let i = 0; i < Number(body.max_tokens); i++) {
        await sleep(2);
        if (signal.aborted) throw signal.reason;
        onChunk({ choices: [{ delta: { content: "x" } }] }, performance.now());
      }
      onChunk({ choices: [{ delta: {}, finish_reason: "length" }] }, performance.now());
      const usage = { prompt_tokens: 10 + 2 * words, completion_tokens: Number(body.max_tokens) };
      onChunk({ choices: [], usage: { ...usage, prompt_tokens_details: { cached_tokens: 4 } } }, performance.now());
    } catch (error) {
      this.aborted++;
      throw error;
    } finally {
      this.running--;
    }
  }

  usage = async () => undefined;
  close = async () => undefined;
}

function options(target: Target, more: Partial<BenchOptions> = {}): BenchOptions {
  return {
    target,
    load,
    warmUp: 2,
    slo: { ttft: 60_000 },
    fields: { temperature: 0 },
    described: {},
    timeoutMs: 10_000,
    label: "test",
    version: "1.2.3",
    bareLoop: { reason: "there is none." },
    signal: new AbortController().signal,
    onPhase: () => undefined,
    ...more,
  };
}

const answerOf = (more: Partial<Answer>): Answer => ({
  index: 0,
  due: 0,
  sent: 0,
  ended: 0,
  pieces: [],
  ending: { kind: "completed" },
  finishReason: "length",
  promptTokens: 10,
  cachedTokens: 0,
  completionTokens: undefined,
  wantedTokens: 10,
  ...more,
});

describe("latencies", () => {
  it("are vLLM's", () => {
    const answer = answerOf({ sent: 100, pieces: [150, 170, 170, 200], ended: 210, completionTokens: 6 });
    expect(latencyOf(answer)).toEqual({ ttft: 50, e2el: 110, tpot: 12, itl: [20, 0, 30], icl: [20, 30] });
  });

  it("of one token have no time per token, of none nothing", () => {
    expect(latencyOf(answerOf({ pieces: [5], ended: 5 }))?.tpot).toBeUndefined();
    expect(latencyOf(answerOf({}))).toBeUndefined();
  });

  it("make a record by hand", () => {
    const answers = [
      answerOf({ pieces: [100, 200], ended: 200, completionTokens: 2 }),
      answerOf({ index: 1, sent: 0, pieces: [300, 500, 700], ended: 1000, completionTokens: 3, cachedTokens: 5 }),
      answerOf({ index: 2, ended: 500, ending: { kind: "failed", type: "429 queue_full", message: "full" } }),
      answerOf({ index: 3, pieces: [1], ended: 9, ending: { kind: "cancelled", settledMs: 8 } }),
    ];
    const record = measure({ answers, durationMs: 1000, peakConcurrency: 4, fingerprint: undefined }, { ttft: 200 });
    expect(record).toMatchObject({
      duration: 1,
      completed: 2,
      failed: 1,
      cancelled: 1,
      total_input_tokens: 20,
      total_output_tokens: 5,
      request_throughput: 2,
      request_goodput: 1,
      goodput_share: 0.5,
      output_throughput: 5,
      total_token_throughput: 25,
      cached_share: 0.25,
      mean_ttft_ms: 200,
      median_tpot_ms: 225,
      mean_e2el_ms: 600,
      max_itl_ms: 200,
      "p99.9_ttft_ms": 299.8,
      errors_by_type: { "429 queue_full": 1 },
      error_examples: { "429 queue_full": "full" },
      finish_reasons: { length: 2 },
      cancel_settle_ms: { median: 8, max: 8 },
    });
    expect(sum(throughput(answers, 1000, 250)) / 4).toBe(5 + 1);
  });
});

describe("the speed of decoding", () => {
  const streams = [0, 5, 10].map((shift) =>
    answerOf({ pieces: Array.from({ length: 100 }, (_, i) => shift + 10 * i), completionTokens: 200 }),
  );
  it("is of the time in which all decode", () => {
    const speed = decodeSpeed({ answers: streams, durationMs: 0, peakConcurrency: 3, fingerprint: undefined });
    // Three streams, a piece of two tokens each 10 ms.
    expect(speed).toBeGreaterThan(590);
    expect(speed).toBeLessThan(610);
  });

  it("is unknown when they do not overlap", () => {
    const late = answerOf({ pieces: Array.from({ length: 100 }, (_, i) => 5000 + i) });
    expect(
      decodeSpeed({ answers: [...streams, late], durationMs: 0, peakConcurrency: 4, fingerprint: undefined }),
    ).toBeUndefined();
  });
});

describe("a run", () => {
  it("keeps to the concurrency, finds the length of prompts, and counts", async () => {
    const target = new FakeTarget();
    const { record } = await runBench(options(target));
    expect(target.peak).toBe(3);
    expect(record).toMatchObject({ completed: 12, failed: 0, total_output_tokens: 60, max_concurrent_requests: 3 });
    expect(record.total_input_tokens).toBe(12 * 40);
    expect(record).toMatchObject({ request_rate: "inf", max_concurrency: 3, num_prompts: 12, model_id: "fake" });
    expect(record.request_goodput).toBeCloseTo(record.request_throughput);
    expect(record.remarks.join("\n")).toContain("No ratio to the bare loop: there is none.");
    // Two to measure words by, two to warm up.
    expect(target.bodies).toHaveLength(16);
    const texts = target.bodies.map(({ messages }) => JSON.stringify(messages));
    expect(new Set(texts).size).toBe(16);
  });

  it("sends the same requests for the same seed", async () => {
    const [a, b, c] = [new FakeTarget(), new FakeTarget(), new FakeTarget()];
    await runBench(options(a));
    await runBench(options(b));
    await runBench(options(c, { load: { ...load, seed: 2 } }));
    const sent = (target: FakeTarget) => target.bodies.map((body) => JSON.stringify(body)).sort();
    expect(sent(a)).toEqual(sent(b));
    expect(sent(a)).not.toEqual(sent(c));
  });

  it("cancels", async () => {
    const target = new FakeTarget();
    const { record } = await runBench(options(target, { load: { ...load, cancelShare: 1 } }));
    expect(record).toMatchObject({ completed: 0, failed: 0, cancelled: 12 });
    expect(target.aborted).toBe(12);
    expect(target.running).toBe(0);
    expect(record.cancel_settle_ms?.median).toBeGreaterThanOrEqual(0);
  });

  it("waits for its rate", async () => {
    const plan = planLoad({ ...load, rate: 100, concurrency: 12 });
    const target = new FakeTarget();
    const { answers } = await drive(plan, {
      ...options(target),
      load: { ...load, concurrency: 12 },
      rate: { overhead: 10, perWord: 2 },
    });
    for (const { index, sent, due } of answers) {
      expect(due).toBe((plan[index]?.at ?? 0) * 1000);
      expect(sent).toBeGreaterThanOrEqual(due - 2);
    }
  });

  it("gives up a request when its time is over, and counts it", async () => {
    const target = new FakeTarget();
    const long = { ...load, requests: 3, outputTokens: { kind: "fixed" as const, value: 1000 } };
    const { record } = await runBench(options(target, { load: long, timeoutMs: 30, warmUp: 0 }));
    expect(record.errors_by_type).toEqual({ timeout: 3 });
  });

  it("ends at once when it is interrupted", async () => {
    const target = new FakeTarget();
    const controller = new AbortController();
    const running = runBench(
      options(target, { load: { ...load, rate: 1, requests: 1000 }, warmUp: 0, signal: controller.signal }),
    );
    setTimeout(() => controller.abort(new Error("enough")), 50);
    await expect(running).rejects.toThrow("enough");
  });

  it("compares with the bare loop in the same shape", async () => {
    const shapes: unknown[] = [];
    const bareLoop = {
      rounds: 2,
      run: async (shape: unknown) => {
        shapes.push(shape);
        return 1000;
      },
    };
    const long = { ...load, outputTokens: { kind: "uniform" as const, from: 20, to: 40 } };
    const { record } = await runBench(options(new FakeTarget(), { load: long, bareLoop }));
    expect(shapes).toEqual(Array(2).fill({ streams: 3, promptTokens: 40, outputTokens: 40 }));
    const { bare_loop: bare } = record;
    if (bare.ratio === null) throw new Error(bare.reason);
    expect(bare.bare).toEqual([1000, 1000]);
    expect(bare.ratio).toBeGreaterThan(0.2);
    expect(bare.ratio).toBeLessThan(2);
  });

  it("becomes a page that is whole, says everything, and takes no text for markup", async () => {
    const result = await runBench(options(new FakeTarget(), { label: `<script>alert("x")</script>&` }));
    const page = reportHtml(result);
    expect(page).not.toContain("<script");
    expect(page).toContain("&#60;script&#62;");
    expect(page).not.toMatch(/(?:src|href|url\()\s*=?["']?https?:/);
    expect(page).not.toMatch(/NaN|undefined|\[object/);
    expect(page.match(/<svg /g)).toHaveLength(7);
    expect(page).toContain("prefers-color-scheme: dark");
  });
});

describe("server-sent events", () => {
  it("are the same in every cut", () => {
    const bytes = Buffer.from(': hi\r\ndata: {"a":"ü€😀"}\r\n\r\nevent: x\ndata:b\ndata: c\n\ndata: [DONE]\n\n');
    for (let size = 1; size <= bytes.length; size++) {
      const reader = new EventReader();
      const events: string[] = [];
      for (let at = 0; at < bytes.length; at += size) events.push(...reader.push(bytes.subarray(at, at + size)));
      expect(events).toEqual(['{"a":"ü€😀"}', "b\nc", "[DONE]"]);
    }
  });
});

describe("a server", () => {
  const servers: Server[] = [];
  afterEach(() => {
    for (const server of servers.splice(0)) {
      server.closeAllConnections();
      server.close();
    }
  });

  async function target(answer: (request: IncomingMessage, response: ServerResponse, body: string) => void) {
    const server = createServer(async (request, response) => {
      let body = "";
      for await (const part of request) body += String(part);
      if (request.url === "/api/v1/models") response.end('{"data":[{"id":"first"},{"id":"second"}]}');
      else answer(request, response, body);
    });
    servers.push(server);
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
    const { port } = server.address() as AddressInfo;
    return serverTarget({ baseUrl: new URL(`http://127.0.0.1:${port}/api/v1/`), apiKey: "key" });
  }
  const event = (data: unknown) => `data: ${JSON.stringify(data)}\n\n`;
  const never = new AbortController().signal;

  it("is asked as OpenAI's clients ask, and read as it comes", async () => {
    let asked: unknown;
    const server = await target((request, response, body) => {
      asked = { url: request.url, key: request.headers.authorization, body: JSON.parse(body) };
      response.write(event({ n: 1 }) + event({ n: 2 }));
      setTimeout(() => response.end(`${event({ n: 3 })}data: [DONE]\n\n`), 30);
    });
    const chunks: [unknown, number][] = [];
    await server.send({ messages: [] }, never, (chunk, at) => chunks.push([chunk, at]));
    expect(asked).toEqual({
      url: "/api/v1/chat/completions",
      key: "Bearer key",
      body: { model: "first", messages: [], stream: true },
    });
    expect(chunks.map(([chunk]) => chunk)).toEqual([{ n: 1 }, { n: 2 }, { n: 3 }]);
    const [one, two, three] = chunks.map(([, at]) => at);
    expect(two).toBe(one);
    expect(three).toBeGreaterThan((one ?? 0) + 20);
    await server.close();
  });

  it.each<[string, (response: ServerResponse) => void]>([
    ["429 queue_full", (r) => r.writeHead(429).end('{"error":{"code":"queue_full","message":"later"}}')],
    ["500", (r) => r.writeHead(500).end("oops")],
    ["404 not_found_error", (r) => r.writeHead(404).end('{"error":{"code":null,"type":"not_found_error"}}')],
    ["stream server_error", (r) => r.end(event({ a: 1 }) + event({ error: { type: "server_error", message: "x" } }))],
    ["stream_ended_early", (r) => r.end(event({ a: 1 }))],
    ["invalid_json", (r) => r.end("data: {oops\n\n")],
    ["ECONNRESET", (r) => r.socket?.destroy()],
  ])("that fails is counted as %s", async (type, answer) => {
    const server = await target((_, response) => answer(response));
    await expect(server.send({}, never, () => undefined)).rejects.toMatchObject({ name: "RequestFailure", type });
    await server.close();
  });

  it("that breaks off in the middle is counted as a broken connection", async () => {
    const server = await target((_, response) => {
      response.write(event({ a: 1 }));
      setTimeout(() => response.socket?.destroy(), 20);
    });
    await expect(server.send({}, never, () => undefined)).rejects.toMatchObject({ type: "ECONNRESET" });
    await server.close();
  });

  it("hears of a cancel", async () => {
    let gone = false;
    const server = await target((_, response) => {
      response.write(event({ a: 1 }));
      response.once("close", () => {
        gone = true;
      });
    });
    const controller = new AbortController();
    const reason = new Error("enough");
    const sending = server.send({}, controller.signal, () => controller.abort(reason));
    await expect(sending).rejects.toBe(reason);
    for (let i = 0; i < 100 && !gone; i++) await sleep(5);
    expect(gone).toBe(true);
    await server.close();
  });

  it("that is not there is an error with its name", async () => {
    const baseUrl = new URL("http://127.0.0.1:1/v1");
    await expect(serverTarget({ baseUrl })).rejects.toMatchObject({ type: "ECONNREFUSED" });
  });
});
