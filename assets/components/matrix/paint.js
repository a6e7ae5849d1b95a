// Drawing a matrix on either surface: the panels (paintStill), the marks that follow the pointer (paintMarks), PNG and SVG.

import { number, visible } from "../kit.js";
import { headLines, headSvg } from "../picture.js";
import { accent, css, ramp, toLab } from "./colour.js";
import { PILE, clamp, edgeX, edgeY, upright } from "./geometry.js";
import { CanvasSurface, SvgSurface, zoomed } from "./surface.js";
import { LEVELS, MASKED, OPEN, codesOf, isMask, placeIn, valueAt } from "./unpack.js";

const tone = (theme, name) => ({ ink: theme.ink, muted: theme.muted })[name];

export function paintStill(surface, scene, figure) {
  const { theme } = surface;
  const cells = scene.boxes.reduce((sum, { panel }) => sum + panel.width * panel.height, 0);
  for (const box of scene.boxes) {
    surface.heat(box, cells);
    if (isMask(box.panel)) paintGrid(surface, scene, box);
    if (box.panel.window) paintWindowEdge(surface, scene, box);
    surface.rect(box.x - 0.5, box.y - 0.5, box.w + 1, box.h + 1, { stroke: theme.line });
    if (scene.mode === "single") paintAxes(surface, scene, box);
  }
  for (const label of scene.labels) {
    const draw = (x, y) => surface.text(label.text, x, y, { ...label, fill: tone(theme, label.tone) });
    if (label.turn) surface.turned(label.x, label.y, label.turn, () => draw(0, 0));
    else draw(label.x, label.y);
    if (label.dot) surface.rect(label.dot.x - 4, label.dot.y - 4, 8, 8, { fill: accent(theme, label.dot.role), radius: 2 });
  }
  for (const { x, y, w } of scene.brackets ?? []) {
    surface.rect(x, y, w, 1.5, { fill: accent(theme, "key") });
    for (const end of [x, x + w - 1.5]) surface.rect(end, y, 1.5, 6, { fill: accent(theme, "key") });
  }
  for (const { items, bar } of scene.legends) {
    if (bar) paintBar(surface, bar);
    for (const item of items) {
      if (item.hatch || item.open) {
        if (item.hatch) surface.hatched(item.x, item.y - 10, 16, 12);
        else surface.rect(item.x, item.y - 10, 16, 12, { fill: css(ramp(theme, item.open, "mask")[OPEN]) });
        surface.rect(item.x - 0.5, item.y - 10.5, 17, 13, { stroke: theme.line });
      } else surface.text(item.text, item.x, item.y, { size: 11.5, fill: theme.muted });
    }
  }
}

// Steps along the edges of a layer's window: between a row's first (and last) cell in it and what lies outside.
function paintWindowEdge(surface, scene, box) {
  const { panel } = box;
  const [before, after] = panel.window;
  const line = { fill: accent(surface.theme, "positions") };
  const edge = (colOf) => {
    for (let row = 0; row < panel.height; row += 1) {
      const col = colOf(row);
      if (col < 0 || col > panel.width) continue;
      const [x, y, right, below] = [edgeX(scene, box, col), edgeY(scene, box, row), edgeX(scene, box, col + 1), edgeY(scene, box, row + 1)];
      if (col > 0 && col < panel.width) surface.rect(x - 1, y - 1, 2, below - y + 2, line);
      if (col < panel.width && row + 1 < panel.height) surface.rect(x - 1, below - 1, right - x + 2, 2, line);
    }
  };
  surface.within(box.x, box.y, box.w, box.h, () => {
    if (before !== null) edge((row) => row - before + 1);
    if (after !== null) edge((row) => row + after);
  });
}

