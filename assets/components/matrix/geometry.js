// Layout in CSS pixels: boxes of panels, labels, legends; cells fall on whole device pixels.
// A grid holds small multiples without token labels; a single line has labelled axes and can be zoomed.

import { fill, number, visible } from "../kit.js";
import { MASKED, isMask } from "./unpack.js";

export const clamp = (value, low, high) => Math.max(low, Math.min(high, value));

// Whether any cell of a panel is drawn hatched: masked cells, and hidden cells of a mask. Computed once.
export function hasHoles(panel) {
  if (isMask(panel)) return true;
  panel.masked ??= panel.coded ? panel.data.includes(MASKED) : panel.data.some((value) => !Number.isFinite(value));
  return panel.masked;
}

// Measures text, with a cache, and shortens it to fit.
export class Ruler {
  constructor(font) {
    this.font = font;
    this.context = document.createElement("canvas").getContext("2d");
    this.widths = new Map();
  }

  width(text, size = 12, weight = 400) {
    const key = `${weight} ${size} ${text}`;
    let width = this.widths.get(key);
    if (width === undefined) {
      if (this.widths.size > 5000) this.widths.clear();
      this.context.font = `${weight} ${size}px ${this.font}`;
      width = this.context.measureText(text).width;
      this.widths.set(key, width);
    }
    return width;
  }

  fit(text, room, size = 12, weight = 400) {
    if (this.width(text, size, weight) <= room) return text;
    const letters = Intl.Segmenter ? Array.from(new Intl.Segmenter().segment(text), (part) => part.segment) : [...text];
    let low = 0;
    let high = letters.length;
    while (low < high) {
      const middle = (low + high + 1) >> 1;
      if (this.width(`${letters.slice(0, middle).join("")}…`, size, weight) <= room) low = middle;
      else high = middle - 1;
    }
    return low > 0 ? `${letters.slice(0, low).join("")}…` : "…";
  }

  // A text on as many lines as it takes, broken at blanks, or anywhere in scripts without them.
  lines(text, room, size = 12, weight = 400) {
    const found = [];
    for (const word of text.match(/[\u2e80-\uffef]|[^\s\u2e80-\uffef]+\s*|\s+/gu) ?? []) {
      const longer = (found.at(-1) ?? "") + word;
      if (found.length && this.width(longer.trimEnd(), size, weight) <= room) found[found.length - 1] = longer;
      else found.push(word);
    }
    return found.map((line) => this.fit(line.trim(), room, size, weight));
  }

  widest(texts, size = 12, weight = 400) {
    return texts.reduce((widest, text) => Math.max(widest, this.width(text, size, weight)), 0);
  }
}

// The length of `count` cells in `room` pixels: whole device pixels per cell unless that wastes more than 14%.
function sideOf(count, room, ratio) {
  const raw = (room * ratio) / count;
  const whole = Math.floor(raw);
  return (raw >= 1 && whole / raw >= 0.86 ? whole * count : Math.floor(room * ratio)) / ratio;
}

const sameScale = (panels) =>
  panels.every(({ scale }) => scale.low === panels[0].scale.low && scale.high === panels[0].scale.high && scale.kind === panels[0].scale.kind);

