import { chat } from "./checks/chat.mjs";
import { completions } from "./checks/completions.mjs";
import { errors } from "./checks/errors.mjs";
import { json } from "./checks/json.mjs";
import { models } from "./checks/models.mjs";
import { stream } from "./checks/stream.mjs";
import { tools } from "./checks/tools.mjs";
import { Refusal, Skipped, Violation } from "./outcome.mjs";
import { seeded } from "./random.mjs";
import { Target } from "./target.mjs";

/** @type {readonly import("./types.js").Check[]} */
export const checks = [...models, ...chat, ...stream, ...json, ...tools, ...completions, ...errors];

/**
 * Runs the checks one after the other. It never throws for what the server does.
 *
 * @param {import("./types.js").SuiteOptions} options
 * @returns {Promise<import("./types.js").Result[]>}
 */
export async function runSuite({ only = "", seed = 1, runs = 20, onResult = () => undefined, ...target }) {
  const context = { target: new Target(target), random: seeded(seed), runs };
  const results = [];
  for (const check of checks) {
    if (!check.id.startsWith(only)) continue;
    const start = performance.now();
    const [outcome, reason] = await outcomeOf(check, context);
    const milliseconds = Math.round(performance.now() - start);
    const result = { id: check.id, title: check.title, outcome, reason, milliseconds };
    results.push(result);
    onResult(result);
  }
  return results;
}

/**
 * @param {import("./types.js").Check} check
 * @param {import("./types.js").Context} context
 * @returns {Promise<[import("./types.js").Outcome, string]>}
 */
async function outcomeOf(check, context) {
  try {
    await check.run(context);
    return ["pass", ""];
  } catch (error) {
    if (error instanceof Skipped) return ["skipped", error.message];
    if (error instanceof Violation) return ["fail", error.message];
    if (error instanceof Refusal) {
      const named = error.names.some((name) => check.optional?.some((each) => name.startsWith(each)));
      return [named ? "refused" : "fail", error.message];
    }
    return ["fail", error instanceof Error ? `${error.name}: ${error.message}` : String(error)];
  }
}
