"""Forms: made once for all data, and never changed by what is drawn with them."""

from collections.abc import Iterator
from typing import Any

import altair as alt
import numpy as np
import pyarrow as pa
import pytest

from pages.figures.charts import records, rows_of, specification, to_png, to_svg
from pages.figures.forms import Filled, form, named
from pages.figures.likeliest import expected_bars
from pages.figures.token_strip import text_strip
from pages.translation.figures.charts import likeliest_bars, lines_chart

made: list[str] = []


@form
def bars(title: str) -> alt.LayerChart:
    made.append(title)
    base = named("words").encode(x=alt.X("count:Q", title=title), y="word:N")
    return alt.layer(base.mark_bar(), base.mark_text().encode(text="word:N"))


def chart(*words: str, title: str = "how often") -> Filled:
    return Filled(bars(title), {"words": records(word=words, count=range(1, len(words) + 1))}, height=120)


def without_data(filled: Filled) -> dict:
    return {name: part for name, part in specification(filled).items() if name != "datasets"}


def test_a_form_is_built_once_and_is_the_same_for_other_rows() -> None:
    assert without_data(chart("a", "b", title="times")) == without_data(chart("c", title="times"))
    assert made.count("times") == 1


def test_who_changes_a_specification_changes_no_form() -> None:
    before = without_data(chart("a"))
    specification(chart("a"))["layer"].clear()
    assert without_data(chart("a")) == before


def test_the_page_gets_tables_and_files_get_rows() -> None:
    table = specification(chart("a", "好"))["datasets"]["words"]
    assert isinstance(table, pa.Table)
    assert table.to_pylist() == [{"word": "a", "count": 1}, {"word": "好", "count": 2}]
    assert rows_of(chart("a", "好")) == table.to_pylist()
    assert "好" in to_svg(chart("a", "好"))
    assert to_png(chart("a"))[:4] == b"\x89PNG"


def test_rows_without_any_value_in_a_column_are_drawn() -> None:
    words = records(word=["a", "b"], count=[float("nan"), float("nan")])
    assert specification(Filled(bars("gaps"), {"words": words}, height=90))["datasets"]["words"].num_rows == 2


SAID = {
    name: name
    for name in (
        *("probability", "expected", "came", "others", "rest", "written", "passed", "word"),
        *("token", "bits", "bits_most", "unknown", "source", "target", "weight"),
    )
}
CHANCES = np.array([0.5, 0.2])
FORMS = {
    "expected": expected_bars(["a", "b"], CHANCES, 0.3, SAID),
    "likeliest": likeliest_bars(["a", "b"], CHANCES, SAID),
    "strip": text_strip(["a", "b"], [1.0, 2.0], {"rank": ["1", "2"]}, SAID, chosen=1),
    "lines": lines_chart(np.eye(2), ["a", "b"], ["c", "d"], SAID, step=1),
}


def sides(part: Any) -> Iterator[dict[str, Any]]:
    """Yield every axis of a chart that has labels instead of numbers."""
    if isinstance(part, dict):
        for name, encoding in part.get("encoding", {}).items():
            if name in ("x", "y", "xOffset", "yOffset") and encoding.get("type") == "nominal":
                yield encoding
    for inner in part.values() if isinstance(part, dict) else part if isinstance(part, list) else ():
        yield from sides(inner)


@pytest.mark.parametrize("name", FORMS)
def test_an_order_on_an_axis_is_a_column_of_the_rows(name: str) -> None:
    for side in sides(FORMS[name].to_dict()):
        column = side["sort"]["field"]
        assert all(column in row for data in FORMS[name].rows.values() for row in data["values"])
