"""A figure of one matrix or many, drawn on one canvas by assets/components/matrix.

A figure has panels with named axes and a scale each; it goes to the browser as bytes (one byte a value, or float32) and
into a file as one self-contained page. One head's arithmetic follows Vaswani et al. 2017, eq. 1.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from types import MappingProxyType
from typing import Any, Literal, get_args

import numpy as np

MOST_EXACT = 200_000  # cells of a figure that are sent in full precision
Role = Literal["weights", "query", "key", "value", "residual", "positions"]
Window = tuple[int, int | None]  # how many columns a row sees back and ahead, its own place in both; None for all
Kind = Literal["probability", "signed", "count", "mask", "added", "large"]


@dataclass(frozen=True)
class Axis:
    """Name one side of a matrix.

    Args:
        name: What its entries are, as drawn beside it, for example "query position".
        labels: One label an entry, whole; the drawing shortens what does not fit.
        key: Axes with one key move together when a cell is pointed at; the name if empty.
    """

    name: str
    labels: tuple[str, ...]
    key: str = ""

    @classmethod
    def counted(cls, name: str, count: int, key: str = "") -> Axis:
        """Return the side whose entries have nothing but a number."""
        return cls(name, tuple(map(str, range(count))), key)


@dataclass(frozen=True)
class Scale:
    """Bound the colours of a panel: every finite value lies in [low, high].

    Masks have no colour bar, their two values have two shades: "mask" for 1, may attend, and 0, hidden; "added" for
    the same as it is added to scores, 0 and minus infinity, and "large" for 0 and -1e20, also given as minus infinity.

    Raises:
        ValueError: If low is not below high, or a kind's own bounds are broken.
    """

    kind: Kind
    low: float
    high: float

    def __post_init__(self) -> None:
        if not (np.isfinite(self.low) and np.isfinite(self.high) and self.low < self.high):
            raise ValueError(f"scale low={self.low} must be below high={self.high}, both finite")
        if self.kind == "signed" and self.low != -self.high:
            raise ValueError(f"signed scale low={self.low} must be minus high={self.high}")
        if self.kind not in get_args(Kind):
            raise ValueError(f"scale kind={self.kind!r} must be one of {', '.join(get_args(Kind))}")

    @classmethod
    def of(cls, kind: Kind, *arrays: np.ndarray) -> Scale:
        """Return the scale that holds all arrays: [0, 1], symmetric about 0, or [0, greatest]."""
        if kind not in ("signed", "count"):
            return cls(kind, 0.0, 1.0)
        finite = (np.abs(array[np.isfinite(array)]) for array in map(np.asarray, arrays))
        greatest = max((float(part.max()) for part in finite if part.size), default=0.0) or 1.0
        return cls(kind, -greatest if kind == "signed" else 0.0, greatest)


@dataclass(frozen=True, eq=False)
class Panel:
    """Hold one matrix of the figure.

    Args:
        id: What a click reports.
        title: What is printed above it, for example "Head 3".
        values: (rows, cols); NaN and infinities mean masked.
        scale: The bounds of its colours.
        row_heading: Printed to the left of the line that this panel opens, for example "Layer 0".
        rows: Its own axis where it is not the figure's.
        cols: Its own axis where it is not the figure's.
        role: Its own hue where it is not the figure's.
        group: In a grid, printed over a bracket that spans the panels of a line that have it in common.
        window: Drawn as lines at its edges; None for no line.
    """

    id: str
    title: str
    values: np.ndarray
    scale: Scale
    row_heading: str = ""
    rows: Axis | None = None
    cols: Axis | None = None
    role: Role | None = None
    group: str = ""
    window: Window | None = None


@dataclass(frozen=True, eq=False)
class Explain:
    """Hold what one head's weights were computed from, in float32, so that the reader's browser can recompute them.

    Args:
        query: (query_pos, d_head).
        key: (key_pos, d_head).
        scores: (query_pos, key_pos), query @ key.T / divisor + bias, before the mask.
        masked_scores: (query_pos, key_pos), not finite where masked.
        weights: (query_pos, key_pos), after the softmax.
        divisor: The square root of d_head, unless the model divides by another number.
        cap: Scores s became cap * tanh(s / cap) before the bias, if any.
        bias: (query_pos, key_pos) added to the scores before the mask (ALiBi), if any.
        panels: Ids of the panels whose cells it explains; empty means those on the figure's own axes.
    """

    query: np.ndarray
    key: np.ndarray
    scores: np.ndarray
    masked_scores: np.ndarray
    weights: np.ndarray
    divisor: float
    bias: np.ndarray | None = None
    panels: tuple[str, ...] = ()
    cap: float | None = None

    @classmethod
    def of(cls, steps: Mapping[str, Any], panels: tuple[str, ...] = ()) -> Explain | None:
        """Return what explains a head by its steps, by name; None where its scores are no dot products."""
        if steps["divisor"] is None:
            return None
        drawn = {name: steps[name] for name in ("query", "key", "scores", "masked_scores", "weights", "divisor")}
        return cls(**drawn, panels=panels, bias=steps.get("bias"), cap=steps.get("cap"))

    def arrays(self) -> dict[str, np.ndarray]:
        """Return the arrays there are, by name."""
        names = ("query", "key", "scores", "masked_scores", "weights", "bias")
        return {name: np.asarray(getattr(self, name)) for name in names if getattr(self, name) is not None}

    def __post_init__(self) -> None:
        shapes = {name: array.shape for name, array in self.arrays().items()}
        if any(len(shape) != 2 for shape in shapes.values()) or shapes["query"][1:] != shapes["key"][1:]:
            got = f"{shapes['query']} and {shapes['key']}"
            raise ValueError(f"query and key must be (pos, d_head) with one d_head, got {got}")
        pairs = (shapes["query"][0], shapes["key"][0])
        for name, shape in shapes.items():
            if name not in ("query", "key") and shape != pairs:
                raise ValueError(f"{name} has shape {shape}, needed (query_pos, key_pos)={pairs}")
        if not self.divisor > 0:
            raise ValueError(f"divisor={self.divisor} must be above 0")


@dataclass(frozen=True)
class Switches:
    """Say what a click on a board of switches means.

    Args:
        panel: Id of the one that shows which are on, a mask.
        name: In the URL, of those that are off, with "-" between them.
        of: What stands before row and column in the name of a switch, as in "encoder.0.3".
        off: The names of all that are off, also of other boards.
    """

    panel: str
    name: str
    of: str
    off: tuple[str, ...]


def check_panel(panel: Panel, axes: tuple[Axis, Axis]) -> None:
    """Raise ValueError unless a panel's values fit its axes and its scale."""
    values = np.asarray(panel.values)
    needed = tuple(len(axis.labels) for axis in axes)
    if values.shape != needed or 0 in needed:
        raise ValueError(f"panel {panel.id!r} has values of shape {values.shape}, its axes have {needed} labels")
    finite = values[np.isfinite(values)]
    scale = panel.scale
    allowed = {"mask": (0, 1), "added": (0, -np.inf), "large": (0, -np.inf)}.get(scale.kind)
    if allowed and not np.isin(values, allowed).all():
        raise ValueError(f"panel {panel.id!r} is a mask; its values must be among {allowed}, got {np.unique(values)}")
    slack = 1e-4 * (scale.high - scale.low)
    if finite.size and (finite.min() < scale.low - slack or finite.max() > scale.high + slack):
        reach = f"[{finite.min():.6g}, {finite.max():.6g}]"
        bounds = f"[{scale.low:.6g}, {scale.high:.6g}]"
        raise ValueError(f"panel {panel.id!r} has values in {reach}, outside its scale {bounds}")


