import { StringDecoder } from "node:string_decoder";

/**
 * The data of server-sent events, from the bytes of a body in any cut (WHATWG HTML, 9.2.6: lines end in CR, LF or CRLF,
 * the data lines of an event are joined by LF, an empty line ends it; comments and other fields are of no use here).
 */
export class EventReader {
  readonly #decoder = new StringDecoder("utf8");
  #rest = "";
  #data: string[] = [];

  /** The data of the events that end in these bytes. */
  push(bytes: Buffer): string[] {
    this.#rest += this.#decoder.write(bytes);
    const events: string[] = [];
    for (;;) {
      const end = this.#rest.search(/[\r\n]/);
      // A CR at the very end may be half of a CRLF.
      if (end === -1 || (this.#rest[end] === "\r" && end + 1 === this.#rest.length)) return events;
      const line = this.#rest.slice(0, end);
      this.#rest = this.#rest.slice(end + (this.#rest.startsWith("\r\n", end) ? 2 : 1));
      if (line === "") {
        if (this.#data.length > 0) events.push(this.#data.join("\n"));
        this.#data = [];
      } else if (line.startsWith("data:")) {
        this.#data.push(line.slice(line[5] === " " ? 6 : 5));
      }
    }
  }
}
