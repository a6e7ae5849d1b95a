"""Charts as files: pictures that are pictures, pages that run nothing they were not given, and rows as they came.

Captions: texts of strangers on one line, shortened, without what cannot be seen.

Labels of logarithmic axes, as the chart really draws them.

Charts that follow a key: other numbers are other rows of the same form, and the rows hold what was computed.
"""

import html
import json
import re

import altair as alt
import numpy as np
import pytest
import vl_convert

from pages.embeddings.figures.vectors import norm_bars
from pages.encoder.figures import stage_lines
from pages.feed_forward.figures.activations import _tosses, curves_chart, difference_chart, tosses_chart
from pages.figures.charts import (
    DASHES,
    LABELS,
    LETTER,
    NARROW,
    PALETTE,
    ROOM,
    SIGN,
    columns_of,
    covered_specification,
    folded,
    one_line,
    records,
    rows_of,
    specification,
    taller,
    to_html,
    to_png,
    to_svg,
)
from pages.figures.curves import Side, bars
from pages.figures.forms import Filled
from pages.language import words
from pages.norm.figures import scaled_chart, variants_chart, vector_chart
from pages.positions.figures.models import _distances
from pages.positions.figures.sinusoids import _vector, similarity_chart, waves_chart
from pages.positions.figures.sinusoids import vector_chart as positions_chart
from pages.tokens.figures import cost_chart
from tests.helpers import nightly_but
from tests.helpers.pages import minus
from transformer_core.analysis.feed_forward.bernoulli import coin_tosses

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


@pytest.mark.nightly
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


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("a film", "a film"),
        (" a\n\tfilm\x00 \u2028", "a film"),
        ("\u202eabc\u2066", "abc"),
        ("\u202e", ""),
        ("\ud800", ""),
        ("👩\u200d🚀", "👩\u200d🚀"),
        ("a" * 80, "a" * 80),
        ("a" * 81, "a" * 79 + "…"),
        ("好" * 41, "好" * 39 + "…"),
    ],
)
def test_a_text_becomes_a_line_that_can_be_read(text: str, line: str) -> None:
    assert one_line(text) == line


def test_a_very_long_text_is_no_work() -> None:
    assert columns_of(one_line("word " * 2_000_000)) <= 80


def test_lines_are_broken_at_blanks_and_none_is_lost() -> None:
    lines = ["one two three four", "好" * 9, "x" * 15, ""]
    broken = folded(lines, 10)
    assert max(map(columns_of, broken)) <= 10
    assert broken[:2] == ["one two", "three four"]
    assert "".join(broken).replace(" ", "") == "".join(lines).replace(" ", "")


@pytest.mark.parametrize(
    ("value", "label"),
    [(1e-12, "10⁻¹²"), (2e-8, "2×10⁻⁸"), (1e-4, "10⁻⁴"), (0.005, "0.005"), (1.0, "1"), (50.0, "50"), (1e7, "10⁷")],
)
def test_a_tick_is_labelled_as_in_a_book(value: float, label: str) -> None:
    axis = alt.Axis(labelExpr=LABELS, values=[value])
    scale = alt.Scale(type="log", domain=[value / 10, value * 10])
    chart = (
        alt.Chart(records(value=[value])).mark_point().encode(y=alt.Y("value:Q", title=None, scale=scale, axis=axis))
    )
    assert re.findall(r"<text[^>]*>([^<]*)</text>", to_svg(chart)) == [label]


WIDTH, BINS = 12, 40
REACH = 4.0


def words_of(page: str) -> dict[str, str]:
    """Return a page's words, as its figures get them."""
    return {name.removeprefix(f"{page}."): said for name, said in words("en").items() if name.startswith(f"{page}.")}


NORM, FEED_FORWARD, POSITIONS = map(words_of, ("norm", "feed_forward", "positions"))


def vector(seed: int) -> dict[str, np.ndarray]:
    """Return what a normalised vector comes with, at random."""
    draw = np.random.default_rng(seed).normal
    found = {name: draw(size=WIDTH).astype(np.float32) for name in ("x", "standard", "gain", "bias", "after")}
    return found | {"mean": found["x"].mean(), "variance": found["x"].var()}


