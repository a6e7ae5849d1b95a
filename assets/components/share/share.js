// A button that copies the link of the screen from the address bar; the page does not rerun. Beside it stands what the
// link cannot hold.

import { el, fill, lasting, QUIET } from "../kit.js";

const LEFT_OUT = "without"; // as in pages/kit/url.py
const SECONDS_SAID = 8;
const MS_TO_BEGIN = 30_000; // until then a run has begun, or none comes

const labelOf = (name) => document.querySelector(`[class*="st-key-${CSS.escape(name)}-"] label`)?.innerText ?? name;

// What is on the page but not in its link, as sentences.
function missing(words) {
  const names = new URLSearchParams(location.search).get(LEFT_OUT)?.split(".");
  const said = [];
  if (names) said.push(fill(words.long, { names: names.map(labelOf).join(", ") }));
  if (document.querySelector("[data-testid=stFileUploaderFile], [class*=st-key-kept_file]")) said.push(words.file);
  if (["localhost", "127.0.0.1", "[::1]"].includes(location.hostname)) said.push(words.here);
  return said;
}

// Resolves when the page has next run to its end, however long that takes; or where no run begins.
const nextRun = () =>
  new Promise((resolve) => {
    const look = () => document.querySelector(QUIET) && resolve(watcher.disconnect());
    const watcher = new MutationObserver(look);
    watcher.observe(document.body, { subtree: true, attributeFilter: ["data-test-script-state"] });
    setTimeout(look, MS_TO_BEGIN);
  });

class Share {
  constructor(parent) {
    this.button = el("button");
    this.button.type = "button";
    this.note = el("div");
    this.note.setAttribute("role", "status");
    this.root = el("div", "share", this.button, this.note);
    this.button.addEventListener("click", () => this.copy());
    this.followAreas();
    this.root.addEventListener("keydown", ({ key }) => key === "Escape" && this.hush());
    parent.append(this.root);
  }

  say(words) {
    this.words = words;
    this.button.textContent = words.button;
    this.button.title = words.title;
  }

  // A text area tells the page what was typed when it is left, or at Ctrl+Enter: the link waits for the run that follows.
  followAreas() {
    let told;
    const begin = ({ target }) => target.matches?.("textarea") && (told = target.value);
    document.addEventListener("focusin", begin);
    document.addEventListener("keydown", (event) => event.key === "Enter" && (event.ctrlKey || event.metaKey) && begin(event));
    document.addEventListener("focusout", ({ target }) => {
      if (target.matches?.("textarea") && target.value !== told) this.run = nextRun();
    });
  }

  async copy() {
    await this.run;
    const link = location.href;
    const lines = missing(this.words).map((line) => el("p", "", line));
    try {
      await navigator.clipboard.writeText(link); // not available over http from another machine
      this.note.replaceChildren(el("p", "", this.words.copied), ...lines);
      clearTimeout(this.later);
      this.later = setTimeout(() => this.hush(), 1000 * SECONDS_SAID);
    } catch {
      this.offer(link, lines);
    }
  }

  // Shows the link as selected text, which stays until it is dismissed, and copies it by execCommand where that works.
  offer(link, lines) {
    clearTimeout(this.later);
    const input = Object.assign(el("input"), { readOnly: true, value: link });
    input.setAttribute("aria-label", this.words.title);
    this.note.replaceChildren(input, ...lines);
    input.select();
    const copied = document.execCommand("copy");
    input.after(el("p", "", copied ? this.words.copied : this.words.by_hand));
  }

  hush() {
    clearTimeout(this.later);
    this.note.replaceChildren();
  }
}

export default function share({ data, parentElement }) {
  lasting(parentElement, (place) => new Share(place)).say(data);
}
