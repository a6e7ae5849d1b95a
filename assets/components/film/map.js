// The map of sentence vectors at a place between two frames: train as circles, held out as outlined diamonds above them,
// hue by label. Axes stay the same over the run, so what moves on the screen moves in the layout.
// Next: trail.js.

import { css, mix } from "../matrix/colour.js";

const EDGE = 24;
const SETTLING = 0.2; // of the way to a larger box, at every picture
const DIMMED = 0.1;

// Between two frames a point starts and arrives gently.
const mellow = (share) => share * share * (3 - 2 * share);

// The box that is shown: it follows the box of all frames, which grows while a run is live.
export function settle(shown, target) {
  if (!shown) return { ...target, settled: true };
  const sides = ["left", "right", "low", "high"];
  const size = Math.max(target.right - target.left, target.high - target.low);
  const settled = sides.every((side) => Math.abs(target[side] - shown[side]) < 0.002 * size);
  if (settled) return { ...target, settled };
  return { ...Object.fromEntries(sides.map((side) => [side, shown[side] + SETTLING * (target[side] - shown[side])])), settled };
}

// From the layout's plane to pixels: one scale for both axes.
export function projection(box, width, height) {
  const scale = Math.min((width - 2 * EDGE) / (box.right - box.left || 1), (height - 2 * EDGE) / (box.high - box.low || 1));
  const x = width / 2 - (scale * (box.left + box.right)) / 2;
  const y = height / 2 + (scale * (box.low + box.high)) / 2;
  return { scale, x, y };
}

const across = ({ scale, x }, value) => x + scale * value;
const up = ({ scale, y }, value) => y - scale * value;
export const onScreen = (to, [x, y]) => [across(to, x), up(to, y)];

// Every point in pixels, at a place between frames.
export function positions(reel, method, { index, share }, to, into) {
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

export const radiusOf = (count, width, height) => Math.max(2.4, Math.min(6, 0.13 * Math.sqrt((width * height) / Math.max(60, count))));

// The rim of a held-out point: its own hue, nearly the ink's.
function rim(theme, colour) {
  const hue = /^#/.test(colour) ? [1, 3, 5].map((at) => parseInt(colour.slice(at, at + 2), 16)) : theme.text;
  return css(mix(hue, theme.text, 0.72));
}

// How a point of a part and class looks; the same for legend, map and exports.
export function markStyle(theme, colour, part, radius, dimmed = false) {
  const alpha = dimmed ? DIMMED : 1;
  if (part === "train") return ["circle", radius, { fill: colour, alpha: 0.5 * alpha }];
  return ["diamond", radius * 1.15, { fill: colour, stroke: rim(theme, colour), width: Math.max(0.8, radius * 0.26), alpha }];
}

// look: {colours, train, held_out, mistakes, focus}: hues by class, which parts are shown, whether wrong predictions are
// crossed out, and a class that is looked at alone.
export function paintPoints(pen, reel, screen, index, radius, look) {
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

// The ground that the points lie on; its border is the page's.
export const ground = (theme) => css(mix(theme.background, theme.text, 0.018));

// The shown point nearest to a place on the screen, or null.
export function nearest(reel, screen, x, y, look, reach = 15) {
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
