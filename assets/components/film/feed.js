// Where a run's bytes come from: asked for again and again while it lives, more seldom while nothing changes or nobody
// looks, and again and again after the connection is lost. What has come is kept.
// Next: clock.js.

const EVERY = 400; // ms
const SLOWEST = 2000;
const HIDDEN = 4000;
const LOST = 5000;
const AFTERWARDS = 2; // times to ask once more after the end: the last frames may come a moment later

export class Feed {
  // address: from a run's id, a part of it and what is asked to a URL; tell: called when anything has changed.
  constructor(reel, address, tell) {
    Object.assign(this, { reel, address, tell, pause: EVERY, asked: "", wanted: "", trouble: null, seen: false, again: AFTERWARDS });
    this.ending = new AbortController();
    this.woken = () => !document.hidden && this.wake();
    document.addEventListener("visibilitychange", this.woken, { signal: this.ending.signal });
    this.turn();
  }

  stop() {
    this.ending.abort();
    this.listening?.abort();
    clearTimeout(this.timer);
  }

  // Asks at once, also of a run that had ended: somebody may have resumed it.
  wake() {
    this.again = AFTERWARDS;
    this.pause = EVERY;
    if (!this.busy) this.turn();
  }

  follow(text) {
    this.wanted = text;
    this.reel.ask(text);
    this.listening?.abort();
    this.listening = null;
    this.hear();
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
      if (changed) this.tell();
      this.hear();
    } catch (error) {
      if (this.ending.signal.aborted) return;
      const lost = error.status === undefined;
      this.trouble = { kind: lost ? "lost" : error.status === 404 ? "gone" : "refused", message: lost ? "" : error.message };
      this.pause = Math.min(LOST, Math.max(1000, this.pause * 1.5));
      this.tell();
    } finally {
      this.busy = false;
    }
    if (this.trouble?.kind === "gone") return;
    if (!reel.live && this.trouble === null && (this.again -= 1) < 0) return;
    const pause = reel.live ? this.pause : Math.max(this.pause, 1000);
    this.timer = setTimeout(() => this.turn(), document.hidden ? Math.max(pause, HIDDEN) : pause);
  }

  // Asks what the model of every new frame makes of the text.
  async hear() {
    const { reel, wanted } = this;
    if (this.listening || !wanted.trim() || !reel.frames.length || reel.probe.last >= reel.lastFrame) return;
    if (reel.probe.refused === reel.lastFrame) return;
    const listening = (this.listening = new AbortController());
    const asked = reel.lastFrame;
    try {
      reel.addProbe(wanted, await this.bytes("/probe", { text: wanted, after: reel.probe.last }, listening.signal));
      if (reel.probe.last < asked) reel.probe.refused = asked; // there is no model of that frame
    } catch (error) {
      if (listening.signal.aborted) return;
      if (error.said) reel.probe.refused = asked;
      reel.probe.error = error.said ? error.message : "";
      reel.version += 1;
    }
    if (this.listening === listening) this.listening = null;
    this.tell();
    if (!reel.probe.error && reel.probe.last >= 0) this.hear();
  }
}
