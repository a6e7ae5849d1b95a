// What a person operates the film with: the scrubber and its buttons, the choices for all maps, and keys.

import { el, fill } from "../kit.js";
import { clamp } from "../matrix/geometry.js";
import { svgNode } from "../picture.js";
import { SPEEDS } from "./clock.js";
import { frameTable } from "./record.js";

const ICONS = {
  play: "M7 4.5v15l12.5-7.5z",
  pause: "M6.5 5h4v14h-4zM13.5 5h4v14h-4z",
  previous: "M15.5 5v14l-9-7z",
  next: "M8.5 5v14l9-7z",
  loop: "M7 7h9.5v-3l5 4.5-5 4.5v-3H9.5v2.500H7zM17 17H7.500v3l-5-4.500 5-4.500v3h7v-2.500H17z",
};

const icon = (name) =>
  svgNode("svg", { viewBox: "0 0 24 24", width: 20, height: 20, "aria-hidden": "true" }, svgNode("path", { d: ICONS[name] }));

export class Transport {
  // act: callbacks of the buttons by name; drag: called with a place between frames and whether the pointer was released.
  constructor(act, drag) {
    const button = (name, ...children) => {
      const node = el("button", `vf-button vf-${name}`, ...children);
      node.type = "button";
      node.addEventListener("click", () => act[name]());
      return node;
    };
    this.icons = { play: icon("play"), pause: icon("pause") };
    this.buttons = {
      previous: button("previous", icon("previous")),
      play: button("play", this.icons.play),
      next: button("next", icon("next")),
      loop: button("loop", icon("loop")),
      live: button("live", el("span", "vf-live-dot"), el("span")),
    };
    this.speed = el("select", "vf-speed", ...SPEEDS.map((speed) => el("option", "", `${String(speed).replace("0.5", "½")}×`)));
    this.speed.selectedIndex = SPEEDS.indexOf(1);
    this.speed.addEventListener("change", () => act.speed(SPEEDS[this.speed.selectedIndex]));
    this.filled = el("div", "vf-filled");
    this.ticks = el("div", "vf-ticks");
    this.thumb = el("div", "vf-thumb");
    this.slider = el("div", "vf-slider", el("div", "vf-groove", this.filled), this.ticks, this.thumb);
    this.slider.tabIndex = 0;
    this.slider.setAttribute("role", "slider");
    this.place = el("div", "vf-place");
    const { previous, play, next, loop, live } = this.buttons;
    this.root = el("div", "vf-transport", el("div", "vf-buttons", previous, play, next), this.slider, this.place, el("div", "vf-buttons", this.speed, loop, live));
    this.hold(drag);
  }

  hold(drag) {
    const to = (event, done) => {
      const { left, width } = this.slider.getBoundingClientRect();
      drag(this.placeOf(clamp((event.clientX - left) / width, 0, 1)), done);
    };
    this.slider.addEventListener("pointerdown", (event) => {
      if (event.button) return;
      this.slider.setPointerCapture(event.pointerId);
      this.held = true;
      this.slider.focus({ preventScroll: true });
      event.preventDefault();
      to(event, false);
    });
    this.slider.addEventListener("pointermove", (event) => this.held && to(event, false));
    for (const type of ["pointerup", "pointercancel"]) {
      this.slider.addEventListener(type, (event) => {
        if (!this.held) return;
        this.held = false;
        to(event, true);
      });
    }
  }

  // The place between frames of a share of the whole run.
  placeOf(share) {
    const { steps, total } = this;
    const step = share * total;
    let k = 0;
    while (k < steps.length - 1 && steps[k + 1] <= step) k += 1;
    if (k >= steps.length - 1) return Math.max(0, steps.length - 1);
    return k + clamp((step - steps[k]) / (steps[k + 1] - steps[k]), 0, 1);
  }

  // steps: of the frames; total: of the whole run; reached: the newest step of training.
  lay(steps, total, reached, words) {
    const key = `${steps.join()} ${total}`;
    Object.assign(this, { steps, total });
    this.filled.style.width = `${(100 * reached) / total}%`;
    if (key !== this.key) {
      this.key = key;
      this.ticks.replaceChildren(...steps.map((step) => {
        const tick = el("i");
        tick.style.left = `${(100 * step) / total}%`;
        return tick;
      }));
    }
    for (const name of ["previous", "next", "loop"]) this.name(name, words[name]);
    this.speed.setAttribute("aria-label", words.speed);
    this.speed.title = words.speed;
    this.slider.setAttribute("aria-label", words.scrubber);
    this.slider.title = words.keys;
    this.buttons.live.lastChild.textContent = words.live;
  }

