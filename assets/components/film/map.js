// The map of sentence vectors at a place between two frames: train as circles, held out as diamonds above them, hue by label.
// The axes stay the same over the whole run, so that what moves on the screen moved in the layout.

import { el, visible } from "../kit.js";
import { css, mix } from "../matrix/colour.js";
import { sized } from "../matrix/surface.js";
import { CanvasPen } from "./pen.js";
import { placeTip, pointLines } from "./readout.js";

const EDGE = 24;
const SETTLING = 0.2; // share of the way to a larger box in one drawing
const DIMMED = 0.1;

// Easing between two frames: slow at both ends.
const mellow = (share) => share * share * (3 - 2 * share);

// The next visible box on the way to the target box, which grows while a run is live.
function settle(shown, target) {
  if (!shown) return { ...target, settled: true };
  const sides = ["left", "right", "low", "high"];
  const size = Math.max(target.right - target.left, target.high - target.low);
  const settled = sides.every((side) => Math.abs(target[side] - shown[side]) < 0.002 * size);
  if (settled) return { ...target, settled };
  return { ...Object.fromEntries(sides.map((side) => [side, shown[side] + SETTLING * (target[side] - shown[side])])), settled };
}

// Scale and offset from layout coordinates to pixels; one scale for both axes.
function projection(box, width, height) {
  const scale = Math.min((width - 2 * EDGE) / (box.right - box.left || 1), (height - 2 * EDGE) / (box.high - box.low || 1));
  const x = width / 2 - (scale * (box.left + box.right)) / 2;
  const y = height / 2 + (scale * (box.low + box.high)) / 2;
  return { scale, x, y };
}

const across = ({ scale, x }, value) => x + scale * value;
const up = ({ scale, y }, value) => y - scale * value;
const onScreen = (to, [x, y]) => [across(to, x), up(to, y)];

// All points in pixels, interpolated at a place between frames.
function positions(reel, method, { index, share }, to, into) {
  const from = reel.layout(index, method);
  if (!from) return null;
  const next = reel.layout(index + 1, method);
  const t = mellow(share);
  const screen = into?.length === from.length ? into : new Float32Array(from.length);
  for (let i = 0; i < from.length; i += 2) {
    screen[i] = across(to, from[i] + t * (next[i] - from[i]));
    screen[i + 1] = up(to, from[i + 1] + t * (next[i + 1] - from[i + 1]));
  }
  return screen;
}

const radiusOf = (count, width, height) => Math.max(2.4, Math.min(6, 0.13 * Math.sqrt((width * height) / Math.max(60, count))));

// The outline of a held-out point: its hue mixed with the text colour.
function rim(theme, colour) {
  const hue = /^#/.test(colour) ? [1, 3, 5].map((at) => parseInt(colour.slice(at, at + 2), 16)) : theme.text;
  return css(mix(hue, theme.text, 0.72));
}

// The mark of a point by part and class; the same in legend, map and exports.
export function markStyle(theme, colour, part, radius, dimmed = false) {
  const alpha = dimmed ? DIMMED : 1;
  if (part === "train") return ["circle", radius, { fill: colour, alpha: 0.5 * alpha }];
  return ["diamond", radius * 1.15, { fill: colour, stroke: rim(theme, colour), width: Math.max(0.8, radius * 0.26), alpha }];
}

// look: colours by class, whether train and held_out are shown, whether mistakes are crossed out, and focus: the one
// class that is not dimmed, or null.
function paintPoints(pen, reel, screen, index, radius, look) {
  const { theme } = pen;
  const { labels, held_out: held } = reel.points;
  const { predicted } = reel.frames[index];
  for (const part of ["train", "held_out"]) {
    if (!look[part]) continue;
    const styles = look.colours.map((colour) => [false, true].map((dimmed) => markStyle(theme, colour, part, radius, dimmed)));
    for (let i = 0; i < labels.length; i += 1) {
      if (Boolean(held[i]) !== (part === "held_out")) continue;
      const dimmed = look.focus !== null && look.focus !== labels[i];
      const [kind, size, style] = styles[labels[i]]?.[Number(dimmed)] ?? styles[0][1];
      pen.mark(kind, screen[2 * i], screen[2 * i + 1], size, style);
    }
    if (!look.mistakes || !predicted) continue;
    for (let i = 0; i < labels.length; i += 1) {
      if (Boolean(held[i]) !== (part === "held_out") || predicted[i] === labels[i]) continue;
      pen.mark("cross", screen[2 * i], screen[2 * i + 1], radius * 2, { stroke: theme.paper, width: 3.4, alpha: 0.85 });
      pen.mark("cross", screen[2 * i], screen[2 * i + 1], radius * 2, { stroke: theme.ink, width: 1.7 });
    }
  }
}

// The background colour of the map.
const ground = (theme) => css(mix(theme.background, theme.text, 0.018));

// The nearest visible point within `reach` pixels, or null.
function nearest(reel, screen, x, y, look, reach = 15) {
  let best = null;
  let least = reach * reach;
  const { labels, held_out: held } = reel.points;
  for (let i = 0; i < labels.length; i += 1) {
    if (!look[held[i] ? "held_out" : "train"] || (look.focus !== null && look.focus !== labels[i])) continue;
    const distance = (screen[2 * i] - x) ** 2 + (screen[2 * i + 1] - y) ** 2;
    if (distance <= least) [best, least] = [i, distance];
  }
  return best;
}

const STAR = "#ffd23f";

