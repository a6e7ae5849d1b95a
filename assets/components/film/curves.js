// The curves of a run over its steps: loss, accuracy, learning rate and gradient norm; what is plotted, how it is drawn, the element.

import { decimal, el, percent, round, significant } from "../kit.js";
import { css, mix, toLab } from "../matrix/colour.js";
import { sized } from "../matrix/surface.js";
import { CanvasPen } from "./pen.js";

// The least and the greatest number in all series; NaN is skipped.
function reach(...series) {
  let low = Infinity;
  let high = -Infinity;
  for (const values of series) {
    for (const value of values) {
      if (value < low) low = value;
      if (value > high) high = value;
    }
  }
  return [low, high];
}

// Round values from low to high, about `count` of them.
function ticks(low, high, count) {
  const raw = (high - low) / Math.max(1, count);
  const power = 10 ** Math.floor(Math.log10(raw));
  const step = [1, 2, 5, 10].map((factor) => factor * power).find((one) => one >= raw) ?? raw;
  const values = [];
  for (let k = Math.ceil(low / step - 1e-9); k * step <= high + 1e-9 * step; k += 1) values.push(k * step);
  return values;
}

// Lines of train are grey and of held out teal; points of the two parts differ in shape only.
export function partColours(theme) {
  const dark = toLab(theme.background)[0] < 0.5;
  return {
    train: css(mix(theme.background, theme.text, 0.62)),
    held_out: dark ? "#4fd0c0" : "#00796d",
    faint: css(mix(theme.background, theme.text, dark ? 0.34 : 0.26)),
    ghost: css(mix(theme.background, theme.text, 0.4)),
  };
}

const frameSteps = (reel) => reel.frames.map(({ step }) => step);
const measured = (reel, name) => reel.frames.map(({ measures }) => measures[name] ?? NaN);
const any = (values) => values.some(Number.isFinite);

function partLines(reel, measure, colours) {
  const x = frameSteps(reel);
  const lines = [];
  for (const [part, mark, width] of [["train", "circle", 1.8], ["held_out", "diamond", 2.6]]) {
    const y = measured(reel, `${part}_${measure}`);
    if (any(y)) lines.push({ part, x, y, mark, stroke: colours[part], width });
  }
  return lines;
}

// The other run's held-out line, grey and behind this run's.
function ghostLine(other, measure, colours) {
  if (!other) return [];
  const y = measured(other, `held_out_${measure}`);
  return any(y) ? [{ ghost: true, x: frameSteps(other), y, stroke: colours.ghost, width: 2, dash: [1, 5] }] : [];
}

function lossChart(reel, others, colours, words) {
  const { step, loss } = reel.steps;
  const lines = [
    { thin: true, x: step, y: loss, stroke: colours.faint, width: 1 },
    { x: step, y: reel.smooth, stroke: colours.train, width: 3.2, alpha: 0.55 },
    ...others.flatMap((other) => ghostLine(other, "loss", colours)),
    ...partLines(reel, "loss", colours),
  ];
  const all = [reel, ...others];
  const tall = all.flatMap((one) => [measured(one, "train_loss"), measured(one, "held_out_loss"), one.smooth]);
  const [least, most] = reach(...tall);
  const high = most > 0 ? most : 1;
  const low = Number.isFinite(least) && least > 0.6 * high ? Math.max(0, least - 0.6 * (high - least)) : 0; // a loss that hardly falls gets a larger scale
  return { id: "loss", title: words.loss, share: 0.4, lines, low, high: high + 0.08 * (high - low), guides: [], write: (value) => decimal(value), short: round };
}

