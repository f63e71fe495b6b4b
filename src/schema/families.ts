import type { Context } from "./context.js";
import { arrayFamilies } from "./keywords-array.js";
import { logicFamilies } from "./keywords-logic.js";
import { numberFamilies } from "./keywords-number.js";
import { objectFamilies } from "./keywords-object.js";
import { stringFamilies } from "./keywords-string.js";
import { typeFamilies } from "./keywords-type.js";
import type { Entry } from "./load.js";
import type { Alternative } from "./types.js";

/** Keywords that belong together: what they demand, and what their opposite demands. */
export interface Family {
  keywords: readonly string[];
  assert(context: Context, entry: Entry): readonly Alternative[];
  deny(context: Context, entry: Entry): readonly Alternative[];
}

/** In the order in which they are applied: cheap ones that narrow the kinds of values first. */
export const families: readonly Family[] = [
  ...typeFamilies,
  ...numberFamilies,
  ...stringFamilies,
  ...arrayFamilies,
  ...objectFamilies,
  ...logicFamilies,
];
