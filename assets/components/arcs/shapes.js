// Where the words of a text and the arcs over them lie: words as text, broken into lines; one arc from the source a word.
// Next: arcs.js.

import { clamp } from "../matrix/geometry.js";
import { visible } from "../matrix/unpack.js";

export const SIZE = 17;
export const SMALL = 11;
const PAD = 7;
const GAP = 6;
const TALL = 42;
const THICKEST = 13;
const MARGIN = 10;

export const thickness = (weight) => 0.6 + (THICKEST - 0.6) * weight;
export const opacity = (weight) => 0.18 + 0.72 * Math.sqrt(clamp(weight, 0, 1));

// Lines of words in this width: each word is {index, text, x, y, w, h, line}; there is room for arcs above each line.
export function layText(labels, glued, width, ruler) {
  const words = labels.map((label, index) => {
    const text = ruler.fit(visible(label), width - 2 * (MARGIN + PAD), SIZE, 500);
    const w = Math.max(ruler.width(text, SIZE, 500) + 2 * PAD, 34);
    return { index, text, w, h: TALL };
  });
  let x = MARGIN;
  let line = 0;
  for (const word of words) {
    const gap = glued[word.index] ? 2 : GAP;
    if (x > MARGIN && x + gap + word.w > width - MARGIN) [x, line] = [MARGIN, line + 1];
    else if (x > MARGIN) x += gap;
    Object.assign(word, { x, line });
    x += word.w;
  }
  const lines = line + 1;
  const widest = Math.max(...words.map((word) => word.x + word.w)) - MARGIN;
  const rise = lines === 1 ? clamp(widest * 0.17, 70, 170) : 62; // room above a line
  for (const word of words) word.y = 14 + rise + word.line * (rise + TALL);
  return { words, rise, widest, height: 14 + lines * (rise + TALL) + 8 };
}

// The path from one word to another, both ends upright, with where and how its arrow stands (down: +1, up: -1).
export function arcBetween(from, to, { rise, widest }) {
  const start = from.x + from.w / 2;
  const end = to.x + to.w / 2;
  if (from.index === to.index) {
    const y = from.y - 2;
    return { path: `M ${start - 12} ${y} C ${start - 44} ${y - 54}, ${start + 44} ${y - 54}, ${start + 12} ${y - 4}`, x: start + 12, y, way: 1 };
  }
  if (from.line === to.line) {
    const high = 26 + (1.28 * rise - 26) * clamp(Math.abs(end - start) / widest, 0, 1) ** 0.7;
    return { path: `M ${start} ${from.y - 2} C ${start} ${from.y - high}, ${end} ${to.y - high}, ${end} ${to.y - 5}`, x: end, y: to.y - 2, way: 1 };
  }
  const down = to.line > from.line;
  const y1 = down ? from.y + from.h + 2 : from.y - 2;
  const y2 = down ? to.y - 5 : to.y + to.h + 5;
  const bend = (down ? 1 : -1) * Math.max(30, Math.abs(y2 - y1) * 0.5);
  return { path: `M ${start} ${y1} C ${start} ${y1 + bend}, ${end} ${y2 - bend}, ${end} ${y2}`, x: end, y: down ? y2 + 3 : y2 - 3, way: down ? 1 : -1 };
}

// A small arrow head whose tip is at (x, y).
export function arrow(x, y, way, weight) {
  const half = 3 + 4.5 * weight;
  const long = (4 + 5 * weight) * way;
  return `M ${x} ${y} L ${x - half} ${y - long} L ${x + half} ${y - long} Z`;
}

// The word in the next line up or down whose middle is nearest.
export function across(words, from, step) {
  const middle = from.x + from.w / 2;
  const others = words.filter((word) => word.line === from.line + step);
  const off = (word) => Math.abs(word.x + word.w / 2 - middle);
  return others.length ? others.reduce((best, word) => (off(word) < off(best) ? word : best)) : from;
}
