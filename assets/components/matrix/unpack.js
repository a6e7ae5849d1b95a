// A figure from the bytes of MatrixFigure.to_bytes (pages/figures/matrix.py): header, axes, panels, and the arrays of one head.

import { number } from "../kit.js";

export const LEVELS = 254; // codes 0..254 are values from low to high
export const MASKED = 255;
export const OPEN = 150; // the code of a mask's cells that may attend; hidden ones are hatched

// The header, and a function that reads the array at one of its {at, shape, type}.
export function contents(bytes) {
  const source = bytes instanceof Uint8Array ? bytes : new Uint8Array(bytes);
  const length = new DataView(source.buffer, source.byteOffset).getUint32(0, true);
  const header = JSON.parse(new TextDecoder().decode(source.subarray(4, 4 + length)));
  const data = new Uint8Array(source.subarray(Math.ceil((4 + length) / 8) * 8)).buffer; // a copy, since typed arrays need aligned addresses
  const array = ({ at, shape, type }) => {
    const size = shape.reduce((product, side) => product * side, 1);
    return type === "u1" ? new Uint8Array(data, at, size) : new Float32Array(data, at, size);
  };
  return { header, array };
}

export function unpack(bytes) {
  const { header: figure, array } = contents(bytes);
  figure.panels = figure.panels.map((panel, index) => ({
    ...panel,
    index,
    rows: figure.axes[panel.rows],
    cols: figure.axes[panel.cols],
    height: panel.values.shape[0],
    width: panel.values.shape[1],
    data: array(panel.values),
    coded: panel.values.type === "u1",
  }));
  for (const panel of figure.panels) {
    panel.heading ||= figure.panels[panel.index - (panel.index % figure.columns)].heading;
    panel.fullName = [panel.heading, panel.title, panel.group].filter(Boolean).join(" · ");
    if (isMask(panel)) panel.states = ADDED[panel.scale.kind] ?? [figure.strings.mask_hidden, figure.strings.mask_open];
  }
  if (figure.explain) {
    const { arrays } = figure.explain;
    for (const name of Object.keys(arrays)) figure.explain[name] = array(arrays[name]);
    [figure.explain.queries, figure.explain.size] = arrays.query.shape;
    figure.explain.keys = arrays.key.shape[0];
  }
  return figure;
}

const ADDED = { added: ["−∞", "0"], large: ["−10²⁰", "0"] }; // what a mask adds to scores

export const isMask = (panel) => panel.scale.kind === "mask" || panel.scale.kind in ADDED;
const isOpen = (panel, raw) => (panel.scale.kind === "mask" ? raw > 0 : panel.coded ? raw !== MASKED : Number.isFinite(raw));

// The value of a cell, NaN where it is masked.
export function valueAt(panel, row, col) {
  const raw = panel.data[row * panel.width + col];
  if (!panel.coded) return Number.isFinite(raw) ? raw : NaN;
  return raw === MASKED ? NaN : panel.scale.low + (raw / LEVELS) * (panel.scale.high - panel.scale.low);
}

// The colour codes of a panel's cells: 0..254 along the scale, 255 where masked; computed once.
export function codesOf(panel) {
  if (isMask(panel)) return (panel.codes ??= Uint8Array.from(panel.data, (raw) => (isOpen(panel, raw) ? OPEN : MASKED)));
  if (panel.coded) return panel.data;
  const { low, high } = panel.scale;
  const code = (value) => Math.max(0, Math.min(LEVELS, Math.round(((value - low) / (high - low)) * LEVELS)));
  panel.codes ??= Uint8Array.from(panel.data, (value) => (Number.isFinite(value) ? code(value) : MASKED));
  return panel.codes;
}

const halfStep = (panel) => (panel.scale.high - panel.scale.low) / LEVELS / 2;

// A printed cell without its half step; a mask's word stays whole.
export const short = (panel, text) => (panel.states ? text : text.split(" ")[0]);

// The text of a cell: a mask's word, four significant digits, or the value with the half step of its 8-bit code.
export function printed(panel, row, col) {
  if (panel.states) return panel.states[isOpen(panel, panel.data[row * panel.width + col]) ? 1 : 0];
  const value = valueAt(panel, row, col);
  if (Number.isNaN(value)) return null;
  if (!panel.coded) return number(value);
  const error = halfStep(panel);
  const decimals = Math.max(0, Math.min(12, Math.ceil(-Math.log10(error))));
  return `${value.toFixed(decimals).replace("-", "−")} ± ${error.toFixed(decimals)}`;
}

// A place on two axes by their keys, as shared between linked panels and matrices.
export const placeOf = (panel, { row, col }) => ({ rowKey: panel.rows.key, row, colKey: panel.cols.key, col });

// The cell of a place in a panel, {row, col}; either is undefined where the panel lacks that axis.
export function placeIn(panel, place) {
  const along = (key, first, second) => (key === place?.[`${first}Key`] ? place[first] : key === place?.[`${second}Key`] ? place[second] : undefined);
  const row = along(panel.rows.key, "row", "col");
  const col = along(panel.cols.key, "col", "row");
  return { row: row < panel.height ? row : undefined, col: col < panel.width ? col : undefined };
}
