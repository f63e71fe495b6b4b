/**
 * The data of server-sent events in a response's body. Not an EventSource: that can neither POST nor send a key.
 *
 * @param {Response} response
 * @returns {AsyncGenerator<string>}
 */
export async function* eventsOf(response) {
  if (response.body === null) return;
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = "";
  /** @type {string[]} */
  let data = [];
  try {
    for (;;) {
      const { done, value } = await reader.read();
      if (done) return;
      const lines = (rest + value).split(/\r\n|\n/);
      rest = lines.pop() ?? "";
      for (const line of lines) {
        if (line.startsWith("data:")) data.push(line.slice(line[5] === " " ? 6 : 5));
        if (line !== "" || data.length === 0) continue;
        yield data.join("\n");
        data = [];
      }
    }
  } finally {
    // What is read is read; a stream that has broken cannot be cancelled any more.
    reader.cancel().catch(() => undefined);
  }
}
