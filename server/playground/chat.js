// The chat tab: the conversation, its requests, and where each answer is written.

import { Words } from "./words.js";

export const path = "v1/chat/completions";
const find = (id) => document.getElementById(id);
const GREETING = "Ask something. The voice starts before the answer is complete.";

let messages = [];

export function request() {
  const text = find("message").value.trim();
  // Without a new message, repeat the last question.
  const asked = text || !messages.length
    ? [...messages, { role: "user", content: text }]
    : messages.slice(0, -1);
  return {
    model: find("chat-model").value,
    modalities: ["text", "audio"],
    audio: { voice: find("chat-voice").value, format: "pcm16" },
    temperature: 0,
    messages: asked,
  };
}

/** A question and its answer: the request, where to write the words, and what to do at the end. */
export function turn() {
  const body = request();
  const asked = body.messages.at(-1);
  const reply = { role: "assistant", content: "" };
  if (!messages.length) find("conversation").replaceChildren();
  const items = [add("you", "You", asked.content), add("model", "Model", "")];
  messages.push(asked, reply);
  find("message").value = "";
  return {
    path,
    body: { ...body, stream: true, audio: { ...body.audio, captions: true } },
    words: new Words(items[1].querySelector("p")),
    read: (event) => read(event, reply),
    end: () => { if (!reply.content) removeTurn(asked, reply, items); },
  };
}

function read(event, reply) {
  const audio = event.choices[0]?.delta.audio ?? {};
  reply.content += audio.transcript ?? "";
  return { text: audio.transcript, sound: audio.data, captions: audio.captions };
}

/** Removes a question that got no answer, and puts its text back so that it can be sent again. */
function removeTurn(asked, reply, items) {
  messages = messages.filter((message) => message !== asked && message !== reply);
  for (const item of items) item.remove();
  find("message").value ||= asked.content;
  if (!messages.length) greet();
}

function add(kind, who, text) {
  const item = document.createElement("li");
  item.className = kind;
  const name = document.createElement("b");
  name.textContent = who;
  const said = document.createElement("p");
  said.textContent = text;
  item.append(name, said);
  find("conversation").append(item);
  find("conversation").scrollTop = find("conversation").scrollHeight;
  return item;
}

function greet() {
  const item = document.createElement("li");
  item.className = "greeting";
  item.textContent = GREETING;
  find("conversation").replaceChildren(item);
}

export function forget() {
  messages = [];
  greet();
  find("message").focus();
}

export function prepare() {
  greet();
}
