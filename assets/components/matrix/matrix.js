// The component: its elements, what a pointer and the keyboard do, and when what is drawn again.
// It runs as a Streamlit component (the default export) and in a stand-alone page (standalone).

import { fill, placeIn, placeOf, unpack } from "./unpack.js";
import { accent, readTheme } from "./colour.js";
import { Ruler, cellUnder, clamp, layoutGrid, layoutSingle } from "./geometry.js";
import { paintMarks, paintStill } from "./paint.js";
import { announcement, el, gridReadout, singleReadout, tipLines } from "./readout.js";
import { CanvasSurface, zoomed } from "./surface.js";
import { buildTable, download, pngOf, svgOf } from "./table.js";

const HOVER = "vitrine:hover";
let made = 0;

class Matrix {
  constructor(parent) {
    this.name = `matrix${(made += 1)}`;
    this.calls = 0;
    this.views = new Map();
    this.build();
    parent.append(this.root);
    this.listen();
  }

  build() {
    const button = (className, action) => {
      const node = el("button", className);
      node.type = "button";
      node.addEventListener("click", action);
      return node;
    };
    this.title = el("div", "vm-title");
    this.strip = el("div", "vm-strip");
    this.tools = {
      zoom_in: button("vm-zoom", () => this.zoom(1.5)),
      zoom_out: button("vm-zoom", () => this.zoom(1 / 1.5)),
      zoom_reset: button("vm-zoom", () => this.zoom(0)),
      table: button("vm-tool-table", () => this.toggleTable()),
      export_png: button("vm-tool-png", () => this.export("png")),
      export_svg: button("vm-tool-svg", () => this.export("svg")),
    };
    this.canvas = el("canvas", "vm-canvas");
    Object.assign(this.canvas, { tabIndex: 0 }).setAttribute("role", "application");
    this.marks = el("canvas", "vm-marks");
    this.tip = el("div", "vm-tip");
    for (const node of [this.marks, this.tip]) node.setAttribute("aria-hidden", "true");
    this.stage = el("div", "vm-stage", this.canvas, this.marks, this.tip);
    this.side = el("div", "vm-side");
    this.readout = el("div", "vm-readout");
    this.note = el("p", "vm-note");
    this.table = el("div", "vm-table vm-unseen");
    this.live = el("div", "vm-live vm-unseen");
    this.live.setAttribute("aria-live", "polite");
    const head = el("div", "vm-head", el("div", "vm-lead", this.title, this.strip), el("div", "vm-tools", ...Object.values(this.tools)));
    this.root = el("div", "vm", head, el("div", "vm-body", this.stage, this.side), this.note, this.table, this.live);
  }

  listen() {
    const on = (target, type, action, options) => target.addEventListener(type, action, { signal: this.ending.signal, ...options });
    this.ending = new AbortController();
    this.fingers = new Map();
    on(this.canvas, "pointermove", (event) => this.onMove(event));
    on(this.canvas, "pointerleave", () => this.onLeave());
    on(this.canvas, "pointerdown", (event) => this.onDown(event));
    on(this.canvas, "pointerup", (event) => this.onUp(event));
    on(this.canvas, "pointercancel", (event) => this.fingers.delete(event.pointerId));
    on(this.canvas, "wheel", (event) => this.onWheel(event), { passive: false });
    on(this.canvas, "keydown", (event) => this.onKey(event));
    on(this.canvas, "focus", () => this.onFocus());
    on(window, HOVER, ({ detail }) => this.onLinked(detail));
    on(window, "resize", () => this.figure && this.refresh()); // the height of the window and its pixel ratio count, too
    if (document.fonts) on(document.fonts, "loadingdone", () => this.figure && this.refresh(true));
    this.observer = new ResizeObserver(() => {
      if (this.figure && Math.abs(this.root.clientWidth - this.laidWidth) >= 1) this.refresh();
    });
    this.observer.observe(this.root);
  }

  remove() {
    this.ending.abort();
    this.observer.disconnect();
    cancelAnimationFrame(this.frame);
    clearTimeout(this.later);
    this.root.remove();
  }

  // ---- data in

  receive(data, send) {
    const begun = performance.now();
    this.calls += 1;
    this.send = send;
    if (data !== this.data) {
      this.data = data;
      this.adopt(unpack(data));
    }
    this.refresh();
    performance.clearMarks("vitrine-matrix-received");
    performance.mark("vitrine-matrix-received", { detail: { version: this.figure.version, ms: performance.now() - begun } });
    return this.calls;
  }

