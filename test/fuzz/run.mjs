// Fuzzes the C++ grammar engine with libFuzzer, AddressSanitizer and UBSan: `npm run fuzz [-- TARGET [SECONDS]]`. Needs
// clang; no other script does. What is found is written to build/fuzz/TARGET/crash-*; it becomes a row of a test.
import { spawnSync } from "node:child_process";
import { createHash } from "node:crypto";
import { mkdirSync, readdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { grammars } from "./seeds.mjs";

const root = fileURLToPath(new URL("../..", import.meta.url));
const sources = ["grammar", "text"].flatMap((folder) =>
  readdirSync(join(root, "binding", folder))
    .filter((name) => name.endsWith(".cc"))
    .map((name) => join(root, "binding", folder, name)),
);
/** Options of libFuzzer's, and seeds. A run that takes a second without sanitizers is a finding; they cost a factor. */
const targets = {
  gbnf: { options: ["-max_len=4096", "-timeout=5"], seeds: grammars.map(([grammar]) => grammar) },
  matcher: { options: ["-max_len=1024", "-timeout=20"], seeds: grammars.flatMap(matcherSeeds) },
};

/** What the notation is made of. */
const words = [
  "root ::= ",
  "\n",
  " | ",
  "(",
  ")*",
  "+",
  "?",
  "{2,3}",
  "{4}",
  "{1,}",
  '"a"',
  '""',
  "[^a]",
  "[a-z]",
  ".",
].concat(["\\x41", "\\u00e9", "\\U0001F600", "<[7]>", "!<[7]>", "# ", " root ", "é", "😀"]);

function matcherSeeds([grammar, text]) {
  return [`${grammar}\0${text}`, `${grammar}\0${text}\0${text.slice(0, 1) || "a"}`];
}

function build(name) {
  const clang = process.env.CXX ?? "clang++";
  if (spawnSync(clang, ["--version"], { stdio: "ignore" }).status !== 0) {
    throw new Error(`${clang} was not found: libFuzzer comes with clang (Debian and Ubuntu: apt-get install clang).`);
  }
  const out = join(root, "build", "fuzz", name);
  mkdirSync(join(out, "corpus"), { recursive: true });
  const program = join(out, `${name}_fuzz`);
  const flags = ["-std=c++20", "-O1", "-g", "-Wall", "-Wextra", "-I", join(root, "binding")];
  const sanitizers = ["-fsanitize=fuzzer,address,undefined", "-fno-sanitize-recover=undefined"];
  const target = join(root, "test", "fuzz", `${name}_fuzz.cc`);
  const { status } = spawnSync(clang, [...flags, ...sanitizers, target, ...sources, "-o", program], {
    stdio: "inherit",
  });
  if (status !== 0) {
    throw new Error(`${clang} cannot build the target; Apple's clang, for one, comes without libFuzzer: set CXX.`);
  }
  return { out, program };
}

function fuzz(name, seconds) {
  const { options, seeds } = targets[name];
  const { out, program } = build(name);
  for (const seed of seeds) {
    writeFileSync(join(out, "corpus", createHash("sha1").update(seed).digest("hex")), seed);
  }
  const quoted = (word) => [...Buffer.from(word)].map((byte) => `\\x${byte.toString(16).padStart(2, "0")}`).join("");
  const dictionary = join(out, "dictionary.txt");
  writeFileSync(dictionary, words.map((word) => `"${quoted(word)}"\n`).join(""));
  const args = [
    `-dict=${dictionary}`,
    join(out, "corpus"),
    `-max_total_time=${seconds}`,
    `-artifact_prefix=${out}/`,
    "-rss_limit_mb=2048",
  ];
  const { status } = spawnSync(program, [...args, ...options, "-print_final_stats=1"], { stdio: "inherit" });
  if (status !== 0) throw new Error(`${name}: a finding, see ${out}`);
}

const [name = "all", seconds = "60"] = process.argv.slice(2);
try {
  const chosen = name === "all" ? Object.keys(targets) : [name];
  const unknown = chosen.find((one) => !Object.hasOwn(targets, one));
  if (unknown !== undefined || !/^\d+$/.test(seconds)) {
    throw new Error(`usage: npm run fuzz [-- ${[...Object.keys(targets), "all"].join("|")} [SECONDS]]`);
  }
  for (const one of chosen) fuzz(one, Number(seconds));
} catch (error) {
  process.stderr.write(`${error.message}\n`);
  process.exitCode = 1;
}
