// The text about a matrix: one cell with the arithmetic behind it, a sentence for screen readers, and a table.
// All words come from figure.strings; labels enter as text, never as markup.

import { el, fill, number, visible } from "../kit.js";
import { clamp } from "./geometry.js";
import { placeIn, placeOf, printed, short, valueAt } from "./unpack.js";

// One row of one head's attention, recomputed from its queries and keys (Vaswani et al. 2017, eq. 1):
// weights = softmax(q k / sqrt(d_head) + bias), the quotient capped where the model caps it, without hidden keys; a row
// that is wholly hidden has weights of 0.
// Sums are in float64 from the model's float32 values; the gaps are the largest differences to the model's own results.
const capped = (score, cap) => (cap ? cap * Math.tanh(score / cap) : score);

function recompute(explain, row) {
  const { query, key, keys, size, divisor, bias, cap } = explain;
  const first = row * keys;
  const dots = new Float64Array(keys);
  const scores = new Float64Array(keys);
  const allowed = Array.from({ length: keys }, (_, col) => Number.isFinite(explain.masked_scores[first + col]));
  for (let col = 0; col < keys; col += 1) {
    let dot = 0;
    for (let k = 0; k < size; k += 1) dot += query[row * size + k] * key[col * size + k];
    dots[col] = dot;
    scores[col] = capped(dot / divisor, cap) + (bias ? bias[first + col] : 0);
  }
  const greatest = scores.reduce((most, score, col) => (allowed[col] ? Math.max(most, score) : most), -Infinity);
  const raised = Float64Array.from(scores, (score, col) => (allowed[col] ? Math.exp(score - greatest) : 0));
  const sum = raised.reduce((total, value) => total + value, 0);
  const weights = raised.map((value) => (sum > 0 ? value / sum : 0));
  let scoreGap = 0;
  let weightGap = 0;
  let rowSum = 0;
  for (let col = 0; col < keys; col += 1) {
    scoreGap = Math.max(scoreGap, Math.abs(scores[col] - explain.scores[first + col]));
    weightGap = Math.max(weightGap, Math.abs(weights[col] - explain.weights[first + col]));
    rowSum += explain.weights[first + col];
  }
  return { dots, scores, allowed, greatest, raised, sum, weights, scoreGap, weightGap, rowSum };
}

// The largest entries of a row (or column) as [index, value], the largest first.
function largest(count, value, most = 5) {
  const entries = Array.from({ length: count }, (_, index) => [index, value(index)]).filter((entry) => !Number.isNaN(entry[1]));
  return entries.sort((a, b) => b[1] - a[1]).slice(0, most);
}

// A token with its position, isolated so that right-to-left text does not reorder the rest.
function token(axis, index, className = "vm-token") {
  const label = axis.labels[index];
  const name = el("bdi", className, visible(label));
  return el("span", "vm-entry", name, label === String(index) ? null : el("span", "vm-index", String(index)));
}

// A template with elements in place of its {…}.
const sentence = (template, parts) => template.split(/(\{\w+\})/).map((piece) => parts[piece.slice(1, -1)] ?? piece);

function valueLine(figure, panel, { row, col }) {
  const text = printed(panel, row, col);
  return el("span", text === null ? "vm-value vm-masked" : "vm-value", text ?? figure.strings.masked);
}

// What can be done with a cell, in words for a pointer or for a finger.
const hintOf = (strings, name) => strings[matchMedia("(pointer: coarse)").matches ? `touch_${name}` : name];

// The line above a grid: the cell, and the panel in which it is strongest.
export function gridReadout(figure, cell) {
  if (!cell) return [el("span", "vm-hint", hintOf(figure.strings, "hint_grid"))];
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

// The text beside a single matrix.
export function singleReadout(figure, cell, pinned, rows) {
  const { strings } = figure;
  const hint = figure.paint ? "hint_paint" : figure.explain ? "hint_explain" : "hint_single";
  if (!cell) return [el("p", "vm-hint", hintOf(strings, hint))];
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
  if (panel.id === figure.paint?.panel) blocks.push(el("p", "vm-hint", hintOf(strings, "hint_paint")));
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
  const before = capped(scaled, explain.cap);
  if (explain.cap) {
    const cap = number(explain.cap);
    steps.push([strings.step_cap, [`${cap} · tanh(${number(scaled)} ÷ ${cap}) = `, el("b", "", number(before))]]);
  }
  if (explain.bias) {
    const bias = explain.bias[row * explain.keys + col];
    steps.push([strings.step_bias, [`${number(before)} + ${wrapped(bias, 4)} = `, el("b", "", number(sums.scores[col]))]]);
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

// The dot product of q and k: its first products, an ellipsis, the sum.
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

// The five largest values of the row and of the column, as bars on the panel's scale.
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
  const [rowTop, colTop] = panel.role === "weights"
    ? [strings.row_top, strings.col_top]
    : [strings.row_largest, strings.col_largest];
  return el(
    "section", "vm-lists",
    el("div", "vm-by-row", el("h4", "", ...sentence(rowTop, { row: token(panel.rows, row) })), byRow),
    el("div", "vm-by-col", el("h4", "", ...sentence(colTop, { col: token(panel.cols, col) })), byCol),
  );
}

const isolate = (text) => `\u2068${text}\u2069`;

// One sentence about a cell for screen readers.
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
  if (figure.panels.length > 1) caption.append(el("div", "", figure.strings.table_another));
  return el("table", "", caption, el("thead", "", top), body);
}
