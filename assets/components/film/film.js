// A run's training as a film, or two runs side by side: one scrubber moves them, live runs are fetched while they train.
// It runs as a Streamlit component (the default export) and in a stand-alone page (playing).

import { decimal, el, lasting, release } from "../kit.js";
import { Clock, Timeline } from "./clock.js";
import { Toolbar, Transport, typing } from "./controls.js";
import { Panel } from "./panel.js";
import { savePicture, videoOf } from "./record.js";
import { Feed, Reel } from "./reel.js";
import { differences } from "./readout.js";
import { Screen } from "./screen.js";

const REST = 400; // ms without movement before the view is reported
const ECHO = 4000; // ms in which the page may still send back a reported view

// Reports the view to the page once nothing has moved for a while, and recognises reported views that come back.
class ViewReporter {
  // current: returns the view, null while it moves; report: called with the view and whether it differs from the last.
  constructor(current, report) {
    Object.assign(this, { current, report, reported: null, past: [] });
  }

  // Takes the view that the page set, which needs no report.
  begin(view) {
    this.reported ??= JSON.stringify(view);
  }

  // Whether a value from the page is one that was reported shortly before: it is late and must not move the film back.
  isEcho(name, value) {
    this.past = this.past.filter(({ at }) => performance.now() - at < ECHO);
    return this.past.some(({ view }) => view[name] === (value ?? null));
  }

  rest() {
    clearTimeout(this.timer);
    this.timer = setTimeout(() => {
      const view = this.current();
      if (!view) return;
      const text = JSON.stringify(view);
      const changed = text !== this.reported;
      this.reported = text;
      if (changed) this.past.push({ view, at: performance.now() });
      this.report(view, changed);
    }, REST);
  }

  stop() {
    clearTimeout(this.timer);
  }
}

class Player {
  // feeding: returns the feed of a reel, which calls its second argument on changes; null where all bytes are there.
  constructor(parent, feeding) {
    Object.assign(this, { feeding, panels: [], clock: new Clock(), timeline: new Timeline(), wanted: null });
    this.reporter = new ViewReporter(() => this.view(), (view, changed) => this.report(view, changed));
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
    this.reporter.stop();
    this.screen.remove();
    for (const { feed } of this.panels) feed?.stop();
  }

  // data: see pages/film/figures/page.py; send: {view, ask}, callbacks to the page, or null in a stand-alone page.
  receive(data, send) {
    const before = this.data;
    Object.assign(this, { data, send, words: data.words });
    const other = this.adopt(data.runs);
    const asked = (name) => other || (data[name] !== before[name] && !this.reporter.isEcho(name, data[name]));
    if (asked("method")) this.look.method = data.method;
    if (asked("frame") || asked("step")) this.start(data.frame ?? null, data.step ?? null);
    this.reporter.begin({ frame: data.frame ?? null, step: data.step ?? null, method: this.look.method });
    for (const { feed, reel } of this.panels) {
      if (feed && (reel.followedText?.text ?? "") !== data.followed_text) feed.follow(data.followed_text);
      if (feed && before && !reel.live) feed.wake();
    }
    this.wake(true);
  }

  // Keeps the panels of runs that stay and opens new ones; returns whether the first run has changed.
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
    this.below.replaceChildren(...this.panels.map(({ under }) => under));
    this.takeFrames();
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
    panel.feed = this.feeding(panel.reel, () => this.takeFrames());
    return panel;
  }

  // Takes new frames into the timeline; the film stays at its step.
  takeFrames() {
    const { clock, timeline } = this;
    const step = timeline.length && !clock.following ? timeline.step(clock.frame) : null;
    timeline.gather(this.panels.map(({ reel }) => reel));
    clock.grow(timeline.length);
    if (this.wanted && timeline.length) this.start(this.wanted.number, this.wanted.step);
    else if (step !== null && !clock.playing && timeline.step(clock.frame) !== step) clock.stand(timeline.frameOf(step));
    this.wake(true);
  }

  // Moves to the view of the page: a frame of the first run by its number, or a step at which only the second run has a
  // frame; both null for the newest. It is repeated while a run is not loaded, since the timeline may still change.
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

  // Follows a point, and the point with the same text in the other run.
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
    if (this.frameShown !== clock.frame) this.showFrame();
    for (const panel of panels) moving = panel.paint(step, this.look) || moving;
    this.showPlace(step);
    this.recording?.frame();
    if (this.recording && !clock.playing) this.recording = this.recording.stop();
    if (moving || this.recording) this.wake();
    else this.reporter.rest();
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
    this.showFrame();
    const total = Math.max(1, ...reels.map(({ totalSteps }) => totalSteps));
    const reached = Math.max(0, ...reels.map(({ run, lastStep }) => Math.max(run.step, lastStep)));
    this.transport.lay(this.timeline.steps, total, reached, words);
    this.screen.root.dataset.version = reels.map(({ version }) => version).join();
  }

  // Shows words, numbers and heads of the frame.
  showFrame() {
    const { clock, panels } = this;
    this.frameShown = clock.frame;
    const step = this.timeline.step(clock.frame);
    const frames = panels.map((panel) => {
      const { index } = panel.reel.placeAt(step);
      panel.showFrame(index, this.look);
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

  // The view as the page keeps it: the first run's frame, null for the newest, and the step where that run has no frame
  // at it; null while anything moves.
  view() {
    const { clock, panels, transport, timeline } = this;
    if (clock.playing || clock.glide || transport.held || !timeline.length || this.wanted !== null) return null;
    const { frame } = panels[0];
    const step = timeline.step(clock.frame);
    const [number, between] = clock.following ? [null, null] : [frame?.number ?? null, frame?.step === step ? null : step];
    return { frame: number, step: between, method: this.look.method };
  }

  report(view, changed) {
    const summary = this.panels.map((panel) => panel.summary()).join(" ");
    if (this.live.textContent !== summary) this.live.textContent = summary;
    if (changed) this.send?.view(view);
  }

  // Plays the whole run once and records the map.
  record(panel) {
    if (this.recording || this.clock.count < 2) return;
    Object.assign(this.clock, { playing: false, loop: false });
    this.clock.stand(0);
    this.clock.toggle();
    this.recording = videoOf(panel, this.look);
    this.wake();
  }
}

function connected(parent) {
  const address = (id, part, query) => {
    const { base, language } = player.data;
    return new URL(`${base}film/${id}${part}?${new URLSearchParams({ ...query, lang: language })}`, document.baseURI);
  };
  const player = new Player(parent, (reel, changed) => new Feed(reel, address, changed));
  return player;
}

export default function film({ data, parentElement, setStateValue, setTriggerValue }) {
  const player = lasting(parentElement, connected);
  player.receive(data, { view: (view) => setStateValue("view", view), ask: (ask) => setTriggerValue("ask", ask) });
  return () => release(parentElement);
}

// The finished runs of a page made by to_html: their bytes are in the page as base64.
function playing(page) {
  const place = page.getElementById("figure");
  const bytes = (text) => Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0));
  const { films, followed_texts: followedTexts, ...data } = JSON.parse(place.dataset.film);
  const player = new Player(place, (reel) => {
    const k = data.runs.findIndex(({ id }) => id === reel.id);
    reel.add(bytes(films[k]));
    if (!followedTexts[k]) return null;
    reel.ask(data.followed_text);
    reel.addFollowed(data.followed_text, bytes(followedTexts[k]));
    return null;
  });
  player.receive(data, null);
}