// Lines between the cells of a mask, which have equal shades.
function paintGrid(surface, scene, box) {
  const { panel, view = { x: [0, panel.width], y: [0, panel.height] } } = box;
  const line = { fill: surface.theme.paper, alpha: 0.55 };
  if (Math.min(box.w / (view.x[1] - view.x[0]), box.h / (view.y[1] - view.y[0])) < 7) return;
  surface.within(box.x, box.y, box.w, box.h, () => {
    for (let col = Math.ceil(view.x[0]); col < view.x[1]; col += 1) surface.rect(edgeX(scene, box, col) - 0.5, box.y, 1, box.h, line);
    for (let row = Math.ceil(view.y[0]); row < view.y[1]; row += 1) surface.rect(box.x, edgeY(scene, box, row) - 0.5, box.w, 1, line);
  });
}

function paintBar(surface, { x: left, y, w, h, role, kind }) {
  const x = Math.round(left);
  const colours = ramp(surface.theme, role, kind);
  const steps = Math.min(96, Math.round(w));
  for (let i = 0; i < steps; i += 1) {
    const snap = (at) => Math.round((x + at) * surface.ratio) / surface.ratio;
    const from = snap((i * w) / steps);
    const to = snap(((i + 1) * w) / steps);
    surface.rect(from, y, to - from, h, { fill: css(colours[Math.round((i / (steps - 1)) * LEVELS)]) });
  }
  surface.rect(x - 0.5, y - 0.5, w + 1, h + 1, { stroke: surface.theme.line });
}

// The entries of an axis whose centre lies in the view.
function* shown([from, to], count) {
  for (let k = Math.ceil(from - 0.5); k < Math.min(count, to); k += 1) if (k + 0.5 >= from && k + 0.5 <= to) yield k;
}

function paintAxes(surface, scene, box) {
  const { theme } = surface;
  const { ruler } = scene;
  for (const row of box.down ? shown(box.view.y, box.panel.height) : []) {
    if (row % box.down.every) continue;
    const y = (edgeY(scene, box, row) + edgeY(scene, box, row + 1)) / 2;
    const { size, room } = box.down;
    const text = ruler.fit(visible(box.panel.rows.labels[row]), room, size);
    surface.text(text, box.x - 7, y + size * 0.34, { size, anchor: "end", fill: theme.ink });
  }
  for (const col of shown(box.view.x, box.panel.width)) {
    if (col % box.across.every) continue;
    const x = (edgeX(scene, box, col) + edgeX(scene, box, col + 1)) / 2;
    acrossText(surface, ruler, box, x, visible(box.panel.cols.labels[col]), { size: box.across.size, fill: theme.ink });
  }
  paintNumbers(surface, scene, box);
  paintWindow(surface, box);
}

// A label above its column: horizontal, rotated, or vertical (CJK). `outline` draws a frame behind it.
function acrossText(surface, ruler, box, x, label, style, outline = null) {
  const { angle, room } = box.across;
  const { size, weight = 400 } = style;
  if (angle && upright(label)) {
    const most = Math.max(1, Math.floor((room + 2) / (size * PILE)));
    const signs = [...label].length > most ? [...[...label].slice(0, most - 1), "⋮"] : [...label];
    outline?.(x - size / 2 - 3, box.y - 5 - signs.length * size * PILE - 3, size + 6, signs.length * size * PILE + 6);
    signs.reverse().forEach((sign, i) => surface.text(sign, x, box.y - 7 - i * size * PILE, { ...style, anchor: "middle" }));
    return;
  }
  const text = ruler.fit(label, Math.max(room, outline ? 60 : 0), size, weight);
  const width = ruler.width(text, size, weight);
  if (!angle) {
    outline?.(x - width / 2 - 5, box.y - 19.5, width + 10, 17);
    surface.text(text, x, box.y - 7, { ...style, anchor: "middle" });
    return;
  }
  surface.turned(x - (angle < 90 ? 2 : 0), box.y - 7, -angle, () => {
    outline?.(-5, -8.5, width + 10, 17);
    surface.text(text, 0, size * 0.34, style);
  });
}