// The path of one point over all frames: past solid with a dot at each frame, future dotted.
function paintTrail(pen, reel, method, point, index, screen, to, colour) {
  const { theme } = pen;
  const way = [];
  reel.frames.forEach((_, k) => {
    const xy = reel.layout(k, method);
    way.push(...onScreen(to, [xy[2 * point], xy[2 * point + 1]]));
  });
  const here = [screen[2 * point], screen[2 * point + 1]];
  const behind = [...way.slice(0, 2 * index + 2), ...here];
  const before = [...here, ...way.slice(2 * index + 2)];
  pen.line(behind, { stroke: theme.paper, width: 6, alpha: 0.85 });
  pen.line(behind, { stroke: colour, width: 2.6 });
  pen.line(before, { stroke: theme.muted, width: 1.5, dash: [1, 5] });
  for (let k = 0; k <= index; k += 1) pen.mark("circle", way[2 * k], way[2 * k + 1], 2.6, { fill: theme.paper, stroke: colour, width: 1.4 });
  ring(pen, here, 11, theme.ink, 2.4);
}

function ring(pen, [x, y], radius, stroke, width) {
  pen.mark("circle", x, y, radius, { stroke: pen.theme.paper, width: width + 3 });
  pen.mark("circle", x, y, radius, { stroke, width });
}

const paintHover = (pen, screen, point) => ring(pen, [screen[2 * point], screen[2 * point + 1]], 9, pen.theme.ink, 1.8);

// The followed text's position between two frames, or null where it has none.
function followedPlace(reel, method, { index, share }, to) {
  const here = reel.moment(reel.frames[index])?.xy?.[method];
  if (!here) return null;
  const next = reel.moment(reel.frames[index + 1])?.xy?.[method] ?? here;
  const t = share * share * (3 - 2 * share);
  return onScreen(to, here.map((value, axis) => value + t * (next[axis] - value)));
}

function paintFollowed(pen, [x, y], label, ruler, width) {
  const { theme } = pen;
  const text = ruler.fit(visible(label), 190, 14, 600);
  const wide = ruler.width(text, 14, 600);
  const [right, leftwards] = [x + 16, x - 24 - wide];
  const beside = right + wide + 10 <= width ? right : leftwards >= 8 ? leftwards : null;
  const left = beside ?? Math.max(8, Math.min(x - wide / 2, width - wide - 8)); // on a narrow map it stands below
  const middle = beside === null ? y + 27 : y;
  pen.rect(left - 6, middle - 11, wide + 12, 22, { fill: theme.paper, stroke: theme.line, radius: 6, alpha: 0.92 });
  pen.text(text, left, middle + 5, { size: 14, weight: 600, fill: theme.ink });
  pen.mark("star", x, y, 12, { fill: STAR, stroke: theme.dark ? "#14121b" : "#1f1b2e", width: 1.6 });
}

export class MapView {
  // choose: called with the clicked point, or null if none was hit; wake: requests a new drawing.
  constructor(choose, wake) {
    Object.assign(this, { wake, hovered: null, stamps: new Map() });
    this.canvas = el("canvas", "vf-map-canvas");
    this.canvas.setAttribute("role", "img");
    this.tip = el("div", "vf-tip");
    this.tip.setAttribute("aria-hidden", "true");
    this.root = el("div", "vf-map", this.canvas, this.tip);
    this.canvas.addEventListener("pointermove", (event) => this.hover(event));
    this.canvas.addEventListener("pointerleave", () => this.hover(null));
    this.canvas.addEventListener("click", (event) => choose(this.under(event)));
  }

  lay(width, height, theme, ruler) {
    const ratio = window.devicePixelRatio || 1;
    if (theme !== this.theme || ratio !== this.ratio) this.stamps.clear();
    Object.assign(this, { width, height, theme, ruler, ratio });
    sized(this.canvas, width, height, ratio);
  }

  // Draws the map at a place between frames; returns whether its box still moves.
  paint(reel, place, look, words) {
    Object.assign(this, { reel, look, words, place });
    const pen = new CanvasPen(this.canvas.getContext("2d", { alpha: false }), this.theme, this.ratio, this.stamps);
    this.box = settle(this.method === look.method ? this.box : null, reel.box(look.method));
    this.method = look.method;
    this.screen = this.draw(pen, this.width, this.height, this.box, this.screen);
    return !this.box.settled;
  }

  draw(pen, width, height, box, into) {
    const { reel, place, look } = this;
    pen.rect(0, 0, width, height, { fill: ground(pen.theme) });
    if (!reel.points || !reel.frames.length) {
      pen.text(this.words.waiting, width / 2, height / 2, { size: 15, anchor: "middle", fill: pen.theme.muted });
      return null;
    }
    const to = projection(box, width, height);
    const screen = positions(reel, look.method, place, to, into);
    if (!screen) return null;
    paintPoints(pen, reel, screen, place.index, radiusOf(reel.points.labels.length, width, height), look);
    const { followed, colours } = look;
    if (followed !== null) paintTrail(pen, reel, look.method, followed, place.index, screen, to, colours[reel.points.labels[followed]]);
    const followedText = followedPlace(reel, look.method, place, to);
    if (followedText) paintFollowed(pen, followedText, reel.followedText.text, this.ruler, width);
    if (this.hovered !== null) paintHover(pen, screen, this.hovered);
    return screen;
  }

  under(event) {
    const frame = this.canvas.getBoundingClientRect();
    return this.screen ? nearest(this.reel, this.screen, event.clientX - frame.left, event.clientY - frame.top, this.look) : null;
  }

  hover(event) {
    const point = event && this.under(event);
    this.canvas.style.cursor = point === null ? "default" : "pointer";
    this.tip.classList.toggle("vf-on", point !== null);
    if (point !== null) {
      this.tip.replaceChildren(...pointLines(this.reel, this.reel.frames[this.place.index], point, this.words, this.look.colours));
      placeTip(this.tip, this.root, event);
    }
    if (point !== this.hovered) this.wake();
    this.hovered = point;
  }
}
