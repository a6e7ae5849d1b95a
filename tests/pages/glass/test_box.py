"""Under the glass: any tensor and any cell with the model's numbers, from a link or by hand, in both languages."""

import re
from functools import cache

import numpy as np
import pytest
from streamlit.testing.v1 import AppTest

from pages.glass.choice import default_of, part_of
from pages.glass.figures import slice_of
from pages.kit.asking import ask, repeating
from pages.kit.models import open_bundle
from pages.kit.number_format import significant
from pages.language import words
from tests.helpers import PATIENCE
from tests.helpers.pages import repeats, run, told
from transformer_core.analysis.arithmetic import (
    Pass,
    explain_cell,
    explain_gradient,
    read_through,
    recompute,
    tensor_of,
)
from transformer_core.analysis.arithmetic.nudge import nudge
from transformer_core.analysis.gradients.loss import text_loss
from transformer_core.analysis.source import lines_of
from transformer_core.prompt import Prompt

TEXT = "The film was not good, but I loved the ending."
QUERY = "encoder.layer0.self_attention.query"


def alone(text: str, head_off: bool = False) -> None:
    """Show nothing but the box, over a text."""
    from pages.glass.box import under_the_glass
    from pages.kit.header import View
    from pages.kit.models import open_bundle
    from transformer_core.analysis.attention.heads import head_off as switched_off

    bundle = open_bundle("sentiment")
    edits = switched_off("encoder.layer0.self_attention", 1) if head_off else None
    under_the_glass(View(bundle, bundle.tokenizer.encode(text)), edits=edits)


def glass(*, text: str = TEXT, head_off: bool = False, **query: str) -> AppTest:
    """Open the box with these values in the URL."""
    app = AppTest.from_function(alone, default_timeout=PATIENCE, kwargs={"text": text, "head_off": head_off})
    for name, value in ({"glass_open": "true"} | query).items():
        app.query_params[name] = value
    return app.run()


@cache
def read() -> Pass:
    """Return what the shipped model records over the text."""
    bundle = open_bundle("sentiment")
    return read_through(bundle, bundle.tokenizer.encode(TEXT))


def one_of_each() -> list[str]:
    """Return one tensor of every kind in every part of the first layer and around the layers."""
    return [name for name in read().trace if not re.search(r"layer[1-9]|layer0.feed_forward.norm", name)]


def formulas(app: AppTest) -> str:
    """Return all LaTeX on the page."""
    return "\n".join(str(element.value) for element in app.latex)


@pytest.mark.parametrize("language", ["en", "zh"])
def test_every_tensor_shows_its_name_its_numbers_and_its_line(language: str) -> None:
    lines = lines_of(read().model)
    app = glass(lang=language)
    for name in one_of_each() if language == "en" else one_of_each()[::5]:
        app.session_state["glass@"] = name
        app.run()
        assert not app.exception
        assert app.session_state["glass_leaf@"] == name
        values = read().trace[name].double()
        finite = values[values.isfinite()]
        assert f"`{name}`" in told(app)
        assert significant(float(finite.max()), 4) in told(app)
        badge = words(language)["glass.badge"].format(difference=significant(recompute(read(), name).difference))
        assert f":green-badge[:material/check: {badge}]" in told(app)
        assert f"{lines[name].path}:{lines[name].number}" in told(app)
        assert app.code[-1].value == lines[name].code


@pytest.mark.parametrize(
    ("name", "head", "cell", "index"),
    [
        (QUERY, "2", "3.7", (0, 2, 3, 7)),
        ("encoder.layer3.self_attention.weights", "5", "0.4", (0, 5, 0, 4)),
        ("encoder.layer1.feed_forward.activation", "0", "2.511", (0, 2, 511)),
        ("encoder.layer2.self_attention.norm.mean", "0", "0.6", (0, 6, 0)),
        ("encoder.embedding.token_ids", "0", "0.6", (0, 6)),
        ("class_logits", "0", "0.1", (0, 1)),
    ],
)
def test_a_link_names_tensor_head_and_cell(name: str, head: str, cell: str, index: tuple[int, ...]) -> None:
    app = glass(glass=name, glass_head=head, glass_cell=cell)
    assert not app.exception
    expected = explain_cell(read(), name, index)
    for part in (expected.entry, expected.cell.symbols, expected.cell.numbers, expected.result):
        assert part in formulas(app)
    assert significant(expected.recorded, 9) in told(app)
    assert app.query_params["glass_cell"] == cell


@pytest.mark.parametrize("cell", ["99.0", "", "[a](b)"])
def test_a_cell_that_is_not_there_is_refused_in_words(cell: str) -> None:
    app = glass(glass_cell=cell)
    assert not app.exception
    assert "Shown instead: the strongest cell" in told(app)
    assert "](" not in told(app)


@pytest.mark.parametrize("name", ["nothing", "encoder.layer9.residual", "[a](https://example.org)", "x" * 5000, "电影"])
def test_a_tensor_that_is_not_there_is_refused_in_words(name: str) -> None:
    app = glass(glass=name)
    assert not app.exception
    assert "is not here" in app.toast[0].value
    assert "](" not in app.toast[0].value
    assert "glass" not in app.query_params
    assert not app.run().toast