export function layoutGrid(figure, width, tall, ratio, ruler) {
  const { panels } = figure;
  const edge = 5; // room for the outline of a chosen panel
  const headings = [...new Set(panels.map((panel) => panel.heading))].filter(Boolean);
  const gutter = headings.length ? Math.min(110, ruler.widest(headings, 12, 600)) + 16 : 0;
  const room = width - gutter - 2 * edge;
  const asked = Math.min(figure.columns, panels.length);
  const gap = asked > 10 || width < 800 ? 8 : 12;
  const columns = (room - (asked - 1) * gap) / asked >= 36 ? asked : Math.max(1, Math.floor((room + gap) / (64 + gap)));
  const lines = [];
  for (let first = 0; first < panels.length; first += asked) {
    const line = panels.slice(first, first + asked);
    for (let from = 0; from < line.length; from += columns) lines.push(line.slice(from, from + columns));
  }
  const rows = Math.max(...panels.map((panel) => panel.height));
  const cols = Math.max(...panels.map((panel) => panel.width));
  const aspect = clamp(rows / cols, 0.3, 1.6);
  const shared = lines.length > 1 && columns === asked && lines.every((line) => line.every((panel, c) => panel.title === lines[0][c].title));
  const own = !sameScale(panels);
  const titleHeight = panels.some((panel) => panel.group) ? 42 : 20; // a bracket and its name stand above the titles
  const below = (shared ? 0 : titleHeight) + (own ? 16 : 0) + (shared && !own ? gap : 10);
  const fitting = (room - (columns - 1) * gap) / columns;
  const limit = (tall - (shared ? titleHeight : 0)) / lines.length - below;
  const panelWidth = Math.min(fitting, Math.max(limit / aspect, Math.min(fitting, 72)), 300);
  const cw = sideOf(cols, panelWidth, ratio) / cols;
  const ch = aspect === rows / cols ? cw : sideOf(rows, panelWidth * aspect, ratio) / rows;
  const pitch = Math.min((room + gap) / columns, cw * cols + Math.max(gap, 26));
  const boxes = [];
  const labels = [];
  const brackets = [];
  let y = edge + (shared ? titleHeight : 0);
  lines.forEach((line, index) => {
    const top = y + (shared ? 0 : titleHeight);
    line.forEach((panel, column) => {
      const x = Math.round((gutter + edge + column * pitch) * ratio) / ratio;
      boxes.push({ panel, x, y: top, w: cw * panel.width, h: ch * panel.height });
      if (!shared || index === 0) {
        labels.push({ text: ruler.fit(panel.title, cw * cols + gap - 4, 11.5), x, y: top - 8, size: 11.5, tone: "muted" });
      }
      if (own) {
        const bounds = `${number(panel.scale.low, 2)} … ${number(panel.scale.high, 2)}`;
        labels.push({ text: ruler.fit(bounds, pitch - 2, 10), x, y: top + ch * rows + 12, size: 10, tone: "muted" });
      }
    });
    if (!shared || index === 0) {
      for (const { group, x, w } of groupsOf(boxes.slice(-line.length))) {
        brackets.push({ x, y: top - 26, w });
        labels.push({ text: ruler.fit(group, w + gap, 11.5, 600), x: x + w / 2, y: top - 31, size: 11.5, weight: 600, anchor: "middle", tone: "muted" });
      }
    }
    if (line[0].heading) {
      const text = ruler.fit(line[0].heading, gutter - 14, 12, 600);
      labels.push({ text, x: gutter - 8, y: top + (ch * rows) / 2 + 4, size: 12, weight: 600, anchor: "end", tone: "ink" });
    }
    y = top + ch * rows + below - (shared ? 0 : titleHeight);
  });
  const pooled = cw * ratio < 1 || ch * ratio < 1;
  const { legend, bottom } = layoutLegend(figure, gutter + edge, y + 4, width - gutter - 2 * edge, own, pooled, ruler);
  return { mode: "grid", width, height: Math.ceil(bottom), ratio, boxes, labels, brackets, legends: [legend] };
}

// The panels of a line that have a group in common, as one span each.
function groupsOf(line) {
  const spans = [];
  for (const { panel, x, w } of line) {
    const last = spans.at(-1);
    if (last && last.group === panel.group) last.w = x + w - last.x;
    else spans.push({ group: panel.group, x, w });
  }
  return spans.filter(({ group }) => group);
}

// The legend of a mask's two kinds of cells.
const maskSwatches = ({ states, role }) => [
  { sign: { open: role }, text: states[1] },
  { sign: { hatch: true }, text: states[0] },
];

// The legend of a grid: one colour bar for all panels, axes and notes, wrapped into lines.
function layoutLegend(figure, x, y, room, own, pooled, ruler) {
  const { strings, panels } = figure;
  const { scale, role } = panels[0];
  const items = [];
  let at = x;
  let line = y + 12;
  const place = (width) => {
    if (at > x && at + width > x + room) [at, line] = [x, line + 20];
    const start = at;
    at += width;
    return { x: start, y: line };
  };
  const say = (text, pad = 18) => items.push({ text, ...place(ruler.width(text, 11.5) + pad) });
  if (figure.quantity) say(figure.quantity, 10);
  if (panels.every(isMask)) {
    for (const swatch of maskSwatches(panels[0])) {
      const at = place(22 + ruler.width(swatch.text, 11.5) + 18);
      items.push({ ...swatch.sign, ...at }, { text: swatch.text, x: at.x + 22, y: at.y });
    }
    say(fill(strings.axes_note, { rows: panels[0].rows.name, cols: panels[0].cols.name }));
    return { legend: { items, bar: null }, bottom: line + 10 };
  }
  const low = own ? "" : number(scale.low, 3);
  const high = own ? "" : number(scale.high, 3);
  const lowWidth = ruler.width(low, 11.5);
  const bar = place(lowWidth + 6 + 150 + 6 + ruler.width(high, 11.5) + 20);
  if (low) items.push({ text: low, x: bar.x, y: bar.y }, { text: high, x: bar.x + lowWidth + 162, y: bar.y });
  if (panels.some(hasHoles)) {
    const swatch = place(22 + ruler.width(strings.masked, 11.5) + 18);
    items.push({ hatch: true, x: swatch.x, y: swatch.y }, { text: strings.masked, x: swatch.x + 22, y: swatch.y });
  }
  say(fill(strings.axes_note, { rows: panels[0].rows.name, cols: panels[0].cols.name }));
  if (own) say(strings.own_scale_note);
  if (pooled) say(strings.pooled_note);
  const legend = { items, bar: { x: bar.x + lowWidth + 6, y: bar.y - 9, w: 150, h: 10, role, kind: scale.kind } };
  return { legend, bottom: line + 10 };
}