LEVELS = 254  # codes 0..254 are values from low to high
MASKED = 255
ALIGNMENT = 8


def quantise(values: np.ndarray, scale: Scale) -> np.ndarray:
    """Return uint8 codes: round((value - low) / (high - low) * 254), and 255 where masked."""
    values = np.asarray(values, dtype=np.float64)
    finite = np.isfinite(values)
    steps = (np.where(finite, values, scale.low) - scale.low) / (scale.high - scale.low) * LEVELS
    return np.where(finite, np.clip(np.rint(steps), 0, LEVELS), MASKED).astype(np.uint8)


class Buffers:
    """Lay arrays one after another, equal ones once."""

    def __init__(self) -> None:
        self.data = bytearray()
        self._places: dict[tuple[str, bytes], int] = {}

    def add(self, array: np.ndarray) -> dict[str, Any]:
        """Append an array and return its place: offset, shape and type."""
        raw = np.ascontiguousarray(array).tobytes()
        name = (array.dtype.str, raw)
        if name not in self._places:
            self._places[name] = len(self.data)
            self.data += padded(raw)
        return {"at": self._places[name], "shape": list(array.shape), "type": "u1" if array.dtype == np.uint8 else "f4"}


def padded(raw: bytes) -> bytes:
    """Return bytes with zeros up to the next multiple of 8."""
    return raw + b"\0" * (-len(raw) % ALIGNMENT)


