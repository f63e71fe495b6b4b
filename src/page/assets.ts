import { createHash } from "node:crypto";
import answerView from "./assets/answer-view.js?raw";
import app from "./assets/app.js?raw";
import batch from "./assets/batch.js?raw";
import dom from "./assets/dom.js?raw";
import events from "./assets/events.js?raw";
import icon from "./assets/icon.svg?raw";
import index from "./assets/index.html?raw";
import options from "./assets/options.js?raw";
import css from "./assets/page.css?raw";
import server from "./assets/server.js?raw";
import talk from "./assets/talk.js?raw";
import text from "./assets/text.js?raw";

export interface Asset {
  readonly body: string;
  readonly type: string;
  readonly etag: string;
}

const asset = (type: string, body: string): Asset => ({
  body,
  type: `${type}; charset=utf-8`,
  etag: `"${createHash("sha256").update(body).digest("base64url").slice(0, 22)}"`,
});
const script = (body: string) => asset("text/javascript", body);

/** The page's files by their path. */
export const assets: ReadonlyMap<string, Asset> = new Map([
  ["/", asset("text/html", index)],
  ["/page/page.css", asset("text/css", css)],
  ["/page/icon.svg", asset("image/svg+xml", icon)],
  ["/page/answer-view.js", script(answerView)],
  ["/page/app.js", script(app)],
  ["/page/batch.js", script(batch)],
  ["/page/dom.js", script(dom)],
  ["/page/events.js", script(events)],
  ["/page/options.js", script(options)],
  ["/page/server.js", script(server)],
  ["/page/talk.js", script(talk)],
  ["/page/text.js", script(text)],
]);
