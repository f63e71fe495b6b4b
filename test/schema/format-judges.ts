import { isIPv4, isIPv6 } from "node:net";

/** Second opinions on formats, out of what Node has, or looser than the format where it has nothing. */
export const formatJudges: Record<string, (text: string) => boolean> = {
  date: isDate,
  time: isTime,
  "date-time": (text) => text[10]?.toUpperCase() === "T" && isDate(text.slice(0, 10)) && isTime(text.slice(11)),
  duration: (text) => /^P(?!$)(\d+W|(\d+Y)?(\d+M)?(\d+D)?(T(?=\d)(\d+H)?(\d+M)?(\d+S)?)?)$/.test(text),
  email: (text) => /^[^\s@"]{1,64}@[^\s@]+$/.test(text) || /^".*"@[^\s@]+$/.test(text),
  hostname: (text) =>
    text.length <= 253 && text.split(".").every((label) => /^(?!-)[a-z\d-]{1,63}(?<!-)$/i.test(label)),
  ipv4: isIPv4,
  ipv6: (text) => isIPv6(text) && !text.includes("%"),
  uri: (text) => /^[a-z][a-z\d+.-]*:/i.test(text) && isReference(text),
  "uri-reference": isReference,
  uuid: (text) => /^[\da-f]{8}(-[\da-f]{4}){3}-[\da-f]{12}$/i.test(text),
  "json-pointer": (text) => /^(\/([^~/]|~[01])*)*$/.test(text),
  regex: isRegex,
};

function isDate(text: string): boolean {
  if (!/^\d{4}-\d\d-\d\d$/.test(text)) return false;
  const date = new Date(`${text}T00:00:00Z`);
  return !Number.isNaN(date.getTime()) && date.toISOString().startsWith(text);
}

function isTime(text: string): boolean {
  const match = /^(\d\d):(\d\d):(\d\d)(\.\d+)?(Z|[+-](\d\d):(\d\d))$/i.exec(text);
  if (match === null) return false;
  const [hour, minute, second, offsetHour, offsetMinute] = [1, 2, 3, 6, 7].map((i) => Number(match[i] ?? 0));
  // A leap second comes at one place only; 23:59:60Z is the one that needs no arithmetic.
  const leap = second === 60 && hour === 23 && minute === 59 && (offsetHour ?? 0) + (offsetMinute ?? 0) === 0;
  const whole = (hour ?? 24) < 24 && (minute ?? 60) < 60 && ((second ?? 60) < 60 || leap);
  return whole && (offsetHour ?? 24) < 24 && (offsetMinute ?? 60) < 60;
}

/** RFC 3986, appendix A: the characters, and % only before two hexadecimal digits. */
function isReference(text: string): boolean {
  const characters = /^([\w\-.~:/?#[\]@!$&'()*+,;=]|%[\da-f]{2})*$/i.test(text);
  return characters && (text.match(/#/g) ?? []).length <= 1;
}

function isRegex(text: string): boolean {
  try {
    new RegExp(text, "u");
    return true;
  } catch {
    return false;
  }
}
