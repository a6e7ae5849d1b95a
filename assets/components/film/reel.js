// The data of one run (Reel), which only grows, and the requests that fetch it (Feed).
// The order of the bytes is defined in pages/film/figures/film.py.

import { contents } from "../matrix/unpack.js";

const LIVE = new Set(["queued", "starting", "running", "paused"]);
const CURVES = ["step", "loss", "learning_rate", "gradient_norm"];

// The header with all arrays read: each {at, shape, type} becomes a typed array with a shape.
function opened(bytes) {
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

// Exponential moving average of the losses; the weight of a loss falls to 1/e after `memory` steps.
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
    this.learned = learned; // description of the run's data
    this.role = role.toUpperCase(); // A or B of two runs
    this.run = { id, name, kind: "", labels: [], state: "", step: 0, total_steps: 0, message: "", queue_place: 0 };
    this.baselines = {};
    this.points = null;
    this.frames = [];
    this.steps = Object.fromEntries(CURVES.map((name_) => [name_, new Float32Array(0)]));
    this.smooth = new Float32Array(0);
    this.followedText = null;
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

  // Adds the answer of the server; returns whether anything is new.
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
    if (this.followedText?.text !== text) this.followedText = { text, frames: new Map(), last: -1, error: "" };
    this.version += 1;
  }

  addFollowed(text, bytes) {
    if (this.followedText?.text !== text) return;
    const { frames, ...header } = opened(bytes);
    Object.assign(this.followedText, header, { text, error: "" });
    for (const frame of frames) this.followedText.frames.set(frame.number, frame);
    this.followedText.last = Math.max(this.followedText.last, ...frames.map(({ number }) => number));
    this.version += 1;
  }

  // The place of a step among the frames: the frame at or before it, and the share of the way to the next.
  placeAt(step) {
    const last = this.frames.length - 1;
    let index = 0;
    while (index < last && this.frames[index + 1].step <= step) index += 1;
    if (index >= last) return { index: Math.max(0, last), share: 0 };
    const { step: from } = this.frames[index];
    return { index, share: Math.max(0, Math.min(1, (step - from) / (this.frames[index + 1].step - from))) };
  }

  moment(frame) {
    return this.followedText?.frames.get(frame?.number) ?? null;
  }

  // The layout of a frame, or of the nearest frame before it that has one.
  layout(index, method) {
    let k = Math.min(index, this.frames.length - 1);
    while (k > 0 && !this.frames[k].layouts[method]) k -= 1;
    return this.frames[k]?.layouts[method]?.xy ?? this.frames.find(({ layouts }) => layouts[method])?.layouts[method].xy ?? null;
  }

  // The bounding box of all frames of a layout.
  box(method) {
    const key = `${this.frames.length} ${this.followedText?.frames.size ?? 0}`;
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
    for (const { xy } of this.followedText?.frames.values() ?? []) if (xy?.[method]) hold(...xy[method]);
    if (!(box.right > box.left)) Object.assign(box, { left: -1, right: 1, low: -1, high: 1 });
    this.boxes.set(method, box);
    return box;
  }
}

const EVERY = 400; // ms between requests
const SLOWEST = 2000;
const HIDDEN = 4000;
const LOST = 5000;
const AFTERWARDS = 2; // further requests after the end, since the last frames may be written later

export class Feed {
  // address: the URL for a run's id, a part of it and query parameters; changed: called when anything is new.
  constructor(reel, address, changed) {
    Object.assign(this, { reel, address, changed, pause: EVERY, wanted: "", trouble: null, seen: false, again: AFTERWARDS });
    this.ending = new AbortController();
    this.woken = () => !document.hidden && this.wake();
    document.addEventListener("visibilitychange", this.woken, { signal: this.ending.signal });
    this.turn();
  }

  stop() {
    this.ending.abort();
    this.request?.abort();
    clearTimeout(this.timer);
  }

  // Requests at once, also for a run that had ended, since it may have been resumed.
  wake() {
    this.again = AFTERWARDS;
    this.pause = EVERY;
    if (!this.busy) this.turn();
  }

  follow(text) {
    this.wanted = text;
    this.reel.ask(text);
    this.request?.abort();
    this.request = null;
    this.fetchFollowed();
  }

  async bytes(part, query, signal) {
    const reply = await fetch(this.address(this.reel.id, part, query), { cache: "no-store", signal });
    if (reply.ok) return reply.arrayBuffer();
    const said = await reply.json().catch(() => ({}));
    throw Object.assign(new Error(said.error ?? reply.statusText), { status: reply.status, said: Boolean(said.error) });
  }

  async turn() {
    const { reel } = this;
    clearTimeout(this.timer);
    this.busy = true;
    try {
      const bytes = await this.bytes("", { after: reel.lastFrame, after_step: reel.lastStep }, this.ending.signal);
      const changed = reel.add(bytes) || this.trouble !== null || !this.seen;
      this.trouble = null;
      this.seen = true;
      this.pause = changed ? EVERY : Math.min(SLOWEST, this.pause * 1.4);
      if (changed) this.changed();
      this.fetchFollowed();
    } catch (error) {
      if (this.ending.signal.aborted) return;
      const lost = error.status === undefined;
      this.trouble = { kind: lost ? "lost" : error.status === 404 ? "gone" : "refused", message: lost ? "" : error.message };
      this.pause = Math.min(LOST, Math.max(1000, this.pause * 1.5));
      this.changed();
    } finally {
      this.busy = false;
    }
    if (this.trouble?.kind === "gone") return;
    if (!reel.live && this.trouble === null && (this.again -= 1) < 0) return;
    const pause = reel.live ? this.pause : Math.max(this.pause, 1000);
    this.timer = setTimeout(() => this.turn(), document.hidden ? Math.max(pause, HIDDEN) : pause);
  }

  // Requests the followed text in the models of all new frames.
  async fetchFollowed() {
    const { reel, wanted } = this;
    if (this.request || !wanted.trim() || !reel.frames.length || reel.followedText.last >= reel.lastFrame) return;
    if (reel.followedText.refused === reel.lastFrame) return;
    const request = (this.request = new AbortController());
    const asked = reel.lastFrame;
    try {
      reel.addFollowed(wanted, await this.bytes("/followed_text", { text: wanted, after: reel.followedText.last }, request.signal));
      if (reel.followedText.last < asked) reel.followedText.refused = asked; // that frame has no model
    } catch (error) {
      if (request.signal.aborted) return;
      if (error.said) reel.followedText.refused = asked;
      reel.followedText.error = error.said ? error.message : "";
      reel.version += 1;
    }
    if (this.request === request) this.request = null;
    this.changed();
    if (!reel.followedText.error && reel.followedText.last >= 0) this.fetchFollowed();
  }
}
