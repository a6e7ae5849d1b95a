"""The matrix figure: what is packed comes back, and what is wrong is said with its values.

The matrix in a browser: no label becomes markup, it needs no network, and it recomputes what Python packed.
"""

from __future__ import annotations

import base64
import hashlib
import html
import json
import re
from dataclasses import replace

import numpy as np
import pytest
from streamlit.testing.v1 import AppTest

from pages.figures.heads import heads_grid, one_head
from pages.figures.matrix import MOST_EXACT, Axis, MatrixFigure, Panel, Scale, quantise
from pages.figures.standalone import component_page
from pages.language import Word, strings
from tests.helpers import PATIENCE
from tests.helpers.figures import ATTACK, ENGLISH_WORDS, TOKENS, attention, figure, panel_of, unpack
from tests.helpers.node import in_node, needs_node


@pytest.mark.parametrize("kind", ["probability", "signed", "count"])
def test_quantised_values_come_back_within_half_a_step(kind):
    values = np.random.default_rng(1).uniform(0 if kind != "signed" else -7, 1 if kind == "probability" else 7, (5, 5))
    values[1, 2], values[3, 3] = np.nan, -np.inf
    scale = Scale.of(kind, values)
    _, arrays = unpack(figure(Panel("a", "", values, scale), detail="quantised").to_bytes())
    masked = ~np.isfinite(values)
    assert np.isnan(arrays["a"][masked]).all()
    half_step = (scale.high - scale.low) / 254 / 2
    assert np.abs(arrays["a"] - values)[~masked].max() <= half_step * (1 + 1e-9)


def test_codes_are_as_documented():
    codes = quantise(np.array([[0.0, 0.5, 1.0, np.nan, np.inf]]), Scale("probability", 0, 1))
    assert codes.tolist() == [[0, 127, 254, 255, 255]]
    assert quantise(np.zeros((1, 1)), Scale("signed", -3, 3)).item() == 127  # zero is exact


