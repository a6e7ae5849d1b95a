// Where the film stands: a place between frames that plays, glides to where it is asked, and follows what is live.
// It knows nothing of runs; its frames are numbered 0, 1, 2, ...
// Next: axes.js.

import { clamp } from "../matrix/geometry.js";

export const SPEEDS = [0.5, 1, 2, 4];
const FRAMES_A_SECOND = 2.5;
const GLIDE = 340; // ms
const REST_AT_END = 900; // ms before a loop begins anew

const gentle = (share) => 1 - (1 - share) ** 3;

export class Clock {
  constructor() {
    Object.assign(this, { speed: 1, loop: false });
    this.rewind();
    this.calm = matchMedia("(prefers-reduced-motion: reduce)");
  }

  // Another film: nothing of it is known yet.
  rewind() {
    Object.assign(this, { at: 0, frame: 0, count: 0, playing: false, following: true, glide: null, rested: 0 });
  }

  get last() {
    return Math.max(0, this.count - 1);
  }

  // More frames have come. The first ones are shown at once, later ones are glided to.
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

  // A hand moves the film: `at` may lie between frames.
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

  // Moves to now and says whether the film still moves.
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
