// Live figures: asks the server for the pictures of what is typed, chosen, slid or painted, before the page has run.
// pages/kit/live.py. One request is on its way at a time; of those that wait, the newest goes. What comes back is given
// to whom it belongs by name: matrices listen for it, charts take its rows (pages/figures/charts.py), and verdicts on the
// page are rewritten in place.

import { lasting, release } from "../kit.js";

const ASK = "vitrine:ask";
const PICTURE = "vitrine:picture";
const LEAD = 1000; // ms for which rows that came the short way are newer than what the page's run brings; see newest.js
const REST = 250; // ms without a key after which the page runs with a box of several lines, as with one of a line (PAUSE of pages/kit/header.py)
const PAGE = "page"; // the name of what follows the part of a page; a box below it is followed by another instance
const SPACES = { svg: "http://www.w3.org/2000/svg", math: "http://www.w3.org/1998/Math/MathML" };
const ATTRIBUTES = { className: "class", ariaHidden: "aria-hidden" }; // as hast, the tree of rehype, calls them
let katex = null; // Streamlit's own rehype-katex, once it has come
const placeOf = (name, page) => `.st-key-${`${name}@${page}`.replace(/[^\w-]/g, "-")}`;

// Streamlit reads a box of several lines when it is left, or at this key.
function commit(box) {
  box.dispatchEvent(new KeyboardEvent("keydown", { key: "Enter", code: "Enter", ctrlKey: true, bubbles: true, cancelable: true }));
}

class Follower {
  constructor() {
    this.ending = new AbortController();
    this.changed = {};
    this.drawn = new Set(); // charts that show rows which came the short way
    this.tables = {}; // by event and name: the rows that charts show, where they are known, and their checksum
    this.written = new Set(); // places of formulas that came the short way
    this.versions = 0;
    const on = (target, type, act) => target.addEventListener(type, act, { capture: true, signal: this.ending.signal });
    on(document, "input", (event) => this.onInput(event));
    on(document, "compositionend", (event) => this.onInput(event));
    on(document, "click", (event) => this.onClick(event));
    on(window, ASK, ({ detail }) => detail.of === this.data.name && this.ask(detail.choices));
    this.thumbs = new MutationObserver((changes) => changes.forEach((change) => this.onSlide(change)));
    this.thumbs.observe(document.body, { subtree: true, attributeFilter: ["value"] });
    this.rewritten = new MutationObserver((changes) => changes.some(({ addedNodes }) => [...addedNodes].some(bearsNames)) && this.tell());
  }

  remove() {
    this.ending.abort();
    this.thumbs.disconnect();
    this.rewritten.disconnect();
    clearTimeout(this.returning);
    clearTimeout(this.resting);
    this.giveBack();
    if (this.data.name === PAGE) window.vitrineLive = false;
  }

  receive(data) {
    this.data = data;
    if (data.name === PAGE) window.vitrineLive = true;
    if (data.katex && document.querySelector("[data-formula]")) katex ??= import(new URL(data.katex, document.baseURI)).then((module) => (katex = module.default), () => null);
    this.changed = {}; // the page has run with them
    if (this.link() !== this.shown) this.tables = {}; // with others than those that were shown
    keepGradients();
    this.settle();
  }

  onSlide({ target }) {
    if (target.type !== "range") return;
    const { sliders, choices, page } = this.data;
    const name = [...sliders, ...Object.keys(choices)].find((slider) => target.closest(placeOf(slider, page)));
    if (!name || target !== document.activeElement) return; // moved by the page, not held
    const value = choices[name]?.[target.value] ?? target.value; // one over options holds an option's number
    if (value !== this.changed[name]) this.ask({ [name]: value });
  }

  onInput({ target, isComposing }) {
    if (target.type === "range") this.onSlide({ target }); // by a key, which is heard of before React has moved it
    const name = this.data.boxes.find((box) => target.closest?.(placeOf(box, this.data.page)));
    if (!name) return;
    this.ask({ [name]: target.value });
    clearTimeout(this.resting);
    if (target.type === "textarea" && !isComposing) this.resting = setTimeout(() => commit(target), REST);
  }

