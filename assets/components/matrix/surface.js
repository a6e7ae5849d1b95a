// Two surfaces with the same methods, a canvas and an SVG document, so that an export equals the screen.
// Labels enter through fillText and textContent only, never as markup.

import { css, mix, ramp } from "./colour.js";
import { edgeX, edgeY, hasHoles } from "./geometry.js";
import { LEVELS, MASKED, codesOf } from "./unpack.js";

const SVG = "http://www.w3.org/2000/svg";
const CELLS_AS_VECTORS = 20000;

// Calls take(pixel, code) for every pixel of a smaller image, with the code farthest from zero among its cells.
function strongest(panel, codes, width, height, take) {
  const centre = panel.scale.kind === "signed" ? LEVELS / 2 : 0;
  for (let y = 0; y < height; y += 1) {
    const firstRow = Math.floor((y * panel.height) / height);
    const lastRow = Math.ceil(((y + 1) * panel.height) / height);
    for (let x = 0; x < width; x += 1) {
      const firstCol = Math.floor((x * panel.width) / width);
      const lastCol = Math.ceil(((x + 1) * panel.width) / width);
      let best = MASKED;
      for (let row = firstRow; row < lastRow; row += 1) {
        for (let i = row * panel.width + firstCol; i < row * panel.width + lastCol; i += 1) {
          const code = codes[i];
          if (code !== MASKED && (best === MASKED || Math.abs(code - centre) > Math.abs(best - centre))) best = code;
        }
      }
      take(y * width + x, best);
    }
  }
}

// A panel as an image of one pixel per cell, or per device pixel (its strongest cell) where cells are smaller.
function heatImage(panel, theme, wide, high) {
  const width = Math.min(panel.width, wide);
  const height = Math.min(panel.height, high);
  const key = `${theme.key} ${width} ${height}`;
  if (panel.image?.key === key) return panel.image.canvas;
  const colours = ramp(theme, panel.role, panel.scale.kind);
  const pixels = new ImageData(width, height);
  const words = new Uint32Array(pixels.data.buffer);
  const table = colours.map(([r, g, b]) => (255 << 24) | (b << 16) | (g << 8) | r);
  table[MASKED] = 0;
  const codes = codesOf(panel);
  if (width === panel.width && height === panel.height) for (let i = 0; i < codes.length; i += 1) words[i] = table[codes[i]];
  else strongest(panel, codes, width, height, (i, code) => (words[i] = table[code]));
  const canvas = panel.image?.canvas ?? document.createElement("canvas");
  if (canvas.width !== width || canvas.height !== height) Object.assign(canvas, { width, height });
  canvas.getContext("2d").putImageData(pixels, 0, 0);
  panel.image = { key, canvas };
  return canvas;
}

// The part of the image that a zoomed box shows, in the image's pixels.
function sourceOf(box, image) {
  const [left, right] = box.view?.x ?? [0, box.panel.width];
  const [top, bottom] = box.view?.y ?? [0, box.panel.height];
  const sx = image.width / box.panel.width;
  const sy = image.height / box.panel.height;
  return [left * sx, top * sy, (right - left) * sx, (bottom - top) * sy];
}

export const zoomed = (box) => box.view && (box.view.x[1] - box.view.x[0] < box.panel.width || box.view.y[1] - box.view.y[0] < box.panel.height);

// Sets the size of a canvas in CSS pixels, with `ratio` device pixels each.
export function sized(canvas, width, height, ratio) {
  const size = { width: Math.round(width * ratio), height: Math.round(height * ratio) };
  if (canvas.width !== size.width || canvas.height !== size.height) Object.assign(canvas, size);
  Object.assign(canvas.style, { width: `${width}px`, height: `${height}px` });
}

export class CanvasSurface {
  constructor(context, theme, ratio) {
    Object.assign(this, { context, theme, ratio });
    context.setTransform(ratio, 0, 0, ratio, 0, 0);
    context.imageSmoothingEnabled = false;
  }

  rect(x, y, w, h, { fill, stroke, width = 1, radius = 0, alpha = 1 }) {
    const { context } = this;
    context.globalAlpha = alpha;
    if (fill) context.fillStyle = fill;
    if (stroke) Object.assign(context, { strokeStyle: stroke, lineWidth: width });
    if (radius) {
      context.beginPath();
      context.roundRect(x, y, w, h, radius);
      if (fill) context.fill();
      if (stroke) context.stroke();
    } else {
      if (fill) context.fillRect(x, y, w, h);
      if (stroke) context.strokeRect(x, y, w, h);
    }
    context.globalAlpha = 1;
  }

  text(text, x, y, { size = 12, weight = 400, fill, anchor = "start" }) {
    const { context } = this;
    const font = `${weight} ${size}px ${this.theme.font}`;
    if (font !== this.font) context.font = this.font = font; // it is read anew, and the page's style with it
    context.fillStyle = fill;
    context.textAlign = { start: "left", middle: "center", end: "right" }[anchor];
    context.direction = "ltr";
    context.fillText(text, x, y);
  }

  turned(x, y, degrees, draw) {
    this.aside(() => {
      this.context.translate(x, y);
      this.context.rotate((degrees * Math.PI) / 180);
      draw();
    });
  }

  within(x, y, w, h, draw) {
    this.aside(() => {
      this.context.beginPath();
      this.context.rect(x, y, w, h);
      this.context.clip();
      draw();
    });
  }

  // Draws, and leaves the context as it was.
  aside(draw) {
    const { font } = this;
    this.context.save();
    draw();
    this.context.restore();
    this.font = font;
  }

  hatched(x, y, w, h) {
    this.tile ??= hatchTile(this.theme, this.ratio);
    const pattern = this.context.createPattern(this.tile, "repeat");
    pattern.setTransform(new DOMMatrix().scale(1 / this.ratio));
    this.context.fillStyle = pattern;
    this.context.fillRect(x, y, w, h);
  }

