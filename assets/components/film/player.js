// The time machine: one run or two, moved by one scrubber, live while they train. This class joins the other modules.
// Next: film.js.

import { el } from "../matrix/readout.js";
import { decimal } from "./axes.js";
import { Clock } from "./clock.js";
import { Panel } from "./panel.js";
import { Reel } from "./reel.js";
import { savePicture, videoOf } from "./record.js";
import { Screen } from "./screen.js";
import { Teller } from "./teller.js";
import { differences } from "./telling.js";
import { Timeline } from "./timeline.js";
import { Toolbar } from "./toolbar.js";
import { Transport } from "./transport.js";
import { typing } from "./typing.js";

export class Player {
  // feeding: from a reel and what to call on news to a feed, or null where all bytes are there.
  constructor(parent, feeding) {
    Object.assign(this, { feeding, panels: [], clock: new Clock(), timeline: new Timeline(), wanted: null });
    this.teller = new Teller(() => this.standing(), (view, news) => this.rested(view, news));
    this.look = { method: "tsne", mistakes: false, train: true, held_out: true, focus: null, colours: [] };
    this.screen = new Screen(parent, (now, stale) => this.draw(now, stale));
    this.build();
  }

  build() {
    const { clock } = this;
    const act = {
      play: () => this.move(() => clock.toggle()),
      previous: () => this.to(clock.frame - 1),
      next: () => this.to(clock.frame + 1),
      loop: () => this.move(() => (clock.loop = !clock.loop)),
      live: () => this.to(clock.last),
      speed: (speed) => this.move(() => (clock.speed = speed)),
      letGo: () => this.follow(null, null),
      to: (frame) => this.to(frame),
      head: (by) => this.panels.forEach((panel) => panel.turn(by)),
    };
    this.toolbar = new Toolbar(this.look, () => this.wake(true));
    this.above = el("div", "vf-above");
    this.stage = el("div", "vf-stage");
    this.differing = el("div", "vf-differences");
    this.transport = new Transport(act, (place, done) => this.drag(place, done));
    this.below = el("div", "vf-below");
    this.live = el("div", "vf-unseen");
    this.live.setAttribute("aria-live", "polite");
    const { root } = this.screen;
    root.append(this.above, this.stage, this.transport.root, this.differing, this.below, this.toolbar.table, this.live);
    typing(root, clock, act);
  }

  remove() {
    this.teller.stop();
    this.screen.remove();
    for (const { feed } of this.panels) feed?.stop();
  }

  // data: see pages/figures/film_page.py; send: {view, ask}, which tell the page, or null where there is none.
  receive(data, send) {
    const before = this.data;
    Object.assign(this, { data, send, words: data.words });
    const other = this.adopt(data.runs);
    const asked = (name) => other || (data[name] !== before[name] && !this.teller.echoes(name, data[name]));
    if (asked("method")) this.look.method = data.method;
    if (asked("frame") || asked("step")) this.start(data.frame ?? null, data.step ?? null);
    this.teller.begin({ frame: data.frame ?? null, step: data.step ?? null, method: this.look.method });
    for (const { feed, reel } of this.panels) {
      if (feed && (reel.probe?.text ?? "") !== data.probe) feed.follow(data.probe);
      if (feed && before && !reel.live) feed.wake();
    }
    this.wake(true);
  }

  // Keeps what is known of runs that stay, and opens new ones; says whether the first one is another.
  adopt(runs) {
    const ids = runs.map(({ id }) => id).join();
    if (ids === this.ids) return false;
    this.ids = ids;
    const kept = this.panels;
    const other = kept[0]?.reel.id !== runs[0].id;
    if (other) this.clock.rewind();
    this.panels = runs.map((run) => kept.find(({ reel }) => reel.id === run.id) ?? this.open(run));
    for (const panel of kept) if (!this.panels.includes(panel)) panel.feed?.stop();
    this.stage.replaceChildren(...this.panels.map(({ top }) => top));
    this.below.replaceChildren(...this.panels.map(({ bottom }) => bottom));
    this.news();
    return other;
  }

  open(run) {
    const panel = new Panel(new Reel(run), {
      asks: this.send !== null,
      follow: (where, point) => this.follow(where, point),
      go: (where, index) => this.to(this.timeline.frameOf(where.reel.frames[index].step)),
      seek: (step, done) => this.drag(this.timeline.placeOf(step), done),
      ask: (where, action) => this.send.ask({ run: where.reel.id, frame: where.frame.number, action }),
      save: (where, kind) => (kind === "webm" ? this.record(where) : savePicture(where, this.look, kind)),
      part: (name) => this.move(() => (this.look[name] = !this.look[name]), true),
      focus: (label) => this.move(() => (this.look.focus = label), true),
      wake: (all) => this.wake(all),
    });
    panel.feed = this.feeding(panel.reel, () => this.news());
    return panel;
  }

  // Frames have come: the line has more places, and the film stands at the same step as before.
  news() {
    const { clock, timeline } = this;
    const step = timeline.length && !clock.following ? timeline.step(clock.frame) : null;
    timeline.gather(this.panels.map(({ reel }) => reel));
    clock.grow(timeline.length);
    if (this.wanted && timeline.length) this.start(this.wanted.number, this.wanted.step);
    else if (step !== null && !clock.playing && timeline.step(clock.frame) !== step) clock.stand(timeline.frameOf(step));
    this.wake(true);
  }

