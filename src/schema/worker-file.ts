import { join } from "node:path";
import { findPackageRoot } from "../package-root.js";

/** Path of the compiled src/schema/worker.ts; undefined in a bundle that took only the code. */
export function schemaWorkerFile(): string | undefined {
  const root = findPackageRoot();
  return root === undefined ? undefined : join(root.directory, "dist", "schema-worker.js");
}
