"""Figures as files: CSV and .npz."""

import csv
import io
import zipfile
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from pages.figures.matrix import MatrixFigure
from transformer_core.training.intake.delimited import inert


def to_csv(values: np.ndarray, rows: Sequence[str], cols: Sequence[str]) -> str:
    """Write a matrix with its labels; numbers are written so that they read back exactly.

    Cells that a spreadsheet would take for a formula get a leading apostrophe.

    Shapes:
        values: (row, col)
    """
    buffer = io.StringIO()
    writer = csv.writer(buffer)
    writer.writerow(["", *map(inert, cols)])
    for label, row in zip(rows, values, strict=True):
        writer.writerow([inert(label), *(repr(float(value)) for value in row)])
    return buffer.getvalue()


def _cell(value: Any) -> Any:
    """Return what is written for a value: text that no spreadsheet takes for a formula, nothing for a gap."""
    if value is None:
        return ""
    return value if isinstance(value, bool | int | float) else inert(str(value))


def panels_csv(figure: MatrixFigure) -> str:
    """Write a figure's one panel as a matrix with its labels, or each cell of its many panels as a line."""
    if len(figure.panels) == 1:
        rows, cols = figure.axes(figure.panels[0])
        return to_csv(figure.panels[0].values, rows.labels, cols.labels)
    lines = []
    for panel in figure.panels:
        rows, cols = figure.axes(panel)
        name = " ".join(filter(None, (panel.row_heading, panel.title))) or panel.id
        for row, label in enumerate(rows.labels):
            lines += [
                {"panel": name, rows.name: label, cols.name: across, "value": float(value)}
                for across, value in zip(cols.labels, panel.values[row], strict=True)
            ]
    return rows_csv(lines)


def rows_csv(rows: Sequence[Mapping[str, Any]]) -> str:
    """Write rows as one table; a column that a row lacks stays empty, and numbers stay numbers."""
    columns = list(dict.fromkeys(name for row in rows for name in row))
    buffer = io.StringIO()
    writer = csv.writer(buffer)
    writer.writerow(map(inert, columns))
    for row in rows:
        writer.writerow([_cell(row.get(name)) for name in columns])
    return buffer.getvalue()


def tables_of(rows: Sequence[Mapping[str, Any]]) -> list[list[Mapping[str, Any]]]:
    """Return rows as tables: those of equal columns stand together."""
    tables: dict[tuple[str, ...], list[Mapping[str, Any]]] = {}
    for row in rows:
        tables.setdefault(tuple(row), []).append(row)
    return list(tables.values())


def tables_zip(tables: Sequence[Sequence[Mapping[str, Any]]], stem: str) -> bytes:
    """Write every table as a CSV file of its own, in one zip."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        for number, rows in enumerate(tables):
            archive.writestr(f"{stem}_{number}.csv", rows_csv(rows).encode("utf-8-sig"))
    return buffer.getvalue()


def to_npz(arrays: Mapping[str, np.ndarray]) -> bytes:
    """Write named arrays, compressed, in NumPy's own format without pickles."""
    buffer = io.BytesIO()
    np.savez_compressed(buffer, allow_pickle=False, **arrays)
    return buffer.getvalue()
