// The request of a tab as a curl command or a Python program.

import * as chat from "./chat.js";
import { keyField } from "./server.js";
import * as speech from "./speech.js";

const find = (id) => document.getElementById(id);
const chosen = (name) => document.querySelector(`input[name=${name}]:checked`).value;
const address = (path) => new URL(path, document.baseURI).href;

const WRITERS = {
  curl: { speech: curlSpeech, chat: curlChat },
  python: { speech: pythonSpeech, chat: pythonChat },
};

export function show() {
  find("shown").textContent = WRITERS[chosen("language")][chosen("request")]();
}

function curlSpeech() {
  return curl(speech.path, { ...speech.request(), response_format: "mp3" }, " -o speech.mp3");
}

function curlChat() {
  return curl(chat.path, { ...chat.request(), stream: true }, "");
}

function curl(path, body, output) {
  const json = JSON.stringify(body, null, 2).replaceAll("'", "'\\''");
  const key = keyField.value ? '  -H "Authorization: Bearer $NANO_OMNI_API_KEY" \\\n' : "";
  return `curl -sN ${address(path)}${output} \\\n${key}`
    + `  -H "Content-Type: application/json" -d '${json}'\n`;
}

function pythonSpeech() {
  const body = { ...speech.request(), response_format: "mp3" };
  return `${client("from openai import OpenAI")}
with client.audio.speech.with_streaming_response.create(
${keywords(body)}
) as response:
    response.stream_to_file("speech.mp3")
`;
}

function pythonChat() {
  const body = chat.request();
  body.audio.format = "wav";
  return `${client("import base64\nfrom pathlib import Path\n\nfrom openai import OpenAI")}
completion = client.chat.completions.create(
${keywords(body)}
)
reply = completion.choices[0].message.audio
print(reply.transcript)
Path("reply.wav").write_bytes(base64.b64decode(reply.data))
`;
}

function client(imports) {
  const key = keyField.value ? 'os.environ["NANO_OMNI_API_KEY"]' : '"any"';
  return `${keyField.value ? "import os\n" : ""}${imports}

client = OpenAI(base_url="${address("v1")}", api_key=${key})`;
}

/** JSON strings, numbers, lists and objects are valid Python too. */
function keywords(body) {
  return Object.entries(body).map(([name, value]) => `    ${name}=${JSON.stringify(value)},`).join("\n");
}

export function prepare() {
  find("code").addEventListener("change", show);
  find("copy").hidden = !navigator.clipboard; // missing on plain HTTP from another machine
  find("copy").addEventListener("click", async () => {
    await navigator.clipboard.writeText(find("shown").textContent);
    find("copy").textContent = "Copied";
    setTimeout(() => { find("copy").textContent = "Copy"; }, 1500);
  });
}