def test_the_part_and_the_tensor_are_chosen_by_hand() -> None:
    app = glass(glass_cell="1.1")
    app.selectbox(key="glass_part@").set_value("encoder.layer2.feed_forward").run()
    assert not app.exception
    name = app.query_params["glass"]
    assert part_of(name) == "encoder.layer2.feed_forward"
    assert "glass_cell" not in app.query_params
    app.selectbox(key="glass_leaf@").set_value("encoder.layer2.feed_forward.output").run()
    assert app.query_params["glass"] == "encoder.layer2.feed_forward.output"
    app.selectbox(key="glass_part@").set_value("encoder.layer0.self_attention").run()
    assert app.query_params["glass"] == "encoder.layer0.self_attention.output"


def test_a_click_on_what_went_in_goes_there() -> None:
    app = glass()
    app.button(key="glass from x").click().run()
    assert not app.exception
    assert app.query_params["glass"] == "encoder.layer0.self_attention.norm.normalized"


def test_what_the_page_edited_is_called_edited() -> None:
    app = glass(head_off=True, glass="encoder.layer0.self_attention.heads", glass_head="1")
    assert not app.exception
    assert ":orange-badge[" in told(app)
    edited = glass(head_off=True, glass="encoder.layer0.self_attention.output")
    assert ":green-badge[" in told(edited)
    assert ":orange-badge[" not in told(edited)


@pytest.mark.parametrize(
    ("leaf", "text"),
    [
        ("masked_scores", "[PAD]"),
        ("masked_scores", "这部电影"),
        ("weights", "[PAD] good"),
        ("weights", "[PAD]"),
        ("query", "🙂 `$x$` [a](b)"),
        ("query", "مرحبا"),
        ("masked_scores", "word " * 120),
    ],
)
def test_any_text_can_lie_under_the_glass(leaf: str, text: str) -> None:
    app = glass(text=text, glass=f"encoder.layer1.self_attention.{leaf}")
    assert not app.exception
    assert ":green-badge[" in told(app)


def test_a_closed_box_runs_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pages.glass.box.read_through", lambda *_, **__: pytest.fail("the model ran"))
    assert not glass(glass_open="false").exception


def test_the_page_of_attention_has_the_box_at_its_bottom() -> None:
    app = run("attention", text=TEXT, glass_open="true", glass=QUERY, glass_cell="1.2")
    assert not app.exception
    expected = explain_cell(read(), QUERY, (0, 0, 1, 2))
    assert expected.cell.numbers in formulas(app)


def test_the_script_recomputes_the_tensor_and_its_check() -> None:
    bundle = open_bundle("sentiment")
    arguments = {"prompt": Prompt(bundle, TEXT, len(read().trace["encoder.embedding.token_ids"][0]))}
    answer = ask(tensor_of, **arguments, name=QUERY)
    assert answer.script == repeating(tensor_of, arguments | {"name": QUERY})
    np.testing.assert_array_equal(answer.arrays["values"], read().trace[QUERY].numpy())
    repeats(answer.script, answer.arrays)


def test_a_slice_finds_its_cells_in_the_tensor_and_refuses_others() -> None:
    run_through = read()
    for name in one_of_each():
        found = recompute(run_through, name)
        part = slice_of(found.values, found.axes, 3)
        row, col = part.strongest()
        assert found.values[part.index((row, col))] == part.matrix[row, col]
        assert part.cell(f"{row}.{col}") == (row, col)
        for wrong in (None, "", "1", "x.y", "-1.2", "99.99999", "٣.1", "1.1.1", f"{'9' * 5000}.1", "[a](b)"):
            assert part.cell(wrong) is None


def test_the_first_query_comes_first() -> None:
    assert default_of(["a.key", "a.query", "b.query"]) == "a.query"
    assert default_of(["b.residual", "class_logits"]) == "b.residual"


@pytest.mark.parametrize(("shows", "language"), [("gradient", "en"), ("both", "zh")])
def test_a_cells_gradient_is_explained_and_a_nudge_stands_beside_it(shows: str, language: str) -> None:
    link = {"glass": QUERY, "glass_head": "2", "glass_cell": "3.7", "glass_answer": "0", "glass_step": "1"}
    app = glass(glass_shows=shows, lang=language, **link)
    assert not app.exception
    bundle = open_bundle("sentiment")
    encoding = bundle.tokenizer.encode(TEXT)
    run = read_through(bundle, encoding, loss=text_loss(bundle, encoding, answer=0))
    slope = explain_gradient(run, QUERY, (0, 2, 3, 7))
    for part in (slope.entry, *slope.symbols, *slope.numbers):
        assert part in formulas(app)
    assert slope.agrees
    assert significant(slope.recorded, 6) in told(app)
    found = nudge(prompt=Prompt(bundle, TEXT, len(encoding)), name=QUERY, index=(0, 2, 3, 7), step=1.0, answer=0)
    shown = [one.value for one in app.metric]
    assert significant(found.expected, 3, sign=True) in shown
    assert significant(found.change, 3, sign=True) in shown
    assert words(language)[f"glass.nudge_fit_{found.fit}"] in told(app)