@pytest.mark.parametrize(("columns", "kind"), [(MOST_EXACT // 2, "f4"), (MOST_EXACT // 2 + 1, "u1")])
def test_a_small_figure_holds_what_the_model_computed_and_a_large_one_says_its_half_step(columns, kind):
    values = np.full((2, columns), 0.9999)
    axes = [Axis(name, tuple(map(str, range(size))), key=name) for name, size in (("row", 2), ("column", columns))]
    panel = Panel("a", "", values, Scale.of("probability", values))
    header, _ = unpack(MatrixFigure((panel,), axes[0], axes[1], {}).to_bytes())
    assert header["panels"][0]["values"]["type"] == kind


@needs_node
def test_the_browser_fills_in_counts_as_python_does(tmp_path):
    word = "{answers} {answers:answer|answers} from {phones} {phones:phone|phones}, {other}"
    counts = [(0, 1), (1, "1"), (2, "1.0"), ("12", 2)]
    script = f"""
    const word = {json.dumps(word)};
    console.log(JSON.stringify({json.dumps(counts)}.map(([answers, phones]) => fill(word, {{ answers, phones }}))));
    """
    said = [Word(word).format(answers=answers, phones=phones, other="{other}") for answers, phones in counts]
    assert in_node(tmp_path, "matrix", script) == said


def test_exact_values_come_back_bit_for_bit():
    explain = attention(causal=True)
    masked = Panel("masked", "", explain.masked_scores, Scale.of("signed", explain.masked_scores))
    header, arrays = unpack(figure(masked, detail="exact", explain=explain).to_bytes())
    np.testing.assert_array_equal(arrays["masked"], explain.masked_scores)
    for name, array in explain.arrays().items():
        np.testing.assert_array_equal(arrays[f"explain.{name}"], array)
    assert header["explain"]["panels"] == ["masked"]
    assert header["explain"]["divisor"] == pytest.approx(np.sqrt(8))
    # The panel's values and explain's are one buffer.
    assert header["panels"][0]["values"]["at"] == header["explain"]["arrays"]["masked_scores"]["at"]


def test_header_holds_labels_whole_and_buffers_are_aligned():
    payload = figure(columns=1, cell=(1, 2)).to_bytes(version="v7")
    header, _ = unpack(payload)
    assert header["axes"] == [
        {"name": "query position", "labels": list(TOKENS), "key": "query position"},
        {"name": "key position", "labels": list(TOKENS), "key": "key position"},
    ]
    assert (header["version"], header["cell"], header["layout"], header["columns"]) == ("v7", [1, 2], "single", 1)
    assert header["strings"] == ENGLISH_WORDS
    assert len(payload) % 8 == 0
    assert all(panel["values"]["at"] % 8 == 0 for panel in header["panels"])


def test_panels_may_have_axes_of_their_own():
    explain = attention(d_head=8)
    dimensions = Axis("dimension", tuple(map(str, range(8))))
    panels = (
        Panel("query", "q", explain.query, Scale.of("signed", explain.query), cols=dimensions, role="query"),
        Panel("weights", "w", explain.weights, Scale.of("probability")),
    )
    header, arrays = unpack(figure(*panels, detail="exact", explain=explain).to_bytes())
    assert [panel["role"] for panel in header["panels"]] == ["query", "weights"]
    assert [(panel["rows"], panel["cols"]) for panel in header["panels"]] == [(0, 1), (0, 2)]
    assert header["explain"]["panels"] == ["weights"]
    assert arrays["query"].shape == (5, 8)


def test_scales_hold_their_arrays():
    values = np.array([[-3.0, 2.0], [np.nan, -np.inf]])
    assert Scale.of("signed", values) == Scale("signed", -3, 3)
    assert Scale.of("count", np.array([[0, 4]]), np.array([[9, 1]])) == Scale("count", 0, 9)
    assert Scale.of("probability", values) == Scale("probability", 0, 1)
    assert Scale.of("signed", np.zeros((2, 2))) == Scale("signed", -1, 1)
    assert Scale.of("count", np.full((2, 2), np.nan)) == Scale("count", 0, 1)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Scale("probability", 1, 1), r"low=1 must be below high=1"),
        (lambda: Scale("count", 0, np.inf), r"high=inf, both finite"),
        (lambda: Scale("signed", -1, 2), r"signed scale low=-1 must be minus high=2"),
        (lambda: Scale("odd", 0, 1), r"kind='odd' must be one of probability, signed, count, mask, added"),
        (
            lambda: figure(panel_of(np.zeros((5, 4)))),
            r"'a' has values of shape \(5, 4\), its axes have \(5, 5\)",
        ),
        (lambda: figure(panel_of(np.zeros(5))), r"shape \(5,\)"),
        (lambda: figure(panel_of(np.full((5, 5), 1.5))), r"values in \[1.5, 1.5\], outside its scale \[0, 1\]"),
        (lambda: replace(figure(), panels=()), r"panels=\(\) must hold at least one"),
        (lambda: figure(panel_of(np.zeros((5, 5))), panel_of(np.zeros((5, 5)))), r"ids must differ, got \['a', 'a'\]"),
        (lambda: figure(selected="b"), r"selected='b' must be one of the panel ids \['head'\]"),
        (lambda: figure(columns=-1), r"columns=-1 must be 0 or more"),
        (lambda: figure(cell=(0, 5)), r"cell=\(0, 5\) lies outside its panel of shape \(5, 5\)"),
        (lambda: figure(explain=attention(size=4)), r"weights of shape \(4, 4\), panel 'head' has \(5, 5\)"),
        (lambda: figure(explain=replace(attention(), panels=("x",))), r"names panel 'x', needed one of \['head'\]"),
        (lambda: replace(attention(), key=np.zeros((5, 3))), r"one d_head, got \(5, 8\) and \(5, 3\)"),
        (lambda: replace(attention(), scores=np.zeros((5, 3))), r"scores has shape \(5, 3\), needed .*\(5, 5\)"),
        (lambda: replace(attention(), divisor=0), r"divisor=0 must be above 0"),
    ],
)
def test_what_is_wrong_is_said_with_its_values(make, message):
    with pytest.raises(ValueError, match=message):
        make()


def test_rounding_of_float32_is_no_error():
    figure(panel_of(np.full((5, 5), 1.0000002, dtype=np.float32)))


@pytest.fixture
def page() -> str:
    words = dict(ENGLISH_WORDS, masked=f"masked {ATTACK}")
    dangerous = replace(figure(title=ATTACK, note=ATTACK, quantity=ATTACK, filename=ATTACK), strings=words)
    return component_page("matrix", dangerous.to_bytes(), title=f"A title {ATTACK}", language='en"><script>')


def test_page_has_no_text_of_a_user_as_markup(page):
    assert ATTACK not in page
    assert page.count(html.escape(ATTACK)) == 2  # the title, in its two places
    assert len(re.findall(r"<script", page)) == len(re.findall(r"</script", page)) == 1
    assert "<img" not in page


def test_page_needs_no_network(page):
    addresses = set(re.findall(r"https?://[^\s\"'`)]+", page))
    assert addresses <= {"http://www.w3.org/2000/svg"}  # the name of a namespace, never fetched
    assert not re.search(r"<(?:link|img|iframe)|<script[^>]+src|url\([^#]|@import|^import ", page, flags=re.MULTILINE)


