// What a picture is of, above it in its file: on the screen that stands in the page.
// Text goes in through fillText and textContent alone. Next: table.js.

const CAPTION_SPACE = "http://www.w3.org/2000/svg";
const CAPTION_LINE = 18;
const CAPTION_LEFT = 10;
const WIDE_SIGN = /[\u1100-\u11ff\u2e80-\uffef]/u;
const CAPTION_PARTS = /[\u1100-\u11ff\u2e80-\uffef]|[^\s\u1100-\u11ff\u2e80-\uffef]{1,24}\s*|\s+/gu;

// Lines of at most so many columns, broken at blanks where there are any; a Chinese sign takes two columns.
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

// The lines above a picture of this width, each with its place, and the room that they take.
export function headLines({ title, caption }, width) {
  const most = Math.max(24, Math.floor((width - 2 * CAPTION_LEFT) / 7));
  const texts = [title ?? "", ...(caption ?? [])].map((line, i) => foldedLine(line, most).map((text) => ({ text, weight: i ? 400 : 600 })));
  const lines = texts.flat().filter(({ text }) => text);
  return { lines: lines.map((line, i) => ({ ...line, x: CAPTION_LEFT, y: CAPTION_LINE * (i + 1), size: 13 })), room: lines.length ? CAPTION_LINE * lines.length + 12 : 0 };
}

// Puts the lines above an SVG document, which grows by their room.
export function headSvg(root, figure, { paper, ink }) {
  const width = Number(root.getAttribute("width"));
  const height = Number(root.getAttribute("height"));
  const { lines, room } = headLines(figure, width);
  const make = (name, attributes, text = "") => {
    const node = document.createElementNS(CAPTION_SPACE, name);
    for (const [key, value] of Object.entries(attributes)) node.setAttribute(key, value);
    node.textContent = text;
    return node;
  };
  const texts = lines.map(({ text, x, y, size, weight }) => make("text", { x, y: y - room, "font-size": size, "font-weight": weight, fill: ink }, text));
  root.setAttribute("height", height + room);
  root.setAttribute("viewBox", `0 ${-room} ${width} ${height + room}`);
  root.append(make("rect", { x: 0, y: -room, width, height: room, fill: paper }), ...texts);
}
