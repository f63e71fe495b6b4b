import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import type { Browser, BrowserContextOptions, Page } from "playwright-core";
import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import type { Engine } from "../../src/engine.js";
import type { FetchHandler } from "../../src/http/handler.js";
import { toNodeListener } from "../../src/http/node.js";
import { type LiveModel, liveModel } from "../../src/page/live.js";
import { withPage } from "../../src/page/page.js";
import { browserPath, launchBrowser, screenshotPath } from "../support/browser.js";
import { loadNano } from "../support/engine.js";
import { complaints, FakeChat } from "../support/fake-chat.js";

const cleanUps: (() => Promise<unknown> | unknown)[] = [];
afterEach(async () => {
  for (const cleanUp of cleanUps.splice(0).reverse()) await cleanUp();
});

let browser: Browser;

const idle: LiveModel = {
  id: "fake",
  parallel: 8,
  queued: 0,
  prefilling: 0,
  decoding: 0,
  paused: 0,
  cells: 2048,
  cellsUsed: 0,
  cellsCached: 0,
  promptTokens: 0,
  cachedTokens: 0,
  generatedTokens: 0,
  steps: 0,
  sharedSteps: 0,
};

async function listen(fetch: FetchHandler, look: () => LiveModel[]): Promise<string> {
  const server: Server = createServer(toNodeListener(withPage(fetch, look)));
  cleanUps.push(() => {
    server.closeAllConnections();
    server.close();
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}/`;
}

interface Opened {
  page: Page;
  chat: FakeChat;
  complained: string[];
}

async function open(
  prepare: (chat: FakeChat) => void = () => undefined,
  context: BrowserContextOptions = {},
  live: LiveModel = idle,
): Promise<Opened> {
  const chat = new FakeChat();
  prepare(chat);
  const url = await listen(chat.fetch, () => [live]);
  const { page, complained } = await visit(url, context);
  return { page, chat, complained };
}

async function visit(url: string, options: BrowserContextOptions = {}) {
  const context = await browser.newContext({ viewport: { width: 1280, height: 800 }, ...options });
  cleanUps.push(() => context.close());
  const page = await context.newPage();
  page.setDefaultTimeout(8000);
  const complained = complaints(page);
  await page.goto(url);
  await page.locator(".places").first().waitFor();
  return { page, complained };
}

async function say(page: Page, text: string): Promise<void> {
  await page.getByLabel("Message", { exact: true }).fill(text);
  await page.keyboard.press("Enter");
}

const answers = (page: Page) => page.getByRole("article", { name: "Answer" });
const finished = (page: Page) => page.locator('.answer[aria-busy="false"]').last().waitFor();

describe.skipIf(browserPath === undefined)("the chat page, in a browser,", () => {
  beforeAll(async () => {
    browser = await launchBrowser();
  });
  afterAll(() => browser?.close());

  it("says what it is when nothing runs", async () => {
    const { page, complained } = await open();
    await expect.poll(() => page.locator("#model-name").textContent()).toBe("fake");
    expect(await page.locator(".sentence").textContent()).toBe("Idle, 8 places free");
    expect(await page.getByLabel("Message", { exact: true }).evaluate((it) => it === document.activeElement)).toBe(
      true,
    );
    await page.screenshot({ path: screenshotPath("idle") });
    expect(complained).toEqual([]);
  });

  it("streams, shows timings, and sends the whole conversation the next time", async () => {
    const { page, chat, complained } = await open((fake) => {
      fake.scripts = [
        [{ content: "Hel" }, 150, { content: "lo" }, 400, { finish: "stop" }],
        [{ content: "Again" }, { finish: "length" }],
      ];
    });
    await say(page, "Hi\nthere");
    await answers(page).getByText("Hello").waitFor();
    expect(await answers(page).getAttribute("aria-busy")).toBe("true");
    await finished(page);
    const foot = await answers(page).locator("footer").textContent();
    for (const part of ["34 tokens", "56 tokens/s", "prompt of 12, 5 cached", "first after"])
      expect(foot).toContain(part);
    expect(await page.getByRole("status").textContent()).toBe("Answer complete. Hello");

    await say(page, "More");
    await answers(page).nth(1).getByText("reached the limit").waitFor();
    expect(chat.asked[1]).toEqual({
      model: "fake",
      messages: [
        { role: "user", content: "Hi\nthere" },
        { role: "assistant", content: "Hello" },
        { role: "user", content: "More" },
      ],
      stream: true,
      stream_options: { include_usage: true },
    });
    expect(complained).toEqual([]);
  });

  it.each(["button", "Escape"])("stops by %s, and keeps what has come", async (how) => {
    const { page, chat } = await open((fake) => {
      fake.scripts = [
        [{ content: "Part" }, 60_000, { finish: "stop" }],
        [{ content: "ok" }, { finish: "stop" }],
      ];
    });
    await say(page, "Long");
    await answers(page).getByText("Part").waitFor();
    if (how === "button") await page.getByRole("button", { name: "Stop" }).click();
    else await page.keyboard.press("Escape");
    await answers(page).getByText("stopped").waitFor();
    await expect.poll(() => chat.aborted).toEqual([0]);
    expect(await page.getByRole("button", { name: "Send" }).isVisible()).toBe(true);
    expect(await page.getByRole("status").textContent()).toBe("Stopped.");
    await say(page, "Next");
    await answers(page).getByText("ok", { exact: true }).waitFor();
    expect(chat.asked[1]?.messages[1]).toEqual({ role: "assistant", content: "Part" });
  });

  it("takes text for text: markup in questions, answers, thoughts and errors is shown, not run", async () => {
    const evil = '<img src=x onerror="window.hit=1"><script>window.hit=1</script><b>bold</b>';
    const { page, complained } = await open((fake) => {
      fake.scripts = [
        [{ reasoning_content: evil }, { content: `${evil}\n\`\`\`html\n${evil}\n\`\`\`` }, { finish: "stop" }],
        { status: 400, message: evil },
      ];
    });
    await say(page, evil);
    await finished(page);
    await say(page, "again");
    await page.getByRole("alert").filter({ hasText: "onerror" }).waitFor();
    expect(await page.locator("#log img, #log script, #log b").count()).toBe(0);
    expect(await page.evaluate(() => "hit" in window)).toBe(false);
    expect(await page.locator(".code-box code").textContent()).toBe(evil);
    expect(await page.locator(".question").first().textContent()).toBe(evil);
    // The policy stands behind that: not even a script of the page's own could make markup of a text.
    const refused = await page.evaluate(() => {
      try {
        document.body.insertAdjacentHTML("beforeend", "<i>x</i>");
        return "";
      } catch (error) {
        return String(error);
      }
    });
    expect(refused).toContain("TypeError");
    expect(complained.filter((text) => !text.includes("TrustedHTML"))).toEqual([]);
  });

  it("leaves what is there, and what is selected in it, while more comes", async () => {
    const { page } = await open((fake) => {
      const code = ["```js\n", "let a;\n", "```\n", "And ", "more."].map((content) => ({ content }));
      fake.scripts = [[{ content: "First words" }, 300, { content: " and others.\n" }, ...code, { finish: "stop" }]];
    });
    await say(page, "Hi");
    const prose = answers(page).locator(".prose").first();
    await prose.getByText("First words").waitFor();
    await prose.evaluate((it) => getSelection()?.setBaseAndExtent(it.firstChild ?? it, 0, it.firstChild ?? it, 5));
    await finished(page);
    expect(await page.evaluate(() => getSelection()?.toString())).toBe("First");
    expect(await answers(page).locator(".prose").allTextContents()).toEqual(["First words and others.", "And more."]);
    expect(await answers(page).locator("pre").textContent()).toBe("let a;");
  });

  it("shows thoughts while they come, and puts them away for the answer", async () => {
    const { page, chat } = await open((fake) => {
      fake.scripts = [
        [{ reasoning_content: "Let me " }, { reasoning_content: "think." }, 500, { content: "42" }, { finish: "stop" }],
        [{ content: "ok" }, { finish: "stop" }],
      ];
    });
    await say(page, "Why?");
    await page.getByText("Let me think.").waitFor();
    await finished(page);
    expect(await page.getByText("Let me think.").isVisible()).toBe(false);
    await page.getByText(/^Thought for \d+\.\d s$/).click();
    expect(await page.getByText("Let me think.").isVisible()).toBe(true);
    await say(page, "And?");
    await expect
      .poll(() => chat.asked[1]?.messages[1])
      .toMatchObject({ content: "42", reasoning_content: "Let me think." });
  });

  it("shows calls of tools, and sends back what they gave", async () => {
    const call = (index: number, id: string | undefined, called: object) => ({
      tool_calls: [{ index, ...(id === undefined ? {} : { id, type: "function" }), function: called }],
    });
    const { page, chat, complained } = await open((fake) => {
      fake.scripts = [
        [
          { content: "I look it up." },
          call(0, "call_a", { name: "get_weather", arguments: "" }),
          call(0, undefined, { arguments: '{"city":' }),
          call(0, undefined, { arguments: '"Oslo"}' }),
          call(1, "call_b", { name: "get_weather", arguments: '{"city":"Rome"}' }),
          { finish: "tool_calls" },
        ],
        [{ content: "Cold there, warm here." }, { finish: "stop" }],
      ];
    });
    await page.getByRole("button", { name: "Options" }).click();
    await page.locator('[data-example="tools"]').click();
    await page.getByRole("button", { name: "Done" }).click();
    await page.getByText("1 tool", { exact: true }).waitFor();
    await say(page, "Weather in Oslo and Rome?");
    const first = page.getByLabel("Result of get_weather, call 1");
    await first.waitFor();
    expect(await first.evaluate((it) => it === document.activeElement)).toBe(true);
    await page.keyboard.type("-3 °C");
    await page.keyboard.press("Tab");
    await page.keyboard.type("21 °C");
    await page.screenshot({ path: screenshotPath("tool-call") });
    await page.keyboard.press("Tab");
    await page.keyboard.press("Enter");
    await answers(page).getByText("Cold there, warm here.").waitFor();
    expect(chat.asked[0]?.tools).toMatchObject([{ type: "function", function: { name: "get_weather" } }]);
    const [, assistant, ...results] = chat.asked[1]?.messages ?? [];
    expect(assistant).toEqual({
      role: "assistant",
      content: "I look it up.",
      tool_calls: [
        { id: "call_a", type: "function", function: { name: "get_weather", arguments: '{"city":"Oslo"}' } },
        { id: "call_b", type: "function", function: { name: "get_weather", arguments: '{"city":"Rome"}' } },
      ],
    });
    expect(results).toEqual([
      { role: "tool", tool_call_id: "call_a", content: "-3 °C" },
      { role: "tool", tool_call_id: "call_b", content: "21 °C" },
    ]);
    expect(complained).toEqual([]);
  });

  it("asks for JSON of a schema, and lays it out", async () => {
    const { page, chat } = await open((fake) => {
      fake.scripts = [[{ content: '{"name":"Ada",' }, { content: '"age":36}' }, { finish: "stop" }]];
    });
    await page.getByRole("button", { name: "Options" }).click();
    await page.getByLabel("JSON of a schema").check();
    await page.getByLabel("JSON Schema", { exact: true }).fill("{");
    await page.getByRole("button", { name: "Done" }).click();
    // A fault keeps the dialog open, with the focus on it.
    const schema = page.getByLabel("JSON Schema", { exact: true });
    expect(await schema.evaluate((it) => it === document.activeElement)).toBe(true);
    expect(await page.locator("#schema-error").textContent()).not.toBe("");
    await page.locator('[data-example="schema"]').click();
    await page.getByLabel("Temperature").fill("0.5");
    await page.screenshot({ path: screenshotPath("options") });
    await page.getByRole("button", { name: "Done" }).click();
    await say(page, "Who?");
    await finished(page);
    expect(chat.asked[0]).toMatchObject({
      temperature: 0.5,
      response_format: { type: "json_schema", json_schema: { schema: { type: "object" } } },
    });
    expect(await page.locator(".answer .json").textContent()).toBe('{\n  "name": "Ada",\n  "age": 36\n}');
    expect(await page.locator("#active-options").textContent()).toBe("temperature 0.5, JSON of a schema");
  });

  it("says what went wrong, and tries again", async () => {
    const { page, chat } = await open((fake) => {
      fake.scripts = [
        { status: 400, message: "The context is full." },
        [{ content: "Now it works." }, { finish: "stop" }],
      ];
    });
    await say(page, "Hi");
    await page.getByRole("alert").getByText("The context is full.").waitFor();
    await page.getByRole("button", { name: "Try again" }).click();
    await answers(page).getByText("Now it works.").waitFor();
    expect(chat.asked[1]).toEqual(chat.asked[0]);
    expect(await answers(page).count()).toBe(1);
  });

  it("starts anew", async () => {
    const { page, chat } = await open((fake) => {
      fake.scripts = [
        [{ content: "one" }, 60_000],
        [{ content: "two" }, { finish: "stop" }],
      ];
    });
    await say(page, "First");
    await answers(page).getByText("one").waitFor();
    await page.getByRole("button", { name: "New chat" }).click();
    expect(await answers(page).count()).toBe(0);
    await say(page, "Second");
    await answers(page).getByText("two").waitFor();
    expect(chat.asked[1]?.messages).toEqual([{ role: "user", content: "Second" }]);
    expect(chat.aborted).toContain(0);
  });

  it("lets one choose among several models, and asks for a key where one is needed", async () => {
    const chat = new FakeChat();
    chat.models = ["small", "large"];
    chat.key = "secret";
    const url = await listen(chat.fetch, () => [idle]);
    const context = await browser.newContext();
    cleanUps.push(() => context.close());
    const page = await context.newPage();
    await page.goto(url);
    await page.getByText("This server asks for a key").waitFor();
    await page.getByRole("button", { name: "Options" }).click();
    await page.getByLabel("API key").fill("secret");
    await page.getByRole("button", { name: "Done" }).click();
    await page.locator(".places").waitFor();
    await page.getByLabel("Model").selectOption("large");
    await say(page, "Hi");
    await finished(page);
    expect(chat.asked[0]?.model).toBe("large");
  });

  it("can be used with the keyboard alone", async () => {
    const { page } = await open();
    const seen: string[] = [];
    for (let i = 0; i < 8; i++) {
      await page.keyboard.press("Shift+Tab");
      seen.push(await page.evaluate(() => document.activeElement?.id ?? ""));
    }
    expect(seen).toEqual(expect.arrayContaining(["log", "open-options", "new-chat"]));
    await page.locator("#open-options").focus();
    await page.keyboard.press("Enter");
    expect(await page.getByRole("dialog", { name: "Options" }).isVisible()).toBe(true);
    await page.keyboard.press("Escape");
    expect(await page.getByRole("dialog").isVisible()).toBe(false);
    expect(await page.evaluate(() => document.activeElement?.id)).toBe("open-options");
    await page.locator("#prompt").focus();
    await page.keyboard.type("two");
    await page.keyboard.press("Shift+Enter");
    await page.keyboard.type("lines");
    await page.keyboard.press("Enter");
    await finished(page);
    expect(await page.locator(".question").textContent()).toBe("two\nlines");
  });

  it("gives every control a name, and every text enough contrast, in light and dark", async () => {
    for (const colorScheme of ["light", "dark"] as const) {
      const { page } = await open(undefined, { colorScheme });
      await say(page, "Hi");
      await finished(page);
      const nameless = await page.$$eval("button, input, textarea, select", (controls) =>
        controls
          .filter((control) => {
            const labels = (control as HTMLInputElement).labels?.length ?? 0;
            return labels === 0 && !control.textContent?.trim() && !control.getAttribute("aria-label");
          })
          .map((control) => control.outerHTML),
      );
      expect(nameless).toEqual([]);
      expect(await page.evaluate(lowContrasts), colorScheme).toEqual([]);
    }
  });

  it("fits a narrow screen and a large font, and hears the reader's choice of dark", async () => {
    const long = `${"A sentence of some length that has to break. ".repeat(6)}${"x".repeat(200)}`;
    const { page } = await open(
      (fake) => {
        fake.scripts = [
          [{ content: `${long}\n\`\`\`js\nconst a = "${"y".repeat(120)}";\n\`\`\`\n` }, { finish: "stop" }],
        ];
      },
      { viewport: { width: 360, height: 720 }, colorScheme: "dark" },
      { ...idle, decoding: 3, prefilling: 1, queued: 2 },
    );
    await say(page, "Hi");
    await finished(page);
    expect(await page.evaluate(() => document.documentElement.scrollWidth)).toBe(360);
    expect(await page.locator(".sentence").textContent()).toBe("3 decoding, 1 reading its prompt, 2 in the queue");
    await page.screenshot({ path: screenshotPath("narrow-dark") });
    await page.getByRole("button", { name: "Options" }).click();
    const box = await page.getByRole("dialog").boundingBox();
    expect(box?.width).toBeLessThanOrEqual(360);
  });

  it("says so when no model is loaded", async () => {
    const chat = new FakeChat();
    const url = await listen(chat.fetch, () => []);
    const context = await browser.newContext();
    cleanUps.push(() => context.close());
    const page = await context.newPage();
    await page.goto(url);
    await page.getByText("No model is loaded.").waitFor();
  });

  it("shows nano's batch as it is", async () => {
    const engine: Engine = await loadNano({ parallel: 8, contextSize: 4096 });
    cleanUps.push(() => engine.close());
    const { id, parallel } = engine.info;
    const url = await listen(engine.fetch, () => [liveModel(id, parallel, engine.stats())]);
    const { page, complained } = await visit(url, { colorScheme: "dark" });
    const controller = new AbortController();
    // Answers that nano may not end: 1502 is the token that does.
    const others = Array.from({ length: 5 }, async (_, i) => {
      const stream = await engine.chat.completions.create(
        {
          messages: [{ role: "user", content: `Tell me a story about ${i}.` }],
          max_tokens: 500,
          logit_bias: { 1502: -100 },
          stream: true,
        },
        { signal: controller.signal },
      );
      for await (const _chunk of stream) await new Promise((resolve) => setTimeout(resolve, 10));
    });
    await page.getByText("5 decoding").waitFor();
    expect(await page.locator(".places .decoding").count()).toBe(5);
    await say(page, "Tell me a story.");
    await finished(page);
    expect(await answers(page).locator(".prose").textContent()).toMatch(/\w+ \w+/);
    await expect.poll(async () => Number(await page.locator(".speed b").textContent())).toBeGreaterThan(0);
    await page.screenshot({ path: screenshotPath("streaming-dark") });
    await page.getByRole("button", { name: "Options" }).click();
    await page.getByLabel("JSON of a schema").check();
    await page.locator('[data-example="schema"]').click();
    await page.getByLabel("Most tokens").fill("60");
    await page.getByRole("button", { name: "Done" }).click();
    await say(page, "Say: blue lamp river");
    await answers(page).nth(1).getByText("in all").waitFor();
    expect(await answers(page).nth(1).locator(".json").textContent()).toMatch(/^\{\s*"name":\s*"/);
    controller.abort();
    await Promise.allSettled(others);
    await page.getByText("Idle, 8 places free").waitFor();
    expect(await page.locator(".model-batch").textContent()).toMatch(/\d+ kept for reuse, of 4096/);
    expect(complained).toEqual([]);
  });

  it("looks like this while an answer streams", async () => {
    const live = { ...idle, decoding: 4, prefilling: 2, queued: 1, cellsUsed: 700, cellsCached: 500, steps: 90 };
    const { page } = await open(
      (fake) => {
        const words = "A loop takes one step for all who wait, and nobody waits for the others.".split(" ");
        const code = "```ts\nfor await (const chunk of stream) {\n  write(chunk);\n}\n```\nThat is ";
        fake.scripts = [
          [
            { reasoning_content: "Short, with an example." },
            ...words.map((word) => ({ content: `${word} ` })),
            { content: `\n\n${code}` },
            60_000,
          ],
        ];
      },
      {},
      { ...live, sharedSteps: 80, promptTokens: 400, cachedTokens: 300 },
    );
    await say(page, "What is a token loop?");
    await answers(page).getByText("That is").waitFor();
    await page.waitForTimeout(500);
    await page.screenshot({ path: screenshotPath("streaming") });
  });
});

