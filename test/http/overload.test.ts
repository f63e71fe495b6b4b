import { type ChildProcess, spawn } from "node:child_process";
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { request } from "node:http";
import { fileURLToPath } from "node:url";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { nanoModel } from "../models/nano.js";
import { randomSource } from "../support/test-addon.js";

const cli = fileURLToPath(new URL("../../dist/cli/main.js", import.meta.url));
const clients = 1000;

interface Outcome {
  /** 0: it left before there was one. */
  status: number;
  code: string;
  /** The whole answer came, or the client left by itself. */
  ended: "whole" | "left" | "broken";
}

describe("tokenloop serve, overloaded", () => {
  let child: ChildProcess;
  let url: URL;
  beforeAll(async () => {
    const flags = ["--port", "0", "--threads", "1", "--queue-size", "64", "--context-size", "2048"];
    child = spawn(process.execPath, [cli, "serve", nanoModel(), ...flags], { stdio: ["ignore", "pipe", "ignore"] });
    url = await new Promise((resolve, reject) => {
      let text = "";
      child.stdout?.on("data", (part: Buffer) => {
        text += part.toString();
        const found = /http:\S+/.exec(text)?.[0];
        if (found !== undefined) resolve(new URL(found));
      });
      child.once("exit", () => reject(new Error("The server ended before it served.")));
    });
  });
  afterAll(async () => {
    child.kill("SIGTERM");
    await new Promise((resolve) => child.once("exit", resolve));
  });

  /** One client with a connection of its own, which may leave at any moment. */
  function client(next: () => number): Promise<Outcome> {
    const streamed = next() < 0.7;
    const leaves = next() < 0.3;
    const body = JSON.stringify({
      messages: [{ role: "user", content: `Tell me a story about ${Math.floor(next() * 50)} dogs.` }],
      max_tokens: 4 + Math.floor(next() * 24),
      stream: streamed,
    });
    return new Promise((resolve) => {
      const outcome: Outcome = { status: 0, code: "", ended: "broken" };
      let text = "";
      const sent = request(
        {
          host: url.hostname,
          port: url.port,
          path: "/v1/chat/completions",
          method: "POST",
          agent: false,
          headers: { "content-type": "application/json", "content-length": body.length },
        },
        (response) => {
          outcome.status = response.statusCode ?? 0;
          response.on("data", (part: Buffer) => {
            text += part.toString();
          });
          response.on("end", () => {
            outcome.code = /"code":"(\w+)"/.exec(text)?.[1] ?? "";
            const whole = streamed && outcome.status === 200 ? text.endsWith("data: [DONE]\n\n") : text.endsWith("}");
            if (whole) outcome.ended = "whole";
          });
          response.on("error", () => undefined);
        },
      );
      sent.on("error", () => undefined);
      sent.on("close", () => resolve(outcome));
      sent.end(body);
      if (leaves) {
        setTimeout(() => {
          if (outcome.ended === "broken") outcome.ended = "left";
          sent.destroy();
        }, next() * 1500);
      }
    });
  }

  async function wave(seed: number): Promise<Outcome[]> {
    const next = randomSource(seed);
    return Promise.all(Array.from({ length: clients }, () => client(next)));
  }

  async function metrics(): Promise<Map<string, number>> {
    const text = await (await fetch(new URL("/metrics", url))).text();
    return new Map(
      [...text.matchAll(/^tokenloop_(\w+) (\S+)$/gm)].map(([, name = "", value]) => [name, Number(value)]),
    );
  }

  async function idle(): Promise<Map<string, number>> {
    const start = Date.now();
    for (;;) {
      const now = await metrics();
      const busy = ["requests_queued", "requests_prefilling", "requests_decoding", "sequences", "kv_cells_used"];
      if (busy.every((name) => now.get(name) === 0)) return now;
      if (Date.now() - start > 10_000) throw new Error(`not idle: ${JSON.stringify([...now])}`);
      await new Promise((resolve) => setTimeout(resolve, 50));
    }
  }

  const residentMegabytes = () =>
    Number(/^VmRSS:\s+(\d+) kB/m.exec(readFileSync(`/proc/${child.pid}/status`, "utf8"))?.[1]) / 1024;
  const openFiles = () => readdirSync(`/proc/${child.pid}/fd`).length;
  const canMeasure = existsSync("/proc/self/status");

  it(`answers ${clients} clients at once with 200 or 429, frees what those who left had, and does not grow`, async () => {
    const files = canMeasure ? openFiles() : 0;
    const memory: number[] = [];
    const seen = new Map<number, number>();
    for (let round = 1; round <= 4; round++) {
      for (const { status, code, ended } of await wave(round)) {
        seen.set(status, (seen.get(status) ?? 0) + 1);
        // Where the machine is too busy to read a head in time, the server gives up on the connection.
        if (status === 408) continue;
        // A client that left may have seen anything or nothing; the others have a whole answer.
        expect([0, 200, 429]).toContain(status);
        if (status === 0) expect(ended).toBe("left");
        // One that left may have seen the head of an answer only.
        if (status === 429 && ended === "whole") expect(code).toBe("queue_full");
        expect(ended).not.toBe("broken");
      }
      const now = await idle();
      expect(now.get("requests_failed_total")).toBe(0);
      expect(child.exitCode).toBeNull();
      if (canMeasure) memory.push(residentMegabytes());
    }
    expect(seen.get(408) ?? 0).toBeLessThan(clients / 10);
    expect(seen.get(200)).toBeGreaterThan(100);
    expect(seen.get(429)).toBeGreaterThan(100);
    expect((await metrics()).get("requests_cancelled_total")).toBeGreaterThan(0);
    if (!canMeasure) return;
    // The first waves fill heaps and pools; then it stays. Noise of the allocator is a few megabytes.
    const [, second = 0, , last = 0] = memory;
    expect(last - second).toBeLessThan(32);
    await new Promise((resolve) => setTimeout(resolve, 200));
    expect(openFiles()).toBeLessThanOrEqual(files + 4);
  }, 120_000);
});
