// One request, from the click until everything was played, or until it is stopped.

import { Playback } from "./playback.js";
import { events, newId } from "./server.js";

export class Run {
  id = newId();
  playback = new Playback(); // browsers allow sound only after a click or a key
  arrivals = { text: [], sound: [] };
  firstHeardMs = null;
  lastSoundMs = 0;
  lastMs = 0;
  answered = false; // the first event arrived
  received = false; // the response is complete
  heardAll = false;
  over = false;
  #abort = new AbortController();
  #startedAt = performance.now();

  /** `read` takes an event and returns its `text`, `sound` (base64) and `captions`. */
  constructor(monitor, words, read) {
    this.monitor = monitor;
    this.words = words;
    this.read = read;
  }

  /** Runs the request. Throws its error; a stop is not an error. */
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

  /** Stops the sound, and closes the connection so that the server aborts the request. */
  stop() {
    this.#abort.abort();
    this.playback.stop();
  }

  get stopped() {
    return this.#abort.signal.aborted;
  }

  /** Works out from the seconds played when the first sample was heard, in ms since the click. */
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
