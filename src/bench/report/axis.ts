/** A place on a plot for a value, and the values that get a line. */
export interface Scale {
  (value: number): number;
  readonly ticks: readonly number[];
}

/** From 0 to at least `highest`, up or across `length` pixels from `origin`; about `count` round ticks. */
export function linearScale(highest: number, origin: number, length: number, count = 4): Scale {
  const step = roundStep((highest || 1) / count);
  const top = Math.ceil((highest || 1) / step - 1e-9) * step;
  const ticks = Array.from({ length: Math.round(top / step) + 1 }, (_, i) => i * step);
  return Object.assign((value: number) => origin + (value / top) * length, { ticks });
}

/** 1, 2 or 5 times a power of ten, at least `least`. */
function roundStep(least: number): number {
  const power = 10 ** Math.floor(Math.log10(least));
  return ([1, 2, 5, 10].find((each) => each * power >= least) ?? 10) * power;
}

/** Logarithmic from `low` to `high`, both positive, with ticks at 1, 2 and 5 times powers of ten, or fewer where they crowd. */
export function logScale(low: number, high: number, origin: number, length: number): Scale {
  const span = Math.log(high / low) || 1;
  const powers = Array.from({ length: 24 }, (_, i) => 10 ** (i - 9));
  const inside = (ticks: number[]) => ticks.filter((tick) => tick >= low * 0.999 && tick <= high * 1.001);
  const fine = inside(powers.flatMap((power) => [power, 2 * power, 5 * power]));
  const ticks = fine.length <= 7 ? fine : inside(powers);
  return Object.assign((value: number) => origin + (Math.log(value / low) / span) * length, { ticks });
}

/** Short, for a tick. */
export function tickText(value: number): string {
  if (value === 0) return "0";
  if (value >= 10_000) return `${Math.round(value / 1000)}k`;
  return String(Number(value.toPrecision(2)));
}
