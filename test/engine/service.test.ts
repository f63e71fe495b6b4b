import { setTimeout as sleep } from "node:timers/promises";
import { afterEach, describe, expect, it } from "vitest";
import type { Engine } from "../../src/engine.js";
import { answer, ask, idle, knownAnswers, loadNano } from "../support/engine.js";

let engine: Engine;
afterEach(() => engine.close());

/** Some `count` tokens, whatever the model thinks of them. */
const counting = (count: number) => ({ grammar: `root ::= "${"x".repeat(count)}"` });

describe("priority", () => {
  it("decides who of the waiting comes first", async () => {
    engine = await loadNano({ contextSize: 2048, parallel: 1 });
    const order: string[] = [];
    const run = (name: string, priority: number, count = 20) =>
      answer(engine, `Say ${name}.`, { priority, ...counting(count) }).then(() => order.push(name));
    const first = run("running", -9, 400);
    while (engine.stats().decoding === 0) await sleep(1);
    await Promise.all([first, run("late", 5), run("middle", 0), run("early", -5), run("middle too", 0)]);
    expect(order).toEqual(["running", "early", "middle", "middle too", "late"]);
  });

  it("takes the place of one that can wait, which then goes on where it was", async () => {
    engine = await loadNano({ contextSize: 2048, parallel: 1 });
    const [known] = knownAnswers();
    if (known === undefined) throw new Error("no known answers");
    const order: string[] = [];
    const long = answer(engine, "Count.", { priority: 1, ...counting(400) }).then((text) => {
      order.push("long");
      return text;
    });
    while (engine.stats().generatedTokens < 60) await sleep(1);
    const { promptTokens } = engine.stats();
    const urgent = await engine.chat.completions.create({ messages: known.messages as never, temperature: 0 });
    order.push("urgent");
    expect(urgent.choices[0]?.message.content).toBe(known.content);
    expect(await long).toBe("x".repeat(400));
    expect(order).toEqual(["urgent", "long"]);
    expect(engine.stats().parkings).toBe(1);
    expect(engine.stats().preemptions).toBe(0);
    // Its cells were kept: all it computed again is the token that it had last.
    expect(engine.stats().promptTokens - promptTokens).toBeLessThanOrEqual((urgent.usage?.prompt_tokens ?? 0) + 1);
    await idle(engine);
  });

  it("does not move one of the same priority", async () => {
    engine = await loadNano({ contextSize: 2048, parallel: 1 });
    await Promise.all([answer(engine, "Count.", counting(50)), answer(engine, "Count again.", counting(50))]);
    expect(engine.stats().parkings).toBe(0);
  });
});

describe("timeout_ms", () => {
  it("ends a request in any state, with its own error", async () => {
    engine = await loadNano({ contextSize: 2048, parallel: 1 });
    const timeout = { code: "request_timeout", status: 408, param: "timeout_ms" };
    const running = answer(engine, "Count.", { timeout_ms: 60, ...counting(1500) });
    const waiting = answer(engine, "Count.", { timeout_ms: 50, ...counting(1500) });
    await Promise.all([expect(running).rejects.toMatchObject(timeout), expect(waiting).rejects.toMatchObject(timeout)]);
    expect(engine.stats()).toMatchObject({ timedOut: 2, failed: 2 });
    await idle(engine);
    expect(await answer(engine, "Count.", { timeout_ms: 60_000, ...counting(3) })).toBe("xxx");
  });

  it("ends a stream with an error after what came in time", async () => {
    engine = await loadNano({ contextSize: 2048 });
    const body = { ...ask("Count."), timeout_ms: 100, ...counting(1500), stream: true as const };
    let text = "";
    const read = async () => {
      for await (const chunk of await engine.chat.completions.create(body))
        text += chunk.choices[0]?.delta.content ?? "";
    };
    await expect(read()).rejects.toMatchObject({ code: "request_timeout" });
    expect(text).toMatch(/^x+$/);
  });
});

describe("t_max_predict_ms", () => {
  it("ends an answer with finish_reason length, once it has a line", async () => {
    engine = await loadNano({ contextSize: 2048 });
    const limits = { t_max_predict_ms: 1, stream: false as const };
    const lines = await engine.chat.completions.create({
      ...ask("Count."),
      grammar: `root ::= "${"xxxxxxxxx\\n".repeat(100)}"`,
      ...limits,
    });
    expect(lines.choices[0]?.finish_reason).toBe("length");
    expect(lines.choices[0]?.message.content).toMatch(/^x{9}\n/);
    expect(lines.choices[0]?.message.content?.length).toBeLessThan(500);
    const line = await engine.chat.completions.create({ ...ask("Count."), ...counting(100), ...limits });
    expect(line.choices[0]).toMatchObject({ finish_reason: "stop", message: { content: "x".repeat(100) } });
  });
});

describe("a full queue", () => {
  it("says when to try again, from how fast answers get done", async () => {
    engine = await loadNano({ contextSize: 2048, parallel: 1, queueSize: 0 });
    for (let i = 0; i < 5; i++) await answer(engine, "Count.", counting(30));
    const running = answer(engine, "Count.", counting(300));
    const error = await answer(engine, "Count.").then(
      () => undefined,
      (thrown: unknown) => thrown as { status: number; code: string; retryAfter: number },
    );
    expect(error).toMatchObject({ status: 429, code: "queue_full" });
    expect(error?.retryAfter).toBeGreaterThan(0);
    expect(error?.retryAfter).toBeLessThanOrEqual(60);
    expect(error?.retryAfter).not.toBe(1);
    await running;
  });
});

describe("drain", () => {
  it("finishes what waits and runs, and takes no more", async () => {
    engine = await loadNano({ contextSize: 2048, parallel: 1 });
    const answers = Array.from({ length: 4 }, () => answer(engine, "Count.", counting(30)));
    await sleep(5);
    let done = 0;
    for (const each of answers) each.then(() => done++);
    const drained = engine.drain();
    await expect(answer(engine, "Count.")).rejects.toMatchObject({ code: "engine_draining", status: 503 });
    expect(engine.drain()).toBe(drained);
    await drained;
    expect(await Promise.all(answers)).toEqual(Array(4).fill("x".repeat(30)));
    expect(done).toBe(4);
    expect(engine.stats().finished).toBe(4);
  });

  it("resolves at once when nothing runs, and with close() when that comes first", async () => {
    engine = await loadNano({ contextSize: 2048 });
    const running = answer(engine, "Count.", counting(1500));
    await sleep(5);
    const drained = engine.drain();
    await Promise.all([expect(running).rejects.toMatchObject({ code: "engine_closed" }), engine.close()]);
    await drained;
    engine = await loadNano();
    await engine.drain();
  });
});
