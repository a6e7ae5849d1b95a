// How large the weights, gradients and updates of each layer are at one frame: one row a layer, powers of ten from left to right.
// The bins are those of transformer_core/training/histograms.py.

import { el, fill, percent, significant } from "../kit.js";
import { CanvasSurface, sized } from "../matrix/surface.js";
import { placeTip } from "./readout.js";

const MAGNITUDES = { lowest: -10, perPower: 4, bins: 49 }; // bin 0 holds what is below 10^lowest
const QUANTITIES = ["weights", "gradients", "updates"];
const QUANTITY_HUES = ["#3b76d4", "#d97614", "#2a9456"];
const RIDGE = { row: 46, rise: 42, most: 74, top: 32, name: 118, ratio: 170, narrow: 520, foot: 22 };

// The share of each bin among the numbers of one row and quantity, and how many they are; all 0 where there are none.
function shares({ counts, groups }, quantity, group) {
  const from = (quantity * groups.length + group) * MAGNITUDES.bins;
  const row = counts.subarray(from, from + MAGNITUDES.bins);
  const total = row.reduce((sum, count) => sum + count, 0);
  return { total, shares: Array.from(row, (count) => (total ? count / total : 0)) };
}

// The first and the last bin that any frame of these runs uses, and the share that is drawn as high as a row: four of five rows stay
// below it, the others reach into the row above. Rows so keep their scale while they move.
function spanOf(reels) {
  let [first, last] = [MAGNITUDES.bins, 0];
  const peaks = [];
  for (const { histograms } of reels.flatMap(({ frames }) => frames)) {
    if (!histograms) continue;
    for (let quantity = 0; quantity < QUANTITIES.length; quantity += 1) {
      for (let group = 0; group < histograms.groups.length; group += 1) {
        const [, ...row] = shares(histograms, quantity, group).shares;
        row.forEach((share, index) => share >= 0.0005 && ([first, last] = [Math.min(first, index + 1), Math.max(last, index + 1)]));
        if (row.some(Boolean)) peaks.push(Math.max(...row));
      }
    }
  }
  if (!last) return { first: 1, last: MAGNITUDES.bins - 1, peak: 1 };
  return { first, last, peak: peaks.sort((a, b) => a - b)[Math.floor(0.8 * (peaks.length - 1))] };
}

// By how much a step changes a row's weights: the root mean square of its updates over that of its weights; NaN before any step.
function relativeUpdate({ rms, counts, groups }, group) {
  const n = groups.length;
  return shares({ counts, groups }, 2, group).total ? rms[2 * n + group] / rms[group] : NaN;
}

function groupName(group, words) {
  const [part, layer] = group.split(".");
  const name = words[`group_${part}`] ?? part;
  return layer === undefined ? name : `${name} ${layer}`;
}

export class Ridges {
  constructor() {
    this.canvas = el("canvas", "vf-ridges-canvas");
    this.canvas.setAttribute("role", "img");
    this.tip = el("div", "vf-tip");
    this.tip.setAttribute("aria-hidden", "true");
    this.title = el("h4");
    this.key = el("div", "vf-key");
    this.note = el("p", "vf-quiet vf-note");
    this.drawing = el("div", "vf-ridges-drawing", this.canvas, this.tip);
    this.root = el("section", "vf-ridges", this.title, this.key, this.drawing, this.note);
    this.canvas.addEventListener("pointermove", (event) => this.hover(event));
    this.canvas.addEventListener("pointerleave", () => this.tip.classList.remove("vf-on"));
  }

  // What does not change from frame to frame.
  lay(reels, { width, theme, words }) {
    Object.assign(this, { width, theme, words, span: spanOf(reels) });
    this.title.textContent = words.histograms;
    this.key.replaceChildren(...QUANTITIES.map((name, quantity) => {
      const node = el("span", "vf-part", words[`quantity_${name}`]);
      node.style.color = QUANTITY_HUES[quantity];
      return node;
    }), el("span", "vf-quiet", words.histograms_axis));
  }

  show(frame) {
    const { words } = this;
    const found = frame?.histograms;
    this.found = found;
    this.root.hidden = !frame;
    if (!frame) return;
    for (const node of [this.key, this.drawing]) node.hidden = !found;
    const moved = Boolean(found) && found.groups.some((_, group) => Number.isFinite(relativeUpdate(found, group)));
    this.note.textContent = !found ? words.histograms_none : moved ? words.histograms_note : words.histograms_first;
    if (found) this.draw(frame, found);
  }

