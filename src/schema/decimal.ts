/** An exact decimal number: digits × 10^-scale, scale >= 0. */
export interface Decimal {
  digits: bigint;
  scale: number;
}

/** What JSON.stringify would write for the number, taken as an exact decimal. */
export function toDecimal(value: number): Decimal {
  const match = /^(-?)(\d+)(?:\.(\d+))?(?:e([+-]\d+))?$/.exec(String(value));
  if (match === null) throw new RangeError("not a finite number");
  const [, sign = "", whole = "", fraction = "", exponent = "0"] = match;
  let digits = BigInt(sign + whole + fraction);
  let scale = fraction.length - Number(exponent);
  if (scale < 0) {
    digits *= 10n ** BigInt(-scale);
    scale = 0;
  }
  return trim({ digits, scale });
}

function trim(value: Decimal): Decimal {
  let { digits, scale } = value;
  while (scale > 0 && digits % 10n === 0n) {
    digits /= 10n;
    scale--;
  }
  return { digits, scale };
}

/** Negative, zero or positive, as a - b. */
export function compare(a: Decimal, b: Decimal): number {
  const scale = Math.max(a.scale, b.scale);
  const left = a.digits * 10n ** BigInt(scale - a.scale);
  const right = b.digits * 10n ** BigInt(scale - b.scale);
  return left < right ? -1 : left > right ? 1 : 0;
}

export function isMultiple(value: Decimal, of: Decimal): boolean {
  const scale = Math.max(value.scale, of.scale);
  return (value.digits * 10n ** BigInt(scale - value.scale)) % (of.digits * 10n ** BigInt(scale - of.scale)) === 0n;
}

export function isInteger(value: Decimal): boolean {
  return value.scale === 0;
}
