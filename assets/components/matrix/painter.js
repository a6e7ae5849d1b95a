// Painting: cells of one panel are clicked, dragged over or toggled by key, and change at once. The methods are mixed
// into Matrix. At most one message to the server is pending; each answer carries the stamp of the last stroke it
// includes, so that a late answer does not undo newer strokes. A mask is sent whole, also during a stroke; a brush, which
// writes one number, sends each stroke when it ends, and again until an answer includes it.

import { cellUnder } from "./geometry.js";
import { announcement } from "./readout.js";

const PATIENCE = 900; // ms until an unanswered message counts as lost
export const REST = 250; // ms without a stroke until the page hears of the last one, where pictures come the short way

// A mask as text: "COLUMNS.BITS", row after row, the first cell in the highest bit, base64url without padding.
// transformer_core/analysis/masks/codes.py reads and writes the same form.
function codeOf(panel) {
  const bytes = new Uint8Array(Math.ceil(panel.data.length / 8));
  panel.data.forEach((value, i) => (bytes[i >> 3] |= (value > 0 ? 128 : 0) >> (i & 7)));
  const text = btoa(String.fromCharCode(...bytes));
  return `${panel.width}.${text.replaceAll("+", "-").replaceAll("/", "_").replaceAll("=", "")}`;
}

// Cells as runs: the index of a run's first cell, row after row, and its length, one after the other.
function runsOf(cells) {
  const runs = [];
  for (const index of [...cells].sort((a, b) => a - b)) {
    if (runs.length && runs.at(-2) + runs.at(-1) === index) runs[runs.length - 1] += 1;
    else runs.push(index, 1);
  }
  return runs;
}

// The cells on a straight line from one to another, both included.
function* between(from, to) {
  const steps = Math.max(Math.abs(to.row - from.row), Math.abs(to.col - from.col), 1);
  for (let i = 0; i <= steps; i += 1) {
    yield { row: Math.round(from.row + ((to.row - from.row) * i) / steps), col: Math.round(from.col + ((to.col - from.col) * i) / steps) };
  }
}