  name(name, word) {
    this.buttons[name].title = word;
    this.buttons[name].setAttribute("aria-label", word);
  }

  // Shows the clock's place; `step` and `epoch` are those of the frame.
  // frame, last: of the first run, counted from 0; other: the second run's frame.
  show(clock, { step, at, epoch, live, frame, last, other }, words) {
    const { play, loop, live: follow, previous, next } = this.buttons;
    this.thumb.style.left = `${(100 * at) / this.total}%`;
    this.thumb.classList.toggle("vf-following", live && clock.following);
    const place = other === undefined ? words.place : words.place_two;
    const text = clock.count ? fill(place, { frame, last, other, step, epoch }) : words.no_frames;
    if (this.place.textContent !== text) {
      this.place.textContent = text;
      this.slider.setAttribute("aria-valuetext", text);
      this.slider.setAttribute("aria-valuemin", "0");
      this.slider.setAttribute("aria-valuemax", String(clock.last));
      this.slider.setAttribute("aria-valuenow", String(clock.frame));
    }
    const sign = clock.playing ? "pause" : "play";
    if (play.firstChild !== this.icons[sign]) play.replaceChildren(this.icons[sign]);
    this.name("play", words[sign]);
    previous.disabled = clock.frame <= 0;
    next.disabled = clock.frame >= clock.last;
    loop.setAttribute("aria-pressed", String(clock.loop));
    follow.hidden = !live;
    follow.title = clock.following ? words.live_on : words.live_follow;
    follow.setAttribute("aria-pressed", String(clock.following));
  }
}

export class Toolbar {
  // look: the choices, changed in place; changed: called after a choice.
  constructor(look, changed) {
    const tool = (name, action) => {
      const node = el("button", `vf-switch vf-${name}`);
      node.type = "button";
      node.addEventListener("click", () => {
        action();
        changed();
      });
      return node;
    };
    this.methods = Object.fromEntries(["tsne", "pca"].map((name) => [name, tool(name, () => (look.method = name))]));
    this.mistakes = tool("mistakes", () => (look.mistakes = !look.mistakes));
    this.opener = tool("table-tool", () => this.table.classList.toggle("vf-unseen"));
    this.group = el("span", "vf-group", ...Object.values(this.methods));
    this.group.setAttribute("role", "group");
    this.root = el("span", "vf-tools", this.group, this.mistakes, this.opener);
    this.table = el("div", "vf-table vf-unseen");
  }

  lay(reels, look, words, pointed) {
    for (const [name, node] of Object.entries(this.methods)) {
      node.textContent = words[`method_${name}`];
      node.title = words[`method_${name}_title`];
      node.setAttribute("aria-pressed", String(look.method === name));
    }
    this.mistakes.textContent = words.mistakes;
    this.mistakes.title = words.mistakes_title;
    this.mistakes.setAttribute("aria-pressed", String(look.mistakes));
    this.group.setAttribute("aria-label", words.method);
    for (const node of [this.group, this.mistakes]) node.hidden = !pointed;
    const shown = !this.table.classList.contains("vf-unseen");
    this.opener.textContent = words[shown ? "table_hide" : "table_show"];
    this.opener.setAttribute("aria-expanded", String(shown));
    const key = reels.map(({ id, frames }) => `${id} ${frames.length}`).join();
    if (key === this.key) return;
    this.key = key;
    this.table.replaceChildren(...reels.map((reel) => frameTable(reel, words)));
  }
}

const FREE = new Set(["SELECT", "INPUT", "TEXTAREA"]);

// Connects keys, wherever in the film the focus is. act: play, to (a frame), loop, letGo, head (before or after).
export function typing(root, clock, act) {
  const moves = {
    ArrowLeft: () => act.to(clock.frame - 1),
    ArrowRight: () => act.to(clock.frame + 1),
    PageUp: () => act.to(clock.frame - 5),
    PageDown: () => act.to(clock.frame + 5),
    Home: () => act.to(0),
    End: () => act.to(clock.last),
    " ": () => act.play(),
    k: () => act.play(),
    l: () => act.loop(),
    Escape: () => act.letGo(),
    "[": () => act.head(-1),
    "]": () => act.head(1),
  };
  root.addEventListener("keydown", (event) => {
    const { target } = event;
    if (event.altKey || event.ctrlKey || event.metaKey || FREE.has(target.tagName)) return;
    if (event.key === " " && target.tagName === "BUTTON") return; // presses the button
    if (!moves[event.key]) return;
    moves[event.key]();
    event.preventDefault();
    event.stopPropagation();
  });
}
