"""Forms: a chart's description without data, made once and filled with the rows of what is on the screen.

A browser that gets the same form with other rows moves the marks and keeps the chart.
"""

from __future__ import annotations

import json
import pickle
import zlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache, wraps
from typing import Any

import altair as alt

FORMS_KEPT = 32  # of each kind: languages, and what a form depends on besides
CHARTS_KEPT = 64


@dataclass(frozen=True)
class Filled:
    """A chart: a form in Vega-Lite, and the rows of each of its named data.

    Attributes:
        form: in JSON, so that changing a chart's description changes no form.
        rows: by the name of the data, as `records` makes them.
        height: in pixels; None where the form has it, since no row changes it.
    """

    form: str
    rows: Mapping[str, Mapping[str, Any]]
    height: int | None = None

    def called(self, key: str) -> str:
        """Return the name of the event at which the browser's chart takes other rows; another form has another.

        Args:
            key: the chart's place on the page.
        """
        return f"vitrine:{key}:{zlib.crc32(self.form.encode()):x}"

    def to_dict(self, *, validate: bool = True) -> dict[str, Any]:
        """Return the chart in Vega-Lite, as Altair's charts do.

        Args:
            validate: check the whole against the schema.
        """
        whole = json.loads(self.form)
        rows = {name: list(data["values"]) for name, data in self.rows.items()}
        whole["datasets"] = rows | whole.get("datasets", {})  # the form's own are those that nothing changes
        if self.height is not None:
            whole["height"] = self.height
        return alt.Chart.from_dict(whole).to_dict() if validate else whole


def form(build: Callable[..., Any]) -> Callable[..., str]:
    """Make a function that builds a chart on named data build each once for the same words, names and numbers.

    Charts one above the other have their width each; every other chart gets that of its place here.
    """

    @lru_cache(maxsize=FORMS_KEPT)
    def built(pickled: bytes) -> str:
        about, options = pickle.loads(pickled)
        chart = build(*about, **options)
        whole = (chart if stacked(chart) else chart.properties(width="container")).to_dict(
            validate=False
        )  # files and tests check it
        _unstack(whole, {})
        return json.dumps(whole)

    @wraps(build)
    def found(*about: Any, **options: Any) -> str:
        return built(pickle.dumps((about, options)))

    return found


def units_in(part: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the charts that a chart in Vega-Lite is made of: its layers, or those beside or below each other."""
    return [unit for kind in ("layer", "vconcat", "hconcat", "concat") for unit in part.get(kind, ())]


def _unstack(part: dict[str, Any], around: Mapping[str, Any]) -> None:
    """Let bars stand for themselves: of stacked ones with round ends, Vega keeps a group for every name that ever came.

    Args:
        around: the encoding that a part has from what it lies in.
    """
    encoding = {**around, **part.get("encoding", {})}
    for unit in units_in(part):
        _unstack(unit, encoding)
    if part.get("mark", {}).get("type") == "bar":
        lengths = {side: encoding[side] for side in ("x", "y") if encoding.get(side, {}).get("type") == "quantitative"}
        part["encoding"] = part.get("encoding", {}) | {side: it | {"stack": None} for side, it in lengths.items()}


def kept(build: Callable[..., Any]) -> Callable[..., Filled]:
    """Make a function that builds a chart build it once for the very same numbers: for what a key leaves as it is."""

    @lru_cache(maxsize=CHARTS_KEPT)
    def drawn(pickled: bytes) -> Filled:
        about, options = pickle.loads(pickled)
        whole = build(*about, **options).to_dict(validate=False)
        _unstack(whole, {})
        tables, text = whole.pop("datasets", {}), json.dumps(whole)
        for place, name in enumerate(tables):  # which Altair names by what is in them
            text = text.replace(name, f"data-{place}")
        return Filled(text, {f"data-{place}": {"values": tuple(rows)} for place, rows in enumerate(tables.values())})

    @wraps(build)
    def found(*about: Any, **options: Any) -> Filled:
        return drawn(pickle.dumps((about, options)))

    return found


def stacked(chart: Any) -> bool:
    """Tell whether a chart is several, one above the other."""
    return isinstance(chart, alt.VConcatChart)


def named(name: str) -> alt.Chart:
    """Return the beginning of a chart on the rows of this name."""
    return alt.Chart(alt.NamedData(name=name))


def in_order(column: str) -> alt.EncodingSortField:
    """Return the order of an axis's labels by a column of numbers, which holds when other rows come.

    Unsorted, Vega keeps a label that was there before where it stood, and puts those that are new behind it.
    """
    return alt.EncodingSortField(column, op="min", order="ascending")
