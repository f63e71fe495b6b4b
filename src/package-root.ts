import { existsSync, readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

/** Folder of tokenloop's own package.json, and its version. */
export interface PackageRoot {
  readonly directory: string;
  readonly version: string;
}

/**
 * Walks up from this module to the package.json named "tokenloop", so that it works from dist/ as well as from src/.
 * Undefined when there is none, as in a bundle that took only the code.
 */
export function findPackageRoot(from: string = fileURLToPath(import.meta.url)): PackageRoot | undefined {
  for (let directory = dirname(from); ; directory = dirname(directory)) {
    const file = join(directory, "package.json");
    if (existsSync(file)) {
      const found = readIdentity(file);
      if (found?.name === "tokenloop") return { directory, version: found.version };
    }
    if (dirname(directory) === directory) return undefined;
  }
}

function readIdentity(file: string): { name: unknown; version: string } | undefined {
  try {
    const parsed: unknown = JSON.parse(readFileSync(file, "utf8"));
    if (typeof parsed !== "object" || parsed === null) return undefined;
    const { name, version } = parsed as { name?: unknown; version?: unknown };
    return { name, version: typeof version === "string" ? version : "0.0.0" };
  } catch {
    // An unreadable package.json on the way up belongs to someone else.
    return undefined;
  }
}
