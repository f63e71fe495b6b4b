// Checks a server of OpenAI's API:  node run.mjs http://127.0.0.1:8080/v1 [options]
// Exit status: 0 nothing failed, 1 something did, 2 the command line is wrong.
import { parseArgs } from "node:util";
import { checks, runSuite } from "./suite.mjs";

const help = `Usage: npm run conformance -- BASE_URL [options]

Checks a server against OpenAI's chat completions: shapes, stream invariants, errors.
BASE_URL is with the version, as clients want it: http://127.0.0.1:8080/v1

  --model ID      model to ask for (default: the first of GET /models)
  --api-key KEY   sent as bearer token (default: $OPENAI_API_KEY, if set)
  --only PREFIX   checks whose id begins so, e.g. stream or tools.named
  --runs N        random requests of the property test (default: 20)
  --seed N        of their random numbers (default: 1)
  --timeout MS    for one answer (default: 120000)
  --json          one JSON object a line in place of the report
  --list          lists the checks
`;

process.exitCode = await main();

async function main() {
  let parsed;
  try {
    parsed = parseArgs({
      allowPositionals: true,
      options: {
        model: { type: "string" },
        "api-key": { type: "string", default: process.env.OPENAI_API_KEY ?? "" },
        only: { type: "string" },
        runs: { type: "string", default: "20" },
        seed: { type: "string", default: "1" },
        timeout: { type: "string", default: "120000" },
        json: { type: "boolean", default: false },
        list: { type: "boolean", default: false },
        help: { type: "boolean", short: "h", default: false },
      },
    });
  } catch (error) {
    process.stderr.write(`${error instanceof Error ? error.message : String(error)}\n\n${help}`);
    return 2;
  }
  const { values, positionals } = parsed;
  if (values.help) {
    process.stdout.write(help);
    return 0;
  }
  if (values.list) {
    for (const { id, title } of checks) process.stdout.write(`${id.padEnd(28)}${title}\n`);
    return 0;
  }
  const [baseURL, ...rest] = positionals;
  const numbers = [values.runs, values.seed, values.timeout].map(Number);
  if (baseURL === undefined || rest.length > 0 || !URL.canParse(baseURL) || !numbers.every(Number.isInteger)) {
    process.stderr.write(help);
    return 2;
  }
  const [runs = 20, seed = 1, timeout = 0] = numbers;
  const results = await runSuite({
    baseURL,
    model: values.model,
    apiKey: values["api-key"] || undefined,
    only: values.only,
    runs,
    seed,
    timeout,
    onResult: (result) => process.stdout.write(values.json ? `${JSON.stringify(result)}\n` : line(result)),
  });
  const failed = results.filter(({ outcome }) => outcome === "fail").length;
  if (!values.json) process.stdout.write(summary(results));
  return failed > 0 || results.length === 0 ? 1 : 0;
}

/** @param {import("./types.js").Result} result */
function line({ id, title, outcome, reason, milliseconds }) {
  const marks = { pass: "✓", fail: "✗", refused: "–", skipped: "?" };
  const detail = reason === "" ? "" : `\n      ${outcome}: ${reason.slice(0, 600)}`;
  return `${marks[outcome]} ${id.padEnd(28)} ${title} (${milliseconds} ms)${detail}\n`;
}

/** @param {import("./types.js").Result[]} results */
function summary(results) {
  const count = (/** @type {string} */ outcome) => results.filter((result) => result.outcome === outcome).length;
  return `\n${count("pass")} pass, ${count("fail")} fail, ${count("refused")} refused, ${count("skipped")} could not be told\n`;
}
