import { fileURLToPath } from "node:url";

/** Path of nano, the tiny chat model that the repository brings (test/models/nano/README.md). */
export function nanoModel(): string {
  return fileURLToPath(new URL("nano/nano.gguf", import.meta.url));
}
