// The matrix itself: its elements, the figure it shows, and when it is laid out and drawn.
// It runs as a Streamlit component (the default export) and in a stand-alone page (standalone).

import { el, fill, lasting, release, signSideways } from "../kit.js";
import { Newest } from "../newest.js";
import { download } from "../picture.js";
import { accent, readTheme } from "./colour.js";
import { Ruler, clamp, layoutGrid, layoutSingle } from "./geometry.js";
import { pointing, typing } from "./input.js";
import { paintMarks, paintStill, pngOf, svgOf } from "./paint.js";
import { painting } from "./painter.js";
import { buildTable, gridReadout, singleReadout } from "./readout.js";
import { CanvasSurface, sized, zoomed } from "./surface.js";
import { placeIn, placeOf, unpack } from "./unpack.js";

const HOVER = "vitrine:hover";
const LEAST_WIDTH = 40; // px
let made = 0;

class Matrix {
  constructor(parent) {
    this.name = `matrix${(made += 1)}`;
    this.calls = 0;
    this.views = new Map();
    this.newest = new Newest(unpack, (figure, followed) => {
      this.adopt(figure);
      this.refresh({ followed });
    });
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
    const drawn = el("div", "vm-drawn", this.canvas, this.marks, this.tip);
    this.stage = el("div", "vm-stage", drawn);
    this.side = el("div", "vm-side");
    this.readout = el("div", "vm-readout");
    this.note = el("p", "vm-note");
    this.table = el("div", "vm-table vm-unseen");
    this.live = el("div", "vm-live vm-unseen");
    this.live.setAttribute("aria-live", "polite");
    const frame = el("div", "vm-frame", this.stage);
    signSideways(frame, this.stage);
    const head = el("div", "vm-head", el("div", "vm-lead", this.title, this.strip), el("div", "vm-tools", ...Object.values(this.tools)));
    this.root = el("div", "vm", head, el("div", "vm-body", frame, this.side), this.note, this.table, this.live);
  }

  listen() {
    const on = (target, type, action, options) => target.addEventListener(type, action, { signal: this.ending.signal, ...options });
    this.ending = new AbortController();
    this.fingers = new Map();
    on(this.canvas, "pointermove", (event) => this.onMove(event));
    on(this.canvas, "pointerleave", () => this.onLeave());
    on(this.canvas, "pointerdown", (event) => this.onDown(event));
    on(this.canvas, "pointerup", (event) => this.onUp(event));
    on(this.canvas, "pointercancel", (event) => this.onCancel(event));
    on(this.canvas, "touchstart", (event) => this.onTouch(event), { passive: false });
    on(this.canvas, "wheel", (event) => this.onWheel(event), { passive: false });
    on(this.canvas, "keydown", (event) => this.onKey(event));
    on(this.canvas, "focus", () => this.onFocus());
    on(window, HOVER, ({ detail }) => this.onLinked(detail));
    on(window, "resize", () => this.figure && this.refresh()); // its height and pixel ratio matter as well
    if (document.fonts) on(document.fonts, "loadingdone", () => this.figure && this.refresh({ remeasure: true }));
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
    clearTimeout(this.patience);
    clearTimeout(this.telling);
    this.newest.end();
    this.root.remove();
  }

  receive(data, send) {
    const begun = performance.now();
    this.calls += 1;
    this.send = send;
    if (!this.newest.take(data)) this.refresh();
    performance.clearMarks("vitrine-matrix-received");
    performance.mark("vitrine-matrix-received", { detail: { version: this.figure.version, ms: performance.now() - begun } });
  }

  // Takes a new figure. Zoom and pinned cell stay if the shape is the same; a recent click wins over the server's answer.
  adopt(figure) {
    const shape = JSON.stringify(figure.panels.map((panel) => [panel.height, panel.width, panel.rows.key, panel.cols.key]));
    const before = this.figure;
    const fresh = shape !== this.shape || before.layout !== figure.layout;
    figure.panels.forEach((panel, i) => (panel.image = { canvas: before?.panels[i]?.image?.canvas })); // reuses the canvas
    this.figure = figure;
    this.shape = shape;
    this.rows = new Map();
    this.tableOf = null;
    if (fresh) {
      this.views.clear();
      this.current = null;
      this.pinned = null;
    }
    this.takePainting(figure, fresh);
    if (figure.switches) this.off = new Set(figure.switches.off.filter(Boolean));
    const late = this.sent && this.sent.selected !== figure.selected && performance.now() - this.sent.at < 2000;
    if (fresh || (figure.selected !== before.selected && !late)) this.selected = figure.selected;
    const pinOf = ({ cell, cell_panel }) => String(cell && [cell_panel, ...cell]);
    if (fresh || pinOf(figure) !== pinOf(before)) this.pinned = this.pinnedIn(figure);
    if (fresh && figure.layout === "single") this.current = this.pinned;
  }

  pinnedIn({ cell, cell_panel }) {
    return cell && { panel: cell_panel, row: cell[0], col: cell[1] };
  }

