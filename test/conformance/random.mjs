/**
 * Numbers from 0 to 1 that follow from a seed (mulberry32), so that a failure can be run again.
 *
 * @param {number} seed
 */
export function seeded(seed) {
  let state = seed | 0;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let t = Math.imul(state ^ (state >>> 15), 1 | state);
    t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t;
    return ((t ^ (t >>> 14)) >>> 0) / 2 ** 32;
  };
}

/**
 * @template Type
 * @param {() => number} random
 * @param {readonly Type[]} from
 * @returns {Type}
 */
export function pick(random, from) {
  return /** @type {Type} */ (from[Math.floor(random() * from.length)]);
}