function accuracyChart(reel, others, colours, words) {
  const lines = [...others.flatMap((other) => ghostLine(other, "accuracy", colours)), ...partLines(reel, "accuracy", colours)];
  if (!lines.some(({ part }) => part)) return null;
  const guides = Object.entries(reel.baselines)
    .filter(([, value]) => Number.isFinite(value))
    .map(([name, value]) => {
      const undamaged = name.startsWith("undamaged");
      const label = `${words[`baseline_${name}`] ?? name} ${percent(value, undamaged ? 1 : 0)}`;
      return undamaged ? { value, label, stroke: colours.held_out, dash: [10, 4], width: 1.8 } : { value, label };
    });
  const [least] = reach(...[reel, ...others].flatMap((one) => [measured(one, "train_accuracy"), measured(one, "held_out_accuracy")]), guides.map(({ value }) => value));
  const low = Math.max(0, Math.floor((least - 0.04) * 10) / 10);
  return { id: "accuracy", title: words.accuracy, share: 0.4, lines, low: Number.isFinite(low) ? low : 0, high: 1.02, guides, write: (value) => percent(value, 1), short: (value) => percent(value) };
}

function strip(reel, others, id, title, colours) {
  const y = reel.steps[id];
  const [, high] = reach(...[reel, ...others].map((one) => one.steps[id]));
  const lines = [{ x: reel.steps.step, y, stroke: colours.train, width: 1.4, thin: id === "gradient_norm" }];
  return { id, title, share: 0.1, strip: true, lines, low: 0, high: (high > 0 ? high : 1) * 1.1, guides: [], write: (value) => significant(value, 3), short: round };
}

// What is plotted for one run; `others` share its scales and are drawn behind it.
function chartsOf(reel, others, theme, words) {
  const colours = partColours(theme);
  return [
    lossChart(reel, others, colours, words),
    accuracyChart(reel, others, colours, words),
    strip(reel, others, "learning_rate", words.learning_rate, colours),
    strip(reel, others, "gradient_norm", words.gradient_norm, colours),
  ].filter(Boolean);
}

const GUTTER = 50;
const TITLE = 25;

// Boxes for the charts, one below another, the step axis under the last.
function layoutCharts(charts, width, height, steps, ratio) {
  const bottom = 22;
  const titles = charts.reduce((sum, chart) => sum + (chart.strip ? 19 : TITLE), 0);
  const gaps = 10 * (charts.length - 1);
  const room = height - bottom - titles - gaps;
  const shares = charts.reduce((sum, { share }) => sum + share, 0);
  let y = 0;
  const boxes = charts.map((chart) => {
    const title = y + (chart.strip ? 13 : 16);
    const top = y + (chart.strip ? 19 : TITLE);
    const h = (room * chart.share) / shares;
    y = top + h + 10;
    return { chart, title, x: GUTTER, y: top, w: width - GUTTER - 14, h };
  });
  return { width, height, ratio, boxes, steps };
}

const xOf = (scene, box, step) => box.x + (step / scene.steps) * box.w;
const yOf = (box, value) => box.y + box.h * (1 - (value - box.chart.low) / (box.chart.high - box.chart.low));

// The value of a line at the last point at or before a step.
function valueAtStep(line, step) {
  let low = 0;
  let high = line.x.length - 1;
  if (high < 0 || line.x[0] > step) return NaN;
  while (low < high) {
    const middle = (low + high + 1) >> 1;
    if (line.x[middle] <= step) low = middle;
    else high = middle - 1;
  }
  return line.y[low];
}

// A line as x, y, x, y in pixels. With more than two points per pixel, each pixel's least and greatest are kept.
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

