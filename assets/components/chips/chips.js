// Tokens as chips, one line for each tokenizer; pointing at a chip marks its characters in the text and in every line.
// All words come with the figure; labels enter as text, never as markup.

import { el, fill, lasting } from "../kit.js";
import { download, headSvg, pngOfSvg, svgNode } from "../picture.js";

const MOST_CHIPS = 200; // shown of one line
const HUES = 5;

// One text node as SVG text with its width on the screen, so that other fonts do not change the layout.
function written(node, box, left, top, limit) {
  const style = getComputedStyle(node.parentElement);
  const size = parseFloat(style.fontSize);
  const cut = box.right > limit + 1;
  const text = cut ? `${node.textContent.slice(0, 16)}…` : node.textContent;
  const lines = Math.max(1, Math.round(box.height / (size * 1.4)));
  const at = { x: box.left - left, y: box.top - top + (box.height / lines + size * 0.7) / 2, fill: style.color, "font-size": size };
  const width = cut || lines > 1 ? {} : { textLength: box.width, lengthAdjust: "spacingAndGlyphs" };
  return svgNode("text", { ...at, ...width, "font-weight": style.fontWeight, "font-style": style.fontStyle, "xml:space": "preserve" }, text);
}

// The chips as SVG: boxes and text where the browser put them, with their computed colours and sizes.
function drawSvg(root, rows, figure) {
  const { left, top, width, height } = rows.getBoundingClientRect();
  const base = getComputedStyle(root);
  const svg = svgNode("svg", { xmlns: "http://www.w3.org/2000/svg", width, height, viewBox: `0 0 ${width} ${height}`, "font-family": base.fontFamily });
  const paper = base.getPropertyValue("--vt-paper").trim() || "#ffffff";
  svg.append(svgNode("rect", { width, height, fill: paper }));
  for (const node of rows.querySelectorAll(".vt-chip")) {
    const box = node.getBoundingClientRect();
    const style = getComputedStyle(node);
    const dash = style.borderTopStyle === "dashed" ? { "stroke-dasharray": "4 3" } : {};
    const at = { x: box.left - left, y: box.top - top, width: box.width, height: box.height, rx: 5 };
    svg.append(svgNode("rect", { ...at, fill: style.backgroundColor, stroke: style.borderTopColor, ...dash }));
    const foot = box.bottom - top - 2;
    svg.append(svgNode("rect", { x: box.left - left, y: foot, width: box.width, height: 2, fill: style.borderBottomColor }));
  }
  const texts = document.createTreeWalker(rows, NodeFilter.SHOW_TEXT);
  const range = document.createRange();
  while (texts.nextNode()) {
    range.selectNode(texts.currentNode);
    const box = range.getBoundingClientRect();
    const limit = texts.currentNode.parentElement.closest(".vt-label")?.getBoundingClientRect().right ?? Infinity;
    if (!box.width || box.left > limit) continue;
    svg.append(written(texts.currentNode, box, left, top, limit));
  }
  headSvg(svg, figure, { paper, ink: base.color });
  return new XMLSerializer().serializeToString(svg);
}

// A label with pale blanks and small code points.
const PALE = /(␣+|<U\+[0-9A-F]+>|<[0-9A-F]{2}(?: [0-9A-F]{2})*>)/;
const inked = (text) =>
  text.split(PALE).map((part, place) => (place % 2 ? el("span", part.startsWith("␣") ? "vt-blank" : "vt-code", part) : part));

// A token that is part of a character, such as 你 1/3; the fraction is isolated from right-to-left letters.
function lettered(token) {
  const [, name, part] = (token.shared && token.label.match(/^(.+) (\d+\/\d+)$/)) || [null, token.label, ""];
  return el("span", "vt-label", el("bdi", "", ...inked(name)), part ? el("span", "vt-part", ` ${part}`) : null);
}

class Chips {
  constructor(parent) {
    this.source = el("p", "vt-source");
    this.source.dir = "auto";
    const reach = () => { this.source.tabIndex = this.source.scrollHeight > this.source.clientHeight ? 0 : -1; };
    new ResizeObserver(reach).observe(this.source); // the keyboard scrolls a long text
    this.readout = el("p", "vt-readout");
    this.readout.setAttribute("aria-live", "polite");
    this.rows = el("div", "vt-rows");
    this.tools = el("div", "vt-tools");
    for (const kind of ["png", "svg"]) {
      const button = el("button", `vt-tool-${kind}`, kind.toUpperCase());
      button.type = "button";
      button.addEventListener("click", () => this.save(kind));
      this.tools.append(button);
    }
    this.root = el("div", "vt", el("div", "vt-head", this.source, this.tools), this.readout, this.rows);
    parent.append(this.root);
    this.root.addEventListener("pointerover", (event) => this.point(event.target.closest?.(".vt-chip")));
    this.root.addEventListener("pointerleave", () => this.point(null));
    this.root.addEventListener("keydown", (event) => this.onKey(event));
    this.root.addEventListener("focusin", (event) => event.target.matches(".vt-line") && this.point(this.chipOf(event.target)));
  }

  receive(figure) {
    const json = JSON.stringify(figure);
    if (json === this.json) return;
    this.json = json;
    this.figure = figure;
    this.characters = Array.from(figure.text); // offsets count code points
    this.rows.replaceChildren(...figure.rows.map((row, index) => this.row(row, index)));
    this.point(null);
    this.root.dataset.painted = figure.version;
  }

