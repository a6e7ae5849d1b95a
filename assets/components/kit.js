// What all components share: elements, labels, numbers and times as text, and one instance for each place in a page.

export const QUIET = "[data-testid=stApp][data-test-script-state=notRunning]"; // the page's script runs no more

export function el(name, className = "", ...children) {
  const node = document.createElement(name);
  if (className) node.className = className;
  node.append(...children.filter((child) => child !== null && child !== undefined));
  return node;
}

// A text with its {…} filled in; {count:token|tokens} is the first form where the count is 1, as in pages/language.py.
export const fill = (template, parts) =>
  template.replace(/\{(\w+)(?::([^{}|]*)\|([^{}|]*))?\}/g, (whole, name, one, many) => {
    if (!(name in parts)) return whole;
    return many === undefined ? parts[name] ?? whole : String(parts[name]) === "1" ? one : many;
  });

// A label with visible signs for blanks and line ends, without control characters.
export function visible(label) {
  const text = label.replaceAll("\n", "⏎").replaceAll("\t", "⇥").replace(/[\u0000-\u001f\u202a-\u202e\u2066-\u2069]/g, "");
  return text.trim() === "" ? "␣" : text;
}

const SUPERSCRIPTS = { "-": "⁻", 0: "⁰", 1: "¹", 2: "²", 3: "³", 4: "⁴", 5: "⁵", 6: "⁶", 7: "⁷", 8: "⁸", 9: "⁹" };

export function number(value, digits = 4) {
  const size = Math.abs(value);
  if (value === 0) return "0";
  if (size < 1e5 && size >= 1e-4) return String(+value.toPrecision(digits) === value ? value : value.toPrecision(digits)).replace("-", "−");
  const [mantissa, exponent] = value.toExponential(digits > 2 ? 2 : 1).split("e");
  return `${mantissa}×10${[...String(+exponent)].map((sign) => SUPERSCRIPTS[sign]).join("")}`.replace("-", "−");
}

export const percent = (value, digits = 0) => (Number.isFinite(value) ? `${(100 * value).toFixed(digits)}%` : "–");
export const decimal = (value, digits = 3) => (Number.isFinite(value) ? value.toFixed(digits).replace("-", "−") : "–");
export const significant = (value, digits = 2) => (Number.isFinite(value) ? number(value, digits) : "–");
// A round number along an axis, without the rounding errors of its sums.
export const round = (value) => number(+value.toPrecision(6), 6);
export const signed = (text) => (/^[−-]/.test(text) ? text : `+${text}`);

// A duration such as 48 s, 3 min 20 s, 2 h 5 min.
export function duration(seconds, words) {
  if (!Number.isFinite(seconds)) return "";
  const whole = Math.round(seconds);
  const [hours, minutes, rest] = [Math.floor(whole / 3600), Math.floor((whole % 3600) / 60), whole % 60];
  if (hours) return `${hours} ${words.unit_h} ${minutes} ${words.unit_min}`;
  if (minutes) return `${minutes} ${words.unit_min}${minutes < 10 ? ` ${rest} ${words.unit_s}` : ""}`;
  return `${rest} ${words.unit_s}`;
}

// Let a frame show a sign where what is in its box goes on to the right, until it is scrolled to the end.
export function signSideways(frame, box) {
  const look = () => frame.toggleAttribute("data-more", box.scrollLeft + box.clientWidth < box.scrollWidth - 8);
  box.addEventListener("scroll", look, { passive: true });
  const sizes = new ResizeObserver(look);
  for (const one of [box, ...box.children]) sizes.observe(one);
}

// Streamlit calls a component again at every change, and may clean up one call before the next has drawn. An instance
// therefore stays until its place has left the page.
const instances = new WeakMap();

export function lasting(place, make) {
  if (!instances.has(place)) instances.set(place, make(place));
  if (place.host) place.host.dataset.stands = ""; // for who waits until every component has come
  return instances.get(place);
}

export function release(place) {
  if (place.isConnected || !instances.has(place)) return;
  instances.get(place).remove();
  instances.delete(place);
}
