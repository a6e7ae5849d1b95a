// What a class came to, beside what is exact: bars, a board, a map, curves; read as tables by who does not see them.

import { decimal, el, percent, signed } from "./kit.js";

const SVG = "http://www.w3.org/2000/svg";
const WIDE = 640, HIGH = 400, EDGE = 46; // of drawings, in their own units
const HUES = 12;
const LINE = 15; // of a word in a drawing
const UNITS = {
  share: (value) => percent(value, 1),
  bits: (value) => decimal(value, 2),
  points: (value) => signed(decimal(+value.toFixed(1) || 0, 1)), // never −0.0
};
const missing = (value) => value === null || value === undefined;

function draw(name, attributes, ...children) {
  const node = document.createElementNS(SVG, name);
  for (const [key, value] of Object.entries(attributes)) node.setAttribute(key, value);
  node.append(...children);
  return node;
}

// Says where words can stand: at the nearest height at which one covers none of those before.
function heights() {
  const taken = [];
  return (text, left, base) => {
    const right = left + text.length * (/[^\u0000-\u00ff]/.test(text) ? 14 : 8);
    const covers = (down) => taken.some(([from, to, at]) => from < right && left < to && Math.abs(at - down) < LINE);
    let down = base;
    for (let tries = 1; covers(down) && tries < 2 * HIGH / LINE; tries += 1) down = base + (tries % 2 ? 1 : -1) * Math.ceil(tries / 2) * LINE;
    taken.push([left, right, down]);
    return down;
  };
}

// A table for who does not see the drawing.
const heard = (...parts) => el("div", "heard", el("table", "", ...parts));

const legend = (names) => el("p", "legend", ...names.map((name, place) => el("span", place ? "exact" : "own", el("i"), name)));

function placed(node, from, to) {
  node.style.insetInlineStart = `${100 * Math.min(from, to)}%`;
  node.style.width = `${100 * Math.abs(to - from)}%`;
  return node;
}

function bars({ unit, names, rows, least, most }) {
  const say = UNITS[unit];
  const known = rows.flatMap(({ values, high }) => [...values, high]).filter((value) => !missing(value));
  const top = unit === "share" ? Math.min(most, Math.max(0.05, ...known) * 1.08) : most ?? Math.max(1, ...known) * 1.05;
  const bottom = unit === "points" ? -Math.max(5, ...known.map(Math.abs)) * 1.1 : least;
  const end = unit === "points" ? -bottom : top;
  const at = (value) => (value - bottom) / (end - bottom);
  const lines = rows.map(({ label, values, low, high, n }) => {
    const drawn = values.map((value, place) => missing(value) ? "" : placed(el("i", place ? "exact" : "own"), at(Math.max(0, bottom)), at(value)));
    if (!missing(low) && !missing(high)) drawn.push(placed(el("u"), at(low), at(high)));
    const told = values.map((value) => el("td", "value", missing(value) ? "–" : say(value)));
    return el("tr", "", el("th", "", label), el("td", "drawn", el("div", "", ...drawn)), ...told, el("td", "value n", `n = ${n}`));
  });
  const heads = ["", "", ...names, "n"].map((name) => el("th", "", name));
  return [legend(names), el("table", "bars", el("thead", "", el("tr", "", ...heads)), el("tbody", "", ...lines))];
}

function board({ cells, counts, most, row, column }) {
  const heads = el("tr", "", el("td"), ...cells[0].map((_, place) => el("th", "", `${column} ${place}`)));
  const lines = cells.map((line, layer) => el("tr", "", el("th", "", `${row} ${layer}`), ...line.map((value, place) => {
    const cell = el("td", value < 0 ? "down" : "up", missing(value) ? "" : UNITS.points(value));
    if (!missing(value)) cell.style.setProperty("--share", Math.min(1, Math.abs(value) / most));
    if (counts.length) cell.append(el("small", "", counts[layer][place] ? `n = ${counts[layer][place]}` : ""));
    return cell;
  })));
  return [el("table", "board", el("thead", "", heads), el("tbody", "", ...lines))];
}

