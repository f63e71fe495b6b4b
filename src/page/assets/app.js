import { showBatch } from "./batch.js";
import { byId } from "./dom.js";
import { openOptions, optionsAreValid, optionsText, requestOptions, setUpOptions } from "./options.js";
import { listModels, ServerError } from "./server.js";
import { Talk } from "./talk.js";

const log = byId("log", HTMLDivElement);
const prompt = byId("prompt", HTMLTextAreaElement);
const composer = byId("composer", HTMLFormElement);
const send = byId("send", HTMLButtonElement);
const stop = byId("stop", HTMLButtonElement);
const status = byId("status", HTMLParagraphElement);
const welcome = byId("welcome", HTMLParagraphElement);
const choice = byId("model-select", HTMLSelectElement);
const activeOptions = byId("active-options", HTMLParagraphElement);

const talk = new Talk(
  log,
  () => {
    const { system, body } = requestOptions();
    return { system, body: choice.value === "" ? body : { model: choice.value, ...body } };
  },
  (isRunning) => {
    // The one that has the focus hands it to the one that takes its place.
    const hadFocus = document.activeElement === (isRunning ? send : stop);
    send.hidden = isRunning;
    stop.hidden = !isRunning;
    if (hadFocus) (isRunning ? stop : prompt).focus();
  },
  (text) => {
    status.textContent = text;
  },
);

function submit() {
  const text = prompt.value.trim();
  if (text === "" || talk.isRunning) return;
  if (!optionsAreValid()) {
    openOptions();
    return;
  }
  welcome.hidden = true;
  prompt.value = "";
  fitPrompt();
  talk.send(text);
}

composer.addEventListener("submit", (event) => {
  event.preventDefault();
  submit();
});
prompt.addEventListener("keydown", (event) => {
  // Enter also ends a composition of an input method, which is no message.
  if (event.key !== "Enter" || event.shiftKey || event.isComposing) return;
  event.preventDefault();
  submit();
});
prompt.addEventListener("input", fitPrompt);
stop.addEventListener("click", () => talk.stop());
document.addEventListener("keydown", (event) => {
  if (event.key === "Escape" && document.querySelector("dialog[open]") === null) talk.stop();
});
byId("new-chat", HTMLButtonElement).addEventListener("click", () => {
  talk.reset();
  log.replaceChildren(welcome);
  welcome.hidden = false;
  status.textContent = "New conversation.";
  prompt.focus();
});

/** As high as its text, within limits that the style sheet sets. */
function fitPrompt() {
  prompt.style.height = "auto";
  prompt.style.height = `${prompt.scrollHeight + 2}px`;
}

// Who has no wheel scrolls with the arrow keys.
log.tabIndex = 0;

// The end stays in view, unless the reader has scrolled away from it.
let follows = true;
log.addEventListener("scroll", () => {
  follows = log.scrollHeight - log.scrollTop - log.clientHeight < 48;
});
log.addEventListener("grown", (event) => {
  if (event instanceof CustomEvent && event.detail === "force") follows = true;
  if (follows) log.scrollTop = log.scrollHeight;
});

setUpOptions(() => {
  if (optionsAreValid()) activeOptions.textContent = optionsText();
  if (choice.options.length === 0) void showModels();
});

async function showModels() {
  try {
    const ids = await listModels();
    choice.replaceChildren(...ids.map((id) => new Option(id, id)));
    byId("model-choice", HTMLLabelElement).hidden = ids.length < 2;
    byId("model-name", HTMLParagraphElement).textContent = ids.length === 1 ? (ids[0] ?? "") : "";
    welcome.textContent = "Ask something.";
    showBatchOnce();
  } catch (error) {
    const needsKey = error instanceof ServerError && error.status === 401;
    welcome.textContent = needsKey
      ? "This server asks for a key: enter it under Options."
      : error instanceof Error
        ? error.message
        : String(error);
  }
}

let isShown = false;
function showBatchOnce() {
  if (!isShown) showBatch(byId("batch", HTMLDivElement));
  isShown = true;
}

void showModels();
prompt.focus();
