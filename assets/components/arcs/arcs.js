// A text with an arc from the chosen word to every other, as strong as the weight between them. One SVG, so that a
// saved file is what is seen; its words are radio buttons, so that the keyboard reaches them.

import { lasting, release } from "../lasting.js";
import { accent, readTheme } from "../matrix/colour.js";
import { Ruler } from "../matrix/geometry.js";
import { headSvg } from "../matrix/caption.js";
import { download } from "../matrix/table.js";
import { fill } from "../matrix/unpack.js";
import { el } from "../matrix/readout.js";
import { SIZE, SMALL, across, arcBetween, arrow, layText, opacity, thickness } from "./shapes.js";

const NAMED = 12; // how many of the strongest weights are written out, if they are at least
const WORTH = 0.01;
const FAINT = 0.002; // weights below it get no arc
const SPACE = "http://www.w3.org/2000/svg";

function svg(name, attributes = {}, ...children) {
  const node = document.createElementNS(SPACE, name);
  for (const [key, value] of Object.entries(attributes)) node.setAttribute(key, value);
  node.append(...children);
  return node;
}

// Header (JSON after its length) and the weights, row after row, as Python packed them.
function opened(bytes) {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  const length = view.getUint32(0, true);
  const header = JSON.parse(new TextDecoder().decode(bytes.subarray(4, 4 + length)));
  const start = Math.ceil((4 + length) / 8) * 8;
  return { ...header, at: (row, col) => view.getFloat32(start + 4 * (row * header.labels.length + col), true) };
}

class Arcs {
  constructor(parent) {
    const button = (kind) => {
      const node = el("button", `arcs-${kind}`);
      node.type = "button";
      node.addEventListener("click", () => this.save(kind));
      return node;
    };
    this.tools = { png: button("png"), svg: button("svg") };
    this.drawing = svg("svg", { xmlns: SPACE });
    this.said = el("p", "arcs-said");
    this.said.setAttribute("aria-live", "polite");
    this.root = el("div", "arcs", el("div", "arcs-tools", ...Object.values(this.tools)), this.drawing, this.said);
    parent.append(this.root);
    this.observer = new ResizeObserver(() => this.figure && this.root.clientWidth !== this.width && this.draw());
    this.observer.observe(this.root);
  }

  remove() {
    this.observer.disconnect();
    this.root.remove();
  }

  receive(data, send) {
    this.send = send;
    if (data !== this.data) {
      const before = this.figure;
      this.data = data;
      this.figure = opened(data);
      const late = this.sent && performance.now() - this.sent.at < 2000 && this.sent.source < this.figure.labels.length;
      if (!late || String(before?.labels) !== String(this.figure.labels)) this.source = this.figure.source;
    }
    this.draw();
  }

  // The weight between the source and a word: where it looks, or who looks at it.
  weight(index) {
    const { at, direction } = this.figure;
    return direction === "from" ? at(this.source, index) : at(index, this.source);
  }

  choose(index, focus) {
    this.source = index;
    this.sent = { source: index, at: performance.now() };
    this.draw();
    if (focus) this.words[index].node.focus();
    this.send?.(index);
  }

  draw() {
    const width = (this.width = this.root.clientWidth);
    if (width < 40) return; // hidden; the observer calls again
    const { figure } = this;
    const focused = this.words?.some(({ node }) => node === this.root.getRootNode().activeElement);
    this.theme = readTheme(this.root);
    const colours = { line: this.theme.line, muted: this.theme.muted };
    for (const [name, colour] of Object.entries(colours)) this.root.style.setProperty(`--arcs-${name}`, colour);
    const laid = layText(figure.labels, figure.glued, width, new Ruler(this.theme.font));
    this.words = laid.words.map((word) => ({ ...word, weight: this.weight(word.index) }));
    this.order = [...this.words].sort((a, b) => b.weight - a.weight);
    const lines = svg("g", { fill: "none" }, ...[...this.order].reverse().flatMap((word) => this.arc(word, laid)));
    const words = svg("g", { role: "radiogroup", "aria-label": figure.strings.label }, ...this.words.map((word) => this.word(word)));
    const size = { width, height: laid.height, viewBox: `0 0 ${width} ${laid.height}`, "font-family": this.theme.font };
    for (const [key, value] of Object.entries(size)) this.drawing.setAttribute(key, value);
    this.drawing.replaceChildren(svg("rect", { width: "100%", height: "100%", fill: this.theme.paper }), lines, words);
    if (focused) this.words[this.source].node.focus();
    this.say();
    this.root.dataset.painted = `${figure.version}|${this.source}`;
  }

  arc(word, laid) {
    if (word.weight < FAINT) return [];
    const source = this.words[this.source];
    const { path, x, y, way } = this.figure.direction === "from" ? arcBetween(source, word, laid) : arcBetween(word, source, laid);
    const look = { stroke: accent(this.theme, "weights"), opacity: opacity(word.weight).toFixed(3) };
    const line = svg("path", { d: path, ...look, "stroke-width": thickness(word.weight).toFixed(2), "stroke-linecap": "round" });
    const head = svg("path", { d: arrow(x, y, way, word.weight), fill: look.stroke, opacity: look.opacity });
    word.arc = svg("g", { "data-arc": word.index }, line, head);
    return [word.arc];
  }

