import { execFileSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { expect, it } from "vitest";

const folder = fileURLToPath(new URL("../../src/openai/", import.meta.url));

it("validator.generated.js is what the schema gives, and needs nothing at run time", { timeout: 30_000 }, () => {
  const fresh = mkdtempSync(join(tmpdir(), "tokenloop-generated-"));
  try {
    execFileSync(process.execPath, [join(folder, "compile-schema.mjs"), fresh]);
    for (const file of ["validator.generated.js", "validator.generated.d.ts"]) {
      const code = readFileSync(join(folder, file), "utf8");
      expect(code === readFileSync(join(fresh, file), "utf8"), `${file} is out of date: generate it again`).toBe(true);
      expect(code).not.toMatch(/\brequire\(|^import /m);
    }
  } finally {
    rmSync(fresh, { recursive: true, force: true });
  }
});
