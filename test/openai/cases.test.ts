import { existsSync, readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { describe, expect, it } from "vitest";
import { hi, scripted } from "../support/scripted-engine.js";

/** Real-world error cases that may lie beside the checkout; the tests above hold the same rules on their own. */
const file = fileURLToPath(new URL("../../../shared/cases/bugs.jsonl", import.meta.url));
const present = existsSync(file);
if (!present) console.warn("SKIPPED: test/openai/cases.test.ts needs ../shared/cases/bugs.jsonl, which is not there.");

interface Case {
  id: string;
  area: string;
  symptom: string;
  input: { request?: object; requests?: object[] };
}

/** What each case must give: status and, where it matters, error.param; null takes whatever field is at fault. */
const expected: ReadonlyMap<string, { status: number; param?: string | RegExp }> = new Map([
  ["e09-ranges", { status: 400, param: /^(temperature|top_p|presence_penalty|frequency_penalty|n|seed)$/ }],
  ["e11-logit-bias-empty", { status: 200 }],
  ["e12-logit-bias-key", { status: 400, param: "logit_bias" }],
  ["e15-messages-empty", { status: 400, param: "messages" }],
  ["e16-messages-shapes", { status: 400, param: "messages" }],
  ["e17-tool-shapes", { status: 400, param: /^tool/ }],
  ["e18-response-format-shapes", { status: 400, param: "response_format" }],
  ["e20-image-on-text-model", { status: 400, param: "messages" }],
  ["e21-unknown-field", { status: 400, param: "some_future_field" }],
  ["u04-stream-options-without-stream", { status: 400, param: "stream_options" }],
  ["o06-range", { status: 400, param: "top_logprobs" }],
  ["l02-huge-bounds-schema", { status: 400, param: "response_format" }],
]);

const cases: Case[] = present
  ? readFileSync(file, "utf8")
      .trim()
      .split("\n")
      .map((line) => JSON.parse(line) as Case)
      .filter(({ id }) => expected.has(id))
  : [];

describe.skipIf(!present)("bugs.jsonl", () => {
  it("has the cases that are looked for", () => {
    expect(cases.map(({ id }) => id).sort()).toEqual([...expected.keys()].sort());
  });

  it.each(cases.map((row): [string, string, Case] => [row.id, row.symptom, row]))(
    "%s: %s",
    async (id, _symptom, { input }) => {
      const { engine } = await scripted({ script: { pieces: ["ok"] } });
      const want = expected.get(id);
      for (const request of input.requests ?? [input.request ?? {}]) {
        const whole = id === "e16-messages-shapes" ? request : { ...hi, ...request };
        const response = await engine.fetch("http://local/v1/chat/completions", {
          method: "POST",
          headers: { "content-type": "application/json" },
          body: JSON.stringify(whole),
        });
        const body = (await response.json()) as { error?: { param: string; type: string; message: string } };
        expect([response.status, JSON.stringify(request)]).toEqual([want?.status, JSON.stringify(request)]);
        if (want?.param === undefined) continue;
        expect(body.error?.type).toBe("invalid_request_error");
        if (typeof want.param === "string") expect(body.error?.param).toBe(want.param);
        else expect(body.error?.param).toMatch(want.param);
      }
    },
  );
});
