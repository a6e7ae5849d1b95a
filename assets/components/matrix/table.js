// Two other forms of the same figure: a real table of the chosen panel, and files (PNG, SVG) of what is drawn.
// Next: pointer.js.

import { fill, printed, short, visible } from "./unpack.js";
import { headLines, headSvg } from "./caption.js";
import { paintMarks, paintStill } from "./paint.js";
import { el } from "./readout.js";
import { CanvasSurface, SvgSurface } from "./surface.js";

const TABLE_SIDE = 128;

export function buildTable(figure, panel) {
  const rows = Math.min(panel.height, TABLE_SIDE);
  const cols = Math.min(panel.width, TABLE_SIDE);
  const axes = fill(figure.strings.axes_note, { rows: panel.rows.name, cols: panel.cols.name });
  const caption = el("caption", "", [panel.fullName || figure.title, axes].filter(Boolean).join(" — "));
  if (rows < panel.height || cols < panel.width) caption.append(` (${fill(figure.strings.table_cut, { count: TABLE_SIDE })})`);
  const heading = (axis, index, scope) => {
    const cell = el("th", "", el("bdi", "", visible(axis.labels[index])));
    cell.scope = scope;
    return cell;
  };
  const top = el("tr", "", el("td"), ...Array.from({ length: cols }, (_, col) => heading(panel.cols, col, "col")));
  const body = el("tbody");
  const note = panel.coded && !panel.states ? printed(panel, 0, 0)?.split(" ").slice(1).join(" ") : "";
  for (let row = 0; row < rows; row += 1) {
    const line = el("tr", "", heading(panel.rows, row, "row"));
    for (let col = 0; col < cols; col += 1) {
      const text = printed(panel, row, col);
      line.append(el("td", text === null ? "vm-masked" : "", text === null ? figure.strings.masked : short(panel, text)));
    }
    body.append(line);
  }
  if (note) caption.append(` (${note})`);
  return el("table", "", caption, el("thead", "", top), body);
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

export function download(blob, filename) {
  const link = el("a");
  link.href = URL.createObjectURL(blob);
  link.download = filename.replace(/[^\p{L}\p{N}._ -]+/gu, "-");
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10000);
}