  // Takes a new figure; the zoom and the pinned cell stay while its shape does, and a click stays ahead of the server.
  adopt(figure) {
    const shape = JSON.stringify(figure.panels.map((panel) => [panel.height, panel.width, panel.rows.key, panel.cols.key]));
    const before = this.figure;
    const fresh = shape !== this.shape || before.layout !== figure.layout;
    figure.panels.forEach((panel, i) => (panel.image = { canvas: before?.panels[i]?.image?.canvas })); // drawn over
    this.figure = figure;
    this.shape = shape;
    this.rows = new Map();
    this.tableOf = null;
    if (fresh) {
      this.views.clear();
      this.current = null;
      this.pinned = null;
    }
    const late = this.sent && this.sent.selected !== figure.selected && performance.now() - this.sent.at < 2000;
    if (fresh || (figure.selected !== before.selected && !late)) this.selected = figure.selected;
    if (fresh || String(figure.cell) !== String(before.cell)) this.pinned = this.given(figure);
    if (fresh && figure.layout === "single") this.current = this.pinned;
  }

  given({ cell, panels, selected }) {
    if (!cell) return null;
    const panel = panels.find(({ id }) => id === selected) ?? panels[0];
    return { panel: panel.index, row: cell[0], col: cell[1] };
  }

  // ---- drawing

  // Lays out and draws everything. `remeasure` after fonts have come.
  refresh(remeasure = false) {
    const theme = readTheme(this.root);
    if (remeasure || theme.key !== this.theme?.key) {
      this.theme = theme;
      this.ruler = new Ruler(theme.font);
      for (const [name, colour] of Object.entries({ query: "query", key: "key", role: this.figure.role })) {
        this.root.style.setProperty(`--vm-${name}`, accent(theme, colour));
      }
      this.root.style.setProperty("--vm-line", theme.line);
      this.root.style.setProperty("--vm-muted", theme.muted);
    }
    const width = (this.laidWidth = this.root.clientWidth);
    if (width < 40) return; // hidden; the observer calls again
    this.words();
    this.lay(width);
    this.still();
    this.point();
    this.say();
    this.refreshTable();
    this.root.dataset.painted = this.figure.version;
    performance.clearMarks("vitrine-matrix-painted");
    performance.mark("vitrine-matrix-painted", { detail: { version: this.figure.version } });
  }

  words() {
    const { figure, tools } = this;
    const { strings } = figure;
    const single = figure.layout === "single";
    this.root.dataset.layout = figure.layout;
    this.title.textContent = figure.title;
    this.note.textContent = figure.note;
    const signs = { zoom_in: "+", zoom_out: "−", zoom_reset: "⤢" };
    for (const [name, node] of Object.entries(tools)) {
      if (name === "table") continue;
      node.textContent = signs[name] ?? strings[name];
      node.title = strings[name];
      node.setAttribute("aria-label", strings[name]);
      node.hidden = name in signs && !single;
    }
    this.tableWord();
    this.canvas.setAttribute("aria-label", fill(strings.canvas_label, { title: figure.title || figure.panels[0].fullName }));
    (single ? this.side : this.strip).append(this.readout);
  }

  tableWord() {
    const seen = !this.table.classList.contains("vm-unseen");
    this.tools.table.textContent = this.figure.strings[seen ? "table_hide" : "table_show"];
    this.tools.table.setAttribute("aria-expanded", String(seen));
  }

  lay(width) {
    const { figure, ruler } = this;
    const ratio = window.devicePixelRatio || 1;
    const high = window.innerHeight || 800;
    const single = figure.layout === "single";
    const beside = single && width >= (figure.panels.length > 1 ? 1300 : 720);
    const side = clamp(width * 0.36, 290, figure.panels.length > 1 ? 340 : 430);
    const room = Math.floor(beside ? width - side - 28 : width);
    this.scene = single
      ? layoutSingle(figure, room, clamp(high * 0.62, 260, 760), ratio, ruler, this.views)
      : layoutGrid(figure, room, clamp(high * 0.74, 420, 1100), ratio, ruler);
    this.scene.ruler = ruler;
    this.root.dataset.beside = beside;
    this.side.hidden = !single;
    const { scene } = this;
    for (const canvas of [this.canvas, this.marks]) {
      const size = { width: Math.round(scene.width * ratio), height: Math.round(scene.height * ratio) };
      if (canvas.width !== size.width || canvas.height !== size.height) Object.assign(canvas, size);
      Object.assign(canvas.style, { width: `${scene.width}px`, height: `${scene.height}px` });
    }
    this.canvas.style.touchAction = scene.boxes.some(zoomed) ? "none" : "pan-x pan-y";
  }

  still() {
    const { scene, theme, figure } = this;
    const surface = new CanvasSurface(this.canvas.getContext("2d"), theme, scene.ratio);
    surface.rect(0, 0, scene.width, scene.height, { fill: theme.paper });
    paintStill(surface, scene, figure);
  }

  markings() {
    const { figure, current, pinned } = this;
    const place = (cell) => cell && placeOf(figure.panels[cell.panel], cell);
    return { selected: this.selected, current, pinned: place(pinned), pointed: place(current) ?? this.guest, live: this.over || this.guest };
  }