  word(word) {
    const { theme, figure } = this;
    const chosen = word.index === this.source;
    const role = figure.direction === "from" ? "query" : "key";
    const purple = accent(theme, "weights");
    const named = word.weight >= WORTH && this.order.indexOf(word) < NAMED;
    const middle = word.x + word.w / 2;
    const frame = { x: word.x, y: word.y, width: word.w, height: word.h, rx: 7 };
    const ring = chosen ? { stroke: accent(theme, role), "stroke-width": 2.5 } : { stroke: theme.line, "stroke-width": 1 };
    const number = svg("text", { x: middle, y: word.y + 36, "font-size": SMALL, "text-anchor": "middle", fill: theme.ink });
    number.textContent = word.weight.toFixed(word.weight < 0.0995 ? 3 : 2);
    if (!named) number.setAttribute("visibility", "hidden");
    const text = svg("text", { x: middle, y: word.y + 21, "font-size": SIZE, "text-anchor": "middle", fill: theme.ink, "font-weight": chosen ? 700 : 500 });
    text.textContent = word.text;
    word.node = svg(
      "g",
      { role: "radio", "aria-checked": String(chosen), tabindex: chosen ? 0 : -1, "data-token": word.index, "aria-label": fill(figure.strings.word, { token: word.text, index: word.index, weight: word.weight.toFixed(3) }) },
      svg("rect", { ...frame, fill: theme.paper }),
      svg("rect", { ...frame, ...ring, fill: purple, "fill-opacity": (0.42 * Math.min(1, word.weight)).toFixed(3) }),
      text,
      number,
    );
    word.node.addEventListener("click", () => this.choose(word.index, true));
    word.node.addEventListener("keydown", (event) => this.onKey(event, word));
    const point = (on) => () => {
      number.setAttribute("visibility", on || named ? "visible" : "hidden");
      for (const other of this.words) other.arc?.setAttribute("opacity", on && other.index !== word.index && word.index !== this.source ? 0.25 : 1);
    };
    word.node.addEventListener("pointerenter", point(true));
    word.node.addEventListener("pointerleave", point(false));
    return word.node;
  }

  onKey(event, word) {
    const last = this.words.length - 1;
    const moves = {
      ArrowLeft: () => Math.max(0, word.index - 1),
      ArrowRight: () => Math.min(last, word.index + 1),
      ArrowUp: () => across(this.words, word, -1).index,
      ArrowDown: () => across(this.words, word, 1).index,
      Home: () => 0,
      End: () => last,
      Enter: () => word.index,
      " ": () => word.index,
    };
    if (!moves[event.key] || event.altKey || event.ctrlKey || event.metaKey) return;
    event.preventDefault();
    event.stopPropagation();
    this.choose(moves[event.key](), true);
  }

  // The strongest, and the sum of all, in words.
  say() {
    const { figure } = this;
    const sum = this.words.reduce((total, word) => total + word.weight, 0);
    const top = this.order.slice(0, 3).map((word) => `${word.text} ${word.weight.toFixed(3)}`);
    const parts = { token: this.words[this.source].text, top: top.join(" · "), sum: sum.toFixed(3), count: this.words.length };
    this.said.textContent = fill(figure.strings[figure.direction === "from" ? "said_from" : "said_to"], parts);
    for (const [kind, node] of Object.entries(this.tools)) {
      node.textContent = kind.toUpperCase();
      node.setAttribute("aria-label", figure.strings[`save_${kind}`]);
    }
  }

  async save(kind) {
    const { figure, theme } = this;
    const drawing = this.drawing.cloneNode(true);
    headSvg(drawing, figure, theme);
    const blob = new Blob([new XMLSerializer().serializeToString(drawing)], { type: "image/svg+xml" });
    if (kind === "svg") return download(blob, `${figure.filename}.svg`);
    const picture = new Image();
    picture.src = URL.createObjectURL(blob);
    await picture.decode();
    const canvas = document.createElement("canvas");
    Object.assign(canvas, { width: 2 * this.width, height: 2 * Number(drawing.getAttribute("height")) });
    canvas.getContext("2d").drawImage(picture, 0, 0, canvas.width, canvas.height);
    URL.revokeObjectURL(picture.src);
    canvas.toBlob((bytes) => download(bytes, `${figure.filename}.png`), "image/png");
  }
}

export default function arcs({ data, parentElement, setStateValue }) {
  lasting(parentElement, (place) => new Arcs(place)).receive(data, (source) => setStateValue("token", source));
  return () => release(parentElement);
}

// The one figure of a page made by to_html: its bytes wait in the page as base64.
function showArcs(page) {
  const place = page.getElementById("figure");
  const instance = new Arcs(place);
  instance.receive(Uint8Array.from(atob(place.dataset.payload), (letter) => letter.charCodeAt(0)), null);
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => instance.draw());
}
