import { type Automaton, complement, TooManyStatesError } from "./automaton.js";
import { isMultiple } from "./decimal.js";
import type { Emitter } from "./emit.js";
import { emitDfa } from "./emit-dfa.js";
import { tooComplex } from "./emit-string.js";
import { asAutomaton, type Dfa, explore } from "./explore.js";
import { chars, type Expr, empty, never } from "./gbnf.js";
import { atLeast, atMost, digitLimit, exactDigits, multiple, roundsOntoBound, spelling } from "./number-automata.js";
import { type Alternative, kinds } from "./types.js";

const maxStates = 8000;
/** With digits counted, what is written out: a divisor near 200 at the most, unless it shares factors with 10. */
const maxCounted = 3000;
const outOfReach = 10n ** BigInt(exactDigits);

/**
 * A JSON number. Under bounds or multiples it is written without an exponent. Where rounding to a double could carry a
 * number over what is demanded (onto an exclusive bound, off a multiple, onto a whole number), it has at most 15 digits,
 * which a double keeps apart.
 */
export function emitNumber(emitter: Emitter, a: Alternative): Expr {
  const whole = (a.kinds & kinds.integer) !== 0;
  const fraction = (a.kinds & kinds.fraction) !== 0;
  // Every whole number is a multiple of 0.5: among them, that demands nothing.
  const multiples = fraction ? a.multiples : a.multiples.filter((of) => !isMultiple({ digits: 1n, scale: 0 }, of));
  const divided = multiples.length + a.indivisible.length > 0;
  const free = a.lower === undefined && a.upper === undefined && !divided;
  if (free && whole) return fraction ? emitter.json.number() : emitter.json.integer();
  const parts: Automaton[] = [spelling(whole, fraction)];
  for (const of of multiples) parts.push(multiple(of));
  for (const of of a.indivisible) parts.push(complement(multiple(of)));
  const exclusive = fraction && (roundsOntoBound(a.lower, "lower") || roundsOntoBound(a.upper, "upper"));
  const limited = exclusive || !whole || divided;
  for (const [bound, sign, part] of [
    [a.lower, -1n, atLeast],
    [a.upper, 1n, atMost],
  ] as const) {
    if (bound === undefined) continue;
    // With 15 digits there is no way past a bound further out than this: it demands nothing, or cannot be met.
    if (limited && sign * bound.value.digits > outOfReach * 10n ** BigInt(bound.value.scale)) continue;
    if (limited && -sign * bound.value.digits > outOfReach * 10n ** BigInt(bound.value.scale)) return never;
    parts.push(part(bound));
  }
  try {
    // In two steps: the first may shrink a lot before digits are counted.
    const values = walk(parts);
    const dfa =
      limited && values.states.length > 0 ? walk([asAutomaton(values), digitLimit(exactDigits)], maxCounted) : values;
    return emitDfa(
      emitter.rules,
      "num",
      dfa,
      (ranges) => chars(ranges),
      () => empty,
    );
  } catch (error) {
    if (!(error instanceof TooManyStatesError)) throw error;
    throw tooComplex(a.sources.number, "the numbers need too many states.");
  }
}

function walk(parts: readonly Automaton[], limit = maxStates): Dfa {
  return explore(parts, {
    limit,
    allAlive: true,
    label: (states) => (parts.every((part, i) => part.accepts(states[i] ?? -1)) ? "" : undefined),
    alphabet: [
      [45, 46],
      [48, 57],
    ],
  });
}
