// The newest picture of two deliveries: what the page's run brings, and what came the short way (live/live.js).

const PICTURE = "vitrine:picture";
const LEAD = 1000; // ms for which a picture that came the short way is newer than what the page's run brings

export class Newest {
  // unpack reads bytes, show takes what it read, and whether it came the short way; figures have a key and a version.
  constructor(unpack, show) {
    Object.assign(this, { unpack, show, ending: new AbortController() });
    const hear = ({ detail }) => detail.key && detail.key === this.key && this.overtake(detail.bytes);
    window.addEventListener(PICTURE, hear, { signal: this.ending.signal });
  }

  end() {
    this.ending.abort();
    clearTimeout(this.returning);
  }

  // Shows what the page's run brings, unless it is of an older text than a picture that has just come the short way. The
  // run of the newer text follows; where it does not, the page is right. Returns whether there was anything new.
  take(data) {
    if (data === this.data) return false;
    this.data = data;
    this.weigh(this.unpack(data));
    return true;
  }

  weigh(figure) {
    clearTimeout(this.returning);
    this.key = figure.key;
    const left = this.ahead ? this.ahead.at + LEAD - performance.now() : 0;
    if (left > 0 && figure.version !== this.ahead.version) {
      this.returning = setTimeout(() => this.weigh(figure), left);
      return;
    }
    this.ahead = null;
    this.show(figure, false);
  }

  overtake(bytes) {
    const figure = this.unpack(bytes);
    this.ahead = { version: figure.version, at: performance.now() };
    this.show(figure, true);
  }
}
