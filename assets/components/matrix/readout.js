// What is said of one cell: its row, its column, its number and, for an explained head, the arithmetic behind it.
// All words come from figure.strings; all text goes in as text.
// Next: table.js.

import { fill, number, placeIn, placeOf, printed, valueAt, visible } from "./unpack.js";
import { clamp } from "./geometry.js";
import { largest, recompute } from "./arithmetic.js";

export function el(name, className = "", ...children) {
  const node = document.createElement(name);
  if (className) node.className = className;
  node.append(...children.filter((child) => child !== null && child !== undefined));
  return node;
}

// A token in a sentence: isolated, so that right-to-left text does not turn the rest, with its position.
function token(axis, index, className = "vm-token") {
  const label = axis.labels[index];
  const name = el("bdi", className, visible(label));
  return el("span", "vm-entry", name, label === String(index) ? null : el("span", "vm-index", String(index)));
}

// A template with elements in its places.
const sentence = (template, parts) => template.split(/(\{\w+\})/).map((piece) => parts[piece.slice(1, -1)] ?? piece);

function valueLine(figure, panel, { row, col }) {
  const text = printed(panel, row, col);
  return el("span", text === null ? "vm-value vm-masked" : "vm-value", text ?? figure.strings.masked);
}

// The strip above a grid: the cell, and where among all panels it is strongest.
export function gridReadout(figure, cell) {
  if (!cell) return [el("span", "vm-hint", figure.strings.hint_grid)];
  const panel = figure.panels[cell.panel];
  const place = placeOf(panel, cell);
  let best = null;
  for (const other of figure.panels) {
    const { row, col } = placeIn(other, place);
    const value = other.states || row === undefined || col === undefined ? NaN : Math.abs(valueAt(other, row, col));
    if (!Number.isNaN(value) && (!best || value > best.value)) best = { value, panel: other, row, col };
  }
  const strongest = best && figure.panels.length > 1
    ? el("span", "vm-strongest", fill(figure.strings.strongest, { value: printed(best.panel, best.row, best.col), panel: best.panel.fullName }))
    : null;
  return [el("span", "vm-where", panel.fullName), ...passage(panel, cell), valueLine(figure, panel, cell), strongest].filter(Boolean);
}

const passage = (panel, { row, col }) => [
  el("span", "vm-passage", token(panel.rows, row), el("span", "vm-arrow", "→"), token(panel.cols, col)),
];

export const tipLines = (figure, cell) => {
  const panel = figure.panels[cell.panel];
  return [el("div", "vm-where", panel.fullName), ...passage(panel, cell), el("div", "", valueLine(figure, panel, cell))];
};

// The panel beside a single matrix.
export function singleReadout(figure, cell, pinned, rows) {
  const { strings } = figure;
  const hint = figure.paint ? strings.hint_paint : figure.explain ? strings.hint_explain : strings.hint_single;
  if (!cell) return [el("p", "vm-hint", hint)];
  const panel = figure.panels[cell.panel];
  const named = (axis, index) => el("div", "vm-place", el("span", "vm-axis", axis.name), token(axis, index));
  const parts = [
    panel.fullName && figure.panels.length > 1 ? el("div", "vm-where", panel.fullName) : null,
    el("div", "vm-places", named(panel.rows, cell.row), named(panel.cols, cell.col)),
    el("div", "vm-number", valueLine(figure, panel, cell), pinned ? el("span", "vm-pinned", strings.pinned) : null),
  ];
  const explained = figure.explain?.panels.includes(panel.id);
  const blocks = [el("section", "vm-cell", ...parts)];
  if (explained) blocks.push(explainBlock(figure, cell, rows));
  if (panel.id === figure.paint?.panel) blocks.push(el("p", "vm-hint", strings.hint_paint));
  if (explained || !(panel.states || panel.scale.kind === "signed")) blocks.push(listsBlock(figure, panel, cell, explained));
  return blocks;
}

const wrapped = (value, digits) => (value < 0 ? `(${number(value, digits)})` : number(value, digits));

