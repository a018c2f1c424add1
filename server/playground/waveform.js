// Draws the audio so far as bars: what was played in full colour, what was not in a pale one.

import { RATE_HZ } from "./playback.js";

const PEAK_SAMPLES = RATE_HZ / 100;
const MIN_SPAN_S = 3;
const BAR_PX = 2;
const STEP_PX = 4;

export class Waveform {
  #canvas;
  #peaks = [];
  #numSamples = 0;
  #heard = 0;

  constructor(canvas) {
    this.#canvas = canvas;
    new ResizeObserver(() => this.draw(this.#heard)).observe(canvas);
    const scheme = matchMedia("(prefers-color-scheme: dark)");
    scheme.addEventListener("change", () => this.draw(this.#heard));
  }

  clear() {
    this.#peaks = [];
    this.#numSamples = 0;
    this.draw(0);
  }

  push(samples) {
    for (const sample of samples) {
      const slot = Math.floor(this.#numSamples / PEAK_SAMPLES);
      this.#peaks[slot] = Math.max(this.#peaks[slot] ?? 0, Math.abs(sample) / 32768);
      this.#numSamples += 1;
    }
  }

  draw(heardSeconds) {
    this.#heard = heardSeconds;
    const { clientWidth: width, clientHeight: height } = this.#canvas;
    const density = devicePixelRatio;
    this.#canvas.width = width * density;
    this.#canvas.height = height * density;
    const pen = this.#canvas.getContext("2d");
    pen.scale(density, density);
    const colour = getComputedStyle(this.#canvas);
    const span = Math.max(MIN_SPAN_S, this.#numSamples / RATE_HZ);
    const secondsPerBar = (span * STEP_PX) / width;
    for (let x = 0; x < width; x += STEP_PX) {
      const seconds = (x / STEP_PX) * secondsPerBar;
      const peak = this.#peakBetween(seconds, seconds + secondsPerBar);
      const tall = peak === null ? 0 : Math.max(2, Math.sqrt(peak) * (height - 2));
      pen.fillStyle = peak === null ? colour.outlineColor
        : seconds < heardSeconds ? colour.color : colour.borderColor;
      pen.beginPath();
      pen.roundRect(x, (height - (tall || 2)) / 2, BAR_PX, tall || 2, 1);
      pen.fill();
    }
  }

  /** The highest peak between two times in seconds; null if no audio has arrived for them. */
  #peakBetween(from, to) {
    const first = Math.floor(from * 100);
    if (first >= this.#peaks.length) return null;
    return Math.max(...this.#peaks.slice(first, Math.max(first + 1, Math.floor(to * 100))));
  }
}
