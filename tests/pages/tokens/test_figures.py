"""The figures of the tokens page hold the numbers that they are given, and text in them stays text."""

import base64
import json
import re

import numpy as np
import pytest

from pages.figures.charts import rows_of
from pages.figures.standalone import component_page
from pages.language import strings
from pages.tokens.figures import (
    COLUMNS,
    MEASURES,
    Chips,
    Line,
    cost_chart,
    merging_chart,
    one_hot_figure,
    rivals_chart,
    rows_of_chips,
)

HOSTILE = "<img src=x alt=smuggled></script>"


def chips(text: str) -> Chips:
    line = Line(
        "BPE",
        "1",
        "tokens",
        ("a fact",),
        "",
        True,
        (text,),
        (3,),
        (0,),
        (len(text),),
        (False,),
        (False,),
        (False,),
        ("41",),
    )
    return Chips(text, (line,), strings("chips", "en"), "chips", "now")


def test_every_token_is_a_row() -> None:
    (row,) = rows_of_chips(chips("a"), {name: name for name in COLUMNS})
    assert row == dict(zip(COLUMNS, ("BPE", 0, "a", 3, 0, 1, "a", "41"), strict=True))


def test_the_html_file_holds_the_tokens_and_none_of_their_markup() -> None:
    page = component_page("chips", json.dumps(chips(HOSTILE).data()).encode(), title="Tokens")
    found = re.search(r'data-payload="([^"]+)"', page)
    assert found
    data = json.loads(base64.b64decode(found[1]))
    assert data["rows"][0]["tokens"][0]["label"] == HOSTILE
    assert "smuggled" not in page
    assert "https://" not in page


def test_the_cost_is_on_the_curve() -> None:
    words = {"tokens": "n", "pairs": "n²"}
    rows = rows_of(cost_chart(("a", "b"), (3, 7), (9, 49), words))
    assert all(np.isclose(row["pairs"], row["tokens"] ** 2) for row in rows)
    assert {row["tokenizer"] for row in rows if "tokenizer" in row} == {"a: 3² = 9", "b: 7² = 49"}


def test_the_curve_of_merging_is_a_share_of_the_start() -> None:
    words = {"merges": "merges", "left": "left", "corpus": "text", "sentence": "sentence"}
    rows = rows_of(merging_chart(np.array([10, 8, 5]), np.array([4, 4, 3]), 1, words))
    shares = {(row["of"], row["merges"]): row["left"] for row in rows}
    assert shares == {
        ("text", 0): 100,
        ("text", 1): 80,
        ("text", 2): 50,
        ("sentence", 0): 100,
        ("sentence", 1): 100,
        ("sentence", 2): 75,
    }


def test_the_joined_pair_stands_out_and_equal_labels_stay_apart() -> None:
    words = {"count": "count", "joined": "joined", "waiting": "waiting"}
    rows = rows_of(rivals_chart(("a + b", "a + b", "c + d"), (9, 9, 4), words))
    assert [(row["pair"], row["count"], row["what"]) for row in rows] == [
        ("1.  a + b", 9, "joined"),
        ("2.  a + b", 9, "waiting"),
        ("3.  c + d", 4, "waiting"),
    ]


@pytest.mark.parametrize("measure", MEASURES)
def test_both_kinds_of_vectors_stand_beside_each_other_on_one_scale(measure: str) -> None:
    words = strings("tokens_one_hot", "en")
    learned = np.array([[0.5, -0.25, 1.0], [1.0, 0.0, 0.0]]) if measure == "vectors" else np.eye(2)
    figure = one_hot_figure(np.eye(2), learned, ("a", "b"), (5, 9), words, measure=measure)
    one_hot, right = figure.panels
    assert figure.axes(one_hot)[0] == figure.axes(right)[0]
    if measure == "vectors":
        assert figure.axes(one_hot)[1].labels == ("5", "9")
        assert right.scale.high == 1.0
    else:
        assert one_hot.scale == right.scale
        assert figure.axes(one_hot) == figure.axes(right)
    assert figure.to_bytes()