  // Lays out and draws everything; `remeasure` after fonts have loaded. What follows a finger keeps theme and width, since
  // to ask for either lays out the whole page; when they change, this is called as well.
  refresh({ remeasure = false, followed = false } = {}) {
    const kept = followed && this.laidWidth >= LEAST_WIDTH;
    const theme = kept ? this.theme : readTheme(this.root);
    if (remeasure || theme.key !== this.theme?.key) {
      this.theme = theme;
      this.ruler = new Ruler(theme.font);
      for (const [name, colour] of Object.entries({ query: "query", key: "key", role: this.figure.role })) {
        this.root.style.setProperty(`--vm-${name}`, accent(theme, colour));
      }
      this.root.style.setProperty("--vm-line", theme.line);
      this.root.style.setProperty("--vm-muted", theme.muted);
    }
    if (!kept) this.laidWidth = this.root.clientWidth;
    if (this.laidWidth < LEAST_WIDTH) return; // hidden; the observer calls again when it is shown
    this.words();
    this.lay(this.laidWidth);
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
    const said = JSON.stringify([figure.layout, figure.title, figure.note, strings, this.paintable()]);
    if (said === this.said) return; // to write the same again lays out the page again
    this.said = said;
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
    const label = fill(strings.canvas_label, { title: figure.title || figure.panels[0].fullName });
    this.canvas.setAttribute("aria-label", this.paintable() ? `${label} ${strings.canvas_paint}` : label);
    (single ? this.side : this.strip).append(this.readout);
  }

  tableWord() {
    const seen = !this.table.classList.contains("vm-unseen");
    this.tools.table.textContent = this.figure.strings[seen ? "table_hide" : "table_show"];
    this.tools.table.setAttribute("aria-expanded", String(seen));
  }

  // How much of the window's height the cells of a single matrix may take; the projector's frame has little else in it.
  partOfWindow() {
    return Number(getComputedStyle(this.root).getPropertyValue("--part-of-window")) || 0.62;
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
      ? layoutSingle(figure, room, clamp(high * this.partOfWindow(), 260, 760), ratio, ruler, this.views, matchMedia("(pointer: coarse)").matches)
      : layoutGrid(figure, room, clamp(high * 0.74, 420, 1100), ratio, ruler);
    this.scene.ruler = ruler;
    this.root.dataset.beside = beside;
    this.side.hidden = !single;
    const { scene } = this;
    sized(this.canvas, scene.width, scene.height, ratio);
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
    return { selected: this.selected, current, pinned: place(pinned), pointed: place(current) ?? this.linked, live: this.over || this.linked };
  }

  point() {
    const { scene, theme } = this;
    const markings = this.markings();
    const bare = !markings.current && !markings.pinned && !markings.pointed; // then nothing is marked but a panel of a grid
    const chosen = bare && scene.mode === "grid" && scene.boxes.find(({ panel }) => panel.id === markings.selected);
    this.marks.hidden = bare && !chosen; // to make a canvas of another size takes a millisecond
    const marked = bare && chosen && JSON.stringify([theme.key, scene.width, scene.height, scene.ratio, chosen.panel.id, chosen.x, chosen.y, chosen.w, chosen.h]);
    if (this.marks.hidden || (marked && marked === this.marked)) return;
    this.marked = marked;
    sized(this.marks, scene.width, scene.height, scene.ratio);
    const context = this.marks.getContext("2d");
    const surface = new CanvasSurface(context, theme, scene.ratio);
    context.clearRect(0, 0, scene.width, scene.height);
    paintMarks(surface, scene, markings);
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

  // Makes a cell the current one and updates marks, text and linked matrices.
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
    this.linked = place;
    this.over = false;
    if (this.figure.layout === "grid") this.current = null;
    else this.current = this.cellAt(place) ?? this.pinned ?? this.current;
    cancelAnimationFrame(this.frame);
    this.frame = requestAnimationFrame(() => {
      this.point();
      this.say();
    });
  }

  // The cell at a place, in the first panel with both of its axes.
  cellAt(place) {
    const cells = this.figure.panels.map((panel) => ({ panel: panel.index, ...placeIn(panel, place) }));
    return cells.find(({ row, col }) => row !== undefined && col !== undefined) ?? null;
  }

  // Builds the table only while it is visible or the canvas has keyboard focus, and after a pause, since a large one is
  // slow.
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

Object.assign(Matrix.prototype, pointing, painting, typing);

export default function matrix({ data, parentElement, setStateValue }) {
  lasting(parentElement, (place) => new Matrix(place)).receive(data, setStateValue);
  return () => release(parentElement);
}

// The one figure of a page made by component_page: its bytes are in the page as base64.
function standalone(page) {
  const place = page.getElementById("figure");
  const data = Uint8Array.from(atob(place.dataset.payload), (letter) => letter.charCodeAt(0));
  const instance = new Matrix(place);
  instance.receive(data, null);
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => instance.refresh());
}