// Values in the cells, if they fit.
function paintNumbers(surface, scene, box) {
  const { panel, view } = box;
  if (isMask(panel)) return;
  const cw = box.w / (view.x[1] - view.x[0]);
  const ch = box.h / (view.y[1] - view.y[0]);
  if (ch < 17 || cw < 28) return;
  const size = clamp(Math.min(cw, ch) * 0.23, 10.5, 14);
  const colours = ramp(surface.theme, panel.role, panel.scale.kind);
  const short = (value) => (panel.scale.kind === "probability" ? value.toFixed(2) : number(value, 2));
  surface.within(box.x, box.y, box.w, box.h, () => {
    for (let row = Math.floor(view.y[0]); row < Math.min(panel.height, view.y[1]); row += 1) {
      for (let col = Math.floor(view.x[0]); col < Math.min(panel.width, view.x[1]); col += 1) {
        const code = codesOf(panel)[row * panel.width + col];
        if (code === MASKED) continue;
        const text = short(valueAt(panel, row, col)).replace("-", "−");
        if (scene.ruler.width(text, size) > cw - 4) continue;
        const dark = toLab(colours[code])[0] < 0.62;
        const x = (edgeX(scene, box, col) + edgeX(scene, box, col + 1)) / 2;
        const y = (edgeY(scene, box, row) + edgeY(scene, box, row + 1)) / 2;
        surface.text(text, x, y + size * 0.35, { size, anchor: "middle", fill: dark ? "#ffffff" : "#1b1b1f" });
      }
    }
  });
}

// Two thin bars that show which part of a zoomed matrix is in view.
function paintWindow(surface, box) {
  if (!zoomed(box)) return;
  const { panel, view, x, y, w, h } = box;
  const { theme } = surface;
  surface.rect(x, y + h + 3, w, 3, { fill: theme.line, radius: 1.5 });
  surface.rect(x + (view.x[0] / panel.width) * w, y + h + 3, ((view.x[1] - view.x[0]) / panel.width) * w, 3, { fill: theme.muted, radius: 1.5 });
  surface.rect(x + w + 3, y, 3, h, { fill: theme.line, radius: 1.5 });
  surface.rect(x + w + 3, y + (view.y[0] / panel.height) * h, 3, ((view.y[1] - view.y[0]) / panel.height) * h, { fill: theme.muted, radius: 1.5 });
}

// marks: selected (panel id), current (cell), pinned and pointed (places, see placeIn), live (a pointer is over it).
export function paintMarks(surface, scene, marks) {
  const { theme } = surface;
  for (const box of scene.boxes) {
    const { panel } = box;
    if (scene.mode === "grid" && panel.id === marks.selected) {
      surface.rect(box.x - 3, box.y - 3, box.w + 6, box.h + 6, { stroke: theme.primary, width: 2, radius: 4 });
    } else if (scene.mode === "grid" && panel.index === marks.current?.panel) {
      surface.rect(box.x - 2.5, box.y - 2.5, box.w + 5, box.h + 5, { stroke: theme.muted, radius: 3 });
    }
    if (marks.pinned) {
      const pinned = placeIn(panel, marks.pinned);
      if (pinned.row !== undefined && pinned.col !== undefined) paintCell(surface, scene, box, pinned, theme.primary);
    }
    const place = placeIn(panel, marks.pointed);
    if (place.row === undefined && place.col === undefined) continue;
    if (scene.mode === "single" && marks.live) paintBands(surface, scene, box, place);
    if (scene.mode === "grid" && panel.index === marks.current?.panel) paintBands(surface, scene, box, place);
    if (place.row !== undefined && place.col !== undefined) paintCell(surface, scene, box, place, theme.ink);
    if (scene.mode === "single") paintEmphasis(surface, scene, box, place);
  }
}

