// Attention at one frame, drawn by the matrix's own modules: all heads small, or one head large with its tokens.

import { el, visible } from "../kit.js";
import { cellUnder, layoutGrid, layoutSingle } from "../matrix/geometry.js";
import { paintMarks, paintStill } from "../matrix/paint.js";
import { CanvasSurface, sized } from "../matrix/surface.js";
import { LEVELS } from "../matrix/unpack.js";
import { placeTip } from "./readout.js";

// A matrix figure with one panel for each head, weights from 0 to 1.
export function attentionFigure(followedText, moment, words, before) {
  const { attention } = moment;
  const [layers, heads, height, width] = attention.shape;
  const cross = followedText.attention_name === "cross";
  const labels = { rows: moment.tokens ?? followedText.tokens, cols: followedText.key_tokens };
  const rows = { name: cross ? words.axis_output : words.axis_query, labels: labels.rows, key: "rows" };
  const cols = { name: cross ? words.axis_input : words.axis_key, labels: labels.cols, key: "cols" };
  attention.codes ??= Uint8Array.from(attention, (code) => Math.round((code * LEVELS) / 255));
  const panels = Array.from({ length: layers * heads }, (_, index) => {
    const [layer, head] = [Math.floor(index / heads), index % heads];
    const [heading, title] = [`${words.layer} ${layer}`, `${words.head} ${head}`];
    const data = attention.codes.subarray(index * height * width, (index + 1) * height * width);
    const image = { canvas: before?.panels[index]?.image?.canvas };
    const scale = { kind: "probability", low: 0, high: 1 };
    return { index, id: `${layer}.${head}`, title, heading, fullName: `${heading} · ${title}`, role: "weights", rows, cols, height, width, data, scale, coded: true, masked: false, image };
  });
  return { panels, columns: heads, quantity: words.weight, strings: words, attention };
}

export class Heat {
  // layout: "grid" or "single"; choose: called with the id of a clicked panel.
  constructor(layout, choose) {
    Object.assign(this, { layout, choose, views: new Map() });
    this.canvas = el("canvas", "vf-heat-canvas");
    this.marks = el("canvas", "vf-heat-marks");
    this.tip = el("div", "vf-tip");
    for (const node of [this.marks, this.tip]) node.setAttribute("aria-hidden", "true");
    this.canvas.setAttribute("role", "img");
    this.root = el("div", `vf-heat vf-heat-${layout}`, this.canvas, this.marks, this.tip);
    this.canvas.addEventListener("pointermove", (event) => this.hover(event));
    this.canvas.addEventListener("pointerleave", () => this.rest());
    this.canvas.addEventListener("click", (event) => this.click(event));
  }

  // Draws all heads, or the one whose id is `selected`.
  show(figure, selected, { width, tall, theme, ruler, label }) {
    const single = this.layout === "single";
    const panel = figure.panels.find(({ id }) => id === selected) ?? figure.panels[0];
    // The index counts the panels drawn; the large head has its own image, apart from the grid's.
    this.figure = single ? { ...figure, columns: 1, panels: [{ ...panel, index: 0, title: panel.fullName, heading: "", image: this.image }] } : figure;
    const ratio = window.devicePixelRatio || 1;
    const lay = single ? layoutSingle : layoutGrid;
    this.scene = lay(this.figure, Math.floor(width), tall, ratio, ruler, this.views);
    Object.assign(this.scene, { ruler, theme });
    this.selected = selected;
    for (const canvas of [this.canvas, this.marks]) sized(canvas, this.scene.width, this.scene.height, ratio);
    const surface = new CanvasSurface(this.canvas.getContext("2d"), theme, ratio);
    surface.rect(0, 0, this.scene.width, this.scene.height, { fill: theme.paper });
    paintStill(surface, this.scene, this.figure);
    if (single) this.image = { canvas: this.figure.panels[0].image?.canvas };
    this.canvas.setAttribute("aria-label", label);
    this.point();
  }

  point() {
    const { scene } = this;
    const context = this.marks.getContext("2d");
    const surface = new CanvasSurface(context, scene.theme, scene.ratio);
    context.clearRect(0, 0, scene.width, scene.height);
    const { cell } = this;
    const pointed = cell && { rowKey: "rows", row: cell.row, colKey: "cols", col: cell.col };
    paintMarks(surface, scene, { selected: this.selected, current: cell, pinned: null, pointed, live: true });
  }

  under(event) {
    const frame = this.canvas.getBoundingClientRect();
    return this.scene ? cellUnder(this.scene, event.clientX - frame.left, event.clientY - frame.top) : null;
  }

  hover(event) {
    this.cell = this.under(event);
    this.canvas.style.cursor = this.cell && this.choose ? "pointer" : "default";
    if (!this.cell) return this.rest();
    const panel = this.figure.panels[this.cell.panel];
    const { row, col } = this.cell;
    const name = (axis, index) => el("bdi", "vf-strong", visible(axis.labels[index] ?? ""));
    const weight = (panel.data[row * panel.width + col] / LEVELS).toFixed(2);
    this.tip.replaceChildren(el("div", "vf-quiet", panel.fullName), name(panel.rows, row), " → ", name(panel.cols, col), `  ${weight}`);
    placeTip(this.tip, this.root, event);
    this.point();
    return undefined;
  }

  rest() {
    this.cell = null;
    this.tip.classList.remove("vf-on");
    if (this.scene) this.point();
  }

  click(event) {
    const cell = this.under(event);
    if (cell && this.choose) this.choose(this.figure.panels[cell.panel].id);
  }
}
