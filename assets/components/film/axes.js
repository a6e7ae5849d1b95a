// Round numbers along an axis, and how numbers are written.
// Next: curves.js.

import { number } from "../matrix/unpack.js";

// Round values from low to high, about `count` of them.
export function ticks(low, high, count) {
  const raw = (high - low) / Math.max(1, count);
  const power = 10 ** Math.floor(Math.log10(raw));
  const step = [1, 2, 5, 10].map((factor) => factor * power).find((one) => one >= raw) ?? raw;
  const values = [];
  for (let k = Math.ceil(low / step - 1e-9); k * step <= high + 1e-9 * step; k += 1) values.push(k * step);
  return values;
}

export const percent = (value, digits = 0) => (Number.isFinite(value) ? `${(100 * value).toFixed(digits)}%` : "–");
export const decimal = (value, digits = 3) => (Number.isFinite(value) ? value.toFixed(digits).replace("-", "−") : "–");
export const significant = (value, digits = 2) => (Number.isFinite(value) ? number(value, digits) : "–");
// A round number along an axis, without the dust of its sums.
export const round = (value) => number(+value.toPrecision(6), 6);
export const signed = (text) => (/^[−-]/.test(text) ? text : `+${text}`);

// A time as people say it: 48 s, 3 min 20 s, 2 h 5 min.
export function duration(seconds, words) {
  if (!Number.isFinite(seconds)) return "";
  const whole = Math.round(seconds);
  const [hours, minutes, rest] = [Math.floor(whole / 3600), Math.floor((whole % 3600) / 60), whole % 60];
  if (hours) return `${hours} ${words.unit_h} ${minutes} ${words.unit_min}`;
  if (minutes) return `${minutes} ${words.unit_min}${minutes < 10 ? ` ${rest} ${words.unit_s}` : ""}`;
  return `${rest} ${words.unit_s}`;
}

// The least and the greatest of the numbers that there are.
export function reach(...series) {
  let low = Infinity;
  let high = -Infinity;
  for (const values of series) {
    for (const value of values) {
      if (value < low) low = value;
      if (value > high) high = value;
    }
  }
  return [low, high];
}
