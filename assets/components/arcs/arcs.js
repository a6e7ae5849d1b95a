// A text with an arc from the chosen word to every other, as strong as the weight between them.
// It is one SVG, so that a saved file is what is seen; the words are radio buttons, so that the keyboard reaches them.

import { el, fill, lasting, release, visible } from "../kit.js";
import { contents } from "../matrix/unpack.js";
import { accent, readTheme } from "../matrix/colour.js";
import { Ruler, clamp } from "../matrix/geometry.js";
import { Newest } from "../newest.js";
import { download, headSvg, pngOfSvg, svgNode } from "../picture.js";

const SIZE = 17;
const SMALL = 11;
const PAD = 7;
const GAP = 6;
const TALL = 42;
const HIGHEST = 170;
const THICKEST = 13;
const MARGIN = 10;

const thickness = (weight) => 0.6 + (THICKEST - 0.6) * weight;
const opacity = (weight) => 0.18 + 0.72 * Math.sqrt(clamp(weight, 0, 1));

// Words broken into lines of this width, each {index, text, x, y, w, h, line}, with room for arcs above each line.
function layText(labels, glued, width, ruler) {
  const words = labels.map((label, index) => {
    const text = ruler.fit(visible(label), width - 2 * (MARGIN + PAD), SIZE, 500);
    const w = Math.max(ruler.width(text, SIZE, 500) + 2 * PAD, 34);
    return { index, text, w, h: TALL };
  });
  let x = MARGIN;
  let line = 0;
  for (const word of words) {
    const gap = glued[word.index] ? 2 : GAP;
    if (x > MARGIN && x + gap + word.w > width - MARGIN) [x, line] = [MARGIN, line + 1];
    else if (x > MARGIN) x += gap;
    Object.assign(word, { x, line });
    x += word.w;
  }
  const lines = line + 1;
  const widest = Math.max(...words.map((word) => word.x + word.w)) - MARGIN;
  const rise = lines === 1 ? clamp(widest * 0.17, 70, HIGHEST) : 62; // of the arcs above a line
  const room = lines === 1 ? HIGHEST : rise; // kept, so that nothing moves while a line grows
  for (const word of words) word.y = 14 + room + word.line * (room + TALL);
  return { words, rise, widest, height: 14 + lines * (room + TALL) + 8 };
}

// The path from one word to another, vertical at both ends, and the tip and direction of its arrow (down: +1, up: -1).
function arcBetween(from, to, { rise, widest }) {
  const start = from.x + from.w / 2;
  const end = to.x + to.w / 2;
  if (from.index === to.index) {
    const y = from.y - 2;
    return { path: `M ${start - 12} ${y} C ${start - 44} ${y - 54}, ${start + 44} ${y - 54}, ${start + 12} ${y - 4}`, x: start + 12, y, way: 1 };
  }
  if (from.line === to.line) {
    const high = 26 + (1.28 * rise - 26) * clamp(Math.abs(end - start) / widest, 0, 1) ** 0.7;
    return { path: `M ${start} ${from.y - 2} C ${start} ${from.y - high}, ${end} ${to.y - high}, ${end} ${to.y - 5}`, x: end, y: to.y - 2, way: 1 };
  }
  const down = to.line > from.line;
  const y1 = down ? from.y + from.h + 2 : from.y - 2;
  const y2 = down ? to.y - 5 : to.y + to.h + 5;
  const bend = (down ? 1 : -1) * Math.max(30, Math.abs(y2 - y1) * 0.5);
  return { path: `M ${start} ${y1} C ${start} ${y1 + bend}, ${end} ${y2 - bend}, ${end} ${y2}`, x: end, y: down ? y2 + 3 : y2 - 3, way: down ? 1 : -1 };
}

// An arrow head with its tip at (x, y).
function arrow(x, y, way, weight) {
  const half = 3 + 4.5 * weight;
  const long = (4 + 5 * weight) * way;
  return `M ${x} ${y} L ${x - half} ${y - long} L ${x + half} ${y - long} Z`;
}

// The nearest word in the next line up or down.
function across(words, from, step) {
  const middle = from.x + from.w / 2;
  const others = words.filter((word) => word.line === from.line + step);
  const off = (word) => Math.abs(word.x + word.w / 2 - middle);
  return others.length ? others.reduce((best, word) => (off(word) < off(best) ? word : best)) : from;
}

const NAMED = 12; // at most so many of the strongest weights are printed,
const WORTH = 0.01; // and only weights from here
const FAINT = 0.002; // weights below get no arc

