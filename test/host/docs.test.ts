import { readFileSync } from "node:fs";
import { describe, expect, it } from "vitest";
import { parse } from "yaml";
import { leaves, prefixes } from "../../src/host/localai-keys.js";
import { validateHostConfig } from "../../src/host/spec.js";

const text = readFileSync(new URL("../../docs/hosting.md", import.meta.url), "utf8");

describe("docs/hosting.md", () => {
  it("has a configuration that is right", () => {
    const [, yaml = ""] = /```yaml\n([\s\S]*?)```/.exec(text) ?? [];
    const { models, defaultModel } = validateHostConfig(parse(yaml));
    expect(models.map(({ name }) => name)).toEqual(["qwen", "extractor"]);
    expect(defaultModel.idleUnloadMs).toBe(600_000);
  });

  it("lists what becomes of each of LocalAI's keys", () => {
    const rows = new Map(
      [...text.matchAll(/^\| `([^`]+)`\s*\| (.*?)\s*\|$/gm)].map(([, key = "", row = ""]) => [key, row]),
    );
    for (const [key, rule] of Object.entries(leaves)) {
      const row = rows.get(key);
      expect(row, key).toBeDefined();
      if ("to" in rule) expect(row, key).toContain(rule.to);
      if ("why" in rule && rule.why !== undefined && rule.kind !== "default") expect(row, key).toContain(rule.why);
    }
    for (const [prefix] of prefixes) expect(rows.has(`${prefix}…`), prefix).toBe(true);
  });
});
