// The lists of models and voices, and the state of the server.

import { ServerError, get, keyField } from "./server.js";

const RETRY_MS = 1000;
const find = (id) => document.getElementById(id);

/** Fills the lists. Retries until the server has loaded its models. */
export async function load() {
  for (;;) {
    try {
      await fill();
      showHealth("ready", "ready");
      return;
    } catch (error) {
      if (error instanceof ServerError && error.status === 401) {
        showHealth("refused", keyField.value ? "wrong API key" : "needs an API key");
        find("access").showPopover();
        keyField.focus();
        return;
      }
      const loading = error instanceof ServerError && error.status === 503;
      showHealth("loading", loading ? "loading models" : "no answer");
    }
    await new Promise((resolve) => setTimeout(resolve, RETRY_MS));
  }
}

function showHealth(state, text) {
  find("health").dataset.state = state;
  find("health").textContent = text;
}

async function fill() {
  const [all, speech, listed] = await Promise.all(
    ["v1/models", "v1/audio/models", "v1/audio/voices"].map(get),
  );
  const speaking = speech.data.map((model) => model.id);
  const chatting = all.data.map((model) => model.id).filter((id) => !speaking.includes(id));
  const owners = new Set(listed.data.flatMap((voice) => voice.models));
  choose("speech", speaking, owners, listed.data);
  choose("chat", chatting, owners, listed.data);
}

function choose(tab, names, owners, voices) {
  const model = find(`${tab}-model`);
  const [own, other] = [names.filter((n) => owners.has(n)), names.filter((n) => !owners.has(n))];
  model.replaceChildren(...own.map((name) => new Option(name)), ...grouped("Other names", other));
  const fillVoices = () => {
    const of = own.includes(model.value) ? [model.value] : own;
    const fitting = voices.filter((voice) => voice.models.some((id) => of.includes(id)));
    const named = (voice) => new Option([voice.name, voice.language].join(", "), voice.name);
    find(`${tab}-voice`).replaceChildren(...fitting.map(named));
  };
  model.onchange = fillVoices;
  fillVoices();
}

function grouped(label, names) {
  if (!names.length) return [];
  const group = document.createElement("optgroup");
  group.label = label;
  group.append(...names.map((name) => new Option(name)));
  return [group];
}