def activations(seed: int) -> dict[str, np.ndarray]:
    """Return two activations and numbers at random on their axis."""
    draw = np.random.default_rng(seed)
    x = np.linspace(-REACH, REACH, 801)
    curves = np.stack([x.clip(min=0), x / (1 + np.exp(-x))])
    counts, token_counts = draw.integers(1, 9, size=(2, BINS))
    return {
        "names": np.array(["relu", "silu"]),
        "x": x,
        "values": curves,
        "slopes": np.gradient(curves, x, axis=1),
        "edges": np.linspace(-REACH, REACH, BINS + 1),
        "counts": counts,
        "token_counts": token_counts,
        "token_values": draw.uniform(-3, 3, size=WIDTH),
    }


def charts(seed: int) -> dict[str, Filled]:
    """Return every chart, of numbers drawn with this seed."""
    found, active, draw = vector(seed), activations(seed), np.random.default_rng(seed)
    stages, counts = {"mean": draw.random(3), "CLS": draw.random(3)}, draw.integers(1, 90, size=2).tolist()
    return {
        "vector": vector_chart(found, NORM),
        "positions": positions_chart(found["x"], POSITIONS, pair=seed),
        "similarity": similarity_chart(found["x"], POSITIONS, measure="dot"),
        "waves": waves_chart(found["x"][:, None] + np.arange(4), np.arange(4.0) + seed, [0, 3], POSITIONS, pos=seed),
        "tosses": tosses_chart(vars(coin_tosses(x=0.5 + seed, draws=300, seed=seed)), FEED_FORWARD),
        "variants": variants_chart(found["after"], found["x"], NORM),
        "scaled": scaled_chart(found["after"], found["x"], NORM),
        "curves": curves_chart(active, FEED_FORWARD, used="relu", token=f"{seed} · good"),
        "difference": difference_chart(active["x"], draw.normal(size=801), FEED_FORWARD),
        "norms": norm_bars(
            np.abs(found["x"]), [f"{letter}{seed}" for letter in "abcdefghijkl"], words_of("embeddings")
        ),
        "stages": stage_lines(("0", "1", "2"), stages, {"stage": "depth", "value": "chance"}, level=0.5),
        "cost": cost_chart(("a", "b"), counts, [n * n for n in counts], {"tokens": "n", "pairs": "n²"}),
    }


@pytest.mark.parametrize("name", nightly_but(charts(0), [*charts(0)][::6]))
def test_other_numbers_are_other_rows_of_the_same_form(name: str) -> None:
    one, other = charts(1)[name], charts(2)[name]
    assert one.form == other.form
    assert rows_of(one) != rows_of(other)
    assert to_svg(one) != to_svg(other)


def test_a_normalised_vector_is_drawn_with_its_numbers() -> None:
    found, chart = vector(3), vector_chart(vector(3), NORM)
    rows = [row for row in rows_of(chart) if "standard" in row]
    for name in ("x", "standard", "gain", "bias", "after"):
        assert [row[name] for row in rows] == found[name].tolist()
    assert minus(f"{found['mean']:.3f}") in to_svg(chart)


def test_pre_activations_lie_on_the_curve_of_the_model_and_are_counted() -> None:
    found = activations(3)
    rows = rows_of(curves_chart(found, FEED_FORWARD, used="relu", token="3 · good"))
    own = [row for row in rows if "neuron" in row]
    np.testing.assert_allclose([row["x"] for row in own], found["token_values"], atol=1e-4)
    np.testing.assert_allclose([row["y"] for row in own], found["token_values"].clip(min=0), atol=1e-2)
    counted = [row["count"] for row in rows if "share" in row]
    assert counted == [*found["counts"].tolist(), *found["token_counts"].tolist()]


