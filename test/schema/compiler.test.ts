import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { monitorEventLoopDelay } from "node:perf_hooks";
import { afterAll, afterEach, describe, expect, it } from "vitest";
import { EngineClosedError, InternalError, RateLimitError } from "../../src/errors.js";
import type { CompileThreadOptions } from "../../src/schema/compile-thread.js";
import { SchemaCompiler } from "../../src/schema/compiler.js";
import { compileSchema, SchemaError } from "../../src/schema/index.js";
import { schemaWorkerFile } from "../support/schema-worker.js";

const folder = mkdtempSync(join(tmpdir(), "tokenloop-schema-"));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

const compilers: SchemaCompiler[] = [];
afterEach(() => Promise.all(compilers.splice(0).map((compiler) => compiler.close())));
function compiler(options?: CompileThreadOptions): SchemaCompiler {
  const made = new SchemaCompiler(options);
  compilers.push(made);
  return made;
}

/** A worker's program that does something else with some of the schemas. */
function program(name: string, code: string): string {
  const file = join(folder, `${name}.mjs`);
  const real = JSON.stringify(schemaWorkerFile());
  writeFileSync(
    file,
    `import { parentPort } from "node:worker_threads";\nparentPort.on("message", ({ text }) => { ${code} });\nawait import(${real});\n`,
  );
  return file;
}

const wide = (properties: number, name = "p") => ({
  type: "object",
  additionalProperties: false,
  properties: Object.fromEntries(Array.from({ length: properties }, (_, i) => [`${name}${i}`, { type: "string" }])),
});
/** 24 characters that cost a second and more. */
const slow = { allOf: Array.from({ length: 30 }, (_, i) => ({ pattern: `^(a|b)*a(a|b){${i + 8}}$` })) };

describe("small schemas", () => {
  it("are compiled at once, without a thread", () => {
    const schema = { type: "object", properties: { a: { type: "string" } }, required: ["a"] };
    const grammar = compiler({ file: "/nowhere" }).grammar({ schema });
    expect(grammar).toBe(compileSchema(schema).grammar);
  });

  it("are refused at once, in the name of the field that they came in", () => {
    const ask = () => compiler().grammar({ schema: { type: "strng" }, param: "tools[2].function.parameters" });
    expect(ask).toThrow(SchemaError);
    expect(ask).toThrow(expect.objectContaining({ param: "tools[2].function.parameters", pointer: "/type" }));
    expect(() => compiler().grammar({ schema: undefined, param: "x" })).toThrow(
      expect.objectContaining({ param: "x" }),
    );
  });
});

describe("other schemas", () => {
  it("are compiled on a thread, to the same grammar", async () => {
    const schema = { type: "string", pattern: "^a+$" };
    const grammar = compiler().grammar({ schema });
    expect(grammar).toBeInstanceOf(Promise);
    expect(await grammar).toBe(compileSchema(schema).grammar);
  });

  it("are refused with the same error, under each one's own field", async () => {
    const schema = { type: "object", properties: { a: { pattern: "(?=a)" } } };
    const one = compiler();
    const errors = await Promise.all(
      ["response_format", "grammar_json_functions"].map(async (param) => {
        try {
          return await one.grammar({ schema, param });
        } catch (error) {
          return error;
        }
      }),
    );
    for (const error of errors) {
      expect(error).toBeInstanceOf(SchemaError);
      expect(error).toMatchObject({ status: 400, pointer: "/properties/a/pattern", keyword: "pattern" });
    }
    expect(errors).toMatchObject([{ param: "response_format" }, { param: "grammar_json_functions" }]);
  });

  it("leave this thread free: 1,000 properties", async () => {
    const one = compiler();
    await one.grammar({ schema: wide(1000) });
    const delay = monitorEventLoopDelay({ resolution: 1 });
    delay.enable();
    await new Promise((resolve) => setTimeout(resolve, 20));
    delay.reset();
    for (let i = 0; i < 5; i++) await one.grammar({ schema: wide(1000, `p${i}_`) });
    delay.disable();
    // On this thread each would take 15 ms and more.
    expect(delay.percentile(50) / 1e6).toBeLessThan(5);
  });

  it("are known the second time, also when refused, and the strict ones apart from the others", async () => {
    const one = compiler();
    const schema = { type: "string", format: "date" };
    const grammar = await one.grammar({ schema });
    expect(one.grammar({ schema })).toBe(grammar);
    expect(one.grammar({ schema, whitespace: true })).toBeInstanceOf(Promise);
    const strict = { schema, strict: true };
    await expect(one.grammar(strict)).rejects.toBeInstanceOf(SchemaError);
    expect(() => one.grammar(strict)).toThrow(SchemaError);
  });

  it("are compiled once for all who ask at the same time", async () => {
    const file = program(
      "counting",
      "globalThis.count = (globalThis.count ?? 0) + 1; if (globalThis.count > 1) process.exit(9);",
    );
    const one = compiler({ file });
    const schema = wide(200);
    const grammars = await Promise.all(Array.from({ length: 10 }, () => one.grammar({ schema })));
    expect(new Set(grammars).size).toBe(1);
    // The program would have noticed a second one.
    await expect(one.grammar({ schema: wide(201) })).rejects.toBeInstanceOf(InternalError);
  });

  it("are forgotten, the oldest first, beyond so many bytes", async () => {
    // Time is not what this is about, and the machine may be busy.
    const one = compiler({ deadline: 30_000 });
    const schema = (i: number) => wide(1500, `property_${i}_`);
    const first = await one.grammar({ schema: schema(0) });
    for (let i = 1; i < 80; i++) {
      await one.grammar({ schema: schema(i) });
      expect(one.bytes).toBeLessThanOrEqual(32 << 20);
      expect(one.grammar({ schema: schema(i) })).toBeTypeOf("string");
    }
    const again = one.grammar({ schema: schema(0) });
    expect(again).toBeInstanceOf(Promise);
    expect(await again).toBe(first);
  });
});

