// A component's picture as a file: the caption above it, SVG as PNG, and the download.
// Labels enter through fillText and textContent only.

import { el } from "./kit.js";

const SVG_NAMESPACE = "http://www.w3.org/2000/svg";
const CAPTION_LINE = 18; // px
const CAPTION_LEFT = 10;
const WIDE_SIGN = /[\u1100-\u11ff\u2e80-\uffef]/u;
const CAPTION_PARTS = /[\u1100-\u11ff\u2e80-\uffef]|[^\s\u1100-\u11ff\u2e80-\uffef]{1,24}\s*|\s+/gu;

export function svgNode(name, attributes = {}, ...children) {
  const node = document.createElementNS(SVG_NAMESPACE, name);
  for (const [key, value] of Object.entries(attributes)) node.setAttribute(key, value);
  node.append(...children);
  return node;
}

// Lines of at most `most` columns, broken at blanks where possible; a Chinese character takes two columns.
function foldedLine(line, most) {
  const found = [""];
  let used = 0;
  for (const part of line.match(CAPTION_PARTS) ?? []) {
    const size = WIDE_SIGN.test(part) ? 2 : part.length;
    if (used && used + size > most) {
      found.push("");
      used = 0;
    }
    found[found.length - 1] += part;
    used += size;
  }
  return found.map((text) => text.trimEnd());
}

// The lines above a picture of this width with their positions, and the height they need.
export function headLines({ title, caption }, width) {
  const most = Math.max(24, Math.floor((width - 2 * CAPTION_LEFT) / 7));
  const texts = [title ?? "", ...(caption ?? [])].map((line, i) => foldedLine(line, most).map((text) => ({ text, weight: i ? 400 : 600 })));
  const lines = texts.flat().filter(({ text }) => text);
  return { lines: lines.map((line, i) => ({ ...line, x: CAPTION_LEFT, y: CAPTION_LINE * (i + 1), size: 13 })), room: lines.length ? CAPTION_LINE * lines.length + 12 : 0 };
}

// Adds the lines above an SVG document and makes it higher.
export function headSvg(root, figure, { paper, ink }) {
  const width = Number(root.getAttribute("width"));
  const height = Number(root.getAttribute("height"));
  const { lines, room } = headLines(figure, width);
  const texts = lines.map(({ text, x, y, size, weight }) => svgNode("text", { x, y: y - room, "font-size": size, "font-weight": weight, fill: ink }, text));
  root.setAttribute("height", height + room);
  root.setAttribute("viewBox", `0 ${-room} ${width} ${height + room}`);
  root.append(svgNode("rect", { x: 0, y: -room, width, height: room, fill: paper }), ...texts);
}

// A blob of SVG as PNG, at twice its size.
export async function pngOfSvg(blob) {
  const image = new Image();
  image.src = URL.createObjectURL(blob);
  await image.decode();
  const canvas = document.createElement("canvas");
  Object.assign(canvas, { width: 2 * image.width, height: 2 * image.height });
  canvas.getContext("2d").drawImage(image, 0, 0, canvas.width, canvas.height);
  URL.revokeObjectURL(image.src);
  return new Promise((done) => canvas.toBlob(done, "image/png"));
}

export function download(blob, filename) {
  const link = el("a");
  link.href = URL.createObjectURL(blob);
  link.download = filename.replace(/[^\p{L}\p{N}._ -]+/gu, "-");
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10000);
}