  // Stands where the page asks: at a frame of the first run by its number, or at a step at which only the second has
  // one; both null for the newest. While a run has not come yet, the line may still change, so it is asked again.
  start(number, step) {
    const { frames, live } = this.panels[0].reel;
    this.wanted = null;
    if (number === null && step === null) return;
    const frame = frames.find((one) => one.number >= number) ?? (live ? null : frames.at(-1));
    if (frame) this.clock.seek(this.timeline.frameOf(step ?? frame.step));
    if (!frame || this.panels.some(({ reel }) => !reel.run.state)) this.wanted = { number, step };
  }

  move(action, all = false) {
    action();
    this.wake(all);
  }

  to(frame) {
    this.wanted = null;
    this.move(() => this.clock.seek(frame));
  }

  drag(place, done) {
    this.move(() => (done ? this.clock.seek(Math.round(place)) : this.clock.drag(place)));
  }

  // Follows a point, and the same text in the other run.
  follow(panel, point) {
    const text = point === null ? null : panel.reel.points.texts[point];
    for (const one of this.panels) {
      const same = one === panel ? point : (one.reel.points?.texts.indexOf(text) ?? -1);
      one.followed = text === null || same < 0 ? null : same;
    }
    this.wake(true);
  }

  wake(all = false) {
    this.screen.wake(all);
  }

  draw(now, stale) {
    const { clock, panels } = this;
    let moving = clock.tick(now);
    if (stale && this.data) this.lay();
    if (!this.screen.theme) return;
    const step = this.timeline.stepAt(clock.calm.matches ? clock.frame : clock.at);
    if (this.frameTold !== clock.frame) this.tell();
    for (const panel of panels) moving = panel.paint(step, this.look) || moving;
    this.showPlace(step);
    this.recording?.frame();
    if (this.recording && !clock.playing) this.recording = this.recording.stop();
    if (moving || this.recording) this.wake();
    else this.teller.rest();
  }

  lay() {
    const { words, panels, look } = this;
    const room = this.screen.measure(panels.length);
    if (!room) return;
    look.colours = this.data.palette[room.theme.dark ? "dark" : "light"];
    const reels = panels.map(({ reel }) => reel);
    for (const panel of panels) {
      const others = reels.filter((reel) => reel !== panel.reel);
      panel.lay({ ...room, words, others, look, trouble: panel.feed?.trouble });
    }
    (panels.length > 1 ? this.above : panels[0].toolsPlace).append(this.toolbar.root);
    this.toolbar.lay(reels, look, words, panels.some(({ pointed }) => pointed));
    this.tell();
    const total = Math.max(1, ...reels.map(({ totalSteps }) => totalSteps));
    const reached = Math.max(0, ...reels.map(({ run, lastStep }) => Math.max(run.step, lastStep)));
    this.transport.lay(this.timeline.steps, total, reached, words);
    this.screen.root.dataset.version = reels.map(({ version }) => version).join();
  }

  // Words, numbers and heads of the frame.
  tell() {
    const { clock, panels } = this;
    this.frameTold = clock.frame;
    const step = this.timeline.step(clock.frame);
    const frames = panels.map((panel) => {
      const { index } = panel.reel.placeAt(step);
      panel.tell(index, this.look);
      return panel.reel.frames[index];
    });
    this.differing.hidden = panels.length < 2 || frames.some((frame) => !frame);
    if (!this.differing.hidden) this.differing.replaceChildren(...differences(frames, this.words));
  }

  showPlace(at) {
    const { clock, panels } = this;
    const live = panels.some(({ reel }) => reel.live);
    const [one, two] = panels;
    const epoch = decimal(one.frame?.epoch ?? NaN, 1);
    const frames = { frame: one.frame?.number ?? 0, last: one.reel.frames.at(-1)?.number ?? 0, other: two?.frame?.number };
    this.transport.show(clock, { step: this.timeline.step(clock.frame), at, epoch, live, ...frames }, this.words);
    Object.assign(this.screen.root.dataset, { frame: clock.frame, playing: clock.playing });
  }

  // What the film rests at: the first run's frame, null for the newest, and the step where that run has no frame at it;
  // null while anything moves.
  standing() {
    const { clock, panels, transport, timeline } = this;
    if (clock.playing || clock.glide || transport.held || !timeline.length || this.wanted !== null) return null;
    const { frame } = panels[0];
    const step = timeline.step(clock.frame);
    const [number, between] = clock.following ? [null, null] : [frame?.number ?? null, frame?.step === step ? null : step];
    return { frame: number, step: between, method: this.look.method };
  }

  rested(view, news) {
    const summary = this.panels.map((panel) => panel.summary()).join(" ");
    if (this.live.textContent !== summary) this.live.textContent = summary;
    if (news) this.send?.view(view);
  }

  // Plays the whole run once and saves what the map showed.
  record(panel) {
    if (this.recording || this.clock.count < 2) return;
    Object.assign(this.clock, { playing: false, loop: false });
    this.clock.stand(0);
    this.clock.toggle();
    this.recording = videoOf(panel, this.look);
    this.wake();
  }
}
