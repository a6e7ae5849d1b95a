"""Charts as files: pictures that are pictures, pages that run nothing they were not given, and rows as they came."""

import html
import re

import altair as alt
import numpy as np
import pytest

from pages.figures.caption import one_line
from pages.figures.charts import DASHES, PALETTE, records, rows_of, specification, to_html, to_png, to_svg

ATTACK = "</script><img src=x onerror=alert(1)>"


def chart() -> alt.LayerChart:
    data = records(step=[1, 2, 3], loss=np.array([0.5, 0.25, 1 / 3]), name=["a", "好", ATTACK])
    base = alt.Chart(data).encode(x="step:Q", y="loss:Q", color="name:N")
    return alt.layer(base.mark_line(), base.mark_point()).properties(width="container", height=200)


def test_rows_come_back_as_they_were_each_once() -> None:
    rows = rows_of(chart())
    assert [row["loss"] for row in rows] == [0.5, 0.25, 1 / 3]
    assert rows[2]["name"] == ATTACK


def test_columns_of_different_lengths_are_refused() -> None:
    with pytest.raises(ValueError, match=r"equally long, got \{'x': 1, 'y': 2\}"):
        records(x=[1], y=[1, 2])


def test_pictures_are_of_their_kind_and_hold_the_words() -> None:
    assert to_png(chart())[:8] == b"\x89PNG\r\n\x1a\n"
    drawing = to_svg(chart())
    assert drawing.startswith("<svg")
    assert "好" in drawing
    assert "<img" not in drawing


def test_a_picture_says_what_it_shows_and_of_what() -> None:
    about = ("A title " * 20, "model m · layer 1", f"“{one_line(ATTACK)}”", f"“{one_line('שלום 你好 ' * 30)}”")
    drawing = to_svg(chart(), about)
    told = [text.strip() for text in re.findall(r">([^<>]+)<", drawing)]
    assert " ".join(text for text in told if "A title" in text).count("A title") == 20
    assert "model m · layer 1" in told
    assert f"“{html.escape(ATTACK, quote=False)}”" in told
    assert any("שלום" in text and "你好" in text and text.endswith("…”") for text in told)
    assert "<img" not in drawing
    assert to_png(chart(), about)[:4] == b"\x89PNG"
    page = to_html(chart(), title="t", caption=about[1:])
    assert html.escape(ATTACK) in page
    assert ATTACK not in page


def test_a_page_of_its_own_runs_only_its_script_and_no_word_can_be_code() -> None:
    page = to_html(chart(), title=ATTACK, language="zh")
    assert ATTACK not in page
    assert "default-src 'none'" in page
    assert 'lang="zh"' in page
    assert page.count("<script") == 1


def test_a_second_carrier_than_colour_for_every_hue() -> None:
    assert len(set(PALETTE)) == len(PALETTE) == len(set(DASHES))


def test_rows_of_several_axes_are_one_table_that_says_which() -> None:
    values = records(x=[1, 2], y=[-0.5, -0.25])
    slopes = records(x=[1, 2], y=[3.0, 4.0])
    zero = alt.Chart(records(y=[0.0])).mark_rule().encode(y="y:Q")
    top, below = (
        alt.layer(zero, alt.Chart(data).mark_line().encode(x="x:Q", y=alt.Y("y:Q", title=title)))
        for data, title in ((values, "value"), (slopes, "slope"))
    )
    assert rows_of(top & below) == [
        {"part": "value", "x": 1, "y": -0.5},
        {"part": "value", "x": 2, "y": -0.25},
        {"part": "slope", "x": 1, "y": 3.0},
        {"part": "slope", "x": 2, "y": 4.0},
    ]
    assert rows_of(top) == list(values["values"]), "one axis needs no name, and a rule is no row"


def test_the_data_that_streamlit_shows_of_a_chart_are_what_is_drawn_or_none() -> None:
    zero = alt.Chart(records(y=[0.0])).mark_rule().encode(y="y:Q")
    line = alt.Chart(records(x=[1, 2], y=[3.0, 4.0])).mark_line().encode(x="x:Q", y="y:Q")
    tables = specification(alt.layer(zero, line))["datasets"]
    assert next(iter(tables.values())).to_pylist() == [{"x": 1, "y": 3.0}, {"x": 2, "y": 4.0}]
    more = alt.Chart(records(x=[5], y=[6.0])).mark_line().encode(x="x:Q", y="y:Q")
    several = specification(alt.layer(zero, line, more))
    assert not {"datasets", "data"} & several.keys()
    assert [len(layer["data"]["values"]) for layer in several["layer"]] == [1, 2, 1]
