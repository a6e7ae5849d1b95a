"""A figure of one matrix or many, drawn on one canvas by assets/components/matrix."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from pages.figures.matrix_bytes import Buffers, packed, quantise
from pages.figures.matrix_parts import Axis, Explain, Panel, Role, check_panel


@dataclass(frozen=True, eq=False)
class MatrixFigure:
    """Describe a whole figure: one matrix or many, drawn on one canvas.

    Args:
        panels: At least one.
        rows: What runs down, for every panel without its own.
        cols: What runs across, for every panel without its own.
        strings: matrix.* of the locale, without that prefix; the browser fills in the {…}.
        columns: Panels a line; 0 means all on one.
        role: The hue, by DESIGN.md section 8.
        detail: "quantised" sends one byte a value and says its half step, "exact" sends float32.
        layout: "grid" for small multiples, "single" for labelled axes; "auto" takes single up to three panels.
        selected: Id of the chosen panel.
        cell: The pinned cell, (row, col).
        cell_panel: Index of the panel that it is pinned in; by default the chosen one, or the first if none is chosen.
        link: Matrices on a page with the same link show each other's cell.
        title: Printed above.
        quantity: What a value is, printed at the colour bar.
        note: A caption, printed below.
        filename: Of exports, without ending.
        version: Any text that names this state; `data-painted` carries it once it is on the screen.
        explain: The arithmetic of one head.
        paint: Id of the panel, a mask, whose cells a person may paint where the figure is mounted in a page.
    """

    panels: tuple[Panel, ...]
    rows: Axis
    cols: Axis
    strings: Mapping[str, str]
    columns: int = 0
    role: Role = "weights"
    detail: Literal["quantised", "exact"] = "quantised"
    layout: Literal["auto", "grid", "single"] = "auto"
    selected: str | None = None
    cell: tuple[int, int] | None = None
    cell_panel: int | None = None
    link: str | None = None
    title: str = ""
    quantity: str = ""
    note: str = ""
    filename: str = "matrix"
    version: str = ""
    explain: Explain | None = None
    paint: str | None = None

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

    def axes(self, panel: Panel) -> tuple[Axis, Axis]:
        """Return the axis down and the axis across of one panel."""
        return panel.rows or self.rows, panel.cols or self.cols

    def explained(self) -> list[str]:
        """Return the ids of the panels whose cells `explain` recomputes."""
        if self.explain is None:
            return []
        own = [panel.id for panel in self.panels if panel.rows is None and panel.cols is None]
        return list(self.explain.panels) or own

    def to_bytes(self, *, stamp: int = 0, caption: Sequence[str] = ()) -> bytes:
        """Return the header length (uint32, little-endian), the header (JSON), and the arrays, all padded to 8.

        Args:
            stamp: Of the last stroke on the painted panel that this figure knows of.
            caption: Lines above the picture in its files, which say what it is of.
        """
        buffers = Buffers()
        axes: list[Axis] = []
        panels = [self._packed_panel(panel, axes, buffers) for panel in self.panels]
        names = ("columns", "role", "detail", "selected", "link", "title", "quantity", "note", "filename", "version")
        header: dict[str, Any] = {name: getattr(self, name) for name in names}
        header |= {
            "layout": self.layout if self.layout != "auto" else "single" if len(panels) <= 3 else "grid",
            "columns": self.columns or len(panels),
            "cell": self.cell and [int(index) for index in self.cell],
            "cell_panel": self._cell_panel([panel.id for panel in self.panels]),
            "strings": dict(self.strings),
            "axes": [{"name": axis.name, "labels": axis.labels, "key": axis.key or axis.name} for axis in axes],
            "panels": panels,
            "caption": list(caption),
            "paint": self.paint and {"panel": self.paint, "stamp": stamp},
        }
        if self.explain is not None:
            arrays = {name: buffers.add(array.astype("<f4")) for name, array in self.explain.arrays().items()}
            header["explain"] = {"divisor": float(self.explain.divisor), "panels": self.explained(), "arrays": arrays}
        return packed(header, buffers)

    def _packed_panel(self, panel: Panel, axes: list[Axis], buffers: Buffers) -> dict[str, Any]:
        for axis in self.axes(panel):
            if axis not in axes:
                axes.append(axis)
        rows, cols = (axes.index(axis) for axis in self.axes(panel))
        exact = self.detail == "exact"
        values = np.asarray(panel.values).astype("<f4") if exact else quantise(panel.values, panel.scale)
        return {
            "id": panel.id,
            "title": panel.title,
            "heading": panel.row_heading,
            "role": panel.role or self.role,
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
        if self.paint not in ids or self.panels[ids.index(self.paint)].scale.kind != "mask":
            masks = [panel.id for panel in self.panels if panel.scale.kind == "mask"]
            raise ValueError(f"paint={self.paint!r} must be the id of a panel that is a mask, one of {masks}")
