import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, describe, expect, it } from "vitest";
import { runCli } from "../../src/cli/run.js";
import { modelFile, tick } from "../support/scripted-engine.js";
import { ScriptedIo } from "../support/scripted-io.js";

const folder = mkdtempSync(join(tmpdir(), "tokenloop-page-"));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

async function serve(subject: string, ...flags: string[]) {
  const io = new ScriptedIo({ script: { pieces: ["a"] } });
  const status = runCli(["serve", subject, "--port", "0", ...flags], io);
  for (let i = 0; i < 400 && !io.stdout.text.includes("chat page: "); i++) await tick(5);
  const url = /chat page: (\S+)\)/.exec(io.stdout.text)?.[1] ?? "";
  const stop = async () => {
    io.signal("SIGTERM");
    expect(await status).toBe(0);
  };
  return { url, stop };
}

async function models(response: Response): Promise<{ id: string; parallel: number; finished?: number }[]> {
  const reader = response.body?.getReader();
  const { value } = (await reader?.read()) ?? {};
  await reader?.cancel();
  return JSON.parse(new TextDecoder().decode(value).slice("data: ".length)).models;
}

describe("tokenloop serve's chat page", () => {
  it("is there, and ends with the server, also while somebody looks", async () => {
    const { url, stop } = await serve(modelFile, "--model-id", "mine");
    expect(await (await fetch(url)).text()).toContain("<title>tokenloop</title>");
    const watched = await fetch(`${url}page/live`);
    expect(await models(await fetch(`${url}page/live`))).toMatchObject([{ id: "mine" }]);
    const began = performance.now();
    await stop();
    expect(await watched.text()).toContain('"id":"mine"');
    expect(performance.now() - began).toBeLessThan(1500);
  });

  it("shows nothing without the key, where one is asked for, and the batch with it", async () => {
    const { url, stop } = await serve(modelFile, "--api-key", "secret");
    expect((await fetch(url)).status).toBe(200);
    expect((await fetch(`${url}page/live`)).status).toBe(401);
    const headers = { authorization: "Bearer secret" };
    expect(await models(await fetch(`${url}page/live`, { headers }))).toHaveLength(1);
    await stop();
  });

  it("shows those models of a configuration that are loaded", async () => {
    const config = join(folder, "models.yaml");
    writeFileSync(config, `models:\n  - {name: one, path: ${modelFile}}\n  - {name: two, path: ${modelFile}}\n`);
    const { url, stop } = await serve(config);
    expect(await models(await fetch(`${url}page/live`))).toEqual([]);
    const asked = await fetch(`${url}v1/chat/completions`, {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: JSON.stringify({ model: "two", messages: [{ role: "user", content: "hi" }] }),
    });
    expect(asked.status).toBe(200);
    expect(await models(await fetch(`${url}page/live`))).toMatchObject([{ id: "two", decoding: 0 }]);
    await stop();
  });
});
