import { existsSync, readdirSync, readFileSync } from "node:fs";
import { describe, expect, it } from "vitest";
import { Engine } from "../../src/engine.js";
import { templateFault } from "../../src/gguf/check-template.js";
import { nanoModel } from "../models/nano.js";

const n = 100_000;
const some = 20_000;
const wrap = (before: string, after: string, middle = "1") => `{{ ${before.repeat(n)}${middle}${after.repeat(n)} }}`;

describe("templateFault", () => {
  // llama.cpp ends the process over each of these.
  it.each([
    ["parentheses", wrap("(", ")"), "brackets"],
    ["parentheses that stay open", wrap("(", ""), "brackets"],
    ["lists", wrap("[", "]"), "brackets"],
    ["dictionaries", wrap("{1:", "}"), "brackets"],
    ["calls", wrap("range(", ")"), "brackets"],
    ["negations", wrap("not ", ""), "parts"],
    ["members", wrap("", ".b", "a"), "parts"],
    ["filters", wrap("", "|string"), "parts"],
    ["sums", wrap("", "+1"), "parts"],
    ["ifs", `${"{% if 1 %}".repeat(some)}x${"{%- endif -%}".repeat(some)}`, "blocks"],
    ["fors", `${"{%- for a in [1] %}".repeat(some)}x${"{% endfor %}".repeat(some)}`, "blocks"],
    ["branches", `{% if 1 %}${"{% elif 2 %}".repeat(some)}{% endif %}`, "branches"],
    ["text", "x".repeat(2 ** 20 + 1), "longer"],
  ])("refuses too many %s", async (_name, template, reason) => {
    expect(templateFault(template)).toContain(reason);
    await expect(Engine.load({ model: nanoModel(), chatTemplate: template })).rejects.toMatchObject({
      status: 400,
      param: "chatTemplate",
      code: "invalid_chat_template",
    });
  });

  it("leaves others alone", () => {
    const own = readFileSync(new URL("../models/nano/template.jinja", import.meta.url), "utf8");
    for (const template of [
      own,
      "",
      "no tags",
      "{{ open",
      "{% if",
      `{# ${"(".repeat(n)} #}{{ "${"(".repeat(n)}" }}${"(".repeat(n)}{{ '}}' ~ {"a": {"b": 1}} }}`,
      "{% if a %}x{% endif %}".repeat(5000),
      "{% set a = 1 %}".repeat(5000),
      "{% set b %}x{% endset %}".repeat(5000),
    ]) {
      expect(templateFault(template)).toBeUndefined();
    }
  });

  const cases = new URL("../../../shared/cases/templates/", import.meta.url);
  it.skipIf(!existsSync(cases))("leaves real templates alone (../shared/cases/templates)", () => {
    const names = readdirSync(cases).filter((name) => name.endsWith(".jinja"));
    expect(names.length).toBeGreaterThan(10);
    for (const name of names) expect(templateFault(readFileSync(new URL(name, cases), "utf8")), name).toBeUndefined();
  });

  it("takes time in proportion to the template", () => {
    const start = performance.now();
    for (const part of ["{{ '", "{%", "{# ", "{{ { ", "'", '{{ "\\']) templateFault(part.repeat(2 ** 17));
    expect(performance.now() - start).toBeLessThan(3000);
  });
});
