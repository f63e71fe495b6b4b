import { describe, expect, it } from "vitest";
import { EventRouter, type RequestSink } from "../../src/events.js";
import { NativeEvent } from "../../src/native.js";
import { DeliveryQueue } from "../../src/queue.js";
import { rejection } from "../support/scripted-engine.js";

/** A sink that writes down what it hears. */
function recorder(log: string[], name: string): RequestSink {
  return {
    prompt: (choice) => log.push(`${name}${choice} prompt`),
    delta: (choice, text) => log.push(`${name}${choice} delta ${text}`),
    logprobs: (choice, entry) => log.push(`${name}${choice} logprobs ${entry.token}`),
    finished: (choice, reason, result) => log.push(`${name}${choice} finished ${reason} ${result.completion_tokens}`),
    failed: (choice, error) => log.push(`${name}${choice} failed ${error.code} ${error.status}`),
  };
}

describe("EventRouter", () => {
  it("fans one batch out by request, with UTF-16 offsets", () => {
    const router = new EventRouter();
    const log: string[] = [];
    router.add(1, recorder(log, "a"), 1);
    router.add(2, recorder(log, "b"), 2);
    const result = JSON.stringify({ completion_tokens: 3 });
    const failure = JSON.stringify({ code: "x", status: 400, param: null, message: "m" });
    const text = `🦙é${result}${failure}`;
    const end = 3 + result.length;
    router.handle(
      text,
      Int32Array.from([
        ...[1, 0, NativeEvent.Prompt, 7, 0, 0],
        ...[2, 0, NativeEvent.Delta, 2, 0, 2],
        ...[9, 0, NativeEvent.Delta, 2, 0, 2],
        ...[1, 0, NativeEvent.Delta, 1, 2, 3],
        ...[1, 0, NativeEvent.Finished, 1, 3, end],
        ...[2, 1, NativeEvent.Failed, 0, end, text.length],
        ...[2, 0, NativeEvent.Delta, 1, 2, 3],
        ...[2, 0, NativeEvent.Finished, 0, 3, end],
        ...[1, 0, NativeEvent.Delta, 1, 2, 3],
      ]),
    );
    expect(log).toEqual([
      "a0 prompt",
      "b0 delta 🦙",
      "a0 delta é",
      "a0 finished length 3",
      "b1 failed x 400",
      "b0 delta é",
      "b0 finished stop 3",
    ]);
    expect(router.size).toBe(0);
  });

  it("turns what it does not understand into a failure of that request", () => {
    const router = new EventRouter();
    const log: string[] = [];
    const last = [
      [NativeEvent.Finished, 99, "{}"],
      [NativeEvent.Finished, 0, "not json"],
      [NativeEvent.Failed, 0, "not json"],
      [42, 0, "{}"],
    ] as const;
    last.forEach(([kind, value, text], id) => {
      router.add(id, recorder(log, `${id}-`), 1);
      router.handle(text, Int32Array.from([id, 0, kind, value, 0, text.length]));
    });
    expect(log).toEqual([0, 1, 2, 3].map((id) => `${id}-0 failed internal_error 500`));
  });
});

describe("DeliveryQueue", () => {
  it("gives items in order, also many, and what is ready at once", async () => {
    const queue = new DeliveryQueue<number>();
    for (let i = 0; i < 1000; i++) queue.push(i);
    for (let i = 0; i < 700; i++) expect((await queue.next()).value).toBe(i);
    expect(queue.takeReady()).toEqual(Array.from({ length: 300 }, (_, i) => 700 + i));
    expect(queue.takeReady()).toEqual([]);
    const waiting = queue.next();
    queue.push(-1);
    expect(await waiting).toEqual({ done: false, value: -1 });
  });

  it("gives an error once, after the items", async () => {
    const queue = new DeliveryQueue<number>();
    const error = new Error("end");
    queue.push(1);
    queue.close(error);
    queue.push(2);
    queue.close(new Error("later"));
    expect((await queue.next()).value).toBe(1);
    expect(await rejection(queue.next())).toBe(error);
    expect(await queue.next()).toEqual({ done: true, value: undefined });
  });
});
