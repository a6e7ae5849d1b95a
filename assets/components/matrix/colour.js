// Colour: one hue for each role, lightness linear in the value (in OKLab), zero exactly the page's background.
// Signed values run from brown over pale grey (a cell of zero stays visible on the page) to teal, two hues that people
// with any colour blindness can distinguish.

import { LEVELS } from "./unpack.js";

const HUES = {
  weights: [305, 0.2],
  query: [255, 0.17],
  key: [25, 0.19],
  value: [150, 0.15],
  residual: [75, 0.045],
  positions: [58, 0.16],
};
const BROWN = [62, 0.12];
const TEAL = [192, 0.11];
const MIDDLE = 0.1; // share of the text colour in the grey of a signed zero

const toLinear = (c) => (c <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4);
const toGamma = (c) => (c <= 0.0031308 ? 12.92 * c : 1.055 * c ** (1 / 2.4) - 0.055);

// Björn Ottosson's OKLab, 2020.
export function toLab(rgb) {
  const [r, g, b] = rgb.map((c) => toLinear(c / 255));
  const l = Math.cbrt(0.4122214708 * r + 0.5363325363 * g + 0.0514459929 * b);
  const m = Math.cbrt(0.2119034982 * r + 0.6806995451 * g + 0.1073969566 * b);
  const s = Math.cbrt(0.0883024619 * r + 0.2817188376 * g + 0.6299787005 * b);
  return [
    0.2104542553 * l + 0.793617785 * m - 0.0040720468 * s,
    1.9779984951 * l - 2.428592205 * m + 0.4505937099 * s,
    0.0259040371 * l + 0.7827717662 * m - 0.808675766 * s,
  ];
}

function toLinearRgb([L, a, b]) {
  const l = (L + 0.3963377774 * a + 0.2158037573 * b) ** 3;
  const m = (L - 0.1055613458 * a - 0.0638541728 * b) ** 3;
  const s = (L - 0.0894841775 * a - 1.291485548 * b) ** 3;
  return [
    4.0767416621 * l - 3.3077115913 * m + 0.2309699292 * s,
    -1.2684380046 * l + 2.6097574011 * m - 0.3413193965 * s,
    -0.0041960863 * l - 0.7034186147 * m + 1.707614701 * s,
  ];
}

// The nearest sRGB colour, found by reducing chroma at the same lightness.
function toRgb([L, a, b]) {
  let keep = 1;
  let rgb = toLinearRgb([L, a, b]);
  while (keep > 0 && rgb.some((c) => c < -1e-4 || c > 1.0001)) {
    keep -= 0.01;
    rgb = toLinearRgb([L, a * keep, b * keep]);
  }
  return rgb.map((c) => Math.round(255 * toGamma(Math.max(0, Math.min(1, c)))));
}

// A colour at t in [0, 1] from the ground, which is exactly the page's background, to the full hue.
function shade(theme, [hue, chroma], t, ground = theme.background) {
  if (t <= 0) return ground;
  const [L, a, b] = toLab(ground);
  const end = theme.dark ? 0.93 : 0.3;
  const strength = chroma * Math.sin(0.82 * Math.PI * t ** 0.8); // rises fast, so that small values keep their hue
  const angle = (hue * Math.PI) / 180;
  return toRgb([L + (end - L) * t, a * (1 - t) + strength * Math.cos(angle), b * (1 - t) + strength * Math.sin(angle)]);
}

// A table of 255 colours for a panel's codes: rgb in bytes.
export function ramp(theme, role, kind) {
  const key = `${role} ${kind}`;
  theme.ramps ??= new Map();
  if (!theme.ramps.has(key)) {
    const middle = mix(theme.background, theme.text, MIDDLE);
    const colours = Array.from({ length: LEVELS + 1 }, (_, code) => {
      if (kind !== "signed") return shade(theme, HUES[role] ?? HUES.weights, code / LEVELS);
      const t = (2 * code) / LEVELS - 1;
      return shade(theme, t < 0 ? BROWN : TEAL, 0.86 * Math.abs(t), middle);
    });
    theme.ramps.set(key, colours);
  }
  return theme.ramps.get(key);
}

export const css = ([r, g, b], alpha = 1) => (alpha === 1 ? `rgb(${r},${g},${b})` : `rgba(${r},${g},${b},${alpha})`);
export const mix = (a, b, t) => a.map((c, i) => Math.round(c + (b[i] - c) * t));
export const accent = (theme, role) => css(shade(theme, HUES[role] ?? HUES.weights, theme.dark ? 0.7 : 0.62));

const FONTS = 'system-ui, "Segoe UI", "Noto Sans CJK SC", "PingFang SC", "Microsoft YaHei", "Noto Color Emoji", sans-serif';

const themes = new Map(); // by the values of the variables; parsing a colour through a canvas takes a millisecond

// The theme in Streamlit's --st-* variables, which stand-alone pages define as well.
export function readTheme(element) {
  const style = getComputedStyle(element);
  const said = ["--st-background-color", "--st-text-color", "--st-primary-color", "--st-font"].map((name) => style.getPropertyValue(name).trim());
  const key = said.join("; ");
  if (!themes.has(key)) themes.set(key, { key, ...makeTheme(...said) });
  return themes.get(key);
}

function makeTheme(background, text, primary, fonts) {
  const pixel = document.createElement("canvas").getContext("2d", { willReadFrequently: true });
  const colour = (name, fallback) => {
    pixel.fillStyle = fallback;
    if (name) pixel.fillStyle = name;
    pixel.fillRect(0, 0, 1, 1);
    return [...pixel.getImageData(0, 0, 1, 1).data.slice(0, 3)];
  };
  const paper = colour(background, "#ffffff");
  const ink = colour(text, "#31333f");
  const named = fonts.split(",").map((name) => name.trim());
  return {
    background: paper,
    text: ink,
    primary: css(colour(primary, "#6d3fc0")),
    dark: toLab(paper)[0] < 0.5,
    ink: css(ink),
    paper: css(paper),
    muted: css(mix(paper, ink, 0.68)),
    line: css(mix(paper, ink, 0.22)),
    font: [...named.filter((name) => name && !/^(sans-serif|serif|system-ui)$/.test(name)), FONTS].join(", "),
  };
}
