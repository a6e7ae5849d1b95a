"""The architecture as a diagram, drawn from the sizes of a model that is loaded and of the sentence it reads.

Vaswani et al. 2017, figure 1, laid along the residual stream. Read next: matrix.py.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from html import escape

STREAM_Y, BRANCH_Y = 214, 92
WIDTH, HEIGHT = 1180, 300


@dataclass(frozen=True)
class Architecture:
    """Sizes of an encoder that classifies, and of one sentence.

    Args:
        n_tokens: positions of the sentence.
        vocab_size, d_model, n_heads, d_head, d_ff, n_layers, n_classes: as in ModelConfig.
        positions: the position scheme; "rotary", "alibi" and "none" add no vector.
        norm_order: "pre" or "post".
        pooling: "cls" or "mean".
    """

    n_tokens: int
    vocab_size: int
    d_model: int
    n_heads: int
    d_head: int
    d_ff: int
    n_layers: int
    n_classes: int
    positions: str
    norm_order: str
    pooling: str


def architecture_svg(model: Architecture, words: Mapping[str, str], pages: Mapping[str, str]) -> str:
    """Draw the diagram.

    Args:
        words: labels by name.
        pages: titles of the pages that exist, by part; only these parts can be clicked.

    Returns:
        An SVG element, every text in it escaped.
    """
    draw = _Drawing(words, pages)
    stream = f"(1, {model.n_tokens}, {model.d_model})"
    draw.box("tokens", 58, STREAM_Y, 104, words["tokens"], f"(1, {model.n_tokens})")
    draw.arrow(110, 134, STREAM_Y, "")
    draw.box("embedding", 198, STREAM_Y, 128, words["embedding"], f"{model.vocab_size:,} × {model.d_model}")
    if model.positions not in ("rotary", "alibi", "none"):
        draw.box("positions", 198, BRANCH_Y, 128, words["positions"], f"({model.n_tokens}, {model.d_model})")
        draw.line(198, BRANCH_Y + 30, 198, STREAM_Y - 30, "positions", arrow=True)
    draw.arrow(262, 376, STREAM_Y, stream)
    _layer(draw, model)
    draw.arrow(886, 1010, STREAM_Y, stream)
    pooled = words["cls"] if model.pooling == "cls" else words["mean"]
    draw.box("pooled", 1066, STREAM_Y, 104, pooled, f"(1, {model.d_model})")
    draw.line(1066, STREAM_Y - 30, 1066, BRANCH_Y + 30, "stream", arrow=True)
    draw.box("classifier", 1066, BRANCH_Y, 120, words["classifier"], f"(1, {model.n_classes})")
    return draw.svg(words["label"])


def _layer(draw: "_Drawing", model: Architecture) -> None:
    words, pre = draw.words, model.norm_order == "pre"
    draw.frame(376, 510, words["layers"].format(count=model.n_layers))
    draw.line(376, STREAM_Y, 886, STREAM_Y, "stream")
    draw.text(396, STREAM_Y + 24, words["residual"], "small", anchor="start")
    heads = words["heads"].format(count=model.n_heads, width=model.d_head)
    widths = f"{model.d_model} → {model.d_ff:,} → {model.d_model}"
    pairs = f"(1, {model.n_heads}, {model.n_tokens}, {model.n_tokens})"
    branches = (
        ("attention", 416, 516, 616, heads, pairs),
        ("feed_forward", 660, 755, 848, widths, f"(1, {model.n_tokens}, {model.d_ff})"),
    )
    for part, up, middle, down, detail, inside in branches:
        draw.text(middle, BRANCH_Y - 38, inside, "shape")
        draw.line(up, STREAM_Y, up, BRANCH_Y, "branch")
        draw.line(up, BRANCH_Y, down, BRANCH_Y, "branch")
        draw.line(down, BRANCH_Y, down, STREAM_Y - 11, "branch", arrow=True)
        draw.box(part, middle, BRANCH_Y, 164 if part == "attention" else 150, words[part], detail)
        draw.plus(down, STREAM_Y)
        norm_x, norm_y = (up, 156) if pre else (down + 32, STREAM_Y)
        draw.pill(norm_x, norm_y, words["norm"])
    if pre:
        draw.pill(942, STREAM_Y, words["final_norm"])


class _Drawing:
    """Collect shapes; the last ones lie on top."""

    def __init__(self, words: Mapping[str, str], pages: Mapping[str, str]) -> None:
        self.words, self.pages = words, pages
        self._lines: list[str] = []
        self._shapes: list[str] = []

    def box(self, part: str, x: float, y: float, width: float, title: str, detail: str) -> None:
        self._shapes.append(
            f'<g class="box {escape(part)}"{self._button(part)}>'
            f'<rect x="{x - width / 2}" y="{y - 30}" width="{width}" height="60" rx="9"/>'
            f'<text x="{x}" y="{y - 4}">{escape(title)}</text>'
            f'<text x="{x}" y="{y + 16}" class="shape">{escape(detail)}</text></g>'
        )

    def _button(self, part: str) -> str:
        if part not in self.pages:
            return ""
        label = escape(self.words["open"].format(page=self.pages[part]))
        return f' role="button" tabindex="0" data-part="{escape(part)}" aria-label="{label}"'

    def pill(self, x: float, y: float, title: str) -> None:
        self._shapes.append(
            f'<g class="pill"{self._button("norm")}><rect x="{x - 26}" y="{y - 11}" width="52" height="22" rx="11"/>'
            f'<text x="{x}" y="{y + 4}" class="small">{escape(title)}</text></g>'
        )

    def plus(self, x: float, y: float) -> None:
        cross = f"M{x - 5} {y}H{x + 5}M{x} {y - 5}V{y + 5}"
        self._shapes.append(f'<g class="plus"><circle cx="{x}" cy="{y}" r="11"/><path d="{cross}"/></g>')

    def frame(self, x: float, width: float, title: str) -> None:
        self._lines.append(f'<rect class="frame" x="{x}" y="34" width="{width}" height="232" rx="14"/>')
        self.text(x + width / 2, 24, title, "frame-title")

    def line(self, x1: float, y1: float, x2: float, y2: float, role: str, *, arrow: bool = False) -> None:
        end = ' marker-end="url(#tip)"' if arrow else ""
        self._lines.append(f'<line class="{role}" x1="{x1}" y1="{y1}" x2="{x2}" y2="{y2}"{end}/>')

    def arrow(self, x1: float, x2: float, y: float, shape: str) -> None:
        self.line(x1, y, x2, y, "stream", arrow=True)
        self.text((x1 + x2) / 2, y + 24, shape, "shape")

    def text(self, x: float, y: float, text: str, role: str, *, anchor: str = "middle") -> None:
        self._lines.append(f'<text class="{role}" x="{x}" y="{y}" style="text-anchor:{anchor}">{escape(text)}</text>')

    def svg(self, label: str) -> str:
        tip = (
            '<defs><marker id="tip" viewBox="0 0 8 8" refX="7" refY="4" '
            'markerUnits="userSpaceOnUse" markerWidth="13" markerHeight="13" orient="auto">'
            '<path d="M0 0L8 4L0 8z"/></marker></defs>'
        )
        return (
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" role="group" '
            f'aria-label="{escape(label)}">{tip}{"".join(self._lines)}{"".join(self._shapes)}</svg>'
        )
