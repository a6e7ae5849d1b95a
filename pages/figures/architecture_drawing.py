"""What the architecture diagram is drawn with: boxes that open a page, arrows with shapes, sums and norms.

Read next: architecture.py.
"""

from collections.abc import Mapping
from html import escape

STREAM_Y, BRANCH_Y = 214, 92
WIDTH, HEIGHT = 1180, 300


class Drawing:
    """Collect shapes; the last ones lie on top.

    Args:
        words: labels by name.
        pages: titles of the pages that exist, by part; only these parts can be clicked.
        height: of the whole drawing.
    """

    def __init__(self, words: Mapping[str, str], pages: Mapping[str, str], height: int = HEIGHT) -> None:
        self.words, self.pages, self.height = words, pages, height
        self.down = 0.0  # how far below its usual place everything is drawn from now on
        self._lines: list[str] = []
        self._shapes: list[str] = []

    def box(self, part: str, x: float, y: float, width: float, title: str, detail: str) -> None:
        """Draw a part of the model, its middle at x and y."""
        self._shapes.append(
            f'<g class="box {escape(part)}"{self._button(part)}>'
            f'<rect x="{x - width / 2}" y="{y - 30 + self.down}" width="{width}" height="60" rx="9"/>'
            f'<text x="{x}" y="{y - 4 + self.down}">{escape(title)}</text>'
            f'<text x="{x}" y="{y + 16 + self.down}" class="shape">{escape(detail)}</text></g>'
        )

    def _button(self, part: str) -> str:
        if part not in self.pages:
            return ""
        label = escape(self.words["open"].format(page=self.pages[part]))
        return f' role="button" tabindex="0" data-part="{escape(part)}" aria-label="{label}"'

    def pill(self, x: float, y: float, title: str) -> None:
        """Draw a normalisation."""
        y += self.down
        self._shapes.append(
            f'<g class="pill"{self._button("norm")}><rect x="{x - 26}" y="{y - 11}" width="52" height="22" rx="11"/>'
            f'<text x="{x}" y="{y + 4}" class="small">{escape(title)}</text></g>'
        )

    def caption(self, part: str, x: float, y: float, title: str) -> None:
        """Write a part's name where the part itself is a line, beginning at x."""
        y += self.down
        self._shapes.append(
            f'<g class="caption"{self._button(part)}><rect x="{x - 6}" y="{y - 14}" width="104" height="20" rx="6"/>'
            f'<text x="{x}" y="{y}" class="small" style="text-anchor:start">{escape(title)}</text></g>'
        )

    def plus(self, x: float, y: float) -> None:
        """Draw a sum."""
        y += self.down
        cross = f"M{x - 5} {y}H{x + 5}M{x} {y - 5}V{y + 5}"
        self._shapes.append(f'<g class="plus"><circle cx="{x}" cy="{y}" r="11"/><path d="{cross}"/></g>')

    def frame(self, x: float, width: float, title: str, *, start: bool = False) -> None:
        """Draw the border of the layers with its title."""
        self._lines.append(f'<rect class="frame" x="{x}" y="{34 + self.down}" width="{width}" height="232" rx="14"/>')
        place, anchor = (x + 4, "start") if start else (x + width / 2, "middle")
        self.text(place, 24, title, "frame-title", anchor=anchor)

    def line(self, x1: float, y1: float, x2: float, y2: float, role: str, *, arrow: bool = False) -> None:
        """Draw a line of one role: stream, branch, positions or memory."""
        y1, y2 = y1 + self.down, y2 + self.down
        end = ' marker-end="url(#tip)"' if arrow else ""
        self._lines.append(f'<line class="{role}" x1="{x1}" y1="{y1}" x2="{x2}" y2="{y2}"{end}/>')

    def arrow(self, x1: float, x2: float, y: float, shape: str) -> None:
        """Draw the stream going on, with the shape of what flows."""
        self.line(x1, y, x2, y, "stream", arrow=True)
        self.text((x1 + x2) / 2, y + 24, shape, "shape")

    def text(self, x: float, y: float, text: str, role: str, *, anchor: str = "middle") -> None:
        """Write a text, all of it escaped."""
        self._lines.append(
            f'<text class="{role}" x="{x}" y="{y + self.down}" style="text-anchor:{anchor}">{escape(text)}</text>'
        )

    def svg(self, label: str) -> str:
        """Return the whole as an SVG element."""
        tip = (
            '<defs><marker id="tip" viewBox="0 0 8 8" refX="7" refY="4" '
            'markerUnits="userSpaceOnUse" markerWidth="13" markerHeight="13" orient="auto">'
            '<path d="M0 0L8 4L0 8z"/></marker></defs>'
        )
        return (
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {self.height}" role="group" '
            f'aria-label="{escape(label)}">{tip}{"".join(self._lines)}{"".join(self._shapes)}</svg>'
        )