  onClick({ target }) {
    for (const [name, options] of Object.entries(this.data.choices)) {
      const place = target.closest?.(placeOf(name, this.data.page));
      const all = place ? [...place.querySelectorAll("[role=radio]")] : [];
      const index = all.indexOf(target.closest("[role=radio]"));
      if (index >= 0) this.ask({ [name]: options[index] });
    }
  }

  ask(changes) {
    Object.assign(this.changed, changes);
    this.waits = true;
    if (!this.flies) this.fly();
  }

  async fly() {
    this.flies = true;
    window.vitrineAsking = (window.vitrineAsking ?? 0) + 1; // for who waits until no answer is on its way
    while (this.waits && !this.ending.signal.aborted) {
      this.waits = false;
      const link = this.link();
      const asked = `${this.data.route}?${link}&stamp=${this.changed.stamp ?? 0}`;
      try {
        const answer = await fetch(asked, { signal: this.ending.signal, cache: "no-store" });
        if (answer.status === 200 && this.give(await answer.arrayBuffer(), link)) this.waits = true;
      } catch {
        // The page's own run brings the picture.
      }
    }
    this.flies = false;
    window.vitrineAsking -= 1;
  }

  // What is on the page, or will be once it has run, as a link says it.
  link() {
    const said = new URLSearchParams(location.search);
    for (const [name, value] of Object.entries({ ...this.data.said, ...this.changed })) said.set(name, value);
    said.delete("stamp"); // of a stroke
    said.sort();
    return String(said);
  }

  // Returns whether there is more to ask for.
  give(buffer, link) {
    const length = new DataView(buffer).getUint32(0, true);
    const header = JSON.parse(new TextDecoder().decode(new Uint8Array(buffer, 4, length)));
    let at = Math.ceil((4 + length) / 8) * 8;
    for (const [key, size] of header.pictures) {
      const bytes = new Uint8Array(buffer, at, size);
      window.dispatchEvent(new CustomEvent(PICTURE, { detail: { key, bytes } }));
      at += size;
    }
    this.newest = header;
    this.tell();
    for (const [name, latex] of Object.entries(header.formulas)) this.write(name, latex);
    this.draw(header.drawings, header.sums);
    this.shown = link;
    this.settle();
    return header.more;
  }

  // Writes the newest verdicts, numbers and lines where the page wrote its own, and again where its run brings others
  // before LEAD is over, such as those of an older text; see newest.js.
  tell() {
    const { verdicts, numbers, lines } = this.newest;
    for (const [name, verdict] of Object.entries(verdicts)) rewrite(name, verdict);
    for (const [name, { label, value }] of Object.entries(numbers)) {
      const place = document.querySelector(`[data-number="${CSS.escape(name)}"]`);
      if (!place) continue;
      place.querySelector("[data-label]").textContent = label;
      place.querySelector("[data-value]").textContent = value;
    }
    for (const [name, nodes] of Object.entries(lines)) {
      const place = document.querySelector(`[data-lines="${CSS.escape(name)}"]`);
      place?.replaceChildren(...nodes.map(built));
    }
    this.rewritten.observe(document.body, { subtree: true, childList: true });
    this.rewritten.takeRecords(); // its own
  }

  // Puts a formula in front of the one that the page wrote: a copy of it with what KaTeX makes of this one inside.
  write(name, latex) {
    const place = document.querySelector(`[data-formula="${CSS.escape(name)}"]`);
    const shown = place?.closest('[class*="st-key-formula_"]').querySelector(".katex-display");
    if (!shown || typeof katex !== "function") return; // the page's run writes it
    const copy = shown.closest(".stMarkdown").cloneNode(true);
    copy.querySelector(".katex-display").replaceWith(...typeset(latex));
    place.replaceChildren(copy);
    this.written.add(place);
  }

  // Charts take another table where its rows have another `live` than those that they have (pages/figures/charts.py).
  draw(drawings, sums) {
    const live = (this.versions += 1);
    for (const [event, tables] of Object.entries(drawings)) {
      const known = (this.tables[event] ??= {});
      const other = Object.keys(tables).filter((name) => known[name]?.sum !== sums[event][name]);
      for (const name of other) {
        tables[name].forEach((row, place) => Object.assign(row, { row: place, live }));
        known[name] = { sum: sums[event][name], rows: tables[name] };
      }
      if (!other.length) continue;
      bring(event, { rows: Object.fromEntries(Object.entries(known).map(([name, { rows }]) => [name, rows])) });
      this.drawn.add(event);
    }
  }

