// One run as far as it has come: what it is, its points, its curves and its frames. It only ever grows.
// The order of the bytes is defined in pages/figures/film.py.
// Next: feed.js.

import { contents } from "../matrix/unpack.js";

export const LIVE = new Set(["queued", "starting", "running", "paused"]);
const CURVES = ["step", "loss", "learning_rate", "gradient_norm"];

// The header with every place in it read: {at, shape, type} becomes an array that knows its shape.
export function opened(bytes) {
  const { header, array } = contents(bytes);
  const read = (node) => {
    if (Array.isArray(node)) return node.map(read);
    if (node === null || typeof node !== "object") return node;
    if ("at" in node && "shape" in node) return Object.assign(array(node), { shape: node.shape });
    return Object.fromEntries(Object.entries(node).map(([name, value]) => [name, read(value)]));
  };
  return read(header);
}

function longer(before, more) {
  const whole = new Float32Array(before.length + more.length);
  whole.set(before);
  whole.set(more, before.length);
  return whole;
}

// The mean of the losses so far, each forgotten as training goes on: by 1/e after a fiftieth of the run.
function smoothed(before, { step, loss }, memory) {
  const whole = longer(before, new Float32Array(loss.length - before.length));
  let mean = before.length ? before[before.length - 1] : NaN;
  for (let i = before.length; i < loss.length; i += 1) {
    const share = 1 - Math.exp(-(i ? step[i] - step[i - 1] : 1) / memory);
    if (Number.isFinite(loss[i])) mean = Number.isFinite(mean) ? mean + share * (loss[i] - mean) : loss[i];
    whole[i] = mean;
  }
  return whole;
}

export class Reel {
  constructor({ id, name, learned = "", role = "" }) {
    this.id = id;
    this.learned = learned; // what the run learns from, in words
    this.role = role.toUpperCase(); // A or B of two runs
    this.run = { id, name, kind: "", labels: [], state: "", step: 0, total_steps: 0, message: "", queue_place: 0 };
    this.baselines = {};
    this.points = null;
    this.frames = [];
    this.steps = Object.fromEntries(CURVES.map((name_) => [name_, new Float32Array(0)]));
    this.smooth = new Float32Array(0);
    this.probe = null;
    this.boxes = new Map();
    this.version = 0;
  }

  get live() {
    return !this.run.state || this.run.alive || LIVE.has(this.run.state);
  }

  get lastFrame() {
    return this.frames.at(-1)?.number ?? -1;
  }

  get lastStep() {
    return this.steps.step.at(-1) ?? 0;
  }

  get totalSteps() {
    return Math.max(this.run.total_steps || 0, this.lastStep, this.frames.at(-1)?.step ?? 0, 1);
  }

  // Takes what has come and says whether anything is new.
  add(bytes) {
    const { run, baselines, points, steps, frames } = opened(bytes);
    const before = JSON.stringify([this.run, this.lastFrame, this.lastStep]);
    Object.assign(this, { run, baselines });
    if (points) this.points = points;
    const from = steps.step.findIndex((step) => step > this.lastStep);
    if (from >= 0) for (const name of CURVES) this.steps[name] = longer(this.steps[name], steps[name].subarray(from));
    this.smooth = smoothed(this.smooth, this.steps, Math.max(2, this.totalSteps / 50));
    this.frames.push(...frames.filter(({ number }) => number > this.lastFrame));
    const changed = JSON.stringify([this.run, this.lastFrame, this.lastStep]) !== before;
    if (changed) this.version += 1;
    return changed;
  }

  ask(text) {
    if (this.probe?.text !== text) this.probe = { text, frames: new Map(), last: -1, error: "" };
    this.version += 1;
  }

  addProbe(text, bytes) {
    if (this.probe?.text !== text) return;
    const { frames, ...header } = opened(bytes);
    Object.assign(this.probe, header, { text, error: "" });
    for (const frame of frames) this.probe.frames.set(frame.number, frame);
    this.probe.last = Math.max(this.probe.last, ...frames.map(({ number }) => number));
    this.version += 1;
  }

  // Where a step lies among the frames: the frame at or before it, and how far it is on the way to the next.
  placeAt(step) {
    const last = this.frames.length - 1;
    let index = 0;
    while (index < last && this.frames[index + 1].step <= step) index += 1;
    if (index >= last) return { index: Math.max(0, last), share: 0 };
    const { step: from } = this.frames[index];
    return { index, share: Math.max(0, Math.min(1, (step - from) / (this.frames[index + 1].step - from))) };
  }

  moment(frame) {
    return this.probe?.frames.get(frame?.number) ?? null;
  }

  // The layout of a frame, or where it has none of the frame before: a picture that cannot be drawn leaves no hole.
  layout(index, method) {
    let k = Math.min(index, this.frames.length - 1);
    while (k > 0 && !this.frames[k].layouts[method]) k -= 1;
    return this.frames[k]?.layouts[method]?.xy ?? this.frames.find(({ layouts }) => layouts[method])?.layouts[method].xy ?? null;
  }

  // The box that holds every frame of a layout, so that what moves on the screen moves in the layout.
  box(method) {
    const key = `${this.frames.length} ${this.probe?.frames.size ?? 0}`;
    const known = this.boxes.get(method);
    if (known?.key === key) return known;
    const box = { key, left: Infinity, right: -Infinity, low: Infinity, high: -Infinity };
    const hold = (x, y) => {
      if (!Number.isFinite(x + y)) return;
      Object.assign(box, { left: Math.min(box.left, x), right: Math.max(box.right, x), low: Math.min(box.low, y), high: Math.max(box.high, y) });
    };
    for (const { layouts } of this.frames) {
      const xy = layouts[method]?.xy ?? [];
      for (let i = 0; i < xy.length; i += 2) hold(xy[i], xy[i + 1]);
    }
    for (const { xy } of this.probe?.frames.values() ?? []) if (xy?.[method]) hold(...xy[method]);
    if (!(box.right > box.left)) Object.assign(box, { left: -1, right: 1, low: -1, high: 1 });
    this.boxes.set(method, box);
    return box;
  }
}
