// Two pictures of a run as elements: the map with its pointer, and the curves with theirs.
// Next: panel.js.

import { el } from "../matrix/readout.js";
import { chartsOf, layoutCharts, xOf } from "./curves.js";
import { placeTip } from "./heads.js";
import { ground, nearest, paintPoints, positions, projection, radiusOf, settle } from "./map.js";
import { CanvasPen } from "./pen.js";
import { paintCharts, paintReadings } from "./plot.js";
import { pointLines } from "./following.js";
import { paintHover, paintProbe, paintTrail, probePlace } from "./trail.js";

function sized(canvas, width, height, ratio) {
  const size = { width: Math.round(width * ratio), height: Math.round(height * ratio) };
  if (canvas.width !== size.width || canvas.height !== size.height) Object.assign(canvas, size);
  Object.assign(canvas.style, { width: `${width}px`, height: `${height}px` });
}

export class MapView {
  // choose: called with the point that was clicked, or null beside all points; wake: asks for a new picture.
  constructor(choose, wake) {
    Object.assign(this, { wake, hovered: null, stamps: new Map() });
    this.canvas = el("canvas", "vf-map-canvas");
    this.canvas.setAttribute("role", "img");
    this.tip = el("div", "vf-tip");
    this.tip.setAttribute("aria-hidden", "true");
    this.root = el("div", "vf-map", this.canvas, this.tip);
    this.canvas.addEventListener("pointermove", (event) => this.hover(event));
    this.canvas.addEventListener("pointerleave", () => this.hover(null));
    this.canvas.addEventListener("click", (event) => choose(this.under(event)));
  }

  lay(width, height, theme, ruler) {
    const ratio = window.devicePixelRatio || 1;
    if (theme !== this.theme || ratio !== this.ratio) this.stamps.clear();
    Object.assign(this, { width, height, theme, ruler, ratio });
    sized(this.canvas, width, height, ratio);
  }

  // Draws the map at a place between frames and says whether it has still to move.
  paint(reel, place, look, words) {
    Object.assign(this, { reel, look, words, place });
    const pen = new CanvasPen(this.canvas.getContext("2d", { alpha: false }), this.theme, this.ratio, this.stamps);
    this.box = settle(this.method === look.method ? this.box : null, reel.box(look.method));
    this.method = look.method;
    this.screen = this.draw(pen, this.width, this.height, this.box, this.screen);
    return !this.box.settled;
  }

  draw(pen, width, height, box, into) {
    const { reel, place, look } = this;
    pen.rect(0, 0, width, height, { fill: ground(pen.theme) });
    if (!reel.points || !reel.frames.length) {
      pen.text(this.words.waiting, width / 2, height / 2, { size: 15, anchor: "middle", fill: pen.theme.muted });
      return null;
    }
    const to = projection(box, width, height);
    const screen = positions(reel, look.method, place, to, into);
    if (!screen) return null;
    paintPoints(pen, reel, screen, place.index, radiusOf(reel.points.labels.length, width, height), look);
    const { followed, colours } = look;
    if (followed !== null) paintTrail(pen, reel, look.method, followed, place.index, screen, to, colours[reel.points.labels[followed]]);
    const probe = probePlace(reel, look.method, place, to);
    if (probe) paintProbe(pen, probe, reel.probe.text, this.ruler, width);
    if (this.hovered !== null) paintHover(pen, screen, this.hovered);
    return screen;
  }

  under(event) {
    const frame = this.canvas.getBoundingClientRect();
    return this.screen ? nearest(this.reel, this.screen, event.clientX - frame.left, event.clientY - frame.top, this.look) : null;
  }

  hover(event) {
    const point = event && this.under(event);
    this.canvas.style.cursor = point === null ? "default" : "pointer";
    this.tip.classList.toggle("vf-on", point !== null);
    if (point !== null) {
      this.tip.replaceChildren(...pointLines(this.reel, this.reel.frames[this.place.index], point, this.words, this.look.colours));
      placeTip(this.tip, this.root, event);
    }
    if (point !== this.hovered) this.wake();
    this.hovered = point;
  }
}

export class CurvesView {
  // seek: called with the step under a pressed pointer and whether it was let go; wake: asks for a new picture.
  constructor(seek, wake) {
    Object.assign(this, { wake, hovered: null, stamps: new Map() });
    this.canvas = el("canvas", "vf-curves-canvas");
    this.marks = el("canvas", "vf-curves-marks");
    this.canvas.setAttribute("role", "img");
    this.marks.setAttribute("aria-hidden", "true");
    this.cursor = el("div", "vf-cursor"); // moves at every picture; the marks are drawn again at every frame alone
    this.root = el("div", "vf-curves", this.canvas, this.marks, this.cursor);
    this.canvas.addEventListener("pointerdown", (event) => {
      this.canvas.setPointerCapture(event.pointerId);
      this.held = true;
      seek(this.stepUnder(event), false);
    });
    this.canvas.addEventListener("pointermove", (event) => {
      this.hovered = this.stepUnder(event);
      if (this.held) seek(this.hovered, false);
      wake();
    });
    this.canvas.addEventListener("pointerup", (event) => {
      this.held = false;
      seek(this.stepUnder(event), true);
    });
    this.canvas.addEventListener("pointerleave", () => {
      this.hovered = null;
      wake();
    });
  }

  stepUnder(event) {
    const box = this.scene?.boxes[0];
    if (!box) return 0;
    const share = (event.clientX - this.canvas.getBoundingClientRect().left - box.x) / box.w;
    return Math.max(0, Math.min(1, share)) * this.scene.steps;
  }

  // Draws the curves themselves; the cursor is drawn by paint.
  lay(reel, others, { width, height, theme, ruler, words }) {
    const ratio = window.devicePixelRatio || 1;
    if (theme !== this.theme || ratio !== this.ratio) this.stamps.clear();
    Object.assign(this, { theme, ratio });
    for (const canvas of [this.canvas, this.marks]) sized(canvas, width, height, ratio);
    const steps = Math.max(...[reel, ...others].map((one) => one.totalSteps));
    this.scene = { ...layoutCharts(chartsOf(reel, others, theme, words), width, height, steps, ratio), ruler, stepWord: words.step };
    const pen = new CanvasPen(this.canvas.getContext("2d"), theme, ratio, this.stamps);
    pen.rect(0, 0, width, height, { fill: theme.paper });
    paintCharts(pen, this.scene);
    const [first, last] = [this.scene.boxes[0], this.scene.boxes.at(-1)];
    Object.assign(this.cursor.style, { top: `${first.y - 2}px`, height: `${last.y + last.h - first.y + 2}px` });
    this.marked = null;
  }

  // The cursor at a step; the numbers are those of the frame at `reading`.
  paint(step, reading) {
    const { scene } = this;
    const box = scene?.boxes[0];
    if (!box) return;
    this.cursor.style.transform = `translateX(${(xOf(scene, box, step) - 1).toFixed(2)}px)`;
    const hover = this.held ? null : this.hovered;
    const key = `${reading} ${hover}`;
    if (key === this.marked) return;
    this.marked = key;
    const context = this.marks.getContext("2d");
    const pen = new CanvasPen(context, this.theme, this.ratio, this.stamps);
    context.clearRect(0, 0, scene.width, scene.height);
    paintReadings(pen, scene, reading, hover);
  }
}
