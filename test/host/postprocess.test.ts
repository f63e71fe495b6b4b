import { RE2JS } from "re2js";
import { describe, expect, it } from "vitest";
import { compilePostprocess, type PostprocessOptions } from "../../src/host/postprocess.js";
import { randomSource } from "../support/test-addon.js";

const nothing: PostprocessOptions = { cutStrings: [], extractRegex: [], trimSpace: [], trimSuffix: [] };

function run(options: Partial<PostprocessOptions>, pieces: readonly string[]): string {
  const stage = compilePostprocess({ ...nothing, ...options })?.();
  if (stage === undefined) return pieces.join("");
  return pieces.map((piece) => stage.push(piece)).join("") + stage.finish();
}

/** The whole text at once, by LocalAI's rules and another implementation of regular expressions. */
function oracle(options: Partial<PostprocessOptions>, whole: string): string {
  const trim = (text: string) => text.replace(/^[\s\x85]+|[\s\x85]+$/g, "");
  let text = whole;
  for (const cut of options.cutStrings ?? []) text = RE2JS.compile(cut).matcher(text).replaceAll("");
  let extracted = "";
  for (const extract of options.extractRegex ?? []) {
    const matcher = RE2JS.compile(extract).matcher(text);
    if (matcher.find()) extracted += matcher.group() ?? "";
  }
  if (extracted !== "") text = extracted;
  for (const prefix of options.trimSpace ?? []) {
    text = trim(text.startsWith(prefix) ? text.slice(prefix.length) : text);
  }
  for (const suffix of options.trimSuffix ?? []) {
    text = trim(text.endsWith(suffix) ? text.slice(0, text.length - suffix.length) : text);
  }
  return text;
}

describe("post-processing", () => {
  const localAi = {
    cutStrings: ["<.*?>"],
    extractRegex: ["<result>(.*?)</result>"],
    trimSpace: [" ", "\n"],
    trimSuffix: [".", "!"],
  };
  it.each([
    ["Hello World", "Hello World"],
    ["<div>Hello</div> World", "Hello World"],
    ["<response><result>42</result></response>", "42"],
    [" \n Hello World \n", "Hello World"],
    ["Hello World.", "Hello World"],
    ["Hello World.!", "Hello World."],
    ["", ""],
  ])("%j becomes %j", (text, expected) => {
    expect(run(localAi, [text])).toBe(expected);
    expect(run(localAi, text.split(""))).toBe(expected);
  });

  it("extracts the first match of each expression, in their order", () => {
    const options = { extractRegex: ["b\\d", "a\\d"] };
    expect(run(options, ["x a1 a2 b1 b2"])).toBe("b1a1");
    expect(run(options, ["only a1"])).toBe("a1");
    expect(run(options, ["neither"])).toBe("neither");
  });

  it("on a stream is post-processing on the whole text, for every chunking", () => {
    const choices: Record<keyof PostprocessOptions, string[][]> = {
      cutStrings: [[], ["<.*?>"], ["(?s)<think>.*?</think>", "a+b?"], ["\\s+$"], ["^a", "b|"]],
      extractRegex: [[], ["<b>.*?</b>"], ["a\\w*", "b+"], ["^\\w+$"], ["x*"]],
      trimSpace: [[], [""], ["a", " "], ["<think>"], ["ab", "a", "b"]],
      trimSuffix: [[], ["."], [" .", "!"], ["ab", "."], ["", "</b>"]],
    };
    const random = randomSource(20261201);
    const pick = <T>(list: readonly T[]): T => list[Math.floor(random() * list.length)] as T;
    const alphabet = [
      "a",
      "b",
      "ab",
      " ",
      "\n",
      ".",
      "!",
      "<b>",
      "</b>",
      "<think>",
      "</think>",
      "\u00a0",
      "\x85",
      "é",
      "😀",
    ];
    for (let round = 0; round < 3000; round++) {
      const options = {
        cutStrings: pick(choices.cutStrings),
        extractRegex: pick(choices.extractRegex),
        trimSpace: pick(choices.trimSpace),
        trimSuffix: pick(choices.trimSuffix),
      };
      const text = Array.from({ length: Math.floor(random() * 12) }, () => pick(alphabet)).join("");
      const about = `${JSON.stringify(options)} on ${JSON.stringify(text)}`;
      const expected = oracle(options, text);
      expect(run(options, [text]), about).toBe(expected);
      expect(run(options, text.split("")), about).toBe(expected);
      const pieces: string[] = [];
      for (let at = 0; at < text.length; ) {
        const end = at + Math.floor(random() * 5);
        pieces.push(text.slice(at, end));
        at = end;
      }
      expect(run(options, pieces), about).toBe(expected);
    }
  });

  it("sends on at once what cannot change any more", () => {
    const stage = compilePostprocess({
      ...nothing,
      cutStrings: ["\\[\\d+\\]"],
      trimSpace: ["Answer:"],
      trimSuffix: ["."],
    })?.();
    const pieces = ["Answ", "er: The ", "sky[", "1] is", " blue", " [", "x]. ", "."].map((piece) => stage?.push(piece));
    expect(pieces).toEqual(["", "The", " sky", " is", " blue", "", " [x]", "."]);
    expect(stage?.finish()).toBe("");
  });
});
