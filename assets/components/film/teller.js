// What the page is told of the frame that is shown, once nothing has moved for a while, and what of its answers is an echo.
// Next: screen.js.

const REST = 400; // ms without movement
const ECHO = 4000; // ms in which the page may still answer

export class Teller {
  // standing: returns the view that the film rests at, null while it moves; rested: called with it, and whether it is news.
  constructor(standing, rested) {
    Object.assign(this, { standing, rested, told: null, past: [] });
  }

  // The view that the page asked for itself.
  begin(view) {
    this.told ??= JSON.stringify(view);
  }

  // Whether a frame or a method is what the page was told a moment ago: its answers come late, the hand has moved on.
  echoes(name, value) {
    this.past = this.past.filter(({ at }) => performance.now() - at < ECHO);
    return this.past.some(({ view }) => view[name] === (value ?? null));
  }

  rest() {
    clearTimeout(this.timer);
    this.timer = setTimeout(() => {
      const view = this.standing();
      if (!view) return;
      const said = JSON.stringify(view);
      const news = said !== this.told;
      this.told = said;
      if (news) this.past.push({ view, at: performance.now() });
      this.rested(view, news);
    }, REST);
  }

  stop() {
    clearTimeout(this.timer);
  }
}
