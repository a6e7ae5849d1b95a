// The film's place in the page: its width, its theme, how runs are arranged in it, and when it is drawn.

import { el } from "../kit.js";
import { readTheme } from "../matrix/colour.js";
import { Ruler } from "../matrix/geometry.js";

const BETWEEN = 36; // pixels between two runs
const SIDE_BY_SIDE = 760; // least width for two runs
const MAP_AND_CURVES = 860; // least width of a run for both beside each other

export class Screen {
  // draw: called in the next animation frame after wake, with the time and whether the layout is stale.
  constructor(parent, draw) {
    this.draw = draw;
    this.root = el("div", "vf");
    parent.append(this.root);
    this.ending = new AbortController();
    this.observer = new ResizeObserver(() => Math.abs(this.root.clientWidth - (this.width ?? 0)) >= 1 && this.wake(true));
    this.observer.observe(this.root);
    window.addEventListener("resize", () => this.wake(true), { signal: this.ending.signal });
    this.watching = setInterval(() => this.theme && readTheme(this.root).key !== this.theme.key && this.wake(true), 700);
  }

  remove() {
    this.ending.abort();
    this.observer.disconnect();
    clearInterval(this.watching);
    cancelAnimationFrame(this.asked);
    this.root.remove();
  }

  // Requests a drawing; `all` also requests a new layout.
  wake(all = false) {
    this.stale ||= all;
    this.asked ||= requestAnimationFrame((now) => {
      const { stale } = this;
      Object.assign(this, { asked: 0, stale: false });
      this.draw(now, stale);
    });
  }

  // The sizes available to each of `count` runs; null while the place is hidden (the observer calls again).
  measure(count) {
    const { root } = this;
    const width = root.clientWidth;
    if (width < 40) return null;
    this.width = width;
    const theme = (this.theme = readTheme(root));
    if (this.ruler?.font !== theme.font) this.ruler = new Ruler(theme.font);
    for (const name of ["line", "muted"]) root.style.setProperty(`--vf-${name}`, theme[name]);
    const two = count > 1 && width >= SIDE_BY_SIDE;
    const each = two ? (width - BETWEEN) / 2 : width;
    const stacked = each < MAP_AND_CURVES;
    Object.assign(root.dataset, { two, stacked, narrow: width < 620 });
    const most = Math.min(each * (two ? 0.8 : 0.72), (window.innerHeight || 800) * 0.54, 680);
    return { width: each, height: Math.round(Math.max(300, most)), stacked, theme, ruler: this.ruler };
  }
}
