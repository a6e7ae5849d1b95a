// The chips as a picture: every box and text is drawn where the browser put it.
// Next: chips.js.

import { headSvg } from "../matrix/caption.js";

const NAMESPACE = "http://www.w3.org/2000/svg";
const BOXES = ".vt-chip";

function shape(name, attributes, text = "") {
  const node = document.createElementNS(NAMESPACE, name);
  for (const [key, value] of Object.entries(attributes)) node.setAttribute(key, value);
  node.textContent = text;
  return node;
}

// One run of text, as wide as it is on the screen, whatever font the reader has.
function written(node, box, left, top, limit) {
  const style = getComputedStyle(node.parentElement);
  const size = parseFloat(style.fontSize);
  const cut = box.right > limit + 1;
  const text = cut ? `${node.textContent.slice(0, 16)}…` : node.textContent;
  const lines = Math.max(1, Math.round(box.height / (size * 1.4)));
  const at = { x: box.left - left, y: box.top - top + (box.height / lines + size * 0.7) / 2, fill: style.color, "font-size": size };
  const width = cut || lines > 1 ? {} : { textLength: box.width, lengthAdjust: "spacingAndGlyphs" };
  return shape("text", { ...at, ...width, "font-weight": style.fontWeight, "font-style": style.fontStyle, "xml:space": "preserve" }, text);
}

// The colours and sizes are those on the screen, read from the computed style.
export function drawSvg(root, rows, figure) {
  const { left, top, width, height } = rows.getBoundingClientRect();
  const base = getComputedStyle(root);
  const svg = shape("svg", { xmlns: NAMESPACE, width, height, viewBox: `0 0 ${width} ${height}`, "font-family": base.fontFamily });
  const paper = base.getPropertyValue("--vt-paper").trim() || "#ffffff";
  svg.append(shape("rect", { width, height, fill: paper }));
  for (const node of rows.querySelectorAll(BOXES)) {
    const box = node.getBoundingClientRect();
    const style = getComputedStyle(node);
    const dash = style.borderTopStyle === "dashed" ? { "stroke-dasharray": "4 3" } : {};
    const at = { x: box.left - left, y: box.top - top, width: box.width, height: box.height, rx: 5 };
    svg.append(shape("rect", { ...at, fill: style.backgroundColor, stroke: style.borderTopColor, ...dash }));
    const foot = box.bottom - top - 2;
    svg.append(shape("rect", { x: box.left - left, y: foot, width: box.width, height: 2, fill: style.borderBottomColor }));
  }
  const texts = document.createTreeWalker(rows, NodeFilter.SHOW_TEXT);
  const range = document.createRange();
  while (texts.nextNode()) {
    range.selectNode(texts.currentNode);
    const box = range.getBoundingClientRect();
    const limit = texts.currentNode.parentElement.closest(".vt-label")?.getBoundingClientRect().right ?? Infinity;
    if (!box.width || box.left > limit) continue;
    svg.append(written(texts.currentNode, box, left, top, limit));
  }
  headSvg(svg, figure, { paper, ink: base.color });
  return new XMLSerializer().serializeToString(svg);
}

export function toPng(svg) {
  const image = new Image();
  return new Promise((done, fail) => {
    image.onerror = fail;
    image.onload = () => {
      const canvas = document.createElement("canvas");
      Object.assign(canvas, { width: image.width * 2, height: image.height * 2 });
      canvas.getContext("2d").drawImage(image, 0, 0, canvas.width, canvas.height);
      canvas.toBlob(done, "image/png");
    };
    image.src = `data:image/svg+xml;charset=utf-8,${encodeURIComponent(svg)}`;
  });
}
