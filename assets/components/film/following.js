// One point followed through the run: its text, its label, and what the model took it for at every frame.
// Next: transport.js.

import { fill, visible } from "../matrix/unpack.js";
import { el } from "../matrix/readout.js";
import { percent } from "./axes.js";

const SURE = 255;

// What is said of a point at a frame, as parts of a tip or a card.
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

// The card of a followed point: a bar for every frame, as high as the model was sure, in the hue of what it said.
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
