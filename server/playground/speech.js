// The speech tab: its request, and its sample texts.

import { Words } from "./words.js";

export const path = "v1/audio/speech";
const find = (id) => document.getElementById(id);

const SAMPLES = {
  Hello: "Hello! I came with the install, and I begin to speak before the last word is made.",
  Story:
    "The lamp in the lighthouse had been dark for years when the girl climbed the stairs. She "
    + "counted them aloud, one hundred and twelve, and at the top she found a box of matches. Far "
    + "out, a small boat turned its head. By morning the whole village was on the beach, and nobody "
    + "would say who had lit the lamp. The old keeper said it was the wind. The baker said it was "
    + "the moon, and the moon said nothing at all. But when evening came there were matches on every "
    + "window sill, and the boats came home one after the other, like beads on a string.",
  Numbers: "On 3 May 2026, at 7:45 pm, it cost $3.50: 20% less than the year before, 1st of 12 offers.",
  "Tongue twister": "She sells sea shells by the sea shore. The shells she sells are sea shells, I'm sure.",
  Markdown: "# News\n- **Bold words** and `code` are read as words.\n- [A link](https://example.com) is read by its name.",
};

export function speed() {
  return Math.round(100 * 2 ** find("speed").valueAsNumber) / 100;
}

export function request() {
  return {
    model: find("speech-model").value,
    voice: find("speech-voice").value,
    speed: speed(),
    input: find("text").value,
  };
}

/** The request, and where its words are highlighted. */
export function turn() {
  const body = request();
  const words = new Words(find("words"));
  words.append(body.input);
  find("words").hidden = false;
  if (matchMedia("(max-width: 60rem)").matches) find("speech").querySelector(".actions").scrollIntoView();
  return {
    path,
    body: { ...body, response_format: "pcm", stream_format: "sse", captions: true },
    words,
    read: (event) => ({ sound: event.audio, captions: event.captions }),
    end: () => {},
  };
}

export function prepare() {
  for (const [name, text] of Object.entries(SAMPLES)) {
    const button = document.createElement("button");
    button.type = "button";
    button.textContent = name;
    button.addEventListener("click", () => { find("text").value = text; });
    find("samples").append(button);
  }
  find("text").value = SAMPLES.Story;
  find("speed").addEventListener("input", () => {
    find("speed-shown").textContent = `${speed()}×`;
    find("speed").ariaValueText = `${speed()} times`;
  });
}