def test_page_allows_its_own_script_alone(page):
    script = re.search(r'<script type="module">(.*)</script>', page, flags=re.DOTALL).group(1)
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    assert f"script-src 'sha256-{digest}'" in page
    assert "default-src 'none'" in page


def test_page_carries_the_figure(page):
    payload = base64.b64decode(re.search(r'data-payload="([^"]+)"', page).group(1))
    header, arrays = unpack(payload)
    assert header["title"] == ATTACK
    assert arrays["head"].shape == (5, 5)


@needs_node
def test_browser_reads_and_recomputes_what_python_packed(tmp_path):
    explain = attention(seed=3, causal=True)
    shown = np.where(np.isfinite(explain.masked_scores), explain.weights, np.nan)
    exact = figure(panel_of(shown), detail="exact", explain=explain).to_bytes()
    coded = figure(panel_of(shown), detail="quantised").to_bytes()
    script = """
    const [exact, coded] = [unpack(bytes("exact")), unpack(bytes("coded"))];
    const cells = ({ panels: [panel] }) => Array.from(panel.data, (_, i) => valueAt(panel, Math.floor(i / 5), i % 5));
    const rows = [0, 1, 2, 3, 4].map((row) => recompute(exact.explain, row));
    const text = [printed(exact.panels[0], 0, 0), printed(coded.panels[0], 0, 0), printed(coded.panels[0], 0, 1)];
    const gaps = rows.map(({ weightGap, scoreGap, rowSum }) => [weightGap, scoreGap, rowSum]);
    console.log(JSON.stringify({ exact: cells(exact), coded: cells(coded), gaps, text }));
    """
    found = in_node(tmp_path, "matrix", script, exact=exact, coded=coded)
    read = {name: np.array(found[name], dtype=float).reshape(5, 5) for name in ("exact", "coded")}
    np.testing.assert_array_equal(read["exact"], shown)
    np.testing.assert_allclose(read["coded"], unpack(coded)[1]["a"], atol=1e-12)
    weight_gaps, score_gaps, row_sums = np.array(found["gaps"]).T
    assert weight_gaps.max() < 1e-6
    assert score_gaps.max() < 1e-5
    np.testing.assert_allclose(row_sums, 1, atol=1e-6)
    assert found["text"] == ["1", "1.000 ± 0.002", None]


@needs_node
def test_capped_scores_are_recomputed_and_heads_of_one_group_are_one_span(tmp_path):
    explain = attention(seed=5)
    cap, bias = 0.7, np.linspace(-1, 0, 25).reshape(5, 5).astype(np.float32)
    scores = (cap * np.tanh(explain.scores / cap) + bias).astype(np.float32)
    raised = np.exp(scores - scores.max(axis=1, keepdims=True))
    weights = (raised / raised.sum(axis=1, keepdims=True)).astype(np.float32)
    capped = replace(explain, scores=scores, masked_scores=scores, weights=weights, cap=cap, bias=bias)
    payload = figure(detail="exact", explain=capped).to_bytes()
    script = """
    const rows = [0, 1, 2, 3, 4].map((row) => recompute(unpack(bytes("head")).explain, row));
    const gaps = rows.map((row) => row.scoreGap + row.weightGap);
    const line = ["a", "a", "b", ""].map((group, i) => ({ panel: { group }, x: 10 * i, w: 8 }));
    const ungrouped = groupsOf([{ panel: {}, x: 0, w: 8 }]); // as of the film's heads
    console.log(JSON.stringify({ gaps, spans: groupsOf(line), ungrouped }));
    """
    found = in_node(tmp_path, "matrix", script, head=payload)
    assert max(found["gaps"]) < 1e-5
    assert found["ungrouped"] == []
    assert found["spans"] == [{"group": "a", "x": 0, "w": 18}, {"group": "b", "x": 20, "w": 8}]


@needs_node
def test_wholly_masked_row_gets_weights_of_zero(tmp_path):
    explain = attention(seed=4)
    masked, weights = explain.masked_scores.copy(), explain.weights.copy()
    masked[2], weights[2] = -np.inf, 0
    payload = figure(detail="exact", explain=replace(explain, masked_scores=masked, weights=weights)).to_bytes()
    script = """
    const { weights, weightGap, sum } = recompute(unpack(bytes("head")).explain, 2);
    console.log(JSON.stringify([...weights, weightGap, sum]));
    """
    assert in_node(tmp_path, "matrix", script, head=payload) == [0] * 7


