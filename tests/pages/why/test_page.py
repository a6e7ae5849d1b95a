"""The Why? page: every question, control and link, and scripts that repeat its numbers."""

from dataclasses import replace

import numpy as np
import pytest

import transformer_core.analysis.why.joined_positions as joined
import transformer_core.analysis.why.short_training as short
from pages.ui.asking import ask
from pages.ui.language import words
from pages.ui.models import open_bundle
from pages.ui.number_format import percent
from tests.helpers.pages import asks, repeats, run, told
from transformer_core.analysis.why.gates import gates
from transformer_core.analysis.why.projections import parameters_saved, tied_query_key, without_projections
from transformer_core.analysis.why.scaling import spread_by_width, spread_of_own_heads

TEXT = "The film was not good, but I loved the ending."
NAMES = (
    *("scaling", "heads", "projections", "symmetry", "values"),
    *("scorings", "cost", "positions", "residuals", "gates"),
)
TRAINED = ("values", "positions")  # these train a model, which another test does
PARTS = (
    {"why": "scaling", "why_scaling_on": "sentence"},
    {"why": "heads", "why_heads_part": "cost"},
    {"why": "cost", "why_cost_along": "width"},
    {"why": "gates", "why_gates_part": "sentence"},
)


@pytest.fixture(autouse=True)
def brief(monkeypatch: pytest.MonkeyPatch) -> None:
    """Shorten the trainings to a few steps."""
    small = replace(
        short.SMALL,
        data=replace(short.SMALL.data, examples=320, held_out=64),
        training=replace(short.SMALL.training, batch_size=20, epochs=1),
    )
    monkeypatch.setattr(short, "SMALL", small)
    monkeypatch.setattr(joined, "STEPS", 16)


@pytest.mark.parametrize(
    ("language", "query"),
    [
        *(("zh", query) for query in (*({"why": name} for name in NAMES if name not in TRAINED), *PARTS)),
        *(("en", {"why": name}) for name in ("heads", "cost", "residuals")),
    ],
    ids=str,
)
def test_every_question_shows_its_picture_at_once(language: str, query: dict[str, str]) -> None:
    app = run("why", lang=language, text=TEXT, shown=f"why_{query['why']}", **query)
    assert not app.exception
    assert not app.error
    assert not app.toast
    assert "{" not in told(app)
    assert app.get("vega_lite_chart") or app.get("bidi_component")


def test_the_measurement_is_shown_after_a_prediction() -> None:
    app = run("why", why="scaling")
    assert f"{spread_by_width(seed=0).greatest[-1]:.0%}" not in told(app)
    asks(app)[0].set_value("mixed").run()
    found = spread_by_width(seed=0)
    assert f"{found.slope:.2f}" in told(app)
    assert f"{found.greatest[-1]:.0%}" in told(app)
    assert words("en")["try.right"] not in told(app)
    right = run("why", why="scaling")
    asks(right)[0].set_value("winner").run()
    assert words("en")["try.right"] in told(right)


def test_only_the_chosen_question_is_computed(monkeypatch: pytest.MonkeyPatch) -> None:
    def untouched(*_: object, **__: object) -> None:
        raise AssertionError("another question was computed")

    for module in ("pages.why.scaling.ask_once", "pages.why.heads.ask", "pages.why.gates.ask"):
        monkeypatch.setattr(module, untouched)
    app = run("why", why="symmetry", text=TEXT)
    assert not app.exception
    assert not app.error
    assert len(asks(app)) == 1


@pytest.mark.parametrize(
    ("query", "key", "value"),
    [
        ({"why": "scaling"}, "why_scaling_width@why", "512"),
        ({"why": "scorings"}, "why_scorings_tokens@why", "16"),
        ({"why": "cost"}, "why_cost_length@why", "1024"),
        ({"why": "residuals"}, "why_residuals_depth@why", "32"),
        ({"why": "gates"}, "why_gates_draws@why", "4096"),
    ],
)
def test_steps_of_a_slider_change_what_is_measured(query: dict[str, str], key: str, value: str) -> None:
    app = run("why", text=TEXT, shown=f"why_{query['why']}", **query)
    app.select_slider(key=key).set_value(value).run()
    assert not app.exception
    assert app.query_params[key.removesuffix("@why")] == value