/** Texts whose contrast to what is behind them is below 4.5 (WCAG 2.2, 1.4.3), with it. Runs in the page. */
function lowContrasts(): string[] {
  const canvas = document.createElement("canvas").getContext("2d", { willReadFrequently: true });
  const luminance = (colour: string) => {
    if (canvas === null) return 0;
    canvas.fillStyle = colour;
    canvas.fillRect(0, 0, 1, 1);
    const [r = 0, g = 0, b = 0] = [...canvas.getImageData(0, 0, 1, 1).data].map((value) => {
      const share = value / 255;
      return share <= 0.04045 ? share / 12.92 : ((share + 0.055) / 1.055) ** 2.4;
    });
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const behind = (element: Element): string => {
    for (let at: Element | null = element; at !== null; at = at.parentElement) {
      const { backgroundColor } = getComputedStyle(at);
      if (!/rgba\(.*, 0\)|transparent/.test(backgroundColor)) return backgroundColor;
    }
    return "white";
  };
  return [...document.querySelectorAll("body *")].flatMap((element) => {
    const own = [...element.childNodes].some((node) => node.nodeType === Node.TEXT_NODE && node.textContent?.trim());
    const { color, visibility } = getComputedStyle(element);
    if (!own || visibility === "hidden" || element.getClientRects().length === 0) return [];
    const [a, b] = [luminance(color), luminance(behind(element))];
    const contrast = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
    return contrast < 4.5 ? [`${element.className || element.tagName}: ${contrast.toFixed(2)}`] : [];
  });
}
