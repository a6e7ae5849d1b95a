// One run on the screen: name, state, map (or attention, where it has no points), curves, and the text followed through it.

import { decimal, el, fill, visible } from "../kit.js";
import { CurvesView, partColours } from "./curves.js";
import { Heat, attentionFigure } from "./heads.js";
import { Ridges } from "./histograms.js";
import { MapView } from "./map.js";
import { Followed, Samples, apartLine, bars, stateLine, trustFigures } from "./readout.js";

const PARTS = ["train", "held_out"];
const BARS = 220;
const GAP = 28;

export class Panel {
  // act: callbacks by name: follow, go, seek, ask, save, part, focus, wake; asks: whether a server is there.
  constructor(reel, act) {
    Object.assign(this, { reel, act, followed: null, selected: null });
    const button = (name, action) => {
      const node = el("button", `vf-tool vf-${name}`);
      node.type = "button";
      node.addEventListener("click", action);
      return node;
    };
    this.map = new MapView((point) => act.follow(this, point), act.wake);
    this.curves = new CurvesView(act.seek, act.wake);
    this.large = new Heat("single", null);
    this.grid = new Heat("grid", (id) => this.choose(id));
    this.samples = new Samples();
    this.card = new Followed(() => act.follow(this, null), (index) => act.go(this, index));
    this.name = el("h3", "vf-name");
    this.state = el("span", "vf-state");
    this.learned = el("bdi", "vf-quiet");
    this.tools = Object.fromEntries(["png", "svg", "webm"].map((kind) => [kind, button(kind, () => act.save(this, kind))]));
    this.asks = Object.fromEntries(["open", "branch"].map((kind) => [kind, button(kind, () => act.ask(this, kind))]));
    this.legend = el("div", "vf-legend");
    this.trust = el("div", "vf-trust");
    this.apart = el("p", "vf-apart");
    this.bars = el("ul", "vf-bars");
    this.followedTitle = el("h4", "vf-text-followed-title");
    this.note = el("p", "vf-quiet vf-note");
    const asks = el("span", "vf-asks", ...Object.values(this.asks));
    const head = el("header", "vf-head", this.name, this.state, this.learned, el("span", "vf-space"), asks);
    this.wide = el("div", "vf-wide", (this.largeInMap = el("div", "vf-large-place")), (this.samplesPlace = el("div", "vf-samples-place")));
    this.left = el("div", "vf-left", this.map.root, this.wide, this.apart, this.trust, this.card.root);
    this.key = el("div", "vf-key");
    this.right = el("div", "vf-right", this.key, this.curves.root);
    this.toolsPlace = el("span", "vf-tools-place");
    this.saves = el("span", "vf-saves", ...Object.values(this.tools));
    this.row = el("div", "vf-row", this.legend, el("span", "vf-space"), this.toolsPlace, this.saves);
    this.top = el("section", "vf-panel", head, this.row, el("div", "vf-two", this.left, this.right));
    this.largeBelow = el("div", "vf-large-place");
    this.bottom = el("section", "vf-text-followed", this.followedTitle, this.note, el("div", "vf-text-followed-body", this.bars, this.grid.root, this.largeBelow));
    this.ridges = new Ridges();
    this.under = el("div", "vf-under", this.bottom, this.ridges.root);
  }

  get pointed() {
    return this.reel.points !== null || (this.reel.run.kind === "classifier");
  }

  choose(id) {
    this.selected = id;
    this.act.wake(true);
  }

  // Selects the head `by` places further.
  turn(by) {
    const panels = this.figure?.panels;
    if (!panels?.length) return;
    const at = panels.findIndex(({ id }) => id === this.selected);
    this.choose(panels[(Math.max(0, at) + by + panels.length) % panels.length].id);
  }

