// The scrubber and its buttons: one slider for everything that moves, a mark at every frame, at the step where it was taken.
// Next: views.js.

import { fill } from "../matrix/unpack.js";
import { clamp } from "../matrix/geometry.js";
import { el } from "../matrix/readout.js";
import { SPEEDS } from "./clock.js";

const SVG_NAMESPACE = "http://www.w3.org/2000/svg";
const ICONS = {
  play: "M7 4.5v15l12.5-7.5z",
  pause: "M6.5 5h4v14h-4zM13.5 5h4v14h-4z",
  previous: "M15.5 5v14l-9-7z",
  next: "M8.5 5v14l9-7z",
  loop: "M7 7h9.5v-3l5 4.5-5 4.5v-3H9.5v2.500H7zM17 17H7.500v3l-5-4.500 5-4.500v3h7v-2.500H17z",
};

function icon(name) {
  const svg = document.createElementNS(SVG_NAMESPACE, "svg");
  const path = document.createElementNS(SVG_NAMESPACE, "path");
  for (const [key, value] of Object.entries({ viewBox: "0 0 24 24", width: 20, height: 20, "aria-hidden": "true" })) svg.setAttribute(key, value);
  path.setAttribute("d", ICONS[name]);
  svg.append(path);
  return svg;
}

export class Transport {
  // act: what its buttons do, by name; drag: called with a place between frames and whether the hand has let go.
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

  // Between which frames a share of the whole run lies.
  placeOf(share) {
    const { steps, total } = this;
    const step = share * total;
    let k = 0;
    while (k < steps.length - 1 && steps[k + 1] <= step) k += 1;
    if (k >= steps.length - 1) return Math.max(0, steps.length - 1);
    return k + clamp((step - steps[k]) / (steps[k + 1] - steps[k]), 0, 1);
  }

  // steps: where the frames are; total: of the whole run; reached: how far training is.
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

  // Shows where the clock stands; `step` and `epoch` are those of the frame.
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
