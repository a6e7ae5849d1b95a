// Time in the film: the clock, which plays and moves to a frame, and the timeline, which places frames of one or two runs by step.

import { clamp } from "../matrix/geometry.js";

export const SPEEDS = [0.5, 1, 2, 4];
const FRAMES_A_SECOND = 2.5;
const GLIDE = 340; // ms
const REST_AT_END = 900; // ms before a loop starts again

const gentle = (share) => 1 - (1 - share) ** 3;

export class Clock {
  constructor() {
    Object.assign(this, { speed: 1, loop: false });
    this.rewind();
    this.calm = matchMedia("(prefers-reduced-motion: reduce)");
  }

  // Resets to the state without frames, for another run.
  rewind() {
    Object.assign(this, { at: 0, frame: 0, count: 0, playing: false, following: true, glide: null, rested: 0 });
  }

  get last() {
    return Math.max(0, this.count - 1);
  }

  // Takes the new number of frames. The first frames are shown at once, the clock moves to later ones.
  grow(count) {
    const first = this.count === 0;
    this.count = count;
    if (!this.following || this.playing) return;
    if (first) this.stand(this.last);
    else this.seek(this.last);
  }

  stand(frame) {
    this.glide = null;
    this.frame = clamp(frame, 0, this.last);
    this.at = this.frame;
  }

  seek(frame) {
    this.frame = clamp(frame, 0, this.last);
    this.following = this.frame === this.last;
    this.playing = false;
    if (this.calm.matches) this.stand(this.frame);
    else this.glide = { from: this.at, begun: null };
  }

  // Moves to a place under the pointer; `at` may lie between frames.
  drag(at) {
    this.playing = false;
    this.glide = null;
    this.at = clamp(at, 0, this.last);
    this.frame = Math.round(this.at);
    this.following = false;
  }

  toggle() {
    this.playing = !this.playing && this.count > 1;
    this.following = false;
    this.glide = null;
    this.rested = 0;
    if (this.playing && this.at >= this.last) this.stand(0);
    if (!this.playing) this.seek(Math.round(this.at));
  }

  // Advances to the time `now`; returns whether the film still moves.
  tick(now) {
    const passed = Math.min(100, now - (this.ticked ?? now));
    this.ticked = now;
    if (this.playing) this.play(passed);
    else if (this.glide) {
      this.glide.begun ??= now;
      const share = Math.min(1, (now - this.glide.begun) / GLIDE);
      this.at = this.glide.from + (this.frame - this.glide.from) * gentle(share);
      if (share === 1) this.stand(this.frame);
    }
    const moving = this.playing || this.glide !== null;
    if (!moving) this.ticked = undefined;
    return moving;
  }

  play(passed) {
    if (this.at < this.last) {
      this.at = Math.min(this.last, this.at + (passed / 1000) * FRAMES_A_SECOND * this.speed);
      this.frame = Math.floor(this.at + 1e-6);
      this.rested = 0;
      return;
    }
    this.rested += passed;
    if (this.loop && this.rested >= REST_AT_END) this.stand(0);
    if (this.loop) return;
    this.playing = false;
    this.following = true;
  }
}

export class Timeline {
  constructor() {
    this.steps = [];
  }

  gather(reels) {
    this.steps = [...new Set(reels.flatMap(({ frames }) => frames.map(({ step }) => step)))].sort((a, b) => a - b);
  }

  get length() {
    return this.steps.length;
  }

  step(frame) {
    return this.steps[frame] ?? 0;
  }

  // The last frame at or before a step.
  frameOf(step) {
    return Math.max(0, this.steps.findLastIndex((one) => one <= step));
  }

  // The place of a step between frames; stepAt is the inverse.
  placeOf(step) {
    const k = this.frameOf(step);
    return k >= this.length - 1 ? k : k + Math.max(0, (step - this.steps[k]) / (this.steps[k + 1] - this.steps[k]));
  }

  stepAt(place) {
    const k = Math.floor(place);
    return this.step(k) + (place - k) * ((this.steps[k + 1] ?? this.step(k)) - this.step(k));
  }
}
