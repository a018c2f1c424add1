// Draws the timeline of a request: one lane for each stage and one for the gate. The data comes from
// GET /debug/requests/{id}/timeline. If the server does not publish it, the page shows when text and
// sound arrived.

const TICK_PX = 110; // width of one tick
const MIN_SPAN_MS = 50;
const COLOURS = ["thinker", "talker", "code2wav"]; // of the last three stages, whatever their names
const ENDINGS = { aborted: "stopped", failed: "failed", silent: "silent", died: "died" };

export class Timeline {
  #lanes;
  #legend;
  #caption;

  constructor(figure) {
    this.#lanes = figure.querySelector(".lanes");
    this.#legend = figure.querySelector(".legend");
    this.#caption = figure.querySelector("figcaption");
  }

  clear() {
    this.#draw([], MIN_SPAN_MS);
    this.#legend.hidden = true;
    this.#caption.replaceChildren();
    this.#lanes.setAttribute("aria-label", "No request yet");
  }

  /** The server's timeline, as JSON. */
  show(timeline) {
    const [run] = timeline.runs;
    const now = timeline.ended_ms ?? timeline.now_ms;
    const end = Math.max(run?.terminal_ms ?? 0, timeline.state === "done" ? 0 : now);
    const span = Math.max(MIN_SPAN_MS, end);
    if (!run) {
      this.#draw([{ name: "queue", kind: "queue", open: [0, now], value: "waits" }], span);
      return;
    }
    const stages = run.stages.map((stage, k) => stageLane(stage, k - run.stages.length, span));
    const lanes = [...stages, gateLane(run, span)];
    this.#draw(lanes, span);
    this.#legend.hidden = false;
    this.#explain(run, lanes);
  }

  /** Shows when text and sound arrived, in milliseconds since the request was sent. */
  showArrivals(arrivals, span) {
    const seen = Object.entries(arrivals).filter(([, marks]) => marks.length);
    const lanes = seen.map(([name, marks]) => ({
      name, kind: name, marks, open: [marks[0], marks.at(-1)], value: ms(marks.at(-1)),
    }));
    this.#draw(lanes, Math.max(MIN_SPAN_MS, span));
    this.#caption.innerHTML = "When text and sound arrived here. To see each stage and the gate,"
      + " start the server with <code>NANO_OMNI_DEBUG_ROUTES=true</code>.";
    this.#describe(lanes);
  }

  #explain(run, lanes) {
    this.#caption.textContent = explanation(run);
    this.#describe(lanes);
  }

  #describe(lanes) {
    const parts = lanes.map((lane) => `${lane.name} ${lane.value || "not started"}`);
    this.#lanes.setAttribute("aria-label", `Timeline: ${parts.join(", ")}`);
  }

  #draw(lanes, span) {
    const numTicks = Math.max(2, (this.#lanes.clientWidth - 150) / TICK_PX);
    const rows = lanes.flatMap((lane) => drawLane(lane, span));
    this.#lanes.replaceChildren(...rows, axis(span, numTicks));
  }
}

function explanation(run) {
  const over = run.terminal_ms !== null;
  if (run.closed_ms !== null) {
    return `Ended early after ${ms(run.closed_ms)}. ${over ? "Every stage has stopped." : "The stages are stopping."}`;
  }
  if (run.held) {
    const until = over ? ` for ${ms(run.terminal_ms - run.all_final_ms)},` : "";
    return `The final event was ready, and held${until} until every stage had finished.`;
  }
  return over
    ? "The final event was sent once, when the last stage had finished."
    : "The final event is sent once, when every stage has finished.";
}

function stageLane(stage, place, span) {
  const end = stage.finished_ms ?? stage.aborted_ms;
  return {
    name: stage.name,
    kind: COLOURS.at(place) ?? "",
    open: stage.submitted_ms === null ? null : [stage.submitted_ms, end ?? span],
    busy: stage.busy_ms,
    marks: stage.emitted_ms,
    end,
    cut: stage.aborted_ms !== null,
    value: end === null ? "" : ENDINGS[stage.ending] ?? ms(end),
  };
}

/** Pale from the end of the first final stage to that of the last; then held until all finished. */
function gateLane(run, span) {
  const ends = run.stages.filter((stage) => stage.final && stage.finished_ms !== null);
  const first = Math.min(...ends.map((stage) => stage.finished_ms));
  const until = run.all_final_ms ?? run.closed_ms ?? span;
  const end = run.terminal_ms;
  return {
    name: "gate",
    kind: "gate",
    open: ends.length && first < until ? [first, until] : null,
    held: run.held || run.closed_ms !== null ? [run.all_final_ms ?? run.closed_ms, end ?? span] : null,
    end,
    value: end === null ? "" : ms(end),
  };
}

function drawLane(lane, span) {
  const name = element("span", "name", lane.name);
  const track = element("span", `track ${lane.kind}`);
  const value = element("span", "value", lane.value);
  if (lane.open) track.append(band("open", lane.open, span));
  for (const stretch of lane.busy ?? []) track.append(band("busy", stretch, span));
  if (lane.marks?.length) track.append(marks(lane.marks, span));
  if (lane.held) track.append(band("held", lane.held, span));
  if (lane.end !== undefined && lane.end !== null) {
    track.append(band(lane.cut ? "end cut" : "end", [lane.end, lane.end], span));
  }
  return [name, track, value];
}

function band(kind, [from, to], span) {
  const bar = element("i", kind);
  bar.style.left = `${(100 * from) / span}%`;
  bar.style.width = `${(100 * Math.max(0, Math.min(to, span) - from)) / span}%`;
  return bar;
}

/** One SVG for all marks: there may be hundreds. */
function marks(times, span) {
  const svg = document.createElementNS("http://www.w3.org/2000/svg", "svg");
  svg.setAttribute("viewBox", `0 0 ${span} 1`);
  svg.setAttribute("preserveAspectRatio", "none");
  const path = document.createElementNS("http://www.w3.org/2000/svg", "path");
  path.setAttribute("d", times.map((at) => `M${at} 0V1`).join(""));
  svg.append(path);
  return svg;
}

function axis(span, numTicks) {
  const line = element("span", "axis");
  const rough = span / numTicks;
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 5, 10].find((factor) => factor * power >= rough) * power;
  for (let at = 0; at <= span * 0.98; at += step) {
    const tick = element("i", "tick", at === 0 ? "0" : ms(at));
    tick.style.left = `${(100 * at) / span}%`;
    line.append(tick);
  }
  return line;
}

function element(tag, className, text = "") {
  const made = document.createElement(tag);
  made.className = className;
  made.textContent = text;
  return made;
}

export function ms(value) {
  if (value >= 1000) return `${(value / 1000).toFixed(value >= 10_000 ? 0 : 1)} s`;
  if (value < 0.1 && value > 0) return "less than 0.1 ms";
  return value < 10 && value % 1 ? `${value.toFixed(1)} ms` : `${Math.round(value)} ms`;
}