  // Lays out everything that changes with data, size or theme, but not from frame to frame.
  lay({ width, height, stacked, theme, ruler, words, others, look, trouble }) {
    Object.assign(this, { words, theme, ruler, width });
    const { reel, pointed } = this;
    const [line, tone] = stateLine(reel, trouble, words);
    this.name.textContent = `${reel.role} · ${visible(reel.run.name || reel.id)}`;
    this.name.hidden = !others.length; // for one run alone the page shows the name,
    this.state.textContent = line;
    this.state.hidden = !others.length && tone === "live"; // and its progress beside its buttons
    this.learned.textContent = visible(reel.learned);
    this.learned.hidden = !reel.learned;
    this.state.dataset.tone = tone;
    for (const [kind, node] of Object.entries(this.tools)) {
      node.textContent = words[kind];
      node.title = words[`export_${kind}`];
      node.hidden = !pointed || !reel.frames.length || (kind === "webm" && !window.MediaRecorder);
    }
    for (const [kind, node] of Object.entries(this.asks)) {
      node.textContent = words[kind];
      node.disabled = !reel.frames.length;
      node.parentNode.hidden = !this.act.asks;
    }
    const left = stacked ? width : Math.round(Math.min(width * 0.58, Math.max(height * 1.25, width * 0.46)));
    this.leftWidth = left;
    this.top.style.setProperty("--vf-left", `${left}px`);
    this.trust.dataset.wide = left >= 440;
    this.map.root.hidden = !pointed;
    this.trust.hidden = !pointed;
    this.showApart();
    this.wide.hidden = pointed;
    const mapHeight = Math.min(height, left);
    if (pointed) this.map.lay(left, mapHeight, theme, ruler);
    (pointed ? this.largeBelow : this.largeInMap).append(this.large.root);
    this.samplesPlace.append(this.samples.root);
    this.height = height;
    this.showLegend(look);
    const right = stacked ? width : width - left - GAP;
    const tall = stacked ? Math.min(480, Math.max(380, right * 0.85)) : (pointed ? mapHeight + 40 : height);
    this.curves.lay(reel, others, { width: right, height: tall, theme, ruler, words });
    this.curves.canvas.setAttribute("aria-label", words.curves_label);
    this.ridges.lay([reel, ...others], { width, theme, words });
  }

  showApart() {
    const key = JSON.stringify([this.reel.run.apart, this.reel.frames.length, this.words.apart]);
    if (key === this.apartKey) return;
    this.apartKey = key;
    this.apart.replaceChildren(...apartLine(this.reel, (index) => this.act.go(this, index), this.words));
    this.apart.hidden = !this.pointed || !this.reel.run.apart;
  }

  showLegend({ colours, train, held_out: held, focus }) {
    const { reel, words, theme } = this;
    const part = partColours(theme);
    this.key.replaceChildren(...PARTS.map((name) => {
      const item = el("span", `vf-part vf-part-${name}`, words[name]);
      item.style.color = part[name];
      return item;
    }), el("span", "vf-quiet vf-line-thin", words.each_step), el("span", "vf-quiet vf-line-bold", words.smoothed));
    this.legend.hidden = !this.pointed;
    const key = JSON.stringify([reel.run.labels, colours, train, held, focus, words.train]);
    if (key === this.legendKey) return;
    this.legendKey = key;
    const shown = { train, held_out: held };
    const toggles = PARTS.map((name) => {
      const node = el("button", `vf-part vf-part-${name} vf-switch`, words[name]);
      node.type = "button";
      node.title = words[`show_${name}`];
      node.setAttribute("aria-pressed", String(shown[name]));
      node.addEventListener("click", () => this.act.part(name));
      return node;
    });
    const classes = reel.run.labels.map((label, index) => {
      const dot = el("span", "vf-dot");
      dot.style.background = colours[index];
      const node = el("button", "vf-class vf-switch", dot, visible(label));
      node.type = "button";
      node.title = words.focus;
      node.setAttribute("aria-pressed", String(focus === index));
      node.addEventListener("click", () => this.act.focus(focus === index ? null : index));
      return node;
    });
    this.legend.replaceChildren(el("span", "vf-legend-part", ...toggles), el("span", "vf-legend-part", ...classes));
  }