  draw(frame, found) {
    const { canvas, theme, width, words, span } = this;
    const { row, rise, most, top, name, ratio: right, narrow, foot } = RIDGE;
    const wide = width >= narrow;
    const [left, end] = [name, width - (wide ? right : 12)];
    const height = found.groups.length * row + foot + top;
    const ratio = window.devicePixelRatio || 1;
    sized(canvas, width, height, ratio);
    const context = canvas.getContext("2d");
    const surface = new CanvasSurface(context, theme, ratio);
    surface.rect(0, 0, width, height, { fill: theme.paper });
    const x = (bin) => left + ((bin - span.first) / (span.last + 1 - span.first)) * (end - left);
    this.place = { x, left, end };
    const { lowest, perPower } = MAGNITUDES;
    const base = (group) => top + (group + 1) * row;
    const bottom = base(found.groups.length - 1);
    const powers = [];
    for (let power = lowest; (power - lowest) * perPower + 1 <= span.last + 1; power += 1) if ((power - lowest) * perPower + 1 >= span.first) powers.push(power);
    const every = Math.max(1, Math.ceil((powers.length * 46) / (end - left)));
    context.lineWidth = 1;
    for (const power of powers) {
      const at = x((power - lowest) * perPower + 1);
      Object.assign(context, { strokeStyle: theme.line, globalAlpha: 0.5 });
      context.beginPath();
      context.moveTo(at, top - 6);
      context.lineTo(at, bottom);
      context.stroke();
      context.globalAlpha = 1;
      if (power % every === 0) surface.text(power === 0 ? "1" : significant(10 ** power, 1).replace(/^1(\.0)?×/, ""), at, bottom + 16, { size: 12, anchor: "middle", fill: theme.muted });
    }
    found.groups.forEach((group, index) => {
      const ground = base(index);
      surface.text(groupName(group, words), 0, ground - 6, { size: 14, fill: theme.ink });
      QUANTITIES.forEach((_, quantity) => {
        const { total, shares: row } = shares(found, quantity, index);
        if (!total) return;
        context.beginPath();
        context.moveTo(x(span.first), ground);
        for (let bin = span.first; bin <= span.last; bin += 1) context.lineTo(x(bin + 0.5), ground - Math.min(most, (row[bin] / span.peak) * rise));
        context.lineTo(x(span.last + 1), ground);
        Object.assign(context, { fillStyle: QUANTITY_HUES[quantity], globalAlpha: 0.22 });
        context.fill();
        Object.assign(context, { strokeStyle: QUANTITY_HUES[quantity], globalAlpha: 1, lineWidth: 1.6, lineJoin: "round" });
        context.stroke();
      });
      const moved = relativeUpdate(found, index);
      if (wide && Number.isFinite(moved)) surface.text(fill(words.histograms_ratio, { ratio: significant(moved, 2) }), end + 12, ground - 6, { size: 13, fill: theme.muted });
    });
    const said = found.groups.map((group, index) => `${groupName(group, words)} ${significant(relativeUpdate(found, index), 2)}`).join(", ");
    canvas.setAttribute("aria-label", fill(words.histograms_label, { step: frame.step, said }));
  }

  hover(event) {
    const { found, place, span, words } = this;
    const box = this.canvas.getBoundingClientRect();
    const [left, top] = [event.clientX - box.left, event.clientY - box.top];
    const group = Math.floor((top - RIDGE.top) / RIDGE.row);
    if (!found || group < 0 || group >= found.groups.length || left < place.left || left > place.end) return this.tip.classList.remove("vf-on");
    const bin = Math.min(span.last, span.first + Math.floor(((left - place.left) / (place.end - place.left)) * (span.last + 1 - span.first)));
    const power = (k) => significant(10 ** (MAGNITUDES.lowest + (k - 1) / MAGNITUDES.perPower), 2);
    const n = found.groups.length;
    const lines = QUANTITIES.map((name, quantity) => {
      const { total, shares: row } = shares(found, quantity, group);
      const numbers = { name: words[`quantity_${name}`], share: percent(row[bin], 1), zero: percent(row[0], 1), count: total.toLocaleString("en"), rms: significant(found.rms[quantity * n + group], 2) };
      return total ? el("div", "vf-facts", fill(words.histograms_tip, numbers)) : null;
    });
    this.tip.replaceChildren(el("div", "vf-strong", groupName(found.groups[group], words)), el("div", "vf-quiet", fill(words.histograms_bin, { from: power(bin), to: power(bin + 1) })), ...lines.filter(Boolean));
    return placeTip(this.tip, this.drawing, event);
  }
}
