// Words and numbers beside the pictures: state of a run, trust in a map, probabilities, samples, differences, a followed point.
// All words come from the page; labels enter as text, never as markup.

import { decimal, duration, el, fill, percent, signed, visible } from "../kit.js";

// One line about the run's state, and its tone: "live", "still" or "bad".
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

// The measures that tell how far to trust the map of a frame.
export function trustFigures(frame, method, words) {
  const measures = frame?.layouts[method]?.measures ?? {};
  return [
    figure(percent(measures.neighbours_held_out), words.neighbours_held_out, words.neighbours_title, "vf-part-held_out"),
    figure(percent(measures.neighbours_train), words.neighbours_train, words.neighbours_title, "vf-part-train"),
    figure(decimal(measures.trustworthiness ?? NaN), words.trust, words.trust_title),
    figure(percent(measures.displacement, 1), words.displacement, words.displacement_title),
  ];
}

// From which frame on the held-out points are apart (transformer_core/analysis/coming_apart.py), with a button that goes there.
export function apartLine({ run, frames }, go, words) {
  if (!run.apart) return [];
  const { kind, frame, step, count, ...shares } = run.apart;
  const said = Object.fromEntries(Object.entries(shares).map(([name, share]) => [name, percent(share)]));
  const text = { apart: words.apart, few: words.few, not_apart: words.not_apart }[kind];
  const line = el("span", "", fill(text, { ...said, step, count }));
  line.title = fill(words.apart_title, said);
  const index = frames.findIndex(({ number }) => number === frame);
  if (kind !== "apart" || index < 0) return [line];
  const button = el("button", "vf-tool", words.apart_show);
  button.type = "button";
  button.addEventListener("click", () => go(index));
  return [line, " ", button];
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

// The model's output at every frame, as a list whose current line is marked.
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
    if (this.text !== reel.followedText?.text) {
      this.text = reel.followedText?.text;
      this.lines.clear();
      this.list.replaceChildren();
    }
    const goal = reel.followedText?.goal ?? "";
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

// Each measure of two runs at one step, with the second's difference; large differences are marked.
export function differences([one, other], words) {
  const rows = COMPARED.map((name) => {
    const [a, b] = [one, other].map((frame) => frame?.measures[name] ?? NaN);
    if (!Number.isFinite(a + b)) return null;
    const accuracy = name.endsWith("accuracy");
    const write = accuracy ? (value) => percent(value, 1) : (value) => decimal(value);
    const gap = signed(accuracy ? `${decimal(100 * (b - a), 1)} ${words.points}` : decimal(b - a));
    const much = accuracy ? Math.round(1000 * Math.abs(b - a)) >= 20 /* two points, as shown */ : Math.abs(b - a) >= Math.max(0.0005, 0.1 * Math.max(Math.abs(a), Math.abs(b))); // nothing that is shown as 0.000
    return el("div", `vf-difference ${much ? "vf-much" : ""}`, el("span", "vf-quiet", words[name]), el("span", "", `A ${write(a)}`), el("span", "vf-quiet", "→"), el("span", "", `B ${write(b)}`), el("b", "", gap));
  });
  return rows.filter(Boolean);
}

const SURE = 255;

// Text, label and prediction of a point at a frame, for a tip or a card.
export function pointLines(reel, frame, point, words, colours) {
  const { texts, labels, held_out: held } = reel.points;
  const part = held[point] ? "held_out" : "train";
  const name = (label) => {
    const dot = el("span", "vf-dot");
    dot.style.background = colours[label];
    return el("span", "vf-label", dot, visible(reel.run.labels[label] ?? String(label)));
  };
  const lines = [el("bdi", "vf-text", visible(texts[point])), el("div", "vf-facts", name(labels[point]), el("span", `vf-part vf-part-${part}`, words[part]))];
  if (frame?.predicted) {
    const guess = frame.predicted[point];
    const sure = frame.certainty ? ` ${percent(frame.certainty[point] / SURE)}` : "";
    const verdict = guess === labels[point] ? words.right : words.wrong;
    lines.push(el("div", "vf-facts", el("span", "vf-quiet", words.predicted), name(guess), el("span", "", sure), el("span", guess === labels[point] ? "vf-quiet" : "vf-wrong", verdict)));
  }
  return lines;
}

// The card of a followed point: one bar for each frame, as high as the model's certainty, in the predicted label's hue.
export class Followed {
  constructor(letGo, go) {
    this.close = el("button", "vf-close", "✕");
    this.close.type = "button";
    this.close.addEventListener("click", letGo);
    this.go = go;
    this.lines = el("div", "vf-followed-lines");
    this.strip = el("div", "vf-strip");
    this.root = el("section", "vf-followed", el("div", "vf-followed-head", (this.title = el("h4")), this.close), this.lines, this.strip);
    this.root.hidden = true;
  }

  show(reel, point, index, words, colours) {
    this.root.hidden = point === null;
    if (point === null) return;
    this.title.textContent = words.followed;
    this.close.title = words.let_go;
    this.close.setAttribute("aria-label", words.let_go);
    this.lines.replaceChildren(...pointLines(reel, reel.frames[index], point, words, colours));
    const key = `${point} ${reel.frames.length} ${colours.join()}`;
    if (key !== this.key) {
      this.key = key;
      this.strip.replaceChildren(...reel.frames.map((frame, k) => this.bar(reel, frame, k, point, words, colours)));
    }
    [...this.strip.children].forEach((bar, k) => bar.classList.toggle("vf-here", k === index));
  }

  bar(reel, frame, k, point, words, colours) {
    const node = el("button", "vf-strip-bar", el("span"));
    node.type = "button";
    node.tabIndex = -1;
    const guess = frame.predicted?.[point];
    const sure = frame.certainty ? frame.certainty[point] / SURE : 1;
    if (guess !== undefined) Object.assign(node.firstChild.style, { height: `${Math.max(6, 100 * sure)}%`, background: colours[guess] });
    const said = guess === undefined ? "" : `${visible(reel.run.labels[guess] ?? String(guess))}${frame.certainty ? ` ${percent(sure)}` : ""}`;
    node.title = fill(words.strip_title, { step: frame.step, said });
    node.setAttribute("aria-label", node.title);
    node.addEventListener("click", () => this.go(k));
    return node;
  }
}

// Shows a tip beside the pointer, inside `place`.
export function placeTip(tip, place, event) {
  tip.classList.add("vf-on");
  const frame = place.getBoundingClientRect();
  const [x, y] = [event.clientX - frame.left, event.clientY - frame.top];
  const { offsetWidth: w, offsetHeight: h } = tip;
  const left = x + 16 + w > frame.width ? x - 14 - w : x + 16;
  const top = y + 18 + h > frame.height ? y - 12 - h : y + 18;
  tip.style.transform = `translate(${Math.round(Math.max(0, left))}px, ${Math.round(Math.max(0, top))}px)`;
}