  // Draws what moves between frames; returns whether the map still moves.
  paint(step, look) {
    this.curves.paint(step, this.frame?.step ?? 0);
    if (!this.pointed) return false;
    return this.map.paint(this.reel, this.reel.placeAt(step), { ...look, followed: this.followed }, this.words);
  }

  // Shows what changes from frame to frame.
  showFrame(index, look) {
    const { reel, words } = this;
    const frame = reel.frames[index];
    this.frame = frame;
    if (this.pointed) {
      this.trust.replaceChildren(...(frame ? trustFigures(frame, look.method, words) : []));
      this.card.show(reel, this.followed, index, words, look.colours);
      const counts = { method: words[`method_${look.method}`] ?? look.method, step: frame?.step ?? 0, count: reel.points?.labels.length ?? 0 };
      this.map.canvas.setAttribute("aria-label", fill(words.map_label, counts));
    } else this.samples.show(reel, frame, words);
    this.ridges.show(frame);
    this.showFollowed(frame, look);
  }

  showFollowed(frame, look) {
    const { reel, words } = this;
    const { followedText } = reel;
    const moment = reel.moment(frame);
    const text = followedText?.text ?? "";
    this.bottom.hidden = !text && this.pointed;
    const waits = !moment && Boolean(text) && this.hasRead; // what was said of the last text stays, pale, and nothing moves
    const instead = waits ? el("span", "vf-quiet", ` ${followedText.error || "…"}`) : "";
    if (waits) instead.title = words.followed_waits;
    this.followedTitle.replaceChildren(words.followed_text, " ", el("bdi", "vf-text", visible(text)), instead);
    for (const node of [this.bars, this.grid.root, this.large.root]) node.style.opacity = waits ? 0.4 : "";
    if (waits) return;
    this.hasRead = Boolean(moment);
    const heads = Boolean(moment?.attention.shape[0]);
    this.note.textContent = followedText?.error || (moment ? words.no_heads : text ? words.followed_waits : words.followed_none);
    this.note.hidden = heads;
    for (const heat of [this.large, this.grid]) heat.root.hidden = !heads;
    const classified = Boolean(moment?.probabilities);
    this.bars.hidden = !classified;
    if (classified) this.bars.replaceChildren(...bars(moment, reel.run.labels, look.colours));
    if (!moment) return;
    this.samples.list.style.maxHeight = `${this.height - 40}px`;
    if (!heads) {
      this.figure = null;
      return;
    }
    this.figure = attentionFigure(followedText, moment, words, this.figure);
    if (!this.figure.panels.some(({ id }) => id === this.selected)) this.selected = this.figure.panels.at(-1).id;
    this.showHeads();
  }

  showHeads() {
    const { figure, selected, words, theme, ruler, pointed, width } = this;
    const panel = figure.panels.find(({ id }) => id === selected);
    const label = fill(words.heads_label, { head: panel.fullName, step: this.frame.step });
    const whole = pointed ? width - (this.bars.hidden ? 0 : BARS + GAP) : this.leftWidth;
    const beside = whole >= (pointed ? 560 : 440);
    const side = beside ? Math.floor((whole - GAP) * (pointed ? 0.52 : 0.6)) : Math.min(width, 560);
    this.large.show(figure, selected, { width: side, tall: pointed ? 330 : this.height - 90, theme, ruler, label });
    const room = pointed && beside ? whole - GAP - side : width;
    this.grid.show(figure, selected, { width: room, tall: 360, theme, ruler, label: words.heads });
  }

  summary() {
    const { words, frame } = this;
    const said = (name) => `${words[name]} ${decimal(frame.measures[name] ?? NaN)}`;
    const names = ["held_out_accuracy", "train_accuracy", "held_out_loss", "train_loss"].filter((name) => Number.isFinite(frame?.measures[name]));
    return frame ? fill(words.summary, { name: this.reel.run.name, step: frame.step, said: names.map(said).join(", ") }) : "";
  }
}