describe("the thread", () => {
  it("that takes too long is ended, and only that schema refused", async () => {
    const file = program("endless", 'if (text.includes("endless")) for (;;);');
    const one = compiler({ file, deadline: 200 });
    await one.grammar({ schema: wide(100) });
    const started = performance.now();
    const [endless, ...others] = await Promise.allSettled([
      one.grammar({ schema: wide(100, "endless") }),
      one.grammar({ schema: wide(100, "a") }),
      one.grammar({ schema: wide(100, "b") }),
    ]);
    expect(endless).toMatchObject({
      status: "rejected",
      reason: { status: 400, code: "unsupported_schema", param: "response_format", message: /longer than 200 ms/ },
    });
    expect(others).toMatchObject([{ status: "fulfilled" }, { status: "fulfilled" }]);
    expect(performance.now() - started).toBeLessThan(5000);
  });

  it("has a second for each schema, and says of which part it was", async () => {
    const one = compiler();
    await one.grammar({ schema: wide(100) });
    const started = performance.now();
    await expect(one.grammar({ schema: slow })).rejects.toMatchObject({ status: 400, param: "response_format" });
    expect(performance.now() - started).toBeLessThan(1500);
    expect(await one.grammar({ schema: wide(101) })).toContain("root ::=");
  });

  it.each([
    ["exits", "process.exit(3)", /exited with code 3/],
    // The program's other listener is still called, so it must have nothing to say it with.
    ["throws", '{ parentPort.postMessage = () => undefined; throw new Error("boom"); }', /boom/],
  ])("that %s takes only its own schema with it", async (name, act, message) => {
    const file = program(name, `if (text.includes("bad")) ${act};`);
    const one = compiler({ file });
    const settled = await Promise.allSettled(
      ["good", "bad", "fine", "bad2", "well"].map((prefix) => one.grammar({ schema: wide(100, prefix) })),
    );
    expect(settled.map(({ status }) => status)).toEqual([
      "fulfilled",
      "rejected",
      "fulfilled",
      "rejected",
      "fulfilled",
    ]);
    expect(settled[1]).toMatchObject({
      reason: { status: 500, code: "schema_thread_failed", message: expect.stringMatching(message) },
    });
    expect((settled[1] as PromiseRejectedResult).reason).toBeInstanceOf(InternalError);
  });

  it("that runs out of memory takes only its own schema with it, and it is the schema's fault", async () => {
    const file = program(
      "memory",
      'if (text.includes("bad")) { const all = []; for (;;) all.push(new Array(1e6).fill(all)); }',
    );
    const one = compiler({ file, deadline: 20_000 });
    const settled = await Promise.allSettled(
      ["bad", "good"].map((prefix) => one.grammar({ schema: wide(100, prefix) })),
    );
    expect(settled).toMatchObject([
      { reason: { status: 400, message: expect.stringContaining("512 MiB") } },
      { status: "fulfilled" },
    ]);
  });

  it("that cannot be started fails each request with a typed error", async () => {
    const one = compiler({ file: join(folder, "missing.mjs") });
    const settled = await Promise.allSettled(["a", "b"].map((prefix) => one.grammar({ schema: wide(100, prefix) })));
    for (const each of settled) expect(each).toMatchObject({ reason: { code: "schema_thread_failed", status: 500 } });
  });

  it("ends with close(), which rejects what waits", async () => {
    const one = compiler();
    await one.grammar({ schema: wide(100) });
    const waiting = Promise.allSettled([one.grammar({ schema: slow }), one.grammar({ schema: wide(101) })]);
    await one.close();
    await one.close();
    for (const each of await waiting) {
      expect(each).toMatchObject({ status: "rejected" });
      expect((each as PromiseRejectedResult).reason).toBeInstanceOf(EngineClosedError);
    }
    await expect(one.grammar({ schema: wide(102) })).rejects.toBeInstanceOf(EngineClosedError);
  });

  it("takes no more than 512 at a time", async () => {
    const one = compiler();
    const settled = Promise.allSettled(
      Array.from({ length: 600 }, (_, i) =>
        one.grammar({ schema: { type: "string", pattern: "^a$", description: `${i}` } }),
      ),
    );
    await expect(one.grammar({ schema: { pattern: "b" } })).rejects.toBeInstanceOf(RateLimitError);
    const statuses = (await settled).map(({ status }) => status);
    expect(statuses.filter((status) => status === "fulfilled").length).toBe(512);
  });
});