export const painting = {
  canvasPanel() {
    return this.figure.panels.find(({ id }) => id === this.figure.paint.panel);
  },

  // The number that a brush writes; undefined where a mask is painted.
  brushValue() {
    return this.figure.paint.value;
  },

  // Whether this figure, or this cell of it, can be painted.
  paintable(cell = null) {
    const { figure } = this;
    if (!figure?.paint) return false;
    return !cell || figure.panels[cell.panel].id === figure.paint.panel;
  },

  // Takes a figure from the page and keeps strokes that it does not include yet.
  takePainting(figure, fresh) {
    if (!this.send) figure.paint = null; // a stand-alone page has no model to run
    if (!figure.paint) return;
    if (fresh) Object.assign(this, { stroke: null, pending: 0, strokes: [] });
    const panel = this.canvasPanel();
    panel.data = panel.data.slice(); // other panels may share the same bytes
    const { stamp } = figure.paint;
    this.strokes = (this.strokes ?? []).filter(([made]) => made > stamp);
    const newer = !fresh && this.draft && (this.stamp ?? 0) > stamp;
    if (newer) panel.data.set(this.draft);
    else this.draft = null;
    this.stamp = Math.max(this.stamp ?? 0, stamp);
    if (!this.pending || stamp < this.pending) return;
    this.pending = 0;
    if (newer || this.rested) setTimeout(() => this.sendStrokes(), 0);
  },

  // A finger on the mask paints instead of scrolling the page.
  onTouch(event) {
    const [touch] = event.touches;
    if (event.touches.length === 1 && this.paintable(cellUnder(this.scene, ...this.at(touch)))) event.preventDefault();
  },

  // Starts a stroke, which paints the brush's number or the opposite of its first cell's value; returns whether the event
  // is used up.
  beginStroke(event) {
    const cell = this.scene && cellUnder(this.scene, ...this.at(event));
    if (this.stroke) return true; // a second finger is ignored
    if (!cell || !this.paintable(cell) || this.fingers.size) return false;
    this.canvas.setPointerCapture(event.pointerId);
    const { data, width } = this.canvasPanel();
    const was = data[cell.row * width + cell.col];
    this.stroke = { finger: event.pointerId, last: cell, value: this.brushValue() ?? (was > 0 ? 0 : 1), cells: new Set() };
    this.paintOn(event);
    return true;
  },

  paintOn(event) {
    const { stroke } = this;
    for (const moment of [...(event.getCoalescedEvents?.() ?? []), event]) this.paintTo(moment, stroke);
    if (stroke.unsent) this.changed();
    stroke.unsent = false;
  },

  paintTo(event, stroke) {
    const cell = cellUnder(this.scene, ...this.at(event));
    if (!cell || !this.paintable(cell)) return;
    const panel = this.canvasPanel();
    for (const { row, col } of between(stroke.last, cell)) {
      stroke.cells.add(row * panel.width + col);
      stroke.unsent = this.put(panel, row, col, stroke.value) || stroke.unsent;
    }
    stroke.last = cell;
  },

  endStroke(event) {
    if (this.stroke?.finger !== event.pointerId) return false;
    const { last, cells } = this.stroke;
    this.stroke = null;
    this.rested = true;
    this.keepStroke(cells);
    this.live.textContent = announcement(this.figure, last);
    this.sendStrokes();
    return true;
  },

  // Inverts one cell, or writes the brush's number there, after Space or Enter.
  toggle(cell) {
    const panel = this.canvasPanel();
    const index = cell.row * panel.width + cell.col;
    this.put(panel, cell.row, cell.col, this.brushValue() ?? (panel.data[index] > 0 ? 0 : 1));
    this.rested = true;
    this.keepStroke(new Set([index]));
    this.live.textContent = announcement(this.figure, cell);
    this.changed();
  },

  // Keeps a brush's stroke until the page has it.
  keepStroke(cells) {
    if (this.brushValue() === undefined) return;
    this.stamp += 1;
    this.strokes.push([this.stamp, runsOf(cells)]);
    this.draft = this.canvasPanel().data.slice();
  },

  // Writes a cell of a panel; returns whether it changed.
  put(panel, row, col, value) {
    const level = value && panel.coded ? 254 : Math.fround(value);
    const index = row * panel.width + col;
    if (panel.data[index] === level) return false;
    panel.data[index] = level;
    return true;
  },

  // Draws what was painted and sends it to the page.
  changed() {
    const panel = this.canvasPanel();
    panel.codes = null;
    panel.image = { canvas: panel.image?.canvas };
    this.draft = panel.data.slice();
    this.stamp += 1;
    cancelAnimationFrame(this.brush);
    this.brush = requestAnimationFrame(() => {
      this.still();
      this.say();
      this.tableOf = null;
      this.refreshTable();
    });
    this.sendStrokes();
  },

  // Sends the newest mask, unless a message is pending; its answer triggers the next. Where pictures come the short way,
  // the mask goes that way, and the page hears of it once the hand rests.
  sendStrokes() {
    if (window.vitrineLive && this.draft && this.brushValue() === undefined) {
      this.ask({ masks_preset: "painted", masks_rows: codeOf(this.canvasPanel()), stamp: this.stamp });
      clearTimeout(this.resting);
      this.resting = setTimeout(() => this.tellPage(), REST);
    } else this.tellPage();
  },

  tellPage() {
    const whole = this.brushValue() === undefined;
    if (this.stroke && (window.vitrineLive || !whole)) return; // its end tells the page
    if (this.pending || !(this.draft || this.rested)) return;
    const { stamp } = this;
    const done = !this.stroke;
    if (done) this.rested = false;
    this.pending = stamp;
    clearTimeout(this.patience);
    this.patience = setTimeout(() => {
      this.pending = 0;
      if (this.draft) this.sendStrokes();
    }, PATIENCE);
    this.send("painted", whole ? { mask: codeOf(this.canvasPanel()), stamp, done } : { strokes: this.strokes, stamp });
  },
};
