// Sets up the page: the tabs, keyboard shortcuts, the API key field, and Play, Send and Stop.

import * as chat from "./chat.js";
import * as code from "./code.js";
import { load } from "./lists.js";
import { Monitor } from "./monitor.js";
import { Run } from "./run.js";
import { keyField } from "./server.js";
import * as speech from "./speech.js";

const STORAGE_KEY = "nano-omni key";
const find = (id) => document.getElementById(id);
const tabs = [...document.querySelectorAll("[role=tab]")];
const monitor = new Monitor();
let running = null;

// Tabs: the arrow keys move between them, and the URL's fragment names the open one.

function open(tab) {
  for (const other of tabs) {
    other.ariaSelected = String(other === tab);
    other.tabIndex = other === tab ? 0 : -1;
    find(other.getAttribute("aria-controls")).hidden = other !== tab;
  }
  const name = tab.getAttribute("aria-controls");
  find("words").classList.toggle("away", name === "chat");
  if (name === "code") code.show();
  else document.querySelector(`input[name=request][value=${name}]`).checked = true;
}

function switchTo(tab) {
  open(tab);
  history.replaceState(null, "", `#${tab.getAttribute("aria-controls")}`);
}

for (const [index, tab] of tabs.entries()) {
  tab.addEventListener("click", () => switchTo(tab));
  tab.addEventListener("keydown", (event) => {
    const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
    if (!step) return;
    const next = tabs[(index + step + tabs.length) % tabs.length];
    next.focus();
    switchTo(next);
  });
}

// Only one request runs at a time: a new one stops the one before it.

async function run(form, turn) {
  running?.stop();
  const mine = running = new Run(monitor, turn.words, turn.read);
  const button = form.querySelector(".primary");
  const label = button.textContent;
  button.textContent = "Stop";
  button.classList.add("stop");
  monitor.say("Speaking");
  try {
    await mine.go(turn.path, turn.body);
    const seconds = mine.playback.madeSeconds.toFixed(1);
    monitor.say(mine.stopped ? "Stopped" : `Done: ${seconds} seconds of sound`);
  } catch (error) {
    monitor.complain(error.message);
  }
  turn.end();
  button.textContent = label;
  button.classList.remove("stop");
  if (running === mine) running = null;
}

for (const [id, tab] of [["speech", speech], ["chat", chat]]) {
  const form = find(id).querySelector("form");
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    if (form.querySelector(".stop")) running.stop();
    else if (form.reportValidity()) run(form, tab.turn());
  });
}

find("text").addEventListener("keydown", (event) => {
  if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) find("text").form.requestSubmit();
});
find("message").addEventListener("keydown", (event) => {
  if (event.key !== "Enter" || event.shiftKey || event.isComposing) return;
  event.preventDefault();
  const { form } = find("message");
  if (!form.querySelector(".stop")) form.requestSubmit();
});
find("forget").addEventListener("click", () => {
  running?.stop();
  chat.forget();
});
document.addEventListener("keydown", (event) => {
  if (event.key === "Escape") running?.stop();
});

keyField.value = sessionStorage.getItem(STORAGE_KEY) ?? "";
keyField.addEventListener("change", () => {
  sessionStorage.setItem(STORAGE_KEY, keyField.value);
  load();
});

speech.prepare();
chat.prepare();
code.prepare();
open(tabs.find((tab) => `#${tab.getAttribute("aria-controls")}` === location.hash) ?? tabs[0]);
load();