  row(row, index) {
    const line = el("ol", "vt-line", ...row.tokens.slice(0, MOST_CHIPS).map((token, place) => this.chip(row, token, index, place)));
    Object.assign(line, { tabIndex: 0, dir: "auto" });
    line.setAttribute("role", "listbox");
    line.setAttribute("aria-label", `${row.title}: ${[row.count, row.unit].filter(Boolean).join(" ")}`);
    const cut = row.tokens.length - MOST_CHIPS;
    const count = row.count ? el("div", "vt-count", row.count, el("small", "", row.unit)) : el("div", "vt-fact", row.unit);
    const head = el("div", "vt-about", el("div", "vt-name", row.title), count);
    for (const fact of row.facts) head.append(el("div", "vt-fact", fact));
    const body = el("div", "vt-body", line, cut > 0 ? el("p", "vt-more", fill(this.figure.words.more, { count: cut })) : null);
    if (row.verdict) body.append(el("p", row.faithful ? "vt-verdict" : "vt-verdict vt-lossy", row.faithful ? "✓ " : "≠ ", row.verdict));
    return el("section", "vt-row", head, body);
  }

  chip(row, token, index, place) {
    const before = row.tokens[place - 1];
    const kinds = ["special", "unknown", "shared", "fresh", "framed"].filter((name) => token[name]);
    const joined = token.shared && before?.shared && before.end > token.start;
    const hue = row.hue === null && token.special ? "" : ` vt-hue${row.hue ?? place % HUES}`;
    const chip = el("li", `vt-chip${hue}${kinds.map((name) => ` vt-${name}`).join("")}${joined ? " vt-joined" : ""}`);
    chip.id = `vt-${this.figure.name}-${index}-${place}`;
    chip.setAttribute("role", "option");
    const mark = token.unknown ? el("span", "vt-mark", this.figure.words.unknown_mark) : null;
    chip.append(lettered(token), el("span", "vt-id", mark, token.id < 0 ? "" : String(token.id)));
    chip.setAttribute("aria-label", this.describe(row, token));
    Object.assign(chip, { token, row });
    return chip;
  }

  // The text about one token, for the readout and screen readers.
  describe(row, token) {
    const { words } = this.figure;
    const surface = this.characters.slice(token.start, token.end).join("");
    const kind = token.special ? words.special : token.unknown ? words.unknown : token.shared ? words.shared : "";
    const where = token.end > token.start ? fill(words.where, { start: token.start, end: token.end - 1, surface: `\u2068${surface}\u2069` }) : words.nowhere;
    const bytes = token.bytes ? fill(words.bytes, { bytes: token.bytes.length > 60 ? `${token.bytes.slice(0, 59)} …` : token.bytes }) : "";
    const id = token.id < 0 ? "" : fill(words.id, { id: token.id });
    const framed = token.framed ? words.framed : "";
    return [row.title, token.label.slice(0, 60), framed, kind, id, where.slice(0, 160), bytes].filter(Boolean).join(" · ");
  }

  chipOf(line) {
    const active = line.getAttribute("aria-activedescendant");
    return [...line.children].find((chip) => chip.id === active) ?? line.firstElementChild;
  }

  onKey(event) {
    const line = event.target.closest?.(".vt-line");
    if (!line || event.altKey || event.metaKey || event.ctrlKey) return;
    const now = this.chipOf(line);
    const moves = {
      ArrowRight: now?.nextElementSibling, ArrowLeft: now?.previousElementSibling,
      Home: line.firstElementChild, End: line.lastElementChild, Escape: null,
    };
    if (!(event.key in moves)) return;
    event.preventDefault();
    this.point(moves[event.key] ?? (event.key === "Escape" ? null : now));
  }

  point(chip) {
    if (chip === undefined) return;
    for (const line of this.rows.querySelectorAll(".vt-line")) line.removeAttribute("aria-activedescendant");
    const { characters, figure } = this;
    const span = chip?.token.end > chip?.token.start ? chip.token : null;
    for (const other of this.rows.querySelectorAll(".vt-chip")) {
      const { token } = other;
      other.classList.toggle("vt-alike", Boolean(span) && Math.max(token.start, span.start) < Math.min(token.end, span.end));
      other.classList.toggle("vt-here", other === chip);
      other.setAttribute("aria-selected", String(other === chip));
    }
    if (span) {
      const part = (from, to) => characters.slice(from, to).join("");
      this.source.replaceChildren(part(0, span.start), el("mark", "", part(span.start, span.end)), part(span.end));
      this.source.querySelector("mark").scrollIntoView?.({ block: "nearest" });
    } else {
      this.source.replaceChildren(figure.text);
    }
    this.readout.textContent = chip ? this.describe(chip.row, chip.token) : figure.words.hint;
    chip?.parentElement.setAttribute("aria-activedescendant", chip.id);
  }

  async save(kind) {
    const svg = new Blob([drawSvg(this.root, this.rows, this.figure)], { type: "image/svg+xml" });
    download(kind === "svg" ? svg : await pngOfSvg(svg), `${this.figure.name}.${kind}`);
  }
}

export default function chips({ data, parentElement }) {
  lasting(parentElement, (place) => new Chips(place)).receive(data);
}

// The one figure of a page made by component_page: its data is in the page as base64.
function standalone(page) {
  const place = page.getElementById("figure");
  const bytes = Uint8Array.from(atob(place.dataset.payload), (letter) => letter.charCodeAt(0));
  new Chips(place).receive(JSON.parse(new TextDecoder().decode(bytes)));
}
