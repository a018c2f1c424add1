// Shows one request while it runs: waveform, numbers, timeline, and highlighted words.

import { ServerError, get } from "./server.js";
import { Timeline, ms } from "./timeline.js";
import { Waveform } from "./waveform.js";

const POLL_MS = 100;
const find = (id) => document.getElementById(id);

export class Monitor {
  #waveform = new Waveform(find("sound").querySelector("canvas"));
  #timeline = new Timeline(find("timeline"));
  #hidden = false; // the server does not publish timelines
  #run = null;

  /** Show this run from now on, and no other. */
  follow(run) {
    this.#run = run;
    this.#waveform.clear();
    this.#timeline.clear();
    find("problem").hidden = true;
    for (const id of ["first", "took", "factor", "gaps"]) find(id).textContent = "–";
    this.#drawFrames(run);
    this.#askForTimeline(run);
  }

  push(samples) {
    this.#waveform.push(samples);
  }

  say(text) {
    find("status").textContent = text;
  }

  complain(text) {
    find("problem").textContent = text;
    find("problem").hidden = false;
  }

  #drawFrames(run) {
    if (this.#run !== run) return;
    this.#draw(run);
    if (!run.over) requestAnimationFrame(() => this.#drawFrames(run));
  }

  #draw(run) {
    const { playback } = run;
    const made = playback.madeSeconds;
    const heard = run.heardAll ? made : playback.heardSeconds;
    run.noteHeard(heard);
    this.#waveform.draw(heard);
    if (run.heardAll) run.words.finish();
    else run.words.light(heard);
    find("heard").textContent = `heard ${heard.toFixed(1)} s`;
    find("made").textContent = `made ${made.toFixed(1)} s`;
    if (run.firstHeardMs !== null) find("first").textContent = ms(run.firstHeardMs);
    if (!made) return;
    find("took").textContent = run.received ? ms(run.lastSoundMs) : "…";
    find("factor").textContent = `${((1000 * made) / run.lastSoundMs).toFixed(1)}×`;
    find("gaps").textContent = playback.gaps || "none";
    const canvas = find("sound").querySelector("canvas");
    if (run.over) canvas.ariaLabel = `Waveform of ${made.toFixed(1)} seconds of sound`;
  }

  async #askForTimeline(run) {
    while (this.#run === run) {
      const timeline = this.#hidden ? null : await this.#timelineOf(run);
      if (this.#run !== run) return;
      if (timeline) this.#timeline.show(timeline);
      else if (this.#hidden) this.#timeline.showArrivals(run.arrivals, run.lastMs);
      if (this.#hidden ? run.over || run.received : timeline?.state === "done") return;
      if (run.over && !timeline && !this.#hidden) return;
      await new Promise((resolve) => setTimeout(resolve, POLL_MS));
    }
  }

  /** null if the server does not know the request yet, or does not publish timelines. */
  async #timelineOf(run) {
    const isKnown = run.answered;
    try {
      return await get(`debug/requests/${run.id}/timeline`);
    } catch (error) {
      this.#hidden = isKnown && error instanceof ServerError && error.status === 404;
      return null;
    }
  }
}
