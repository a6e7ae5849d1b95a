// The curves of a run: what is plotted, and where. Loss and accuracy, learning rate and gradient norm, one step axis.
// Next: plot.js.

import { css, mix, toLab } from "../matrix/colour.js";
import { decimal, percent, reach, round, significant } from "./axes.js";

// Train is grey and held out is teal wherever they are lines; among points they are told apart by shape alone.
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

// The other run's held-out line, grey, behind this one's.
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
  const low = Number.isFinite(least) && least > 0.6 * high ? Math.max(0, least - 0.6 * (high - least)) : 0; // a loss that hardly falls is looked at closely
  return { id: "loss", title: words.loss, share: 0.4, lines, low, high: high + 0.08 * (high - low), guides: [], write: (value) => decimal(value), short: round };
}

function accuracyChart(reel, others, colours, words) {
  const lines = [...others.flatMap((other) => ghostLine(other, "accuracy", colours)), ...partLines(reel, "accuracy", colours)];
  if (!lines.some(({ part }) => part)) return null;
  const guides = Object.entries(reel.baselines)
    .filter(([, value]) => Number.isFinite(value))
    .map(([name, value]) => ({ value, label: `${words[`baseline_${name}`] ?? name} ${percent(value, 0)}` }));
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
export function chartsOf(reel, others, theme, words) {
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
export function layoutCharts(charts, width, height, steps, ratio) {
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

export const xOf = (scene, box, step) => box.x + (step / scene.steps) * box.w;
export const yOf = (box, value) => box.y + box.h * (1 - (value - box.chart.low) / (box.chart.high - box.chart.low));

// The number of a line at a step: of the last frame or step at or before it.
export function valueAtStep(line, step) {
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
