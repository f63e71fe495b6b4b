import { existsSync, mkdirSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { type Browser, chromium } from "playwright-core";

const names = ["chromium", "chromium-browser", "google-chrome", "google-chrome-stable"];

/** Path of a Chromium on this machine: TOKENLOOP_CHROMIUM, or the first in PATH. Nothing is ever downloaded. */
export const browserPath = [
  process.env.TOKENLOOP_CHROMIUM ?? "",
  ...(process.env.PATH ?? "").split(":").flatMap((folder) => names.map((name) => join(folder, name))),
].find((path) => path !== "" && existsSync(path));

if (browserPath === undefined) {
  console.warn(
    "SKIPPED: no Chromium found, so the chat page is not tested in a browser; set TOKENLOOP_CHROMIUM to one.",
  );
}

export function launchBrowser(): Promise<Browser> {
  // No sandbox: it cannot be had as root in a container. The pages are our own.
  return chromium.launch({ executablePath: browserPath ?? "", args: ["--no-sandbox", "--disable-gpu"] });
}

const folder = fileURLToPath(new URL("../../build/screenshots", import.meta.url));

/** Where a screenshot goes: build/screenshots in the checkout. */
export function screenshotPath(name: string): string {
  mkdirSync(folder, { recursive: true });
  return join(folder, `${name}.png`);
}
