/** The known name that `name` was probably meant to be, or undefined when none is close. */
export function closest(name: string, known: Iterable<string>): string | undefined {
  // Longer names are no typing slip, and the distance is quadratic in the length.
  if (name.length === 0 || name.length > 64) return undefined;
  const wanted = fold(name);
  let best: string | undefined;
  let bestDistance = Math.min(2, Math.floor(wanted.length / 3)) + 1;
  for (const candidate of known) {
    const distance = editDistance(wanted, fold(candidate));
    if (distance < bestDistance) {
      best = candidate;
      bestDistance = distance;
    }
  }
  return best;
}

/** ` Did you mean 'x'?`, or "" when nothing is close. */
export function didYouMean(name: string, known: Iterable<string>): string {
  const match = closest(name, known);
  return match === undefined ? "" : ` Did you mean '${match}'?`;
}

/** Names differ by spelling, not by style: maxTokens, max-tokens and max_tokens are one. */
function fold(name: string): string {
  return name.toLowerCase().replace(/[_-]/g, "");
}

function editDistance(a: string, b: string): number {
  let previous = Array.from({ length: b.length + 1 }, (_, i) => i);
  for (let i = 1; i <= a.length; i++) {
    const row = [i];
    for (let j = 1; j <= b.length; j++) {
      const substitute = (previous[j - 1] ?? 0) + (a[i - 1] === b[j - 1] ? 0 : 1);
      row.push(Math.min(substitute, (previous[j] ?? 0) + 1, (row[j - 1] ?? 0) + 1));
    }
    previous = row;
  }
  return previous[b.length] ?? 0;
}
