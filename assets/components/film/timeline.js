// The moments of one run or two on one line: the steps at which any of them has a frame, and the ways between a step and
// a place among them.
// Next: toolbar.js.

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

  // A step as a place between frames, and back.
  placeOf(step) {
    const k = this.frameOf(step);
    return k >= this.length - 1 ? k : k + Math.max(0, (step - this.steps[k]) / (this.steps[k + 1] - this.steps[k]));
  }

  stepAt(place) {
    const k = Math.floor(place);
    return this.step(k) + (place - k) * ((this.steps[k + 1] ?? this.step(k)) - this.step(k));
  }
}