// A cell's outline, with a light border so that it is visible on every colour, at least 5 px wide.
function paintCell(surface, scene, box, { row, col }, colour) {
  let x = edgeX(scene, box, col);
  let y = edgeY(scene, box, row);
  let w = edgeX(scene, box, col + 1) - x;
  let h = edgeY(scene, box, row + 1) - y;
  if (x + w <= box.x || x >= box.x + box.w || y + h <= box.y || y >= box.y + box.h) return;
  if (w < 5) [x, w] = [x + w / 2 - 2.5, 5];
  if (h < 5) [y, h] = [y + h / 2 - 2.5, 5];
  surface.within(box.x - 3, box.y - 3, box.w + 6, box.h + 6, () => {
    surface.rect(x - 1, y - 1, w + 2, h + 2, { stroke: surface.theme.paper, width: 3.5, radius: 1.5 });
    surface.rect(x - 1, y - 1, w + 2, h + 2, { stroke: colour, width: 1.6, radius: 1.5 });
  });
}

// The row and the column of the place, as pairs of hairlines (one where cells are too small for two).
function paintBands(surface, scene, box, { row, col }) {
  const edges = (edge, k) => {
    if (k === undefined) return [];
    const [from, to] = [edge(scene, box, k), edge(scene, box, k + 1)];
    return to - from < 4 ? [(from + to) / 2] : [from, to];
  };
  const line = { fill: surface.theme.ink, alpha: 0.45 };
  surface.within(box.x, box.y, box.w, box.h, () => {
    for (const y of edges(edgeY, row)) surface.rect(box.x, y - 0.5, box.w, 1, line);
    for (const x of edges(edgeX, col)) surface.rect(x - 0.5, box.y, 1, box.h, line);
  });
}

// The labels of the place's row and column, framed.
function paintEmphasis(surface, scene, box, { row, col }) {
  const { theme } = surface;
  const { ruler } = scene;
  const { panel, view } = box;
  const pill = (x, y, w, h) => surface.rect(x, y, w, h, { fill: theme.paper, stroke: accent(theme, panel.role), radius: 3.5 });
  const style = { size: 12, weight: 600, fill: theme.ink };
  if (box.down && row !== undefined && row + 0.5 >= view.y[0] && row + 0.5 <= view.y[1]) {
    const y = (edgeY(scene, box, row) + edgeY(scene, box, row + 1)) / 2;
    const text = ruler.fit(visible(panel.rows.labels[row]), box.gutter + 14, 12, 600);
    const width = ruler.width(text, 12, 600);
    pill(box.x - 13 - width, y - 8.5, width + 10, 17);
    surface.text(text, box.x - 8, y + 4, { ...style, anchor: "end" });
  }
  if (col !== undefined && col + 0.5 >= view.x[0] && col + 0.5 <= view.x[1]) {
    const x = (edgeX(scene, box, col) + edgeX(scene, box, col + 1)) / 2;
    acrossText(surface, ruler, box, x, visible(panel.cols.labels[col]), style, pill);
  }
}

function drawOn(context, ratio, scene, figure, marks, theme) {
  const { lines, room } = headLines(figure, scene.width);
  const surface = new CanvasSurface(context, theme, ratio);
  surface.rect(0, 0, scene.width, scene.height + room, { fill: theme.paper });
  for (const { text, x, y, ...look } of lines) surface.text(text, x, y, { ...look, fill: theme.ink });
  context.translate(0, room);
  paintStill(surface, scene, figure);
  paintMarks(surface, scene, marks);
}

export function pngOf(scene, figure, marks, theme) {
  const ratio = Math.max(2, scene.ratio);
  const canvas = document.createElement("canvas");
  Object.assign(canvas, { width: Math.round(scene.width * ratio), height: Math.round((scene.height + headLines(figure, scene.width).room) * ratio) });
  drawOn(canvas.getContext("2d"), ratio, { ...scene, ratio }, figure, marks, theme);
  return new Promise((done) => canvas.toBlob(done, "image/png"));
}

export function svgOf(scene, figure, marks, theme) {
  const surface = new SvgSurface(scene.width, scene.height, theme, scene.ruler);
  paintStill(surface, scene, figure);
  paintMarks(surface, scene, marks);
  headSvg(surface.root, figure, theme);
  return new Blob([new XMLSerializer().serializeToString(surface.root)], { type: "image/svg+xml" });
}