const numeric = (axis) => axis.labels.every((label, index) => label === String(index));
const niceStep = (least) => [1, 2, 4, 5, 8, 10, 16, 20, 25, 32, 50, 64, 100].find((step) => step >= least) ?? Math.ceil(least);

// Font size of labels `pitch` pixels apart: 12 px where possible, 10 px at least; below that labels are skipped.
const labelSize = (pitch) => clamp(pitch * 0.95, 10, 12);
const everyOther = (pitch, size) => Math.max(1, Math.ceil((size + 0.4) / pitch));

// Whether a label is Chinese, Japanese or Korean: it is set vertically, character below character, never rotated.
export const upright = (label) => /^[\p{Script=Han}\p{Script=Hiragana}\p{Script=Katakana}\p{Script=Hangul}\u3000-\u303f\uff00-\uffef]+$/u.test(label);
export const PILE = 1.12; // line height of an upright label

// How column labels are drawn at a cell width: horizontal if they fit, else rotated as little as possible.
function acrossLabels(axis, cw, room, ruler) {
  const labels = axis.labels.map(visible);
  const widest = ruler.widest(labels, 11.5);
  if (numeric(axis)) return { angle: 0, every: niceStep((widest + 8) / cw), height: 18, reach: 0, room: widest + 4, size: 11.5 };
  if (widest <= cw - (widest < 14 ? 1 : 4)) return { angle: 0, every: 1, height: 18, reach: 0, room: cw, size: 11.5 };
  const piled = labels.filter(upright);
  const angle = piled.length * 2 > labels.length ? 90 : cw >= 18 ? 45 : cw >= 14 ? 60 : 90;
  const radians = (angle * Math.PI) / 180;
  const size = labelSize(cw * Math.sin(radians));
  const longest = ruler.widest(labels.filter((label) => !upright(label)), size);
  const shown = Math.min(Math.max(longest, ...piled.map((label) => label.length * size * PILE)) + 1, room);
  const reach = Math.max(0, shown * Math.cos(radians) + (angle < 90 ? 4 : 0) - cw / 2);
  const every = everyOther(cw * Math.sin(radians), size);
  return { angle, every, height: shown * Math.sin(radians) + 12, reach, room: shown, size };
}

const FINGER = 24; // pixels of a cell that is painted or switched by a finger

// Cells that a finger shall hit are no smaller than it, and the drawing is then wider than its room.
export function layoutSingle(figure, width, tall, ratio, ruler, views, touched) {
  const asked = Math.min(figure.columns, figure.panels.length);
  const least = touched && (figure.paint || figure.switches) ? FINGER : 1;
  for (let columns = asked; columns > 1; columns -= 1) {
    const scene = layoutLines(figure, columns, width, tall, ratio, ruler, views, least);
    if (scene.fits && scene.boxes.every((box) => box.h / box.panel.height >= Math.max(6, least) || (least === 1 && box.h >= 170))) return scene;
  }
  return layoutLines(figure, 1, width, tall, ratio, ruler, views, least);
}

function layoutLines(figure, columns, width, tall, ratio, ruler, views, least) {
  const lines = [];
  for (let first = 0; first < figure.panels.length; first += columns) lines.push(figure.panels.slice(first, first + columns));
  const room = lines.length > 1 ? Math.max(150, (1.15 * tall) / lines.length) : tall;
  const plans = lines.map((line) => planLine(line, width, room, ruler, Infinity, least));
  const common = Math.min(...plans.map((plan) => plan.ch)); // one cell size in all lines
  const scene = { mode: "single", ratio, boxes: [], labels: [], legends: [], fits: true };
  let y = 4;
  lines.forEach((line, index) => {
    const plan = planLine(line, width, room, ruler, common, least);
    y = placeLine(figure, scene, line, plan, y + (index ? 22 : 0), width, ruler, views);
  });
  const right = Math.max(...scene.boxes.map((box) => box.right));
  return { ...scene, width: least > 1 ? Math.ceil(right) : Math.min(width, Math.ceil(right)), height: Math.ceil(y) };
}