function paintCharts(pen, scene) {
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

// Baselines as dashed lines, below the curves; what a damaged model reached before in the colour of held-out lines.
function paintGuides(pen, box) {
  for (const { value, stroke = pen.theme.muted, width = 1.3, dash = [6, 5] } of box.chart.guides) {
    const y = yOf(box, value);
    pen.line([box.x, y, box.x + box.w, y], { stroke, width, dash });
  }
}

// Each baseline's name near its line, at the one of six positions that covers the fewest points of curves.
function paintGuideNames(pen, scene, box) {
  const taken = box.chart.lines.flatMap((line) => (line.thin ? [] : Array.from(line.x, (x, i) => [xOf(scene, box, x), yOf(box, line.y[i])])));
  for (const { value, label, stroke = pen.theme.muted } of box.chart.guides) {
    const wide = scene.ruler.width(label, 12);
    const y = yOf(box, value);
    const places = [-5, 14].flatMap((down) => [1, 0, 0.5].map((share) => ({ x: box.x + share * (box.w - wide), y: y + down })));
    const inside = places.filter((place) => place.y - 11 >= box.y - 6 && place.y <= box.y + box.h);
    const crowd = (place) => taken.filter(([x, v]) => x > place.x - 8 && x < place.x + wide + 8 && v > place.y - 15 && v < place.y + 6).length;
    const best = inside.reduce((one, other) => (crowd(other) < crowd(one) ? other : one), inside[0] ?? places[0]);
    pen.lettered(label, best.x, best.y, { size: 12, fill: stroke });
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

// A dot on each line at a step, and the values there in the charts' title rows. `hover`: the step under the pointer, or
// null.
function paintReadings(pen, scene, step, hover) {
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

export class CurvesView {
  // seek: called with the step under a pressed pointer and whether it was released; wake: requests a new drawing.
  constructor(seek, wake) {
    Object.assign(this, { wake, hovered: null, stamps: new Map() });
    this.canvas = el("canvas", "vf-curves-canvas");
    this.marks = el("canvas", "vf-curves-marks");
    this.canvas.setAttribute("role", "img");
    this.marks.setAttribute("aria-hidden", "true");
    this.cursor = el("div", "vf-cursor"); // moves with every drawing; the marks change only with the frame
    this.root = el("div", "vf-curves", this.canvas, this.marks, this.cursor);
    this.canvas.addEventListener("pointerdown", (event) => {
      this.canvas.setPointerCapture(event.pointerId);
      this.held = true;
      seek(this.stepUnder(event), false);
    });
    this.canvas.addEventListener("pointermove", (event) => {
      this.hovered = this.stepUnder(event);
      if (this.held) seek(this.hovered, false);
      wake();
    });
    this.canvas.addEventListener("pointerup", (event) => {
      this.held = false;
      seek(this.stepUnder(event), true);
    });
    this.canvas.addEventListener("pointerleave", () => {
      this.hovered = null;
      wake();
    });
  }

  stepUnder(event) {
    const box = this.scene?.boxes[0];
    if (!box) return 0;
    const share = (event.clientX - this.canvas.getBoundingClientRect().left - box.x) / box.w;
    return Math.max(0, Math.min(1, share)) * this.scene.steps;
  }

  // Draws the curves themselves; the cursor is drawn by paint.
  lay(reel, others, { width, height, theme, ruler, words }) {
    const ratio = window.devicePixelRatio || 1;
    if (theme !== this.theme || ratio !== this.ratio) this.stamps.clear();
    Object.assign(this, { theme, ratio });
    for (const canvas of [this.canvas, this.marks]) sized(canvas, width, height, ratio);
    const steps = Math.max(...[reel, ...others].map((one) => one.totalSteps));
    this.scene = { ...layoutCharts(chartsOf(reel, others, theme, words), width, height, steps, ratio), ruler, stepWord: words.step };
    const pen = new CanvasPen(this.canvas.getContext("2d"), theme, ratio, this.stamps);
    pen.rect(0, 0, width, height, { fill: theme.paper });
    paintCharts(pen, this.scene);
    const [first, last] = [this.scene.boxes[0], this.scene.boxes.at(-1)];
    Object.assign(this.cursor.style, { top: `${first.y - 2}px`, height: `${last.y + last.h - first.y + 2}px` });
    this.marked = null;
  }

  // Moves the cursor to `step`; the values are those at the step `reading`.
  paint(step, reading) {
    const { scene } = this;
    const box = scene?.boxes[0];
    if (!box) return;
    this.cursor.style.transform = `translateX(${(xOf(scene, box, step) - 1).toFixed(2)}px)`;
    const hover = this.held ? null : this.hovered;
    const key = `${reading} ${hover}`;
    if (key === this.marked) return;
    this.marked = key;
    const context = this.marks.getContext("2d");
    const pen = new CanvasPen(context, this.theme, this.ratio, this.stamps);
    context.clearRect(0, 0, scene.width, scene.height);
    paintReadings(pen, scene, reading, hover);
  }
}
