// What pointer and keyboard do to a matrix: hover, click, drag, pinch, wheel and keys. The methods are mixed into Matrix.

import { cellUnder, clamp } from "./geometry.js";
import { REST } from "./painter.js";
import { announcement, tipLines } from "./readout.js";
import { zoomed } from "./surface.js";

const PIN_REST = 250; // ms for which a hand rests until the page hears of a pinned cell that the short way explains

// What a click on a panel chooses: the parts of its id, by their names in the link.
const chosenBy = (names, id) => Object.fromEntries(id.split(".").map((part, i) => [names[i], part]));

export const pointing = {
  // Asks for the pictures of what a person has just chosen or painted, where they come the short way (../live/live.js).
  ask(choices, of = "page") {
    window.dispatchEvent(new CustomEvent("vitrine:ask", { detail: { of, choices } }));
  },

  at(event) {
    const frame = this.canvas.getBoundingClientRect();
    return [event.clientX - frame.left, event.clientY - frame.top];
  },

  onMove(event) {
    if (this.stroke?.finger === event.pointerId) this.paintOn(event);
    else if (this.fingers.has(event.pointerId)) this.onDrag(event);
    this.moved = event;
    if (this.waiting) return;
    this.waiting = requestAnimationFrame(() => {
      this.waiting = 0;
      if (!this.moved || this.dragging || !this.figure) return;
      const [x, y] = this.at(this.moved);
      const cell = cellUnder(this.scene, x, y);
      this.canvas.style.cursor = cell ? (this.figure.layout === "grid" ? "pointer" : this.paintable(cell) ? "cell" : "crosshair") : "default";
      if (cell) this.go(cell, true);
      else this.rest();
      this.showTip(cell, x, y);
    });
  },

  // With no cell under the pointer a grid has no current cell; a single matrix returns to the pinned or keeps the last.
  rest() {
    this.go(this.figure.layout === "grid" ? null : this.pinned ?? this.current, false);
    this.showTip(null);
  },

  onLeave() {
    this.moved = null;
    if (!this.dragging && this.figure) this.rest();
  },

  showTip(cell, x, y) {
    const { tip, scene } = this;
    const on = Boolean(cell) && (this.figure.layout === "grid" || this.root.dataset.beside !== "true");
    tip.classList.toggle("vm-on", on);
    if (!on) return;
    const key = `${cell.panel} ${cell.row} ${cell.col} ${this.calls}`;
    if (tip.dataset.key !== key) tip.replaceChildren(...tipLines(this.figure, cell));
    tip.dataset.key = key;
    const { offsetWidth: w, offsetHeight: h } = tip;
    const left = x + 18 + w > scene.width ? x - 14 - w : x + 18;
    const top = y + 20 + h > scene.height ? y - 12 - h : y + 20;
    tip.style.transform = `translate(${Math.round(Math.max(0, left))}px, ${Math.round(top)}px)`;
  },

  onDown(event) {
    if (event.button) return;
    if (this.beginStroke(event)) return;
    this.fingers.set(event.pointerId, { x: event.clientX, y: event.clientY, startX: event.clientX, startY: event.clientY });
    this.dragging = false;
  },

  onDrag(event) {
    const finger = this.fingers.get(event.pointerId);
    const far = Math.hypot(event.clientX - finger.startX, event.clientY - finger.startY) > 4;
    if (this.figure.layout !== "single" || !(far || this.dragging)) return;
    const others = [...this.fingers].filter(([id]) => id !== event.pointerId).map(([, other]) => other);
    if (others.length || this.scene.boxes.some(zoomed)) {
      if (!this.dragging) this.canvas.setPointerCapture(event.pointerId);
      this.dragging = true;
    }
    const [x, y] = this.at(event);
    const box = this.boxNear(x, y);
    if (others.length) {
      const spread = (a, b) => Math.hypot(a.x - b.x, a.y - b.y);
      const now = { x: event.clientX, y: event.clientY };
      this.zoom(spread(now, others[0]) / Math.max(1, spread(finger, others[0])), box, x, y);
    } else if (this.dragging) this.pan(box, event.clientX - finger.x, event.clientY - finger.y);
    Object.assign(finger, { x: event.clientX, y: event.clientY });
  },

  onUp(event) {
    if (this.endStroke(event)) return;
    const started = this.fingers.delete(event.pointerId);
    const dragged = this.dragging;
    if (!this.fingers.size) this.dragging = false;
    if (!started || dragged || !this.figure) return;
    const cell = cellUnder(this.scene, ...this.at(event));
    if (!cell) return;
    this.go(cell, event.pointerType === "mouse");
    this.choose(cell);
  },

  onCancel(event) {
    this.fingers.delete(event.pointerId);
    this.endStroke(event);
  },

  // A click or Enter: in a grid selects the panel, and on the selected one pins the cell; in a single matrix pins it. On a
  // board of switches it turns the cell on or off.
  choose(cell) {
    const { figure } = this;
    if (figure.switches) {
      this.turn(cell);
      return;
    }
    const { id } = figure.panels[cell.panel];
    const changed = [];
    if (id !== this.selected) changed.push("selected");
    if (figure.layout === "single" || id === this.selected) {
      const same = this.pinned && ["panel", "row", "col"].every((name) => this.pinned[name] === cell[name]);
      this.pinned = same ? null : cell;
      changed.push("cell");
    }
    this.selected = id;
    this.sendChoice(changed);
  },

  // Turns a switch, shows that at once, and sends the names of all that are off; where pictures come the short way, the
  // page hears of it once the hand rests.
  turn({ row, col }) {
    const { name, of, panel: id } = this.figure.switches;
    const one = `${of}.${row}.${col}`;
    if (!this.off.delete(one)) this.off.add(one);
    const panel = this.figure.panels.find((found) => found.id === id);
    panel.data = panel.data.slice();
    this.put(panel, row, col, this.off.has(one) ? 0 : 1);
    panel.codes = null;
    panel.image = { canvas: panel.image?.canvas };
    this.still();
    this.say();
    this.tableOf = null;
    this.refreshTable();
    const off = [...this.off].join("-");
    this.ask({ [name]: off });
    clearTimeout(this.resting);
    this.resting = setTimeout(() => {
      this.choices = (this.choices ?? 0) + 1;
      this.send?.("turned", { off, count: this.choices });
    }, window.vitrineLive ? REST : 0);
  },

  // Shows a choice at once and sends it to the page.
  sendChoice(changed) {
    const { selected, pinned } = this;
    this.sent = { selected, at: performance.now() };
    this.point();
    this.say();
    this.refreshTable();
    this.choices = (this.choices ?? 0) + 1; // Streamlit passes on only a state that differs from the last
    const cell = pinned && [pinned.row, pinned.col];
    if (changed.includes("selected") && this.figure.chooses.length) this.ask(chosenBy(this.figure.chooses, selected));
    const choice = { selected, cell, panel: pinned?.panel ?? 0, changed, count: this.choices };
    clearTimeout(this.telling);
    if (changed.includes("cell") && this.figure.pins_for) {
      this.askForCell(...this.figure.pins_for, cell);
      this.telling = setTimeout(() => this.send?.("choice", choice), PIN_REST);
    } else this.send?.("choice", choice);
  },

  askForCell(of, name, cell) {
    this.ask({ [name]: cell ? cell.join(".") : "" }, of);
  },

  onWheel(event) {
    if (!event.ctrlKey || this.figure?.layout !== "single") return;
    event.preventDefault();
    const [x, y] = this.at(event);
    this.zoom(Math.exp(-clamp(event.deltaY, -50, 50) * 0.012), this.boxNear(x, y), x, y);
  },

  boxNear(x, y) {
    const off = (box) => Math.hypot(x - clamp(x, box.x, box.x + box.w), y - clamp(y, box.y, box.y + box.h));
    return this.scene.boxes.reduce((best, box) => (off(box) < off(best) ? box : best));
  },

  // Zooms about a point, by default the current cell or the centre; factor 0 shows all.
  zoom(factor, box = this.scene.boxes[this.current?.panel ?? 0], x = null, y = null) {
    if (x === null) {
      const middle = (view, k) => (k === undefined ? 0.5 : clamp((k + 0.5 - view[0]) / (view[1] - view[0]), 0, 1));
      x = box.x + middle(box.view.x, this.current?.col) * box.w;
      y = box.y + middle(box.view.y, this.current?.row) * box.h;
    }
    if (factor === 0) this.views.clear();
    else {
      this.narrow(box.panel.cols.key, box.panel.width, box.view.x, clamp((x - box.x) / box.w, 0, 1), factor);
      this.narrow(box.panel.rows.key, box.panel.height, box.view.y, clamp((y - box.y) / box.h, 0, 1), factor);
    }
    this.redraw();
  },

  narrow(key, count, [from, to], share, factor) {
    const span = clamp((to - from) / factor, Math.min(4, count), count);
    const start = clamp(from + share * (to - from - span), 0, count - span);
    if (span > count - 1e-6) this.views.delete(key);
    else this.views.set(key, [start, start + span]);
  },

  pan(box, dx, dy) {
    const shift = (key, count, [from, to], cells) => {
      const start = clamp(from - cells, 0, count - (to - from));
      if (to - from < count) this.views.set(key, [start, start + to - from]);
    };
    shift(box.panel.cols.key, box.panel.width, box.view.x, (dx / box.w) * (box.view.x[1] - box.view.x[0]));
    shift(box.panel.rows.key, box.panel.height, box.view.y, (dy / box.h) * (box.view.y[1] - box.view.y[0]));
    this.redraw();
  },

  redraw() {
    this.lay(this.laidWidth);
    this.still();
    this.point();
  },

  // Scrolls a zoomed view so that it contains a cell.
  reveal({ panel, row, col }) {
    const box = this.scene.boxes[panel];
    if (!zoomed(box)) return;
    const shift = (key, [from, to], k) => {
      const start = k < from ? k : k + 1 > to ? k + 1 - (to - from) : from;
      if (start !== from) this.views.set(key, [start, start + to - from]);
    };
    shift(box.panel.cols.key, box.view.x, col);
    shift(box.panel.rows.key, box.view.y, row);
    this.redraw();
  },
};

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
    if (had) this.sendChoice(["cell"]);
  },

  onFocus() {
    this.refreshTable();
    if (!this.canvas.matches(":focus-visible") || this.current) return;
    const chosen = this.figure.panels.findIndex(({ id }) => id === this.selected);
    this.go(this.pinned ?? { panel: Math.max(0, chosen), row: 0, col: 0 }, true);
  },
};