  point() {
    const { scene, theme } = this;
    const context = this.marks.getContext("2d");
    const surface = new CanvasSurface(context, theme, scene.ratio);
    context.clearRect(0, 0, scene.width, scene.height);
    paintMarks(surface, scene, this.markings());
  }

  say() {
    const { figure, current } = this;
    if (figure.layout === "grid") {
      this.readout.replaceChildren(...gridReadout(figure, current ?? this.pinned));
      return;
    }
    const pinned = current && this.pinned && ["panel", "row", "col"].every((name) => current[name] === this.pinned[name]);
    this.readout.replaceChildren(...singleReadout(figure, current, pinned, this.rows));
  }

  // Makes a cell the current one: marks, words, and the other matrices of the page follow.
  go(cell, over) {
    const same = cell?.panel === this.current?.panel && cell?.row === this.current?.row && cell?.col === this.current?.col;
    if (same && over === this.over) return;
    this.over = over;
    this.current = cell;
    this.point();
    if (!same) this.say();
    this.broadcast();
  }

  broadcast() {
    const { link, panels } = this.figure;
    if (!link) return;
    const place = this.over && this.current ? placeOf(panels[this.current.panel], this.current) : null;
    window.dispatchEvent(new CustomEvent(HOVER, { detail: { link, from: this.name, place } }));
  }

  onLinked({ link, from, place }) {
    if (!this.figure?.link || link !== this.figure.link || from === this.name) return;
    this.guest = place;
    this.over = false;
    if (this.figure.layout === "grid") this.current = null;
    else this.current = this.cellAt(place) ?? this.pinned ?? this.current;
    cancelAnimationFrame(this.frame);
    this.frame = requestAnimationFrame(() => {
      this.point();
      this.say();
    });
  }

  // The cell of the first panel that has both axes of a place.
  cellAt(place) {
    const cells = this.figure.panels.map((panel) => ({ panel: panel.index, ...placeIn(panel, place) }));
    return cells.find(({ row, col }) => row !== undefined && col !== undefined) ?? null;
  }

  // ---- pointer

  at(event) {
    const frame = this.canvas.getBoundingClientRect();
    return [event.clientX - frame.left, event.clientY - frame.top];
  }

  onMove(event) {
    if (this.fingers.has(event.pointerId)) this.onDrag(event);
    this.moved = event;
    if (this.waiting) return;
    this.waiting = requestAnimationFrame(() => {
      this.waiting = 0;
      if (!this.moved || this.dragging || !this.figure) return;
      const [x, y] = this.at(this.moved);
      const cell = cellUnder(this.scene, x, y);
      this.canvas.style.cursor = cell ? (this.figure.layout === "grid" ? "pointer" : "crosshair") : "default";
      if (cell) this.go(cell, true);
      else this.rest();
      this.showTip(cell, x, y);
    });
  }

  // With no cell under the pointer a grid grows calm; a single matrix keeps its last cell, or returns to the pinned one.
  rest() {
    this.go(this.figure.layout === "grid" ? null : this.pinned ?? this.current, false);
    this.showTip(null);
  }

