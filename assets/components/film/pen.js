// The matrix's two surfaces, canvas and SVG, extended by lines and marks, so that an export equals the screen.

import { CanvasSurface, SvgSurface } from "../matrix/surface.js";

const star = Array.from({ length: 10 }, (_, k) => {
  const angle = (k * Math.PI) / 5 - Math.PI / 2;
  const reach = k % 2 ? 0.46 : 1.15;
  return [reach * Math.cos(angle), reach * Math.sin(angle)];
});

// Corners of marks of radius 1; a circle has none. Train is drawn as circle, held out as diamond.
const CORNERS = { circle: null, diamond: [[0, -1.3], [1.3, 0], [0, 1.3], [-1.3, 0]], star };
const CROSS = [[-0.72, -0.72, 0.72, 0.72], [-0.72, 0.72, 0.72, -0.72]];
const REACH = 1.4;

export class CanvasPen extends CanvasSurface {
  // stamps: cache of drawn marks; its owner clears it when theme or pixel ratio change.
  constructor(context, theme, ratio, stamps = new Map()) {
    super(context, theme, ratio);
    this.stamps = stamps;
  }

  // Points as x, y, x, y; NaN leaves a gap.
  line(points, { stroke, width = 1.5, dash = [], alpha = 1 }) {
    const { context } = this;
    context.beginPath();
    let down = false;
    for (let i = 0; i < points.length; i += 2) {
      const there = Number.isFinite(points[i + 1]);
      if (there && down) context.lineTo(points[i], points[i + 1]);
      else if (there) context.moveTo(points[i], points[i + 1]);
      down = there;
    }
    Object.assign(context, { strokeStyle: stroke, lineWidth: width, lineJoin: "round", lineCap: "round", globalAlpha: alpha });
    context.setLineDash(dash);
    context.stroke();
    context.setLineDash([]);
    context.globalAlpha = 1;
  }

  mark(kind, x, y, radius, style) {
    const key = `${kind} ${radius} ${style.fill} ${style.stroke} ${style.width} ${style.alpha}`;
    if (!this.stamps.has(key)) this.stamps.set(key, stampOf(kind, radius, style, this.ratio));
    const stamp = this.stamps.get(key);
    const side = stamp.width / this.ratio;
    this.context.imageSmoothingEnabled = true; // marks between two pixels move smoothly
    this.context.drawImage(stamp, x - side / 2, y - side / 2, side, side);
    this.context.imageSmoothingEnabled = false;
  }

  // Text with an outline in the page's colour, legible over marks.
  lettered(text, x, y, style) {
    const { context } = this;
    Object.assign(context, { font: `${style.weight ?? 400} ${style.size}px ${this.theme.font}`, strokeStyle: this.theme.paper, lineWidth: 4, lineJoin: "round" });
    context.textAlign = { start: "left", middle: "center", end: "right" }[style.anchor ?? "start"];
    context.globalAlpha = style.alpha ?? 1;
    context.strokeText(text, x, y);
    this.text(text, x, y, style);
    context.globalAlpha = 1;
  }
}

function stampOf(kind, radius, { fill, stroke, width = 1, alpha = 1 }, ratio) {
  const side = 2 * Math.ceil((radius * REACH + width + 1) * ratio);
  const canvas = Object.assign(document.createElement("canvas"), { width: side, height: side });
  const context = canvas.getContext("2d");
  context.translate(side / 2, side / 2);
  context.scale(ratio, ratio);
  context.beginPath();
  if (kind === "circle") context.arc(0, 0, radius, 0, 2 * Math.PI);
  else if (kind === "cross") for (const [x, y, u, v] of CROSS) context.moveTo(x * radius, y * radius), context.lineTo(u * radius, v * radius);
  else CORNERS[kind].forEach(([x, y], k) => context[k ? "lineTo" : "moveTo"](x * radius, y * radius));
  if (kind !== "cross") context.closePath();
  Object.assign(context, { globalAlpha: alpha, lineWidth: width, lineJoin: "round", lineCap: "round" });
  if (fill) Object.assign(context, { fillStyle: fill }).fill();
  if (stroke) Object.assign(context, { strokeStyle: stroke }).stroke();
  return canvas;
}

export class SvgPen extends SvgSurface {
  line(points, { stroke, width = 1.5, dash = [], alpha = 1 }) {
    let d = "";
    let down = false;
    for (let i = 0; i < points.length; i += 2) {
      const there = Number.isFinite(points[i + 1]);
      if (there) d += `${down ? "L" : "M"}${points[i].toFixed(2)} ${points[i + 1].toFixed(2)}`;
      down = there;
    }
    const attributes = { d, fill: "none", stroke, "stroke-width": width, "stroke-linejoin": "round", "stroke-linecap": "round" };
    if (dash.length) attributes["stroke-dasharray"] = dash.join(" ");
    if (alpha < 1) attributes.opacity = alpha;
    this.make("path", attributes);
  }

  mark(kind, x, y, radius, { fill = "none", stroke, width = 1, alpha = 1 }) {
    const attributes = { fill };
    if (stroke) Object.assign(attributes, { stroke, "stroke-width": width });
    if (alpha < 1) attributes.opacity = alpha;
    const at = ([u, v]) => `${(x + u * radius).toFixed(2)} ${(y + v * radius).toFixed(2)}`;
    if (kind === "circle") this.make("circle", { cx: x, cy: y, r: radius, ...attributes });
    else if (kind === "cross") this.make("path", { d: CROSS.map(([a, b, c, d]) => `M${at([a, b])}L${at([c, d])}`).join(""), ...attributes });
    else this.make("path", { d: `M${CORNERS[kind].map(at).join("L")}Z`, "stroke-linejoin": "round", ...attributes });
  }

  lettered(text, x, y, style) {
    const group = this.make("g", { "paint-order": "stroke", stroke: this.theme.paper, "stroke-width": 4, opacity: style.alpha ?? 1 });
    this.inside(group, () => this.text(text, x, y, style));
  }
}
