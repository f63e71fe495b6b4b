import { execFile, spawn } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import ts from "typescript";
import { afterAll, describe, expect, it } from "vitest";

const root = fileURLToPath(new URL("../..", import.meta.url));
const readme = readFileSync(join(root, "README.md"), "utf8");
const section = readme.slice(readme.indexOf("## Use it"), readme.indexOf("## What is there"));
const blocks = (language: string) =>
  [...section.matchAll(new RegExp(`\`\`\`${language}\\n([\\s\\S]*?)\`\`\``, "g"))].map(([, code]) => code ?? "");

// Inside the checkout, so that "tokenloop" and "openai" are found as a user's project would find them.
const folder = mkdtempSync(join(root, "build", "readme-"));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

/** Runs a snippet as it stands, types stripped, from the root of the checkout. */
async function run(code: string, name: string): Promise<string> {
  const { outputText } = ts.transpileModule(code, {
    compilerOptions: { module: ts.ModuleKind.ESNext, target: ts.ScriptTarget.ES2022 },
  });
  const file = join(folder, `${name}.mjs`);
  writeFileSync(file, outputText);
  const { stdout } = await promisify(execFile)(process.execPath, [file], { cwd: root });
  return stdout;
}

describe("README's snippets", () => {
  const [inProcess = "", anyClient = "", mounted = "", ...more] = blocks("ts");

  it("are the three programs tested here", () => expect(more).toEqual([]));

  it("1. the OpenAI call, in process", async () => {
    expect(await run(inProcess, "one")).toBe("The capital of France is Paris.");
  });

  it("2. any OpenAI client, no socket", async () => {
    expect(await run(anyClient, "two")).toBe("A dog says woof.\n");
  });

  it("3. mounted in a server", async () => {
    expect(JSON.parse(await run(mounted, "three"))).toMatchObject({ object: "list", data: [{ id: "nano-chat" }] });
  });

  it("4. the command line", async () => {
    const commands = blocks("sh").join("").trim().split("\n");
    expect(commands).toEqual([
      "npx tokenloop serve test/models/nano/nano.gguf --port 8080",
      "npx tokenloop chat test/models/nano/nano.gguf",
      // test/benchmark runs this one.
      expect.stringMatching(/^npx tokenloop bench test\/models\/nano\/nano\.gguf --serve /),
    ]);
    const chat = spawn(
      process.execPath,
      ["dist/cli/main.js", "chat", "test/models/nano/nano.gguf", "--temperature", "0"],
      { cwd: root },
    );
    chat.stdin.end("What is the capital of France?\nWhat does a dog say?\n");
    let stdout = "";
    chat.stdout.on("data", (data) => {
      stdout += data;
    });
    const code = await new Promise((resolve) => chat.once("close", resolve));
    expect(code).toBe(0);
    expect(stdout).toContain("The capital of France is Paris.");
  });

  it("can be compiled against the published types", () => {
    const files = [inProcess, anyClient, mounted].map((code, n) => {
      const file = join(folder, `types-${n}.mts`);
      writeFileSync(file, code);
      return file;
    });
    const program = ts.createProgram(files, {
      module: ts.ModuleKind.NodeNext,
      target: ts.ScriptTarget.ES2022,
      strict: true,
      noEmit: true,
      skipLibCheck: true,
      types: ["node"],
      typeRoots: [join(root, "node_modules/@types")],
    });
    expect(
      ts.getPreEmitDiagnostics(program).map(({ messageText }) => ts.flattenDiagnosticMessageText(messageText, "\n")),
    ).toEqual([]);
  });
});
