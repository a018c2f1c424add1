// One request, from the click until all of it was heard, or until it is stopped.

import { Playback } from "./playback.js";
import { events, newId } from "./server.js";

export class Run {
  id = newId();
  playback = new Playback(); // a browser allows sound where it begins with a click
  arrivals = { text: [], sound: [] };
  firstHeardMs = null;
  lastSoundMs = 0;
  lastMs = 0;
  answered = false; // something came back
  received = false; // all of it came
  heardAll = false;
  over = false;
  #abort = new AbortController();
  #startedAt = performance.now();

  /** `read` makes of an event what is in it: `text`, `sound` in base64, `captions`. */
  constructor(monitor, words, read) {
    this.monitor = monitor;
    this.words = words;
    this.read = read;
  }

  /** Raises what went wrong; a stop is none of it. */
  async go(path, body) {
    this.monitor.follow(this);
    try {
      for await (const event of events(path, body, this.id, this.#abort.signal)) {
        this.#take(this.read(event));
      }
      this.received = true;
      this.playback.end();
      await this.playback.heardAll;
      this.heardAll = !this.#abort.signal.aborted;
    } catch (error) {
      if (!this.#abort.signal.aborted) throw error;
    } finally {
      this.playback.stop();
      this.over = true;
    }
  }

  /** Silence here, and the server is told by the connection's end. */
  stop() {
    this.#abort.abort();
    this.playback.stop();
  }

  get stopped() {
    return this.#abort.signal.aborted;
  }

  /** Looked at while it plays: when the first sample was heard, in milliseconds since the click. */
  noteHeard(seconds) {
    if (seconds > 0) this.firstHeardMs ??= performance.now() - this.#startedAt - 1000 * seconds;
  }

  #take({ text, sound, captions }) {
    this.answered = true;
    this.lastMs = performance.now() - this.#startedAt;
    if (text) {
      this.words.append(text);
      this.arrivals.text.push(this.lastMs);
    }
    if (captions) this.words.mark(captions);
    if (sound) this.#play(sound);
  }

  #play(base64) {
    const bytes = Uint8Array.from(atob(base64), (character) => character.charCodeAt(0));
    const samples = new Int16Array(bytes.buffer);
    this.playback.push(samples);
    this.lastSoundMs = this.lastMs;
    this.arrivals.sound.push(this.lastMs);
    this.monitor.push(samples);
  }
}
