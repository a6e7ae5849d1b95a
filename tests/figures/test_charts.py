"""Charts as files: pictures that are pictures, pages that run nothing they were not given, and rows as they came."""

import altair as alt
import numpy as np
import pytest

from pages.figures.charts import DASHES, PALETTE, records, rows_of, to_html, to_png, to_svg

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


def test_a_page_of_its_own_runs_only_its_script_and_no_word_can_be_code() -> None:
    page = to_html(chart(), title=ATTACK, language="zh")
    assert ATTACK not in page
    assert "default-src 'none'" in page
    assert 'lang="zh"' in page
    assert page.count("<script") == 1


def test_a_second_carrier_than_colour_for_every_hue() -> None:
    assert len(set(PALETTE)) == len(PALETTE) == len(set(DASHES))