  heat(box) {
    const device = [Math.max(1, Math.round(box.w * this.ratio)), Math.max(1, Math.round(box.h * this.ratio))];
    const image = heatImage(box.panel, this.theme, zoomed(box) ? Infinity : device[0], zoomed(box) ? Infinity : device[1]);
    if (hasHoles(box.panel)) this.hatched(box.x, box.y, box.w, box.h); // masked pixels of the image are transparent
    this.context.drawImage(image, ...sourceOf(box, image), box.x, box.y, box.w, box.h);
  }
}

function hatchTile(theme, ratio) {
  const side = Math.round(6 * ratio);
  const tile = Object.assign(document.createElement("canvas"), { width: side, height: side });
  const context = tile.getContext("2d");
  context.fillStyle = css(mix(theme.background, theme.text, 0.06));
  context.fillRect(0, 0, side, side);
  context.strokeStyle = css(mix(theme.background, theme.text, 0.24));
  context.lineWidth = Math.max(1, 0.8 * ratio);
  context.beginPath();
  for (const shift of [-side, 0, side]) {
    context.moveTo(shift, side);
    context.lineTo(shift + side, 0);
  }
  context.stroke();
  return tile;
}

export class SvgSurface {
  constructor(width, height, theme, ruler) {
    Object.assign(this, { theme, ruler, ratio: 1, clips: 0 });
    this.root = this.make("svg", { width, height, viewBox: `0 0 ${width} ${height}`, "font-family": theme.font }, null);
    this.parent = this.root;
    this.defs = this.make("defs", {});
    const pattern = this.make("pattern", { id: "masked", width: 6, height: 6, patternUnits: "userSpaceOnUse" }, this.defs);
    this.make("rect", { width: 6, height: 6, fill: css(mix(theme.background, theme.text, 0.06)) }, pattern);
    this.make("path", { d: "M-1,1 l2,-2 M0,6 l6,-6 M5,7 l2,-2", stroke: css(mix(theme.background, theme.text, 0.24)), "stroke-width": 0.8 }, pattern);
    this.rect(0, 0, width, height, { fill: theme.paper });
  }

  make(name, attributes, parent = this.parent) {
    const node = document.createElementNS(SVG, name);
    for (const [key, value] of Object.entries(attributes)) node.setAttribute(key, typeof value === "number" ? +value.toFixed(3) : value);
    parent?.append(node);
    return node;
  }

  rect(x, y, width, height, { fill, stroke, width: line = 1, radius = 0, alpha = 1 }) {
    const attributes = { x, y, width, height, fill: fill ?? "none" };
    if (radius) attributes.rx = radius;
    if (alpha < 1) attributes.opacity = alpha;
    if (stroke) Object.assign(attributes, { stroke, "stroke-width": line });
    this.make("rect", attributes);
  }

  text(text, x, y, { size = 12, weight = 400, fill, anchor = "start" }) {
    const textLength = this.ruler.width(text, size, weight); // a viewer's font may be wider than ours
    const attributes = { x, y, "font-size": size, "font-weight": weight, fill, "text-anchor": anchor };
    this.make("text", { ...attributes, textLength, lengthAdjust: "spacingAndGlyphs" }).textContent = text;
  }

  inside(node, draw) {
    const { parent } = this;
    this.parent = node;
    draw();
    this.parent = parent;
  }

  turned(x, y, degrees, draw) {
    this.inside(this.make("g", { transform: `translate(${x.toFixed(2)} ${y.toFixed(2)}) rotate(${degrees})` }), draw);
  }

  within(x, y, width, height, draw) {
    const id = `clip${(this.clips += 1)}`;
    this.make("rect", { x, y, width, height }, this.make("clipPath", { id }, this.defs));
    this.inside(this.make("g", { "clip-path": `url(#${id})` }), draw);
  }

  hatched(x, y, width, height) {
    this.make("rect", { x, y, width, height, fill: "url(#masked)" });
  }

  heat(box, cells) {
    if (hasHoles(box.panel)) this.hatched(box.x, box.y, box.w, box.h);
    if (cells > CELLS_AS_VECTORS) {
      const image = heatImage({ ...box.panel, image: null }, this.theme, Infinity, Infinity);
      const [x, y, w, h] = sourceOf(box, image);
      const place = { x: box.x, y: box.y, width: box.w, height: box.h };
      const frame = this.make("svg", { ...place, viewBox: `${x} ${y} ${w} ${h}`, preserveAspectRatio: "none" });
      const { width, height } = image;
      this.make("image", { width, height, href: image.toDataURL(), preserveAspectRatio: "none", style: "image-rendering:pixelated" }, frame);
      return;
    }
    this.within(box.x, box.y, box.w, box.h, () => this.cells(box));
  }

  // Draws one rectangle for each run of equal cells in a row.
  cells(box) {
    const { panel } = box;
    const codes = codesOf(panel);
    const colours = ramp(this.theme, panel.role, panel.scale.kind);
    const group = this.make("g", { "shape-rendering": "crispEdges" });
    const scene = { ratio: 100 };
    for (let row = 0; row < panel.height; row += 1) {
      const y = edgeY(scene, box, row);
      const height = edgeY(scene, box, row + 1) - y;
      for (let col = 0, end = 0; col < panel.width; col = end) {
        const code = codes[row * panel.width + col];
        end = col + 1;
        while (end < panel.width && codes[row * panel.width + end] === code) end += 1;
        if (code === MASKED) continue;
        const x = edgeX(scene, box, col);
        this.make("rect", { x, y, width: edgeX(scene, box, end) - x, height, fill: css(colours[code]) }, group);
      }
    }
  }
}
