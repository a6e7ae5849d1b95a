// Live figures: asks the server for the pictures of what is typed, chosen or painted, before the page has run.
// pages/ui/live.py. One request is on its way at a time; of those that wait, the newest goes. What comes back is given
// to whom it belongs by name: matrices listen for it, and verdicts on the page are rewritten in place.

import { lasting, release } from "../kit.js";

const ASK = "vitrine:ask";
const PICTURE = "vitrine:picture";
const placeOf = (name, page) => `.st-key-${`${name}@${page}`.replace(/[^\w-]/g, "-")}`;

class Follower {
  constructor() {
    this.ending = new AbortController();
    this.changed = {};
    const on = (target, type, act) => target.addEventListener(type, act, { capture: true, signal: this.ending.signal });
    on(document, "input", (event) => this.onInput(event));
    on(document, "click", (event) => this.onClick(event));
    on(window, ASK, ({ detail }) => this.ask(detail));
    window.vitrineLive = true;
  }

  remove() {
    this.ending.abort();
    window.vitrineLive = false;
  }

  receive(data) {
    this.data = data;
    this.changed = {}; // the page has run with them
  }

  onInput({ target }) {
    const name = this.data.boxes.find((box) => target.closest?.(placeOf(box, this.data.page)));
    if (name) this.ask({ [name]: target.value });
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
    while (this.waits && !this.ending.signal.aborted) {
      this.waits = false;
      const said = new URLSearchParams(location.search);
      for (const [name, value] of Object.entries({ ...this.data.said, ...this.changed })) said.set(name, value);
      try {
        const answer = await fetch(`${this.data.route}?${said}`, { signal: this.ending.signal, cache: "no-store" });
        if (answer.status === 200) this.give(await answer.arrayBuffer());
      } catch {
        // The page's own run brings the picture.
      }
    }
    this.flies = false;
  }

  give(buffer) {
    const length = new DataView(buffer).getUint32(0, true);
    const header = JSON.parse(new TextDecoder().decode(new Uint8Array(buffer, 4, length)));
    let at = Math.ceil((4 + length) / 8) * 8;
    for (const [key, size] of header.pictures) {
      const bytes = new Uint8Array(buffer, at, size);
      window.dispatchEvent(new CustomEvent(PICTURE, { detail: { key, bytes } }));
      at += size;
    }
    for (const [name, verdict] of Object.entries(header.verdicts)) rewrite(name, verdict);
    for (const [name, { label, value }] of Object.entries(header.numbers)) {
      const place = document.querySelector(`[data-number="${CSS.escape(name)}"]`);
      if (!place) continue;
      place.querySelector("[data-label]").textContent = label;
      place.querySelector("[data-value]").textContent = value;
    }
  }
}

// Writes a verdict's numbers where the page wrote the last ones (pages/ui/verdict.py).
function rewrite(name, { names, shares, winner, note }) {
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
  if (note !== null) line[0].textContent = note || "\u00a0"; // its place is kept
}

export default function live({ data, parentElement }) {
  lasting(parentElement, () => new Follower()).receive(data);
  return () => release(parentElement);
}
