// Plays samples as they arrive. Each chunk starts exactly where the chunk before it ends. If a chunk
// arrives too late for that, there is a gap, and it is counted.

export const RATE_HZ = 24_000;
const LEAD_S = 0.1; // delay before the first sample, and after a gap
const MARGIN_FRAMES = 256; // the audio context works in blocks of 128 frames

export class Playback {
  numSamples = 0;
  gaps = 0;
  #context = new AudioContext({ sampleRate: RATE_HZ }); // the rate of the samples: no resampling
  #stretches = []; // parts without a gap: frame `frame` of the context plays sample `at`
  #next = -1; // the frame of the context on which the next chunk starts
  #unheard = new Set(); // chunks that have not been played to their end
  #ended = false;
  #settle;

  constructor() {
    this.heardAll = new Promise((resolve) => { this.#settle = resolve; });
    this.#context.resume();
  }

  /** Schedules samples (Int16Array) after all earlier ones. */
  push(samples) {
    const now = Math.ceil(this.#context.currentTime * RATE_HZ);
    if (this.#next < now + MARGIN_FRAMES) {
      this.gaps += this.#next >= 0;
      this.#next = now + LEAD_S * RATE_HZ;
      this.#stretches.push({ frame: this.#next, at: this.numSamples });
    }
    this.#start(samples, this.#next / RATE_HZ);
    this.#next += samples.length;
    this.numSamples += samples.length;
  }

  #start(samples, when) {
    const buffer = this.#context.createBuffer(1, samples.length, RATE_HZ);
    buffer.copyToChannel(Float32Array.from(samples, (sample) => sample / 32768), 0);
    const source = new AudioBufferSourceNode(this.#context, { buffer });
    source.connect(this.#context.destination);
    source.start(when);
    this.#unheard.add(source);
    source.onended = () => {
      this.#unheard.delete(source);
      this.#settleIfHeard();
    };
  }

  /** No more samples follow. `heardAll` resolves when everything was played. */
  end() {
    this.#ended = true;
    this.#settleIfHeard();
  }

  #settleIfHeard() {
    if (!this.#ended || this.#unheard.size) return;
    this.#settle();
    this.#context.close();
  }

  /** Stops the sound at once. */
  stop() {
    if (this.#context.state !== "closed") this.#context.close();
    this.#settle();
  }

  get madeSeconds() {
    return this.numSamples / RATE_HZ;
  }

  /** Seconds of audio that were played so far. Gaps do not count. */
  get heardSeconds() {
    const latency = this.#context.outputLatency || 0;
    const now = (this.#context.currentTime - latency) * RATE_HZ;
    const last = this.#stretches.findLastIndex((stretch) => stretch.frame <= now);
    if (last < 0) return 0;
    const { frame, at } = this.#stretches[last];
    const end = this.#stretches[last + 1]?.at ?? this.numSamples;
    return Math.min(at + now - frame, end) / RATE_HZ;
  }
}
