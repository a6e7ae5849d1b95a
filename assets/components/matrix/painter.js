// Painting a mask: cells of one panel are clicked, dragged over or toggled by key, and change at once. These methods
// become the component's own. While a stroke goes on, the page hears of it with one message on its way at a time; an
// answer carries the stamp of the stroke it knows of, so that a late one undoes nothing newer.
// Next: keyboard.js.

import { cellUnder } from "./geometry.js";
import { announcement } from "./readout.js";

const PATIENCE = 900; // milliseconds until an unanswered message is taken for lost

// A mask as text: "COLUMNS.BITS", row after row, the first cell in the highest bit, base64url without padding.
// transformer_core/analysis/masks/codes.py reads and writes the same.
function codeOf(panel) {
  const bytes = new Uint8Array(Math.ceil(panel.data.length / 8));
  panel.data.forEach((value, i) => (bytes[i >> 3] |= (value > 0 ? 128 : 0) >> (i & 7)));
  const text = btoa(String.fromCharCode(...bytes));
  return `${panel.width}.${text.replaceAll("+", "-").replaceAll("/", "_").replaceAll("=", "")}`;
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

  // Whether this figure (this cell) can be painted.
  paintable(cell = null) {
    const { figure } = this;
    if (!figure?.paint) return false;
    return !cell || figure.panels[cell.panel].id === figure.paint.panel;
  },

  // Takes a figure of the page: strokes that it does not know of yet stay on the mask.
  heed(figure, fresh) {
    if (!this.send) figure.paint = null; // on a page of its own it has no model behind it
    if (!figure.paint) return;
    if (fresh) Object.assign(this, { stroke: null, onItsWay: 0 });
    const panel = this.canvasPanel();
    panel.data = panel.data.slice(); // other panels may lie in the same bytes
    const { stamp } = figure.paint;
    const newer = !fresh && this.draft && (this.stamp ?? 0) > stamp;
    if (newer) panel.data.set(this.draft);
    else this.draft = null;
    this.stamp = Math.max(this.stamp ?? 0, stamp);
    if (!this.onItsWay || stamp < this.onItsWay) return;
    this.onItsWay = 0;
    if (newer || this.rested) setTimeout(() => this.tellStrokes(), 0);
  },

  // A finger on the mask paints where it would else scroll the page.
  onTouch(event) {
    const [touch] = event.touches;
    if (event.touches.length === 1 && this.paintable(cellUnder(this.scene, ...this.at(touch)))) event.preventDefault();
  },

  // Begins a stroke, which paints the opposite of its first cell's value; false where there is nothing to paint.
  beginStroke(event) {
    const cell = this.scene && cellUnder(this.scene, ...this.at(event));
    if (this.stroke) return true; // one finger paints
    if (!cell || !this.paintable(cell) || this.fingers.size) return false;
    this.canvas.setPointerCapture(event.pointerId);
    const { data, width } = this.canvasPanel();
    const was = data[cell.row * width + cell.col];
    this.stroke = { finger: event.pointerId, last: cell, value: was > 0 ? 0 : 1 };
    this.paintOn(event);
    return true;
  },

  paintOn(event) {
    const { stroke } = this;
    for (const moment of [...(event.getCoalescedEvents?.() ?? []), event]) this.paintTo(moment, stroke);
    if (stroke.untold) this.changed();
    stroke.untold = false;
  },

  paintTo(event, stroke) {
    const cell = cellUnder(this.scene, ...this.at(event));
    if (!cell || !this.paintable(cell)) return;
    for (const { row, col } of between(stroke.last, cell)) stroke.untold = this.put(row, col, stroke.value) || stroke.untold;
    stroke.last = cell;
  },

  endStroke(event) {
    if (this.stroke?.finger !== event.pointerId) return false;
    const { last } = this.stroke;
    this.stroke = null;
    this.rested = true;
    this.live.textContent = announcement(this.figure, last);
    this.tellStrokes();
    return true;
  },

  // Space or Enter on a cell of the mask.
  toggle(cell) {
    const { data, width } = this.canvasPanel();
    this.put(cell.row, cell.col, data[cell.row * width + cell.col] > 0 ? 0 : 1);
    this.live.textContent = announcement(this.figure, cell);
    this.changed();
  },

  // Writes a cell; true where that changed it.
  put(row, col, value) {
    const panel = this.canvasPanel();
    const level = value && panel.coded ? 254 : value;
    const index = row * panel.width + col;
    if (panel.data[index] === level) return false;
    panel.data[index] = level;
    return true;
  },

  // Shows what was painted and lets the page know of it.
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
    this.tellStrokes();
  },

  // Sends the newest mask, unless an answer is awaited: that will bring the next one on its way.
  tellStrokes() {
    if (this.onItsWay || !(this.draft || this.rested)) return;
    const { stamp } = this;
    const done = !this.stroke;
    if (done) this.rested = false;
    this.onItsWay = stamp;
    clearTimeout(this.patience);
    this.patience = setTimeout(() => {
      this.onItsWay = 0;
      if (this.draft) this.tellStrokes();
    }, PATIENCE);
    this.send("painted", { mask: codeOf(this.canvasPanel()), stamp, done });
  },
};