const LINE_GAP = 26, TITLE_LINE = 17;
const largestCell = (width) => clamp(width / 26, 46, 72); // wide screens are often viewed from a distance

// The cell size of a line of panels, and the space for its labels.
function planLine(line, width, tall, ruler, cap, least) {
  const labelRoom = clamp(width * 0.2, 48, 150);
  const shared = line.map((panel, i) => i > 0 && line[i - 1].rows === panel.rows); // uses the left neighbour's labels
  const gutters = line.map((panel, i) => (shared[i] ? 2 : Math.min(labelRoom, ruler.widest(panel.rows.labels.map(visible), 12)) + 30));
  // A wide panel (a dimension axis) gets narrower cells; a panel of tokens gets square ones.
  const units = line.map((panel) => Math.min(panel.width, Math.max(panel.height * 1.25, 8)));
  const total = units.reduce((sum, unit) => sum + unit, 0);
  const most = Math.max(...line.map((panel) => panel.height));
  const fitting = (reaches) => (width - reaches.reduce((sum, reach, i) => sum + reach + gutters[i], LINE_GAP * (line.length - 1) + 2)) / total;
  let reaches = line.map(() => 8);
  let ch = 0;
  let across = [];
  for (let pass = 0; pass < 2; pass += 1) {
    ch = Math.max(least, Math.min(fitting(reaches), tall / most, largestCell(width), cap));
    across = line.map((panel, i) => acrossLabels(panel.cols, (ch * units[i]) / panel.width, 96, ruler));
    reaches = across.map((label) => Math.max(8, label.reach));
  }
  return { ch: Math.max(least, Math.min(fitting(reaches), ch)), units, gutters, shared, reaches, across };
}

// Adds a line's boxes, labels and legends to the scene; returns its lower end.
function placeLine(figure, scene, line, { ch, units, gutters, shared, reaches, across }, y, width, ruler, views) {
  const { ratio } = scene;
  const widths = line.map((panel, i) => sideOf(panel.width, ch * units[i], ratio));
  across = line.map((panel, i) => acrossLabels(panel.cols, widths[i] / panel.width, 96, ruler)); // by whole pixels
  reaches = across.map((label, i) => Math.max(reaches[i], label.reach));
  const left = line.reduce((sum, _, i) => sum - gutters[i] - widths[i] - reaches[i], width - LINE_GAP * (line.length - 1) - 13);
  const titles = line.map((panel, i) => {
    const free = i < line.length - 1 ? 0 : Math.max(0, left); // beside the last panel
    return ruler.lines(panel.title, widths[i] + reaches[i] + free, 13, 600);
  });
  const titleHeight = Math.max(...titles.map((parts) => parts.length)) * TITLE_LINE;
  const labelHeight = Math.max(...across.map((label) => label.height));
  const top = Math.round((y + (titleHeight ? titleHeight + 7 : 0) + 18 + labelHeight) * ratio) / ratio;
  let x = 0;
  let bottom = top;
  line.forEach((panel, i) => {
    const left = Math.round((x + gutters[i]) * ratio) / ratio;
    const w = widths[i];
    const h = sideOf(panel.height, ch * panel.height, ratio);
    const view = { x: views.get(panel.cols.key) ?? [0, panel.width], y: views.get(panel.rows.key) ?? [0, panel.height] };
    const box = { panel, x: left, y: top, w, h, view, gutter: shared[i] ? 0 : gutters[i] - 30 };
    const cw = w / (view.x[1] - view.x[0]);
    box.across = acrossLabels(panel.cols, cw, 96, ruler);
    if (box.across.height > labelHeight) {
      const size = labelSize(cw);
      Object.assign(box.across, { angle: 90, every: everyOther(cw, size), room: labelHeight - 12, size });
    }
    const pitch = h / (view.y[1] - view.y[0]);
    box.down = shared[i] ? null : { every: everyOther(pitch, labelSize(pitch)), room: box.gutter, size: labelSize(pitch) };
    box.right = left + Math.max(w + reaches[i], 120) + 6;
    scene.boxes.push(box);
    titles[i].forEach((text, row) => {
      const at = y + titleHeight - TITLE_LINE * (titles[i].length - row);
      const dot = row ? undefined : { x: left + 4, y: at + 8.5, role: panel.role };
      scene.labels.push({ text, x: left + 13, y: at + 13, size: 13, weight: 600, tone: "ink", dot });
    });
    const acrossName = ruler.fit(`${panel.cols.name} →`, w + reaches[i] + 10, 11.5);
    scene.labels.push({ text: acrossName, x: left, y: top - across[i].height - 6, size: 11.5, tone: "muted" });
    const downName = ruler.fit(`← ${panel.rows.name}`, Math.max(h, 60), 11.5);
    if (!shared[i]) scene.labels.push({ text: downName, x: left - gutters[i] + 13, y: top, size: 11.5, tone: "muted", anchor: "end", turn: -90 });
    const free = i < line.length - 1 ? w + reaches[i] + LINE_GAP + gutters[i + 1] - 12 : Infinity; // up to the next box
    const room = Math.min(Math.max(w + reaches[i], 120), free);
    const legend = layoutBar(figure, panel, left, top + h + 12, room, ruler);
    scene.legends.push(legend);
    bottom = Math.max(bottom, top + h, legend.bottom);
    x = left + w + reaches[i] + LINE_GAP;
  });
  scene.fits &&= x - LINE_GAP <= width + 1;
  return bottom;
}

