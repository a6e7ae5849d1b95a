// A run in other forms: a table of its frames for screen readers, pictures of one frame, and a video of the map.

import { decimal, el, fill, percent, visible } from "../kit.js";
import { download } from "../picture.js";
import { markStyle } from "./map.js";
import { CanvasPen, SvgPen } from "./pen.js";

const MEASURES = ["train_loss", "held_out_loss", "train_accuracy", "held_out_accuracy"];

export function frameTable(reel, words) {
  const head = ["frame", "step", "epoch", ...MEASURES].map((name) => {
    const cell = el("th", "", words[name]);
    cell.scope = "col";
    return cell;
  });
  const rows = reel.frames.map((frame) => {
    const numbers = MEASURES.map((name) => {
      const value = frame.measures[name] ?? NaN;
      return name.endsWith("accuracy") ? percent(value, 1) : decimal(value);
    });
    const cells = [String(frame.number), String(frame.step), decimal(frame.epoch ?? NaN, 2), ...numbers];
    return el("tr", "", ...cells.map((text) => el("td", "", text)));
  });
  const caption = el("caption", "", fill(words.table_caption, { name: visible(reel.run.name) }));
  return el("table", "", caption, el("thead", "", el("tr", "", ...head)), el("tbody", "", ...rows));
}

const HEADING = 40;
const KEY_LINE = 26;
const FOOT = 28;

const heightOf = (height, keyLines) => HEADING + height + keyLines.length * KEY_LINE + FOOT;

// Heading, legend and measures around the map, drawn with either pen.
function paintPicture(pen, panel, look, { width, height, keyLines }) {
  const { map, reel, words } = panel;
  const { theme } = map;
  pen.rect(0, 0, width, heightOf(height, keyLines), { fill: theme.paper });
  const frame = reel.frames[map.place.index];
  const title = fill(words.picture_title, { name: visible(reel.run.name), method: words[`method_${look.method}`] ?? look.method, step: frame.step });
  pen.text(map.ruler.fit(title, width - 16, 16, 600), 2, 25, { size: 16, weight: 600, fill: theme.ink });
  keyLines.forEach((items, line) => {
    const y = HEADING + height + line * KEY_LINE + 20;
    for (const { x, text, style } of items) {
      const [kind, radius, paint] = style;
      pen.mark(kind, x + 8, y - 5, radius, paint);
      pen.text(text, x + 20, y, { size: 14, fill: theme.ink });
    }
  });
  const measures = frame.layouts[look.method]?.measures ?? {};
  const said = { held_out: percent(measures.neighbours_held_out), train: percent(measures.neighbours_train), trust: decimal(measures.trustworthiness ?? NaN) };
  pen.text(map.ruler.fit(fill(words.picture_measures, said), width - 16, 13), 2, heightOf(height, keyLines) - 10, { size: 13, fill: theme.muted });
}

// Legend entries, wrapped into lines.
function keyOf(panel, look, width) {
  const { map, reel, words } = panel;
  const { theme, ruler } = map;
  const entries = [
    ...["train", "held_out"].map((part) => [words[part], markStyle(theme, theme.muted, part, 5)]),
    ...reel.run.labels.map((label, index) => [visible(label), ["circle", 5.5, { fill: look.colours[index] }]]),
  ];
  const lines = [[]];
  let x = 0;
  for (const [label, style] of entries) {
    const text = ruler.fit(label, 220, 14);
    const wide = ruler.width(text, 14) + 40;
    if (x && x + wide > width) [x] = [0, lines.push([])];
    lines.at(-1).push({ x, text, style });
    x += wide;
  }
  return lines;
}

// Draws the map below the heading.
function paintMap(pen, panel, width, height) {
  const draw = () => panel.map.draw(pen, width, height, panel.map.box, null);
  if (pen instanceof SvgPen) {
    pen.inside(pen.make("g", { transform: `translate(0 ${HEADING})` }), draw);
    return;
  }
  pen.context.save();
  pen.context.translate(0, HEADING);
  draw();
  pen.context.restore();
}

function canvasPicture(panel, look, canvas, ratio) {
  const { width, height, theme } = panel.map;
  const keyLines = keyOf(panel, look, width);
  const size = { width: Math.round(width * ratio), height: Math.round(heightOf(height, keyLines) * ratio) };
  if (canvas.width !== size.width || canvas.height !== size.height) Object.assign(canvas, size);
  const pen = new CanvasPen(canvas.getContext("2d"), theme, ratio, (canvas.stamps ??= new Map()));
  paintPicture(pen, panel, look, { width, height, keyLines });
  paintMap(pen, panel, width, height);
}

const fileName = (panel, look) => `${panel.reel.run.name || panel.reel.id} ${look.method} ${panel.reel.frames[panel.map.place.index].step}`;

export async function savePicture(panel, look, kind) {
  if (kind === "png") {
    const canvas = document.createElement("canvas");
    canvasPicture(panel, look, canvas, Math.max(2, window.devicePixelRatio || 1));
    download(await new Promise((done) => canvas.toBlob(done, "image/png")), `${fileName(panel, look)}.png`);
    return;
  }
  const { width, height, theme, ruler } = panel.map;
  const keyLines = keyOf(panel, look, width);
  const pen = new SvgPen(width, heightOf(height, keyLines), theme, ruler);
  paintPicture(pen, panel, look, { width, height, keyLines });
  paintMap(pen, panel, width, height);
  download(new Blob([new XMLSerializer().serializeToString(pen.root)], { type: "image/svg+xml" }), `${fileName(panel, look)}.svg`);
}

// Records the map as a video while the film plays: call `frame` after every drawing and `stop` at the end.
export function videoOf(panel, look) {
  const canvas = document.createElement("canvas");
  canvasPicture(panel, look, canvas, 1);
  const recorder = new MediaRecorder(canvas.captureStream(30), { videoBitsPerSecond: 6e6 });
  const chunks = [];
  recorder.ondataavailable = ({ data }) => data.size && chunks.push(data);
  recorder.onstop = () => download(new Blob(chunks, { type: "video/webm" }), `${panel.reel.run.name || panel.reel.id} ${look.method}.webm`);
  recorder.start();
  return { frame: () => canvasPicture(panel, look, canvas, 1), stop: () => void recorder.stop() };
}
