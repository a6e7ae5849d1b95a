// How the curves are drawn: the still charts once, the cursor and its numbers again at every frame of the film.
// Next: map.js.

import { css, mix } from "../matrix/colour.js";
import { partColours, valueAtStep, xOf, yOf } from "./curves.js";
import { ticks } from "./axes.js";

// A line as x, y, x, y in pixels. Where there are more points than pixels each pixel's least and greatest are kept.
function traced(scene, box, { x, y }) {
  const points = [];
  if (x.length <= 2 * box.w) {
    for (let i = 0; i < x.length; i += 1) points.push(xOf(scene, box, x[i]), clipped(box, y[i]));
    return points;
  }
  for (let i = 0; i < x.length; ) {
    const pixel = Math.floor(xOf(scene, box, x[i]));
    let [least, most] = [Infinity, -Infinity];
    for (; i < x.length && Math.floor(xOf(scene, box, x[i])) === pixel; i += 1) [least, most] = [Math.min(least, y[i]), Math.max(most, y[i])];
    if (least <= most) points.push(pixel, clipped(box, most), pixel, clipped(box, least));
  }
  return points;
}

const clipped = (box, value) => Math.max(box.y - 2, Math.min(box.y + box.h + 2, yOf(box, value)));

export function paintCharts(pen, scene) {
  const { theme } = pen;
  const grid = css(mix(theme.background, theme.text, 0.1));
  for (const box of scene.boxes) {
    const { chart } = box;
    pen.text(chart.title, 0, box.title, { size: chart.strip ? 12 : 14, weight: chart.strip ? 400 : 600, fill: chart.strip ? theme.muted : theme.ink });
    for (const value of ticks(chart.low, chart.high, chart.strip ? 1 : Math.max(2, Math.floor(box.h / 34)))) {
      const y = Math.round(yOf(box, value)) + 0.5;
      pen.line([box.x, y, box.x + box.w, y], { stroke: grid, width: 1 });
      pen.text(chart.short(value), box.x - 7, y + 4, { size: chart.strip ? 11 : 12, anchor: "end", fill: theme.muted });
    }
    paintGuides(pen, box);
    pen.within(box.x - 5, box.y - 5, box.w + 10, box.h + 10, () => paintLines(pen, scene, box));
    paintGuideNames(pen, scene, box);
  }
  paintSteps(pen, scene);
}

function paintLines(pen, scene, box) {
  for (const line of box.chart.lines) {
    const points = traced(scene, box, line);
    pen.line(points, line);
    if (!line.mark) continue;
    const radius = line.mark === "diamond" ? 3.4 : 2.8;
    for (let i = 0; i < points.length; i += 2) if (Number.isFinite(points[i + 1])) pen.mark(line.mark, points[i], points[i + 1], radius, { fill: line.stroke });
  }
}

// Baselines as dashed lines; they lie under the curves.
function paintGuides(pen, box) {
  for (const { value } of box.chart.guides) {
    const y = yOf(box, value);
    pen.line([box.x, y, box.x + box.w, y], { stroke: pen.theme.muted, width: 1.3, dash: [6, 5] });
  }
}

// Each baseline's name, above its line or below, left, in the middle or right: where the fewest points of curves lie.
function paintGuideNames(pen, scene, box) {
  const taken = box.chart.lines.flatMap((line) => (line.thin ? [] : Array.from(line.x, (x, i) => [xOf(scene, box, x), yOf(box, line.y[i])])));
  for (const { value, label } of box.chart.guides) {
    const wide = scene.ruler.width(label, 12);
    const y = yOf(box, value);
    const places = [-5, 14].flatMap((down) => [1, 0, 0.5].map((share) => ({ x: box.x + share * (box.w - wide), y: y + down })));
    const inside = places.filter((place) => place.y - 11 >= box.y - 6 && place.y <= box.y + box.h);
    const crowd = (place) => taken.filter(([x, v]) => x > place.x - 8 && x < place.x + wide + 8 && v > place.y - 15 && v < place.y + 6).length;
    const best = inside.reduce((one, other) => (crowd(other) < crowd(one) ? other : one), inside[0] ?? places[0]);
    pen.lettered(label, best.x, best.y, { size: 12, fill: pen.theme.muted });
    for (let x = best.x; x <= best.x + wide; x += wide / 4) taken.push([x, best.y - 5]);
  }
}

function paintSteps(pen, scene) {
  const { theme } = pen;
  const last = scene.boxes.at(-1);
  if (!last) return;
  const y = last.y + last.h;
  const values = ticks(0, scene.steps, Math.max(2, Math.floor(last.w / 90)));
  pen.line([last.x, y + 0.5, last.x + last.w, y + 0.5], { stroke: theme.line });
  for (const value of values) {
    const x = xOf(scene, last, value);
    pen.line([x, y, x, y + 4], { stroke: theme.line });
    const edge = x > scene.width - 24;
    pen.text(String(value), edge ? scene.width : x, y + 17, { size: 12, anchor: edge ? "end" : value ? "middle" : "start", fill: theme.muted });
  }
  pen.text(scene.stepWord, 0, y + 17, { size: 12, fill: theme.muted });
}

// A dot on each line where a step finds it, and the numbers there in the charts' title rows. `hover` is a step that is
// pointed at, null where none is.
export function paintReadings(pen, scene, step, hover) {
  const { theme } = pen;
  for (const box of scene.boxes) {
    if (hover !== null) {
      const x = xOf(scene, box, hover);
      pen.line([x, box.y, x, box.y + box.h], { stroke: theme.ink, width: 1, dash: [3, 3] });
    }
    paintNumbersAt(pen, scene, box, hover ?? step);
  }
}

function paintNumbersAt(pen, scene, box, step) {
  const { theme } = pen;
  let right = box.x + box.w;
  const lines = box.chart.lines.filter((line) => line.part || box.chart.strip);
  for (const line of [...lines].reverse()) {
    const value = valueAtStep(line, step);
    if (!Number.isFinite(value)) continue;
    const text = box.chart.write(value);
    const held = line.part === "held_out";
    const fill = line.part ? partColours(theme)[line.part] : theme.muted;
    const style = { size: box.chart.strip ? 12 : 14, weight: line.part ? 600 : 400, fill, anchor: "end" };
    pen.text(text, right, box.title, style);
    right -= scene.ruler.width(text, style.size, style.weight) + 10;
    if (!line.part) continue;
    pen.mark(line.mark, right, box.title - 4.5, held ? 4.2 : 4, { fill });
    right -= 20;
  }
  for (const line of lines) {
    const value = valueAtStep(line, step);
    if (!line.part || !Number.isFinite(value)) continue;
    const style = { fill: partColours(theme)[line.part], stroke: theme.paper, width: 1.2 };
    pen.mark(line.mark, xOf(scene, box, stepOf(line, step)), yOf(box, value), 4.6, style);
  }
}

const stepOf = (line, step) => {
  let found = line.x[0];
  for (const x of line.x) if (x <= step) found = x;
  return found;
};