// The colour bar of one panel with its bounds.
function layoutBar(figure, panel, x, y, room, ruler) {
  if (isMask(panel)) return layoutSwatches(panel, x, y, room, ruler);
  const low = number(panel.scale.low, 3);
  const high = number(panel.scale.high, 3);
  const lowWidth = ruler.width(low, 11.5);
  const highWidth = ruler.width(high, 11.5);
  const w = Math.max(12, Math.min(170, room - lowWidth - highWidth - 12));
  const items = [];
  let line = y + 12;
  if (figure.quantity && sameScale(figure.panels)) {
    items.push({ text: ruler.fit(figure.quantity, room, 11.5), x, y: line });
    line += 18;
  }
  items.push({ text: low, x, y: line }, { text: high, x: x + lowWidth + w + 12, y: line });
  const bar = { x: x + lowWidth + 6, y: line - 9, w, h: 10, role: panel.role, kind: panel.scale.kind };
  if (hasHoles(panel)) {
    const width = 22 + ruler.width(figure.strings.masked, 11.5);
    const after = x + lowWidth + w + 12 + highWidth + 20;
    const beside = after + width <= x + room;
    if (!beside) line += 19;
    items.push({ hatch: true, x: beside ? after : x, y: line }, { text: figure.strings.masked, x: (beside ? after : x) + 22, y: line });
  }
  return { items, bar, bottom: line + 8 };
}

// In place of a colour bar, the legend of a mask.
function layoutSwatches(panel, x, y, room, ruler) {
  const items = [];
  let [at, line] = [x, y + 12];
  for (const { sign, text } of maskSwatches(panel)) {
    const width = 22 + ruler.width(text, 11.5);
    if (at > x && at + width > x + room) [at, line] = [x, line + 19];
    items.push({ ...sign, x: at, y: line }, { text, x: at + 22, y: line });
    at += width + 18;
  }
  return { items, bar: null, bottom: line + 8 };
}

// The coordinate of the edge before cell k, on a whole device pixel.
export const edgeX = (scene, box, k) => {
  const [from, to] = box.view?.x ?? [0, box.panel.width];
  return Math.round((box.x + ((k - from) / (to - from)) * box.w) * scene.ratio) / scene.ratio;
};
export const edgeY = (scene, box, k) => {
  const [from, to] = box.view?.y ?? [0, box.panel.height];
  return Math.round((box.y + ((k - from) / (to - from)) * box.h) * scene.ratio) / scene.ratio;
};

// The cell under a point with the index of its panel, or null.
export function cellUnder(scene, x, y) {
  const box = scene.boxes.find((b) => x >= b.x && x < b.x + b.w && y >= b.y && y < b.y + b.h);
  if (!box) return null;
  const [left, right] = box.view?.x ?? [0, box.panel.width];
  const [top, bottom] = box.view?.y ?? [0, box.panel.height];
  const col = Math.floor(left + ((x - box.x) / box.w) * (right - left));
  const row = Math.floor(top + ((y - box.y) / box.h) * (bottom - top));
  return { panel: box.panel.index, row: clamp(row, 0, box.panel.height - 1), col: clamp(col, 0, box.panel.width - 1) };
}
