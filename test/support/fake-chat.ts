import type { Page } from "playwright-core";
import type { FetchHandler } from "../../src/http/handler.js";

type Delta = { content?: string; reasoning_content?: string; tool_calls?: object[] };

/** What a script does in turn: a delta, a wait in milliseconds, or the end with a reason. */
export type Step = Delta | number | { finish: string };

/** A handler that answers chat requests by scripts, one each, and keeps what it was asked. */
export class FakeChat {
  readonly asked: { messages: { role: string; content: string }[]; [field: string]: unknown }[] = [];
  readonly aborted: number[] = [];
  scripts: (readonly Step[] | { status: number; message: string })[] = [];
  models = ["fake"];
  /** Asked for where it is not "". */
  key = "";

  readonly fetch: FetchHandler = async (input, init) => {
    const request = new Request(input, init);
    if (this.key !== "" && request.headers.get("authorization") !== `Bearer ${this.key}`) return refusal(401, "no key");
    const { pathname } = new URL(request.url);
    if (pathname === "/v1/models") return Response.json({ object: "list", data: this.models.map((id) => ({ id })) });
    if (pathname !== "/v1/chat/completions") return refusal(404, "unknown");
    const number = this.asked.push((await request.json()) as FakeChat["asked"][number]) - 1;
    const script = this.scripts.shift() ?? [{ content: "nothing scripted" }, { finish: "stop" }];
    if ("status" in script) return refusal(script.status, script.message);
    return new Response(this.#stream(script, number), { headers: { "content-type": "text/event-stream" } });
  };

  #stream(script: readonly Step[], number: number): ReadableStream<Uint8Array> {
    const encoder = new TextEncoder();
    const send = (controller: ReadableStreamDefaultController<Uint8Array>, chunk: unknown) =>
      controller.enqueue(encoder.encode(`data: ${JSON.stringify(chunk)}\n\n`));
    let gone = false;
    return new ReadableStream({
      start: async (controller) => {
        for (const step of script) {
          if (typeof step === "number") await new Promise((resolve) => setTimeout(resolve, step));
          else if ("finish" in step) send(controller, { choices: [{ delta: {}, finish_reason: step.finish }] });
          else send(controller, { choices: [{ delta: step, finish_reason: null }] });
          if (gone) return;
        }
        const usage = { prompt_tokens: 12, completion_tokens: 34, prompt_tokens_details: { cached_tokens: 5 } };
        send(controller, { choices: [], usage, timings: { predicted_per_second: 56 } });
        controller.enqueue(encoder.encode("data: [DONE]\n\n"));
        controller.close();
      },
      cancel: () => {
        gone = true;
        this.aborted.push(number);
      },
    });
  }
}

function refusal(status: number, message: string): Response {
  return Response.json({ error: { message, type: "invalid_request_error", param: null, code: null } }, { status });
}

/** Collects what a page complains of: errors of scripts, and of the policy. */
export function complaints(page: Page): string[] {
  const all: string[] = [];
  page.on("pageerror", (error) => all.push(error.message));
  // A refused request is told in the console as well; the page shows it where it belongs.
  page.on("console", (message) => {
    if (message.type() === "error" && !message.text().startsWith("Failed to load resource")) all.push(message.text());
  });
  return all;
}