  // Charts hold what came the short way until the page's run shows the same; where that shows something else after LEAD,
  // such as the last text that could be read, it is asked for.
  settle() {
    clearTimeout(this.returning);
    if (!this.shown) return;
    this.returning = setTimeout(() => {
      this.rewritten.disconnect();
      keepGradients();
      if (this.link() === this.shown) this.giveBack();
      else if (!Object.keys(this.changed).length) this.ask({}); // else the page's run follows
    }, LEAD);
  }

  giveBack() {
    for (const event of this.drawn) bring(event, null);
    this.drawn.clear();
    for (const place of this.written) place.replaceChildren();
    this.written.clear();
  }
}

// Whether what the page brings has the place of a verdict, a number or a line.
function bearsNames(node) {
  const places = "[data-verdict], [data-number], [data-lines]";
  return node.matches?.(places) || Boolean(node.querySelector?.(places));
}

// Hands rows to a chart: its signal `live` is bound to what lies on the page's body when it hears this event.
function bring(event, value) {
  document.body.value = value;
  document.body.dispatchEvent(new Event(event));
  delete document.body.value;
}

// Vega names a legend's gradient by the page's whole address, which changes with every choice: its bar would vanish.
function keepGradients() {
  for (const bar of document.querySelectorAll('.stVegaLiteChart [fill^="url("]')) {
    const named = bar.getAttribute("fill");
    const short = `url(${named.slice(named.indexOf("#"))}`;
    if (short !== named) bar.setAttribute("fill", short);
  }
}

// An element of [tag, attributes, ...children], or a text.
function built(node) {
  if (typeof node === "string") return document.createTextNode(node);
  const [tag, attributes, ...children] = node;
  const element = document.createElement(tag);
  for (const name of ["class", "style", "dir", "scope"]) {
    if (name in attributes) element.setAttribute(name, attributes[name]);
  }
  element.append(...children.map(built));
  return element;
}

// A formula as nodes, as Streamlit makes them.
function typeset(latex) {
  const properties = { className: ["math-display"] };
  const tree = { type: "root", children: [{ type: "element", tagName: "span", properties, children: [{ type: "text", value: latex }] }] };
  katex()(tree, { message() {} });
  return tree.children.map((child) => grown(child));
}

// A node of such a tree.
function grown({ tagName, properties, children, value }, space = document.body.namespaceURI) {
  if (!tagName) return document.createTextNode(value);
  const own = SPACES[tagName] ?? space;
  const element = document.createElementNS(own, tagName);
  for (const [name, set] of Object.entries(properties)) element.setAttribute(ATTRIBUTES[name] ?? name, [set].flat().join(" "));
  element.append(...children.map((child) => grown(child, own)));
  return element;
}

// Writes a verdict's numbers where the page wrote the last ones (pages/kit/verdict.py).
function rewrite(name, { names, shares, winner, note, loud }) {
  const place = document.querySelector(`[data-verdict="${CSS.escape(name)}"]`);
  if (!place) return;
  const [labels, parts, line] = ["name", "part", "note"].map((what) => [...place.querySelectorAll(`[data-${what}]`)]);
  if (labels.length !== names.length || line.length !== Number(note !== null)) return; // the page's run writes it anew
  let end = 0; // each part begins at the left and lies behind those before it
  names.forEach((text, i) => {
    labels[i].textContent = text;
    labels[i].parentElement.style.webkitTextStroke = i === winner ? "0.5px" : "0";
    parts[i].style.width = `${(100 * (end += shares[i])).toFixed(3)}%`;
  });
  if (note === null) return;
  line[0].textContent = note || "\u00a0"; // its place is kept
  Object.assign(line[0].style, loud ? { opacity: "1", fontWeight: "600" } : { opacity: "0.75", fontWeight: "400" });
}

export default function live({ data, parentElement }) {
  lasting(parentElement, () => new Follower()).receive(data);
  return () => release(parentElement);
}