def packed(header: dict[str, Any], buffers: Buffers) -> bytes:
    """Return the header's length (uint32, little-endian), the header (JSON), and the arrays, all padded to 8."""
    text = json.dumps(header, ensure_ascii=False, separators=(",", ":"), allow_nan=False).encode("utf-8", "replace")
    return padded(struct.pack("<I", len(text)) + text) + bytes(buffers.data)


@dataclass(frozen=True, eq=False)
class MatrixFigure:
    """Describe a whole figure: one matrix or many, drawn on one canvas.

    Args:
        panels: At least one.
        rows: What runs down, for every panel without its own.
        cols: What runs across, for every panel without its own.
        strings: Words of its own in the place of matrix.* of the locale, by name without that prefix.
        columns: Panels a line; 0 means all on one.
        role: The hue, by DESIGN.md section 8.
        detail: "exact" sends float32, "quantised" one byte a value, of which half a step is said; "auto" is exact up to
            MOST_EXACT cells in all panels.
        layout: "grid" for small multiples, "single" for labelled axes; "auto" takes single up to three panels.
        selected: Id of the chosen panel.
        cell: The pinned cell, (row, col).
        cell_panel: Index of the panel that it is pinned in; by default the chosen one, or the first if none is chosen.
        link: Matrices on a page with the same link show each other's cell.
        title: Printed above.
        quantity: What a value is, printed at the colour bar.
        note: A caption, printed below.
        filename: Of exports, without ending.
        explain: The arithmetic of one head.
        paint: Id of the panel, a mask, whose cells a person may paint where the figure is mounted in a page.
        brush: The number that strokes on that panel write; it is then no mask, and exact.
        chooses: Names in the URL of what a click on a panel chooses: the parts of its id, between points.
        switches: A click turns a cell on or off instead of pinning it.
        pins_for: What follows the pinned cell the short way (pages/kit/live.py), and the cell's name in the URL.
    """

    panels: tuple[Panel, ...]
    rows: Axis
    cols: Axis
    strings: Mapping[str, str] = field(default_factory=dict)
    columns: int = 0
    role: Role = "weights"
    detail: Literal["auto", "quantised", "exact"] = "auto"
    layout: Literal["auto", "grid", "single"] = "auto"
    selected: str | None = None
    cell: tuple[int, int] | None = None
    cell_panel: int | None = None
    link: str | None = None
    title: str = ""
    quantity: str = ""
    note: str = ""
    filename: str = "matrix"
    explain: Explain | None = None
    paint: str | None = None
    brush: float | None = None
    chooses: tuple[str, ...] = ()
    switches: Switches | None = None
    pins_for: tuple[str, str] | None = None

    def __post_init__(self) -> None:
        if not self.panels:
            raise ValueError("panels=() must hold at least one panel")
        ids = [panel.id for panel in self.panels]
        if len(set(ids)) != len(ids):
            raise ValueError(f"panel ids must differ, got {ids}")
        if self.selected is not None and self.selected not in ids:
            raise ValueError(f"selected={self.selected!r} must be one of the panel ids {ids}")
        if self.columns < 0:
            raise ValueError(f"columns={self.columns} must be 0 or more")
        for panel in self.panels:
            check_panel(panel, self.axes(panel))
        self._check_cell(ids)
        self._check_explain(ids)
        self._check_paint(ids)

    @property
    def exact(self) -> bool:
        """Whether the numbers are sent as they are."""
        small = sum(np.size(panel.values) for panel in self.panels) <= MOST_EXACT
        return self.detail == "exact" or (self.detail == "auto" and small)

    def axes(self, panel: Panel) -> tuple[Axis, Axis]:
        """Return the axis down and the axis across of one panel."""
        return panel.rows or self.rows, panel.cols or self.cols

    def explained(self) -> list[str]:
        """Return the ids of the panels whose cells `explain` recomputes."""
        if self.explain is None:
            return []
        own = [panel.id for panel in self.panels if panel.rows is None and panel.cols is None]
        return list(self.explain.panels) or own

    def to_bytes(
        self,
        strings: Mapping[str, str] = MappingProxyType({}),
        *,
        stamp: int = 0,
        caption: Sequence[str] = (),
        key: str = "",
        version: str = "",
    ) -> bytes:
        """Return the header length (uint32, little-endian), the header (JSON), and the arrays, all padded to 8.

        Args:
            strings: matrix.* of the locale, without that prefix; the browser fills in the {…}.
            stamp: Of the last stroke on the painted panel that this figure knows of.
            caption: Lines above the picture in its files, which say what it is of.
            key: Of its place on the page, by which newer bytes find it.
            version: Any text that names this state; `data-painted` carries it once it is on the screen.
        """
        buffers = Buffers()
        axes: list[Axis] = []
        panels = [self._packed_panel(panel, axes, buffers) for panel in self.panels]
        names = ("columns", "role", "detail", "selected", "link", "title", "quantity", "note", "filename")
        header: dict[str, Any] = {name: getattr(self, name) for name in names}
        header |= {
            "layout": self.layout if self.layout != "auto" else "single" if len(panels) <= 3 else "grid",
            "columns": self.columns or len(panels),
            "cell": self.cell and [int(index) for index in self.cell],
            "cell_panel": self._cell_panel([panel.id for panel in self.panels]),
            "strings": {**strings, **self.strings},
            "axes": [{"name": axis.name, "labels": axis.labels, "key": axis.key or axis.name} for axis in axes],
            "panels": panels,
            "caption": list(caption),
            "key": key,
            "version": version,
            "chooses": list(self.chooses),
            "pins_for": self.pins_for and list(self.pins_for),
            "paint": self.paint and {"panel": self.paint, "stamp": stamp},
        }
        if self.switches is not None:
            header["switches"] = asdict(self.switches)
        if self.paint and self.brush is not None:
            header["paint"]["value"] = self.brush
        if self.explain is not None:
            arrays = {name: buffers.add(array.astype("<f4")) for name, array in self.explain.arrays().items()}
            numbers = {"divisor": float(self.explain.divisor), "cap": self.explain.cap}
            header["explain"] = {**numbers, "panels": self.explained(), "arrays": arrays}
        return packed(header, buffers)

    def _packed_panel(self, panel: Panel, axes: list[Axis], buffers: Buffers) -> dict[str, Any]:
        for axis in self.axes(panel):
            if axis not in axes:
                axes.append(axis)
        rows, cols = (axes.index(axis) for axis in self.axes(panel))
        values = np.asarray(panel.values).astype("<f4") if self.exact else quantise(panel.values, panel.scale)
        return {
            "id": panel.id,
            "title": panel.title,
            "heading": panel.row_heading,
            "role": panel.role or self.role,
            "group": panel.group,
            "window": panel.window and list(panel.window),
            "rows": rows,
            "cols": cols,
            "scale": {"kind": panel.scale.kind, "low": panel.scale.low, "high": panel.scale.high},
            "values": buffers.add(values),
        }

    def _check_cell(self, ids: list[str]) -> None:
        if self.cell is None:
            return
        if self.cell_panel is not None and not 0 <= self.cell_panel < len(ids):
            raise ValueError(f"cell_panel={self.cell_panel} must be the index of one of {len(ids)} panels")
        shape = np.shape(self.panels[self._cell_panel(ids)].values)
        if not all(0 <= index < side for index, side in zip(self.cell, shape, strict=True)):
            raise ValueError(f"cell={self.cell} lies outside its panel of shape {shape}")

    def _cell_panel(self, ids: list[str]) -> int:
        if self.cell_panel is not None:
            return self.cell_panel
        return ids.index(self.selected) if self.selected else 0

    def _check_explain(self, ids: list[str]) -> None:
        if self.explain is None:
            return
        needed = self.explain.weights.shape
        for name in self.explained():
            if name not in ids:
                raise ValueError(f"explain names panel {name!r}, needed one of {ids}")
            shape = np.shape(self.panels[ids.index(name)].values)
            if shape != needed:
                raise ValueError(f"explain has weights of shape {needed}, panel {name!r} has {shape}")

    def _check_paint(self, ids: list[str]) -> None:
        if self.paint is None:
            return
        if self.brush is not None:
            if self.paint not in ids or not self.exact:
                raise ValueError(f"paint={self.paint!r} must be one of {ids}, and detail='exact', to be brushed")
            return
        if self.paint not in ids or self.panels[ids.index(self.paint)].scale.kind != "mask":
            masks = [panel.id for panel in self.panels if panel.scale.kind == "mask"]
            raise ValueError(f"paint={self.paint!r} must be the id of a panel that is a mask, one of {masks}")
