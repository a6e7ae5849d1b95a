// What is drawn over the points: one point's way through the run, the point under the pointer, and the probe's own place.
// Next: heads.js.

import { visible } from "../matrix/unpack.js";
import { onScreen } from "./map.js";

const STAR = "#ffd23f";

// The way of one point: behind it solid, before it dotted, a dot at every frame.
export function paintTrail(pen, reel, method, point, index, screen, to, colour) {
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

export const paintHover = (pen, screen, point) => ring(pen, [screen[2 * point], screen[2 * point + 1]], 9, pen.theme.ink, 1.8);

// The probe's place between two frames, or null where one of them has none.
export function probePlace(reel, method, { index, share }, to) {
  const here = reel.moment(reel.frames[index])?.xy?.[method];
  if (!here) return null;
  const next = reel.moment(reel.frames[index + 1])?.xy?.[method] ?? here;
  const t = share * share * (3 - 2 * share);
  return onScreen(to, here.map((value, axis) => value + t * (next[axis] - value)));
}

export function paintProbe(pen, [x, y], label, ruler, width) {
  const { theme } = pen;
  const text = ruler.fit(visible(label), 190, 14, 600);
  const wide = ruler.width(text, 14, 600);
  const left = x + 16 + wide + 10 > width ? x - 16 - wide - 8 : x + 16;
  pen.rect(left - 6, y - 11, wide + 12, 22, { fill: theme.paper, stroke: theme.line, radius: 6, alpha: 0.92 });
  pen.text(text, left, y + 5, { size: 14, weight: 600, fill: theme.ink });
  pen.mark("star", x, y, 12, { fill: STAR, stroke: theme.dark ? "#14121b" : "#1f1b2e", width: 1.6 });
}