function explainBlock(figure, { row, col }, rows) {
  const { strings, explain } = figure;
  if (!rows.has(row)) rows.set(row, recompute(explain, row));
  const sums = rows.get(row);
  const steps = [[strings.step_dot, dotProduct(figure, row, col, sums.dots[col])]];
  const root = Math.abs(explain.divisor - Math.sqrt(explain.size)) < 1e-6 * explain.divisor;
  const scaled = sums.dots[col] / explain.divisor;
  const divisor = root ? `√${explain.size}` : number(explain.divisor);
  steps.push([strings.step_scale, [`${number(sums.dots[col])} ÷ ${divisor} = `, el("b", "", number(scaled))]]);
  if (explain.bias) {
    const bias = explain.bias[row * explain.keys + col];
    steps.push([strings.step_bias, [`${number(scaled)} + ${wrapped(bias, 4)} = `, el("b", "", number(sums.scores[col]))]]);
  }
  steps.push([strings.step_mask, [sums.allowed[col] ? strings.may_attend : strings.may_not_attend]]);
  steps.push([strings.step_softmax, softmaxLine(figure, sums, col)]);
  const list = el("ol", "vm-steps", ...steps.map(([name, body]) => el("li", "", el("span", "vm-step", name), el("span", "vm-formula", ...body))));
  list.lastChild.append(el("span", "vm-sum", fill(strings.row_sum, { sum: sums.rowSum.toFixed(6) })));
  const same = sums.weightGap <= 1e-4 && sums.scoreGap <= 1e-3 * Math.max(1, Math.abs(sums.greatest === -Infinity ? 0 : sums.greatest));
  const gaps = { weights: number(sums.weightGap, 2), scores: number(sums.scoreGap, 2) };
  const badge = el("p", same ? "vm-badge" : "vm-badge vm-differs", fill(same ? strings.badge : strings.badge_differs, gaps));
  badge.dataset.weights = sums.weightGap;
  badge.dataset.scores = sums.scoreGap;
  return el("section", "vm-explain", el("h4", "", strings.explain_title), list, badge);
}

// q and k multiplied out: the first products, an ellipsis, the total.
function dotProduct(figure, row, col, total) {
  const { query, key, size } = figure.explain;
  const pieces = [];
  for (let k = 0; k < Math.min(3, size); k += 1) {
    if (k) pieces.push(" + ");
    pieces.push(el("span", "vm-q", wrapped(query[row * size + k], 2)), "·", el("span", "vm-k", wrapped(key[col * size + k], 2)));
  }
  const rest = size > 3 ? [" + …"] : [];
  const note = el("small", "", fill(figure.strings.step_dot_note, { count: size }));
  return [...pieces, ...rest, " = ", el("b", "", number(total)), " ", note];
}

function softmaxLine(figure, sums, col) {
  if (sums.sum === 0) return [figure.strings.row_all_masked];
  if (!sums.allowed[col]) return [`0 ÷ ${number(sums.sum)} = `, el("b", "", "0")];
  const power = `exp(${number(sums.scores[col])} − ${wrapped(sums.greatest, 4)})`;
  return [`${power} ÷ ${number(sums.sum)} = `, el("b", "", number(sums.weights[col]))];
}

// The five largest of the row and of the column, as bars on the panel's own scale.
function listsBlock(figure, panel, { row, col }, explained) {
  const { strings, explain } = figure;
  const at = explained ? (r, c) => explain.weights[r * explain.keys + c] : (r, c) => valueAt(panel, r, c);
  const high = explained ? 1 : panel.scale.high;
  const shownAs = (r, c) => (explained ? at(r, c).toFixed(3) : printed(panel, r, c).split(" ")[0]);
  const bars = (axis, entries, text, here) =>
    el("ul", "vm-bars", ...entries.map(([index, value]) => {
      const bar = el("span", "vm-bar");
      bar.style.width = `${clamp((100 * value) / high, 0, 100)}%`;
      return el("li", index === here ? "vm-here" : "", token(axis, index), el("span", "vm-amount", text(index)), el("span", "vm-track", bar));
    }));
  const byRow = bars(panel.cols, largest(panel.width, (c) => at(row, c)), (c) => shownAs(row, c), col);
  const byCol = bars(panel.rows, largest(panel.height, (r) => at(r, col)), (r) => shownAs(r, col), row);
  return el(
    "section", "vm-lists",
    el("div", "vm-by-row", el("h4", "", ...sentence(strings.row_top, { row: token(panel.rows, row) })), byRow),
    el("div", "vm-by-col", el("h4", "", ...sentence(strings.col_top, { col: token(panel.cols, col) })), byCol),
  );
}

const isolate = (text) => `\u2068${text}\u2069`;

// The same for a screen reader, as one sentence.
export const announcement = (figure, cell) => {
  const panel = figure.panels[cell.panel];
  return fill(figure.strings.announce, {
    panel: panel.fullName || figure.title,
    rows: panel.rows.name,
    row: `${isolate(visible(panel.rows.labels[cell.row]))} (${fill(figure.strings.position, { index: cell.row })})`,
    cols: panel.cols.name,
    col: `${isolate(visible(panel.cols.labels[cell.col]))} (${fill(figure.strings.position, { index: cell.col })})`,
    value: printed(panel, cell.row, cell.col) ?? figure.strings.masked,
  });
};
