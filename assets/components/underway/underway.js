// The sign of the run under way, on every page: its name, step and time left, and that it has ended. It asks the server
// itself, only while the tab is visible and rarely while nothing runs, so that no page reruns for it. Where a connection
// broke, the page runs again: another process of the server may have taken over.

import { duration, el, fill, visible } from "../kit.js";

const BUSY = 3000; // ms between two requests while something runs
const IDLE = 20000;
const CONNECTED = "CONNECTED"; // as Streamlit says on the page

// Kept when the page changes: the own run that was seen under way, and the run whose end was dismissed.
const memory = { seen: null, dismissed: null };

class Underway {
  constructor(parent) {
    this.link = el("button", "uw-open", (this.sign = el("span", "uw-sign")), (this.name = el("bdi", "uw-name")), (this.how = el("span", "uw-how")), (this.left = el("span", "uw-how uw-left")));
    this.link.type = "button";
    this.link.addEventListener("click", () => this.open(this.run.id));
    this.close = el("button", "uw-close", "×");
    this.close.type = "button";
    this.close.addEventListener("click", () => {
      memory.dismissed = this.run.id;
      this.show(null);
    });
    this.bar = el("span", "uw-bar");
    this.root = el("div", "uw", this.link, this.close, this.bar);
    this.root.hidden = true;
    this.said = el("div", "uw-unseen");
    this.said.setAttribute("role", "status");
    parent.append(this.root, this.said);
    this.look = () => document.hidden || this.ask();
    document.addEventListener("visibilitychange", this.look);
    const app = document.querySelector("[data-testid=stApp]");
    const state = () => app?.dataset.testConnectionState;
    let before = state();
    this.connection = new MutationObserver(() => {
      if (before !== CONNECTED && state() === CONNECTED) this.runAgain();
      before = state();
    });
    if (app) this.connection.observe(app, { attributes: true, attributeFilter: ["data-test-connection-state"] });
  }

  remove() {
    this.connection.disconnect();
    clearTimeout(this.timer);
    this.gone = true;
    document.removeEventListener("visibilitychange", this.look);
    this.root.remove();
    this.said.remove();
  }

  // data: see pages/running_sign.py.
  receive(data, open, runAgain) {
    const before = this.data;
    Object.assign(this, { data, open, runAgain });
    this.close.setAttribute("aria-label", data.words.close);
    this.close.title = data.words.close;
    if (before?.own !== data.own || before?.shown !== data.shown) this.ask();
    else if (this.run) this.show(this.run);
  }

  async ask() {
    clearTimeout(this.timer);
    const turn = (this.turn = {});
    let wait = IDLE;
    try {
      const was = this.data.own ? `?was=${encodeURIComponent(this.data.own)}` : "";
      const reply = await fetch(`${this.data.base}runs/underway${was}`, { cache: "no-store" });
      const found = await reply.json();
      if (this.gone || turn !== this.turn) return;
      if (found.live.length) wait = BUSY;
      this.take(found);
    } catch {
      // the server cannot be reached; Streamlit says so
    }
    if (!this.gone && turn === this.turn && !document.hidden) this.timer = setTimeout(() => this.ask(), wait);
  }

  // The visitor's own run comes before others; its end is shown only if it was seen running.
  take({ live, ended }) {
    const own = live.find(({ id }) => id === this.data.own);
    if (own) memory.seen = own.id;
    const over = ended && ended.id === memory.seen && ended.id !== memory.dismissed ? ended : null;
    this.show(own ?? over ?? live[0] ?? null, live.length - 1);
  }

  show(run, others = 0) {
    const { words, shown } = this.data;
    if (run?.ended && run.id === shown) memory.dismissed = run.id; // its own page shows the end
    this.run = run;
    this.root.hidden = !run || run.id === shown;
    if (this.root.hidden) return;
    const { step, total, seconds_left: left } = run;
    const parts = [words.states[run.state] ?? run.state];
    if (!run.ended && total) parts[0] = fill(words.step, { step: step.toLocaleString("en"), total: total.toLocaleString("en") });
    if (!run.ended && run.state === "paused") parts.push(words.states.paused);
    if (others > 0) parts.push(`+${others}`);
    this.name.textContent = visible(run.name);
    this.how.textContent = parts.join(" · ");
    const counts = !run.ended && run.state === "running" && left !== null;
    this.left.textContent = counts ? `· ${fill(words.left, { time: duration(left, words) })}` : "";
    this.link.title = fill(words.open, { name: visible(run.name) });
    this.close.hidden = !run.ended;
    this.root.dataset.state = run.state;
    this.root.dataset.ended = Boolean(run.ended);
    this.bar.style.width = `${run.ended ? 100 : total ? (100 * step) / total : 0}%`;
    this.sign.textContent = run.ended ? (run.state === "finished" ? "✓" : "!") : "";
    if (run.ended) this.said.textContent = `${visible(run.name)}: ${parts[0]}`;
  }
}

const mounted = new WeakMap();

export default function underway({ data, parentElement, setTriggerValue }) {
  if (!mounted.has(parentElement)) mounted.set(parentElement, new Underway(parentElement));
  if (parentElement.host) parentElement.host.dataset.stands = ""; // as of kit.js
  const instance = mounted.get(parentElement);
  instance.receive(data, (run) => setTriggerValue("open", run), () => setTriggerValue("again", true));
  return () => {
    instance.remove();
    mounted.delete(parentElement);
  };
}
