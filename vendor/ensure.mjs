// Makes a clone ready: installs what package-lock.json names, builds the addon and the TypeScript, each only if needed.
// `npm run demo` and `npm test` begin with it, so it uses Node's own modules alone.
import { spawnSync } from "node:child_process";
import { existsSync, readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

const root = dirname(dirname(fileURLToPath(import.meta.url)));

/**
 * @param {string} program
 * @param {string[]} args
 */
function run(program, args) {
  // npm is a script on Windows, which only a shell can start.
  const { status, error } = spawnSync(program, args, { cwd: root, stdio: "inherit", shell: program === "npm" });
  if (error !== undefined) console.error(`${program} cannot be run: ${error.message}`);
  if (status !== 0) process.exit(status ?? 1);
}

/**
 * Whether every package of package-lock.json lies in node_modules in its version. By content, not by time: `npm ci`
 * begins by deleting node_modules, and a checkout that only touched the lock file is no reason for that. Optional
 * packages are left out: most are for other platforms.
 */
function isInstalled() {
  const installed = join(root, "node_modules", ".package-lock.json");
  if (!existsSync(installed)) return false;
  const read = (/** @type {string} */ file) => JSON.parse(readFileSync(file, "utf8")).packages;
  const [wanted, present] = [read(join(root, "package-lock.json")), read(installed)];
  return Object.entries(wanted).every(
    ([path, { version, optional }]) => path === "" || optional === true || present[path]?.version === version,
  );
}

if (!isInstalled()) run("npm", ["ci"]);

run(process.execPath, [join(root, "vendor", "build.mjs")]);
run("npm", ["run", "--silent", "build:ts"]);