@needs_node
def test_zero_is_the_page_or_a_pale_grey_and_ramps_run_one_way(tmp_path):
    script = """
    const found = {};
    for (const [name, background] of [["light", [255, 255, 255]], ["dark", [14, 17, 23]]]) {
      const theme = { background, text: background.map((part) => 255 - part), dark: name === "dark" };
      found[name] = Object.keys(HUES).map((role) => ramp(theme, role, "count"));
      found[`${name} signed`] = [ramp(theme, "weights", "signed")];
    }
    const lightness = (colours) => colours.map((colour) => toLab(colour)[0]);
    console.log(JSON.stringify(Object.fromEntries(Object.entries(found).map(([k, v]) => [k, [v, v.map(lightness)]]))));
    """
    found = in_node(tmp_path, "matrix", script)
    for name, background in (("light", [255, 255, 255]), ("dark", [14, 17, 23])):
        ramps, lightness = found[name]
        assert all(ramp[0] == background for ramp in ramps)
        steps = np.diff(np.array(lightness), axis=1) * (1 if name == "dark" else -1)
        assert steps.min() > -0.004  # one 8-bit rounding
        signed, (lights,) = found[f"{name} signed"]
        grey = np.abs(np.array(signed[0][127]) - background)
        assert grey.min() > 15  # a cell of zero is seen on the page
        assert grey.max() < 30
        assert abs(lights[0] - lights[254]) < 0.02  # both ends weigh the same
        (low_red, _, low_blue), (high_red, _, high_blue) = signed[0][0], signed[0][254]
        assert low_red > low_blue  # what is below zero is brown, what is above is teal
        assert high_blue > high_red


@needs_node
def test_a_cell_is_found_under_a_point_of_a_part_that_is_zoomed_into(tmp_path):
    script = """
    const panel = { index: 3, width: 8, height: 6 };
    const whole = { x: 100, y: 50, w: 80, h: 60, panel };
    const part = { ...whole, view: { x: [4, 8], y: [2, 6] } };
    const at = (box, x, y) => cellUnder({ boxes: [box] }, x, y);
    console.log(JSON.stringify([at(whole, 125, 75), at(part, 125, 75), at(part, 179, 109), at(part, 99, 75)]));
    """
    whole, part, last, outside = in_node(tmp_path, "matrix", script)
    assert whole == {"panel": 3, "row": 2, "col": 2}
    assert part == {"panel": 3, "row": 3, "col": 5}  # half of the rows, and of the columns, from the middle on
    assert last == {"panel": 3, "row": 5, "col": 7}
    assert outside is None


def test_page_script_mounts_it():
    def script():
        import numpy as np

        from pages.figures import matrix
        from pages.figures import matrix as matrix_parts
        from pages.kit.asking import Answer
        from pages.kit.matrix import show_matrix
        from tests.helpers.figures import ENGLISH_WORDS

        axis = matrix_parts.Axis("position", ("a", "b"))
        panel = matrix_parts.Panel("p", "", np.eye(2), matrix_parts.Scale.of("probability"))
        figure = matrix.MatrixFigure((panel,), axis, axis, ENGLISH_WORDS)
        answer = Answer(None, np.eye, {"layer": 1})
        show_matrix(figure, answer, key="m", of={"head": 2}, on_select=print, on_cell=print)

    for _ in range(2):  # a second server in one process registers it anew
        ran = AppTest.from_function(script, default_timeout=PATIENCE).run()
        assert not ran.exception
        payload = ran.main.children[0].proto.bytes
        assert unpack(payload)[0]["panels"][0]["id"] == "p"
        assert unpack(payload)[0]["caption"] == ["layer 1 · head 2"]


@pytest.mark.parametrize("step", ["weights", "mixture"])
def test_heads_that_share_keys_have_one_group_and_a_window_its_edges(step: str) -> None:
    words = strings("axis", "en") | {"weight": "w", "step": step, "quantity": "w"}
    weights = np.full((2, 4, 5, 5), 0.2)
    options: dict = {"layer": 0, "head": 1, "windows": [(2, None), None]}
    grid = heads_grid(weights, TOKENS, words, groups=["a", "a", "b", "b"], **options)
    panels = unpack(grid.to_bytes())[0]["panels"]
    assert [panel["group"] for panel in panels] == ["a", "a", "b", "b"] * 2
    assert [panel["window"] for panel in panels] == [[2, None]] * 4 + [None] * 4
    steps = vars(attention()) | {"mixture": np.ones((5, 3))}
    one = one_head(steps | {"cap": 2.0}, TOKENS, words, title="", step=step, cell=None)
    header = unpack(one.to_bytes())[0]
    assert header.get("explain", {}).get("cap") == (2.0 if step == "weights" else None)
    bare = one_head(steps | {"divisor": None}, TOKENS, words, title="", step=step, cell=None)
    assert bare.explain is None
