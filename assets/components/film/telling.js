// What is said in words and numbers beside the pictures: the run's state, how far to trust a map, predictions, samples.
// All words come from the page; a person's text goes in as text.
// Next: following.js.

import { fill, visible } from "../matrix/unpack.js";
import { el } from "../matrix/readout.js";
import { decimal, duration, percent, signed } from "./axes.js";

// One line on how the run is doing, and its tone: "live", "still" or "bad".
export function stateLine({ run }, trouble, words) {
  if (trouble?.kind === "lost") return [words.lost, "bad"];
  if (trouble) return [trouble.message, "bad"];
  if (!run.state) return [words.loading, "still"];
  const parts = { step: run.step, total: run.total_steps, place: run.queue_place, message: run.message };
  const left = run.seconds_left === null || run.seconds_left === undefined ? "" : duration(run.seconds_left, words);
  const name = run.state === "running" && left ? "state_running_left" : `state_${run.state}`;
  const line = fill(words[name] ?? run.state, { ...parts, left, time: duration(run.seconds, words) });
  const tone = ["failed", "interrupted"].includes(run.state) ? "bad" : ["running", "starting", "queued"].includes(run.state) ? "live" : "still";
  return [line, tone];
}

function figure(value, name, title, part = "") {
  const node = el("div", `vf-figure ${part}`, el("span", "vf-amount", value), el("span", "vf-quiet", name));
  node.title = title;
  return node;
}

// How far to trust the map of a frame.
export function trustFigures(frame, method, words) {
  const measures = frame?.layouts[method]?.measures ?? {};
  return [
    figure(percent(measures.neighbours_held_out), words.neighbours_held_out, words.neighbours_title, "vf-part-held_out"),
    figure(percent(measures.neighbours_train), words.neighbours_train, words.neighbours_title, "vf-part-train"),
    figure(decimal(measures.trustworthiness ?? NaN), words.trust, words.trust_title),
    figure(percent(measures.displacement, 1), words.displacement, words.displacement_title),
  ];
}

const MOST_BARS = 8;

// The probabilities of the classes, the likeliest first where there are many.
export function bars(moment, labels, colours) {
  const entries = Array.from(moment.probabilities, (value, index) => ({ value, index }));
  const shown = entries.length > MOST_BARS ? entries.sort((a, b) => b.value - a.value).slice(0, MOST_BARS) : entries;
  return shown.map(({ value, index }) => {
    const bar = el("span", "vf-bar");
    Object.assign(bar.style, { width: `${100 * value}%`, background: colours[index] });
    const track = el("span", "vf-bar-track", bar);
    return el("li", "", el("span", "vf-bar-name", visible(labels[index] ?? String(index))), el("span", "vf-amount", percent(value, 1)), track);
  });
}

// What an encoder-decoder should write: the labels of its output without the signs of beginning and end.
function goalOf(probe) {
  if (probe?.attention_name !== "cross") return "";
  return probe.tokens.filter((token) => !/^[[<].+[\]>]$/.test(token)).join(" ");
}

// What the model writes, frame by frame; the list grows, the current line is marked.
export class Samples {
  constructor() {
    this.list = el("ol", "vf-samples-list");
    this.list.tabIndex = 0;
    this.lines = new Map();
    this.goal = el("div", "vf-goal");
    this.root = el("div", "vf-samples", (this.title = el("h4")), this.goal, this.list);
  }

  show(reel, current, words) {
    this.title.textContent = words.samples;
    this.list.setAttribute("aria-label", words.samples);
    if (this.text !== reel.probe?.text) {
      this.text = reel.probe?.text;
      this.lines.clear();
      this.list.replaceChildren();
    }
    const goal = goalOf(reel.probe);
    this.goal.hidden = !goal;
    this.goal.replaceChildren(el("span", "vf-quiet", words.goal), el("bdi", "vf-strong", visible(goal)));
    for (const frame of reel.frames) {
      const moment = reel.moment(frame);
      if (!moment || this.lines.has(frame.number)) continue;
      const line = el("li", goal && moment.sample === goal ? "vf-hit" : "", el("span", "vf-quiet", `${frame.step}`), el("bdi", "", moment.sample || "…"));
      this.lines.set(frame.number, line);
      this.list.append(line);
    }
    const line = this.lines.get(current?.number);
    if (line === this.marked) return;
    this.marked?.classList.remove("vf-here");
    this.marked?.removeAttribute("aria-current");
    this.marked = line;
    if (!line) return;
    line.classList.add("vf-here");
    line.setAttribute("aria-current", "true");
    this.list.scrollTop = line.offsetTop - this.list.offsetTop - this.list.clientHeight / 2 + line.offsetHeight / 2;
  }
}

const COMPARED = ["held_out_accuracy", "train_accuracy", "held_out_loss", "train_loss"];

// Two runs at one step: each measure of both, and by how much the second differs; what differs much is marked.
export function differences([one, other], words) {
  const rows = COMPARED.map((name) => {
    const [a, b] = [one, other].map((frame) => frame?.measures[name] ?? NaN);
    if (!Number.isFinite(a + b)) return null;
    const accuracy = name.endsWith("accuracy");
    const write = accuracy ? (value) => percent(value, 1) : (value) => decimal(value);
    const gap = signed(accuracy ? `${decimal(100 * (b - a), 1)} ${words.points}` : decimal(b - a));
    const much = accuracy ? Math.abs(b - a) >= 0.02 : Math.abs(b - a) >= 0.1 * Math.max(Math.abs(a), Math.abs(b));
    return el("div", `vf-difference ${much ? "vf-much" : ""}`, el("span", "vf-quiet", words[name]), el("span", "", `A ${write(a)}`), el("span", "vf-quiet", "→"), el("span", "", `B ${write(b)}`), el("b", "", gap));
  });
  return rows.filter(Boolean);
}
