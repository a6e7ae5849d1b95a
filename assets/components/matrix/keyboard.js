// What the keyboard does to a matrix, and what a screen reader hears of it. These methods become the component's own.
// Next: matrix.js.

import { clamp } from "./geometry.js";
import { announcement } from "./readout.js";

export const typing = {
  onKey(event) {
    if (!this.figure || event.altKey || event.metaKey) return;
    const { panels } = this.figure;
    const chosen = panels.findIndex(({ id }) => id === this.selected);
    const cell = this.current ?? this.pinned ?? { panel: Math.max(0, chosen), row: 0, col: 0 };
    const panel = panels[cell.panel];
    const turn = (step) => {
      const next = panels[(cell.panel + step + panels.length) % panels.length];
      return { panel: next.index, row: Math.min(cell.row, next.height - 1), col: Math.min(cell.col, next.width - 1) };
    };
    const to = (row, col) => ({ panel: cell.panel, row: clamp(row, 0, panel.height - 1), col: clamp(col, 0, panel.width - 1) });
    const moves = {
      ArrowLeft: () => to(cell.row, cell.col - 1),
      ArrowRight: () => to(cell.row, cell.col + 1),
      ArrowUp: () => to(cell.row - 1, cell.col),
      ArrowDown: () => to(cell.row + 1, cell.col),
      Home: () => to(event.ctrlKey ? 0 : cell.row, 0),
      End: () => to(event.ctrlKey ? panel.height - 1 : cell.row, panel.width - 1),
      PageUp: () => turn(-1),
      PageDown: () => turn(1),
      "[": () => turn(-1),
      "]": () => turn(1),
    };
    const act = () => (this.paintable(cell) ? this.toggle(cell) : this.choose(cell));
    const acts = { Enter: act, " ": act, Escape: () => this.onEscape() };
    if (this.figure.layout === "single") Object.assign(acts, { "+": () => this.zoom(1.5), "-": () => this.zoom(1 / 1.5), 0: () => this.zoom(0) });
    if (moves[event.key]) this.step(moves[event.key]());
    else if (acts[event.key] && !event.ctrlKey) acts[event.key]();
    else return;
    event.preventDefault();
    event.stopPropagation();
  },

  step(cell) {
    const other = cell.panel !== this.current?.panel;
    this.showTip(null);
    this.go(cell, true);
    if (this.figure.layout === "single") this.reveal(cell);
    this.live.textContent = announcement(this.figure, cell);
    if (other) this.refreshTable();
  },

  onEscape() {
    const had = this.pinned;
    this.pinned = null;
    this.go(null, false);
    if (had) this.tell(["cell"]);
  },

  onFocus() {
    this.refreshTable();
    if (!this.canvas.matches(":focus-visible") || this.current) return;
    const chosen = this.figure.panels.findIndex(({ id }) => id === this.selected);
    this.go(this.pinned ?? { panel: Math.max(0, chosen), row: 0, col: 0 }, true);
  },
};
