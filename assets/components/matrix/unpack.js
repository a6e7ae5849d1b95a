// From the bytes of MatrixFigure.to_bytes to a figure: header, axes, panels, and the arrays of one head's arithmetic.
// The order of the bytes is defined in pages/figures/matrix.py.
// Next: colour.js.

export const LEVELS = 254; // codes 0..254 are values from low to high
export const MASKED = 255;
export const OPEN = 150; // the one shade of a mask's cells that may attend; hidden ones are hatched

// The header, and how one of its places becomes an array.
export function contents(bytes) {
  const source = bytes instanceof Uint8Array ? bytes : new Uint8Array(bytes);
  const length = new DataView(source.buffer, source.byteOffset).getUint32(0, true);
  const header = JSON.parse(new TextDecoder().decode(source.subarray(4, 4 + length)));
  const data = new Uint8Array(source.subarray(Math.ceil((4 + length) / 8) * 8)).buffer; // a copy begins at an aligned address
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
    panel.fullName = [panel.heading, panel.title].filter(Boolean).join(" · ");
    if (isMask(panel)) panel.states = panel.scale.kind === "added" ? ["−∞", "0"] : [figure.strings.mask_hidden, figure.strings.mask_open];
  }
  if (figure.explain) {
    const { arrays } = figure.explain;
    for (const name of Object.keys(arrays)) figure.explain[name] = array(arrays[name]);
    [figure.explain.queries, figure.explain.size] = arrays.query.shape;
    figure.explain.keys = arrays.key.shape[0];
  }
  return figure;
}

// Whether a panel is itself a mask: boolean, 1 may attend and 0 is hidden, or as added to scores, 0 and minus infinity.
export const isMask = (panel) => panel.scale.kind === "mask" || panel.scale.kind === "added";
const isOpen = (panel, raw) => (panel.scale.kind === "mask" ? raw > 0 : panel.coded ? raw !== MASKED : Number.isFinite(raw));

// The number at a cell, NaN where it is masked.
export function valueAt(panel, row, col) {
  const raw = panel.data[row * panel.width + col];
  if (!panel.coded) return Number.isFinite(raw) ? raw : NaN;
  return raw === MASKED ? NaN : panel.scale.low + (raw / LEVELS) * (panel.scale.high - panel.scale.low);
}

// The colour codes of a panel's cells: 0..254 along the scale, 255 where masked. Found once.
export function codesOf(panel) {
  if (isMask(panel)) return (panel.codes ??= Uint8Array.from(panel.data, (raw) => (isOpen(panel, raw) ? OPEN : MASKED)));
  if (panel.coded) return panel.data;
  const { low, high } = panel.scale;
  const code = (value) => Math.max(0, Math.min(LEVELS, Math.round(((value - low) / (high - low)) * LEVELS)));
  panel.codes ??= Uint8Array.from(panel.data, (value) => (Number.isFinite(value) ? code(value) : MASKED));
  return panel.codes;
}

const SUPERSCRIPTS = { "-": "⁻", 0: "⁰", 1: "¹", 2: "²", 3: "³", 4: "⁴", 5: "⁵", 6: "⁶", 7: "⁷", 8: "⁸", 9: "⁹" };
const halfStep = (panel) => (panel.scale.high - panel.scale.low) / LEVELS / 2;

export function number(value, digits = 4) {
  const size = Math.abs(value);
  if (value === 0) return "0";
  if (size < 1e5 && size >= 1e-4) return String(+value.toPrecision(digits) === value ? value : value.toPrecision(digits)).replace("-", "−");
  const [mantissa, exponent] = value.toExponential(digits > 2 ? 2 : 1).split("e");
  return `${mantissa}×10${[...String(+exponent)].map((sign) => SUPERSCRIPTS[sign]).join("")}`.replace("-", "−");
}

// The number of a printed cell, without the half step; a mask's word stays whole.
export const short = (panel, text) => (panel.states ? text : text.split(" ")[0]);

// What is printed for a cell: a mask's word, four significant digits, or the value with the half step that its eight bits leave open.
export function printed(panel, row, col) {
  if (panel.states) return panel.states[isOpen(panel, panel.data[row * panel.width + col]) ? 1 : 0];
  const value = valueAt(panel, row, col);
  if (Number.isNaN(value)) return null;
  if (!panel.coded) return number(value);
  const error = halfStep(panel);
  const decimals = Math.max(0, Math.min(12, Math.ceil(-Math.log10(error))));
  return `${value.toFixed(decimals).replace("-", "−")} ± ${error.toFixed(decimals)}`;
}

// A place on two axes, by their keys: what linked panels and matrices share.
export const placeOf = (panel, { row, col }) => ({ rowKey: panel.rows.key, row, colKey: panel.cols.key, col });

// Where a place lies in a panel: {row, col}, either undefined where the panel lacks that axis.
export function placeIn(panel, place) {
  const along = (key, first, second) => (key === place?.[`${first}Key`] ? place[first] : key === place?.[`${second}Key`] ? place[second] : undefined);
  const row = along(panel.rows.key, "row", "col");
  const col = along(panel.cols.key, "col", "row");
  return { row: row < panel.height ? row : undefined, col: col < panel.width ? col : undefined };
}

export const fill = (template, parts) => template.replace(/\{(\w+)\}/g, (whole, name) => parts[name] ?? whole);

// A label that can be seen: blanks and line ends get a sign of their own.
export function visible(label) {
  const text = label.replaceAll("\n", "⏎").replaceAll("\t", "⇥").replace(/[\u0000-\u001f\u202a-\u202e\u2066-\u2069]/g, "");
  return text.trim() === "" ? "␣" : text;
}