@pytest.mark.parametrize(
    ("name", "key", "value"), [("projections", "reach", 1.0), ("symmetry", "share", 1.0), ("symmetry", "share", 0.5)]
)
def test_sliders_of_the_sentence_show_its_numbers(name: str, key: str, value: float) -> None:
    app = run("why", why=name, text=TEXT, shown=f"why_{name}", layer="2")
    app.slider(key=f"why_{name}_{key}@why").set_value(value).run()
    assert not app.exception
    bundle = open_bundle("sentiment")
    asked = {"bundle": bundle, "text": TEXT, "n_tokens": len(bundle.tokenizer.encode(TEXT)), "layer": 2}
    if name == "projections":
        share = without_projections(**asked, vectors="tokens", reach=value).share
        assert percent(share) in told(app)
    else:
        found = tied_query_key(**asked, head=0, share=value, seed=0)
        assert f"{found.own[2, 0]:.2f}" in told(app)


@pytest.mark.nightly
@pytest.mark.parametrize(
    ("name", "part"), [("values", {}), ("positions", {}), ("gates", {"why_gates_part": "training"})]
)
def test_a_training_starts_once_its_picture_is_open(name: str, part: dict[str, str]) -> None:
    app = run("why", why=name, text=TEXT, shown=f"why_{name}", **part)
    assert not app.exception
    assert words("en")["try.shown"].split(":")[0] in told(app)
    app.button(key=f"hide_why_{name}").click().run()
    assert words("en")["try.shown"].split(":")[0] not in told(app)


def test_times_are_measured_again_on_request() -> None:
    app = run("why", why="scorings", shown="why_scorings", why_scorings_tokens="16")
    app.button(key="why_scorings_measurement_again").click().run()
    assert not app.exception
    assert app.session_state["why_scorings_measurement"] == 1


@pytest.mark.parametrize(
    ("name", "text"),
    [
        *(("heads", text) for text in ("a", "😀😀", "مرحبا", "无聊的电影", "[PAD] [PAD]", "bore " * 200)),
        *(
            (name, text)
            for name in ("projections", "symmetry", "gates")
            for text in ("a", "[PAD] [PAD]", "bore " * 200)
        ),
    ],
    ids=lambda value: value[:20],
)
def test_any_text_gets_an_answer(name: str, text: str) -> None:
    app = run("why", why=name, text=text, shown=f"why_{name}")
    assert not app.exception
    assert not app.error
    assert words("en")["try.shown"].split(":")[0] in told(app)
    assert "nan" not in told(app)


@pytest.mark.parametrize(
    "call",
    [
        (spread_of_own_heads, {}),
        (tied_query_key, {"layer": 1, "head": 2, "share": 0.5, "seed": 0}),
        (gates, {"draws": 16, "seed": 0}),
    ],
    ids=lambda call: call[0].__name__,
)
def test_the_script_repeats_the_numbers(call) -> None:
    function, arguments = call
    bundle = open_bundle("sentiment")
    if function is not gates:
        arguments = {"bundle": bundle, "text": TEXT, "n_tokens": len(bundle.tokenizer.encode(TEXT)), **arguments}
    answer = ask(function, **arguments)
    repeats(answer.script, answer.arrays)


def test_parameters_are_counted_from_the_model_in_the_header() -> None:
    bundle = open_bundle("sentiment")
    saved = parameters_saved(bundle=bundle)
    assert saved.whole_own == bundle.n_parameters
    assert np.isclose(saved.shared / saved.own, 0.75)
