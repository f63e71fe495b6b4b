import { type PatternAutomaton, patternAutomaton } from "./pattern.js";

/** String formats as patterns over the decoded string. */
const year = "\\d{4}";
const leapYear = "(?:\\d\\d(?:0[48]|[2468][048]|[13579][26])|(?:[02468][048]|[13579][26])00)";
const date =
  `(?:${year}-(?:(?:0[13578]|1[02])-(?:0[1-9]|[12]\\d|3[01])|(?:0[469]|11)-(?:0[1-9]|[12]\\d|30)|02-(?:0[1-9]|1\\d|2[0-8]))` +
  `|${leapYear}-02-29)`;
const fraction = "(?:\\.\\d+)?";
const offset = "[+-](?:[01]\\d|2[0-3]):[0-5]\\d";
/** Leap seconds end a day of UTC; they are taken where the time is written in UTC, not under other offsets. */
const time = `(?:(?:[01]\\d|2[0-3]):[0-5]\\d:[0-5]\\d${fraction}(?:[Zz]|${offset})|23:59:60${fraction}(?:[Zz]|[+-]00:00))`;
const byte = "(?:25[0-5]|2[0-4]\\d|1\\d\\d|[1-9]?\\d)";
const ipv4 = `${byte}(?:\\.${byte}){3}`;
/** Labels of up to 31 characters, eight at the most: the whole then stays inside the 253 that a name may have. */
const label = "[A-Za-z0-9](?:[A-Za-z0-9-]{0,29}[A-Za-z0-9])?";
const hostname = `(?:${label}\\.){0,7}${label}`;
/** Two parts of up to 31 characters before the "@" (of 64), and a domain of two to five labels. */
const atom = "[A-Za-z0-9!#$%&'*+/=?^_`{|}~-]{1,31}";
const email = `${atom}(?:\\.${atom})?@${label}(?:\\.${label}){1,4}`;
const h16 = "[0-9A-Fa-f]{1,4}";
const ipv6 = [
  `(?:${h16}:){7}${h16}`,
  `(?:${h16}:){6}${ipv4}`,
  ...[0, 1, 2, 3, 4, 5, 6].map((left) => {
    // `left` groups before "::", at most 7 in all, of which "::" stands for at least one more.
    const before = left === 0 ? "" : `(?:${h16}:){${left - 1}}${h16}`;
    const room = 7 - left;
    const tails = [`(?:${h16}(?::${h16}){0,${room - 1}})?`];
    if (room >= 2) tails.push(room === 2 ? ipv4 : `(?:${h16}:){0,${room - 2}}${ipv4}`);
    return `${before}::(?:${tails.join("|")})`;
  }),
  `(?:${h16}:){6}${h16}::`,
].join("|");
const percent = "%[0-9A-Fa-f]{2}";
const unreserved = "[A-Za-z0-9._~!$&'()*+,;=-]";
const pchar = `(?:[A-Za-z0-9._~!$&'()*+,;=:@-]|${percent})`;
const query = `(?:[A-Za-z0-9._~!$&'()*+,;=:@/?-]|${percent})*`;
const authority = `(?:(?:[A-Za-z0-9._~!$&'()*+,;=:-]|${percent})*@)?(?:\\[(?:${ipv6})\\]|(?:${unreserved}|${percent})*)(?::\\d*)?`;
const pathAbsEmpty = `(?:/${pchar}*)*`;
const tail = `(?:\\?${query})?(?:#${query})?`;
const uri = `[A-Za-z][A-Za-z0-9+.-]*:(?://${authority}${pathAbsEmpty}|/(?:${pchar}+(?:/${pchar}*)*)?|${pchar}+(?:/${pchar}*)*|)${tail}`;
const relative = `(?://${authority}${pathAbsEmpty}|/(?:${pchar}+(?:/${pchar}*)*)?|(?:[A-Za-z0-9._~!$&'()*+,;=@-]|${percent})+(?:/${pchar}*)*|)${tail}`;
const durationTime = "T(?:\\d+H(?:\\d+M(?:\\d+S)?)?|\\d+M(?:\\d+S)?|\\d+S)";
const durationDate = "(?:\\d+Y(?:\\d+M(?:\\d+D)?)?|\\d+M(?:\\d+D)?|\\d+D)";
const duration = `P(?:${durationDate}(?:${durationTime})?|${durationTime}|\\d+W)`;
const pointer = "(?:/(?:[^/~]|~[01])*)*";
/** Regular expressions of a plain kind: single characters, classes, one level of groups, quantifiers. */
const regexAtom =
  "(?:[A-Za-z0-9 _,:;=@!#%&<>/'~`\"-]|\\.|\\\\[dDwWsS.*+?^$()\\[\\]{}|\\\\/]|\\[\\^?(?:a-z|A-Z|0-9|[A-Za-z0-9_]){1,8}\\])";
const regexSequence = `(?:${regexAtom}[*+?]?)*`;
const regex = `\\^?${regexSequence}(?:\\((?:${regexSequence})(?:\\|${regexSequence})*\\)[*+?]?${regexSequence})*\\$?`;

const patterns: Readonly<Record<string, string>> = {
  date,
  time,
  "date-time": `${date}[Tt]${time}`,
  duration,
  email,
  hostname,
  ipv4,
  ipv6,
  uri,
  "uri-reference": `${uri}|${relative}`,
  uuid: "[0-9A-Fa-f]{8}(?:-[0-9A-Fa-f]{4}){3}-[0-9A-Fa-f]{12}",
  "json-pointer": pointer,
  "relative-json-pointer": `(?:0|[1-9]\\d*)(?:#|${pointer})`,
  regex,
  byte: "(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?",
};

/**
 * Automata by format. They are constants that take a while to work out, so they are kept: the table above bounds how
 * many there are, and each is finite.
 */
const automata = new Map<string, PatternAutomaton>();

/** The automaton of a format; undefined for formats that we do not know. */
export function formatAutomaton(name: string): PatternAutomaton | undefined {
  if (!Object.hasOwn(patterns, name)) return undefined;
  let automaton = automata.get(name);
  if (automaton === undefined) {
    automaton = patternAutomaton(`^(?:${patterns[name]})$`);
    automata.set(name, automaton);
  }
  return automaton;
}