// The header and the weights, row after row, as ArcsFigure.to_bytes (pages/attention/figures.py) packs them.
function unpackArcs(bytes) {
  const { header, array } = contents(bytes);
  const n = header.labels.length;
  const weights = array({ at: 0, shape: [n, n], type: "f4" });
  return { ...header, at: (row, col) => weights[row * n + col] };
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
    this.drawing = svgNode("svg", { xmlns: "http://www.w3.org/2000/svg" });
    this.said = el("p", "arcs-said");
    this.said.setAttribute("aria-live", "polite");
    this.root = el("div", "arcs", el("div", "arcs-tools", ...Object.values(this.tools)), this.drawing, this.said);
    parent.append(this.root);
    this.newest = new Newest(unpackArcs, (figure) => this.adopt(figure));
    this.observer = new ResizeObserver(() => this.figure && this.root.clientWidth !== this.width && this.draw());
    this.observer.observe(this.root);
  }

  remove() {
    this.observer.disconnect();
    this.newest.end();
    this.root.remove();
  }

  receive(data, send) {
    this.send = send;
    if (!this.newest.take(data)) this.draw();
  }

  adopt(figure) {
    const before = this.figure;
    this.figure = figure;
    const late = this.sent && performance.now() - this.sent.at < 2000 && this.sent.source < figure.labels.length;
    if (!late || String(before?.labels) !== String(figure.labels)) this.source = figure.source;
    this.draw();
  }

  // The weight from the source to a word, or from a word to the source.
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
    if (width < 40) return; // hidden; the observer calls again when it is shown
    const { figure } = this;
    const focused = this.words?.some(({ node }) => node === this.root.getRootNode().activeElement);
    this.theme = readTheme(this.root);
    const colours = { line: this.theme.line, muted: this.theme.muted };
    for (const [name, colour] of Object.entries(colours)) this.root.style.setProperty(`--arcs-${name}`, colour);
    const laid = layText(figure.labels, figure.glued, width, new Ruler(this.theme.font));
    this.words = laid.words.map((word) => ({ ...word, weight: this.weight(word.index) }));
    this.order = [...this.words].sort((a, b) => b.weight - a.weight);
    const lines = svgNode("g", { fill: "none" }, ...[...this.order].reverse().flatMap((word) => this.arc(word, laid)));
    const words = svgNode("g", { role: "radiogroup", "aria-label": figure.strings.label }, ...this.words.map((word) => this.word(word)));
    const size = { width, height: laid.height, viewBox: `0 0 ${width} ${laid.height}`, "font-family": this.theme.font };
    for (const [key, value] of Object.entries(size)) this.drawing.setAttribute(key, value);
    this.drawing.replaceChildren(svgNode("rect", { width: "100%", height: "100%", fill: this.theme.paper }), lines, words);
    if (focused) this.words[this.source].node.focus();
    this.say();
    this.root.dataset.painted = `${figure.version}|${this.source}`;
  }

  arc(word, laid) {
    if (word.weight < FAINT) return [];
    const source = this.words[this.source];
    const { path, x, y, way } = this.figure.direction === "from" ? arcBetween(source, word, laid) : arcBetween(word, source, laid);
    const look = { stroke: accent(this.theme, "weights"), opacity: opacity(word.weight).toFixed(3) };
    const line = svgNode("path", { d: path, ...look, "stroke-width": thickness(word.weight).toFixed(2), "stroke-linecap": "round" });
    const head = svgNode("path", { d: arrow(x, y, way, word.weight), fill: look.stroke, opacity: look.opacity });
    word.arc = svgNode("g", { "data-arc": word.index }, line, head);
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
    const number = svgNode("text", { x: middle, y: word.y + 36, "font-size": SMALL, "text-anchor": "middle", fill: theme.ink });
    number.textContent = word.weight.toFixed(word.weight < 0.0995 ? 3 : 2);
    if (!named) number.setAttribute("visibility", "hidden");
    const text = svgNode("text", { x: middle, y: word.y + 21, "font-size": SIZE, "text-anchor": "middle", fill: theme.ink, "font-weight": chosen ? 700 : 500 });
    text.textContent = word.text;
    word.node = svgNode(
      "g",
      { role: "radio", "aria-checked": String(chosen), tabindex: chosen ? 0 : -1, "data-token": word.index, "aria-label": fill(figure.strings.word, { token: word.text, index: word.index, weight: word.weight.toFixed(3) }) },
      svgNode("rect", { ...frame, fill: theme.paper }),
      svgNode("rect", { ...frame, ...ring, fill: purple, "fill-opacity": (0.42 * Math.min(1, word.weight)).toFixed(3) }),
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

  // The strongest weights and the sum of all as a sentence.
  say() {
    const { figure } = this;
    const sum = this.words.reduce((total, word) => total + word.weight, 0);
    const top = this.order.slice(0, 3).map((word) => `${word.text} ${word.weight.toFixed(3)}`);
    const parts = { token: this.words[this.source].text, top: top.join(" · "), sum: sum.toFixed(3), count: this.words.length };
    this.said.textContent = fill(figure.strings[`said_${figure.direction}`], parts);
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
    download(kind === "svg" ? blob : await pngOfSvg(blob), `${figure.filename}.${kind}`);
  }
}

export default function arcs({ data, parentElement, setStateValue }) {
  lasting(parentElement, (place) => new Arcs(place)).receive(data, (source) => setStateValue("token", source));
  return () => release(parentElement);
}

// The one figure of a page made by component_page: its bytes are in the page as base64.
function standalone(page) {
  const place = page.getElementById("figure");
  const instance = new Arcs(place);
  instance.receive(Uint8Array.from(atob(place.dataset.payload), (letter) => letter.charCodeAt(0)), null);
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => instance.draw());
}
