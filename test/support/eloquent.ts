import type { Script, ScriptedRequest } from "../../src/testing/index.js";

const story = "Once there was a fox who counted 1, 2, 3 with a dog and found 歪 and 🦊 on the way.";

/** Answers what is asked for, as far as a script can: a story, or JSON where a grammar demands it. */
export function eloquent({ grammar }: ScriptedRequest): Script {
  const answer = grammar === "" ? story : '{"name":"fox","legs":4,"colours":["red"]}';
  return { pieces: answer.match(/\s*\S{1,4}/gu) ?? [] };
}