def test_all_curves_can_be_read_at_a_place_and_both_charts_show_the_same_one() -> None:
    found = activations(3)
    chart = curves_chart(found, FEED_FORWARD, used="relu", token="3 · good").to_dict()
    readings = chart["datasets"]["readings"]
    place = len(readings) // 3
    for column, name in enumerate(found["names"]):
        at = found["x"].tolist().index(pytest.approx(readings[place]["x"], abs=1e-4))
        assert readings[place][f"values_{name}"] == pytest.approx(found["values"][column, at], abs=1e-6)
        assert readings[place][f"slopes_{name}"] == pytest.approx(found["slopes"][column, at], abs=1e-6)
    rules = [layer for part in chart["vconcat"] for layer in part["layer"] if layer["data"].get("name") == "readings"]
    assert len(rules) == 2
    assert {layer["encoding"]["opacity"]["condition"]["param"] for layer in rules} == {"pointed"}
    said = [one["title"] for one in rules[0]["encoding"]["tooltip"] if "title" in one]
    assert said[: len(found["names"])] == [FEED_FORWARD[f"name_{name}"] for name in found["names"]]
    assert FEED_FORWARD["slope_of"].format(name=FEED_FORWARD["name_relu"]) in said


def test_what_a_key_leaves_as_it_is_is_built_once() -> None:
    values = np.array([1.0, 0.5, 0.25])
    one, same, other = (bars("abc", {"n": x}, across="letter", up=Side("count")) for x in (values, values, values / 2))
    assert one is same
    assert [row["y"] for row in rows_of(one)] == values.tolist()
    assert [row["y"] for row in rows_of(other)] == (values / 2).tolist()


@pytest.mark.parametrize("width", [60, 300, 640, 2_000])
def test_a_legend_above_has_as_many_columns_as_the_width_has_room_for(width: int) -> None:
    series = {"from [CLS], as the model reads it": [1.0], "from the mean of the tokens": [2.0], "平均": [3.0]}
    drawn = specification(bars(["a"], series, across="", up=Side("y")))
    said = drawn["encoding"]["color"]["legend"]["columns"]["expr"].replace(ROOM, "width")
    form = r"width < (\d+) \? max\(1, min\((\d+), floor\(width / (\d+)\)\)\) : (\d+)"
    (numbers,) = re.findall(f"^{form}$", said)
    whole, most, widest, again = map(int, numbers)
    columns = max(1, min(most, width // widest)) if width < whole else again
    widths = sorted(LETTER * columns_of(name) + SIGN for name in series)
    assert columns == 3 or sum(widths) > width
    assert columns == 1 or columns * widest <= width or sum(widths) <= width + 1


def test_a_name_that_is_wider_than_a_phone_has_several_lines_there() -> None:
    long = "from the mean of the tokens, which the map was not trained on"
    drawn = specification(bars(["a"], {"short": [1.0], long: [2.0]}, across="", up=Side("y")))
    said = drawn["encoding"]["color"]["legend"]["labelExpr"].replace(ROOM, "width")
    lines = json.loads(re.search(r"\((\{.*\})\)", said).group(1))
    assert {name: " ".join(parts) for name, parts in lines.items()} == {"short": "short", long: long}
    assert all(LETTER * columns_of(part) + SIGN <= NARROW for parts in lines.values() for part in parts)
    short = specification(bars(["a"], {"short": [1.0], "other": [2.0]}, across="", up=Side("y")))
    assert "labelExpr" not in short["encoding"]["color"]["legend"]


def test_names_on_a_covered_axis_are_not_read_and_its_numbers_are() -> None:
    drawn = covered_specification(bars(["first", "second"], {"a": [1.0, 2.0]}, across="", up=Side("y")))
    assert drawn["encoding"]["x"]["axis"]["labelOpacity"] == 0
    assert "labelOpacity" not in drawn["encoding"]["y"].get("axis", {})


def test_a_chart_in_a_hall_is_taller_up_to_what_its_frame_has_room_for() -> None:
    assert [taller({"height": high}, 1.3, 360)["height"] for high in (200, 300)] == [260, 360]
    assert taller({"height": {"step": 20}}, 1.3, 360)["height"] == {"step": 26}
    assert taller({"hconcat": []}, 1.3, 360) == {"hconcat": []}


@pytest.mark.parametrize(
    "drawn", [_vector(("a", "b"), "x"), _distances(("a", "b"), ("x", "y")), _tosses(("a", "b"), "x", "y")]
)
def test_what_is_told_by_hue_and_by_shape_has_one_legend(drawn: str) -> None:
    assert len(vl_convert.vegalite_to_vega(json.loads(drawn))["legends"]) == 1