function map({ axes, names, points }) {
  const [x, y] = [(value) => EDGE + ((value + 1.25) / 2.5) * (WIDE - 2 * EDGE), (value) => HIGH - EDGE - ((value + 1.25) / 2.5) * (HIGH - 2 * EDGE)];
  const inside = ([a, b]) => [a, b].map((value) => Math.max(-1.25, Math.min(1.25, value)));
  const drawing = draw("svg", { viewBox: `0 0 ${WIDE} ${HIGH}`, "aria-hidden": "true" },
    draw("line", { x1: x(-1.25), x2: x(1.25), y1: y(0), y2: y(0), class: "axis" }), draw("line", { x1: x(0), x2: x(0), y1: y(-1.25), y2: y(1.25), class: "axis" }));
  const word = (text, at, down, anchor, name = "end") => drawing.append(draw("text", { x: at, y: down, "text-anchor": anchor, class: name }, text));
  word(axes[0][0], x(-1.25), y(0) - 6, "start");
  word(axes[0][1], x(1.25), y(0) - 6, "end");
  word(axes[1][1], x(0), y(1.25) - 8, "middle");
  word(axes[1][0], x(0), y(-1.25) + 20, "middle");
  const height = heights();
  for (const { label, own, exact } of points) {
    const [from, to] = [own, exact].map((place) => place && inside(place));
    if (from && to) drawing.append(draw("line", { x1: x(from[0]), y1: y(from[1]), x2: x(to[0]), y2: y(to[1]), class: "joins" }));
    if (from) drawing.append(draw("circle", { cx: x(from[0]), cy: y(from[1]), r: 6, class: "own" }));
    if (to) drawing.append(draw("rect", { x: x(to[0]) - 5, y: y(to[1]) - 5, width: 10, height: 10, class: "exact" }));
    const at = from ?? to;
    if (at) word(label, x(at[0]) + 9, height(label, x(at[0]) + 9, y(at[1]) - 7), "start", "label");
  }
  const told = (place) => (place ? place.map((value) => signed(decimal(value, 2))).join(", ") : "–");
  const lines = points.map(({ label, own, exact, n }) => el("tr", "", el("th", "", label), el("td", "", told(own)), el("td", "", told(exact)), el("td", "", n)));
  const heads = el("tr", "", el("td"), ...[...names, "n"].map((name) => el("th", "", name)));
  return [legend(names), drawing, heard(el("thead", "", heads), el("tbody", "", ...lines))];
}

function curves({ steps, lines, x: along, y: up }) {
  const all = lines.flatMap(({ values }) => values), [least, most] = [Math.min(...all), Math.max(...all)];
  const [last] = steps.slice(-1);
  const x = (step) => EDGE + (step / last) * (WIDE - 1.3 * EDGE), y = (value) => HIGH - EDGE - ((value - least) / (most - least || 1)) * (HIGH - 1.5 * EDGE);
  const drawing = draw("svg", { viewBox: `0 0 ${WIDE} ${HIGH}`, "aria-hidden": "true" });
  for (const value of [least, (least + most) / 2, most]) {
    drawing.append(draw("line", { x1: EDGE, x2: WIDE, y1: y(value), y2: y(value), class: "axis" }), draw("text", { x: EDGE - 6, y: y(value) + 5, "text-anchor": "end", class: "end" }, decimal(value, 2)));
  }
  lines.forEach(({ values }, place) => {
    const path = draw("polyline", { points: values.map((value, step) => `${x(steps[step]).toFixed(1)},${y(value).toFixed(1)}`).join(" "), class: "curve" });
    path.style.stroke = `oklch(0.6 0.15 ${(360 * (place % HUES)) / HUES})`;
    drawing.append(path);
  });
  drawing.append(draw("text", { x: WIDE, y: HIGH - 12, "text-anchor": "end", class: "end" }, `${along} → ${Math.round(last)}`), draw("text", { x: 4, y: 16, class: "end" }, up));
  const ends = lines.map(({ label, values }) => el("tr", "", el("th", "", label), el("td", "", decimal(values[values.length - 1], 3))));
  return [drawing, heard(el("tbody", "", ...ends))];
}

const FORMS = { bars, board, map, curves };

// A class's picture as nodes: its sentences, then its figures.
export function picture({ figures, said }) {
  const drawn = figures.map((body) => el("figure", `class ${body.form}`, el("figcaption", "", body.title), ...FORMS[body.form](body)));
  return [el("div", "said", ...said.map((line) => el("p", "", line))), el("div", "figures", ...drawn)];
}