  onLeave() {
    this.moved = null;
    if (!this.dragging && this.figure) this.rest();
  }

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
  }

  onDown(event) {
    if (event.button) return;
    this.fingers.set(event.pointerId, { x: event.clientX, y: event.clientY, startX: event.clientX, startY: event.clientY });
    this.dragging = false;
  }

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
  }

  onUp(event) {
    const started = this.fingers.delete(event.pointerId);
    const dragged = this.dragging;
    if (!this.fingers.size) this.dragging = false;
    if (!started || dragged || !this.figure) return;
    const cell = cellUnder(this.scene, ...this.at(event));
    if (!cell) return;
    this.go(cell, event.pointerType === "mouse");
    this.choose(cell);
  }

  // A click or Enter: in a grid first chooses the panel, then (on the chosen one) pins the cell; else it pins.
  choose(cell) {
    const { figure } = this;
    const { id } = figure.panels[cell.panel];
    const changed = [];
    if (id !== this.selected) changed.push("selected");
    if (figure.layout === "single" || id === this.selected) {
      const same = this.pinned && ["panel", "row", "col"].every((name) => this.pinned[name] === cell[name]);
      this.pinned = same ? null : cell;
      changed.push("cell");
    }
    this.selected = id;
    this.tell(changed);
  }

  // Shows a choice at once and sends it.
  tell(changed) {
    const { selected, pinned } = this;
    this.sent = { selected, at: performance.now() };
    this.point();
    this.say();
    this.refreshTable();
    this.send?.({ selected, cell: pinned && [pinned.row, pinned.col], changed });
  }

  // ---- zoom

  onWheel(event) {
    if (!event.ctrlKey || this.figure?.layout !== "single") return;
    event.preventDefault();
    const [x, y] = this.at(event);
    this.zoom(Math.exp(-clamp(event.deltaY, -50, 50) * 0.012), this.boxNear(x, y), x, y);
  }

  boxNear(x, y) {
    const off = (box) => Math.hypot(x - clamp(x, box.x, box.x + box.w), y - clamp(y, box.y, box.y + box.h));
    return this.scene.boxes.reduce((best, box) => (off(box) < off(best) ? box : best));
  }

  // Zooms about a point (the current cell, else the centre, if none is given); factor 0 shows all.
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
  }

  narrow(key, count, [from, to], share, factor) {
    const span = clamp((to - from) / factor, Math.min(4, count), count);
    const start = clamp(from + share * (to - from - span), 0, count - span);
    if (span > count - 1e-6) this.views.delete(key);
    else this.views.set(key, [start, start + span]);
  }

  pan(box, dx, dy) {
    const shift = (key, count, [from, to], cells) => {
      const start = clamp(from - cells, 0, count - (to - from));
      if (to - from < count) this.views.set(key, [start, start + to - from]);
    };
    shift(box.panel.cols.key, box.panel.width, box.view.x, (dx / box.w) * (box.view.x[1] - box.view.x[0]));
    shift(box.panel.rows.key, box.panel.height, box.view.y, (dy / box.h) * (box.view.y[1] - box.view.y[0]));
    this.redraw();
  }

  redraw() {
    this.lay(this.laidWidth);
    this.still();
    this.point();
  }

  // Brings a cell into a zoomed view.
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
  }

  // ---- keyboard

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
    const acts = { Enter: () => this.choose(cell), " ": () => this.choose(cell), Escape: () => this.onEscape() };
    if (this.figure.layout === "single") Object.assign(acts, { "+": () => this.zoom(1.5), "-": () => this.zoom(1 / 1.5), 0: () => this.zoom(0) });
    if (moves[event.key]) this.step(moves[event.key]());
    else if (acts[event.key] && !event.ctrlKey) acts[event.key]();
    else return;
    event.preventDefault();
    event.stopPropagation();
  }

  step(cell) {
    const other = cell.panel !== this.current?.panel;
    this.showTip(null);
    this.go(cell, true);
    if (this.figure.layout === "single") this.reveal(cell);
    this.live.textContent = announcement(this.figure, cell);
    if (other) this.refreshTable();
  }

  onEscape() {
    const had = this.pinned;
    this.pinned = null;
    this.go(null, false);
    if (had) this.tell(["cell"]);
  }

  onFocus() {
    this.refreshTable();
    if (!this.canvas.matches(":focus-visible") || this.current) return;
    const chosen = this.figure.panels.findIndex(({ id }) => id === this.selected);
    this.go(this.pinned ?? { panel: Math.max(0, chosen), row: 0, col: 0 }, true);
  }

  // ---- table and files

  // The table is built when somebody may read it: when it is shown, or when the keyboard has reached the canvas; and
  // once things are quiet, for a large one takes a while.
  refreshTable() {
    if (this.table.classList.contains("vm-unseen") && !this.canvas.matches(":focus-visible")) return;
    clearTimeout(this.later);
    this.later = setTimeout(() => this.fillTable(), 250);
  }

  fillTable() {
    const { panels } = this.figure;
    const panel = panels[this.current?.panel] ?? panels.find(({ id }) => id === this.selected) ?? panels[0];
    if (this.tableOf === panel) return;
    this.tableOf = panel;
    this.table.replaceChildren(buildTable(this.figure, panel));
  }

  toggleTable() {
    this.table.classList.toggle("vm-unseen");
    this.tableWord();
    if (!this.table.classList.contains("vm-unseen")) this.fillTable();
  }

  async export(kind) {
    const { scene, figure, theme } = this;
    const make = kind === "png" ? pngOf : svgOf;
    download(await make(scene, figure, this.markings(), theme), `${figure.filename}.${kind}`);
  }
}

const instances = new WeakMap();

export default function matrix({ data, parentElement, setStateValue }) {
  if (!instances.has(parentElement)) instances.set(parentElement, new Matrix(parentElement));
  const instance = instances.get(parentElement);
  const call = instance.receive(data, (choice) => setStateValue("choice", choice));
  return () => {
    if (instance.calls !== call) return; // a later call has taken the instance over
    instance.remove();
    instances.delete(parentElement);
  };
}

// The one figure of a page made by to_html: its bytes wait in the page as base64.
function standalone(page) {
  const place = page.getElementById("figure");
  const data = Uint8Array.from(atob(place.dataset.payload), (letter) => letter.charCodeAt(0));
  const instance = new Matrix(place);
  instance.receive(data, null);
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => instance.refresh());
}
