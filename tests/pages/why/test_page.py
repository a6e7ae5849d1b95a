"""The Why? page: every question, control and link, and scripts that repeat its numbers."""

from collections.abc import Callable
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import transformer_core.analysis.short_training as short
import transformer_core.analysis.why.joined_positions as joined
from pages.kit.asking import ask
from pages.kit.controls import Values
from pages.kit.header import View
from pages.kit.models import open_bundle
from pages.kit.number_format import percent, significant
from pages.language import words
from pages.why import gates as gates_question
from pages.why import heads, query_key, residuals, scaling, times, trials
from pages.why.frame import HEAD, LAYER
from pages.why.slips import FORMULAS, PLACES, outcome_of
from tests.helpers import nightly_but
from tests.helpers.pages import asks, repeats, run, told
from transformer_core.analysis.feed_forward.bernoulli import gates
from transformer_core.analysis.why.projections import parameters_saved, tied_query_key, without_projections
from transformer_core.analysis.why.scaling import spread_by_width, spread_of_own_heads
from transformer_core.analysis.why.sentence_attention import sentence_attention
from transformer_core.analysis.why.slips import SLIPS, CommonSlips, common_slips
from transformer_core.layers.attention import dot_product_scores
from transformer_core.prompt import Prompt

TEXT = "The film was not good, but I loved the ending."
NAMES = (
    *("scaling", "heads", "projections", "symmetry", "values"),
    *("scorings", "cost", "positions", "residuals", "gates", "slips"),
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


@pytest.mark.nightly
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


STEPS = [
    ({"why": "scaling"}, "why_scaling_width@why", "512"),
    ({"why": "scorings"}, "why_scorings_tokens@why", "16"),
    ({"why": "cost"}, "why_cost_length@why", "1024"),
    ({"why": "residuals"}, "why_residuals_depth@why", "32"),
    ({"why": "gates"}, "why_gates_draws@why", "4096"),
]


@pytest.mark.parametrize(("query", "key", "value"), nightly_but(STEPS, STEPS[:2]))
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
    asked = {"prompt": Prompt(bundle, TEXT, len(bundle.tokenizer.encode(TEXT))), "layer": 2}
    if name == "projections":
        share = without_projections(**asked, vectors="tokens", reach=value).share
        assert percent(share) in told(app)
    else:
        found = tied_query_key(**asked, head=0, share=value, seed=0)
        assert f"{found.own[2, 0]:.2f}" in told(app)


def test_one_projection_gives_every_score_where_queries_are_fewer_than_keys() -> None:
    bundle = open_bundle("sentiment")
    view = View(bundle, bundle.tokenizer.encode(TEXT))
    held = {LAYER: 1, HEAD: 2, query_key.SHARE: 1.0, query_key.QUERIES: "half"}
    live = query_key._tied(view, Values({control.name: value for control, value in held.items()}))
    scores, weights = live.pictures[0].figure.panels
    query = sentence_attention(prompt=view.prompt).layer(1).query[2]
    few = query[: (len(query) + 1) // 2]
    np.testing.assert_allclose(scores.values, dot_product_scores(few, query), atol=1e-5)
    assert [axis.labels for axis in live.pictures[0].figure.axes(scores)] == [
        view.encoding.labels[: len(few)],
        view.encoding.labels,
    ]
    np.testing.assert_allclose(weights.values.sum(-1), 1.0, atol=1e-5)


@pytest.mark.parametrize("slip", nightly_but(SLIPS, {"gelu"}))
def test_each_slip_has_both_formulas_and_numbers_and_a_link_to_its_page(slip: str) -> None:
    app = run("why", why="slips", why_slip=slip, text=TEXT, shown="why_slips")
    assert not app.exception
    bundle = open_bundle("sentiment")
    prompt = Prompt(bundle, TEXT, len(bundle.tokenizer.encode(TEXT)))
    found = common_slips(prompt=prompt, bert=open_bundle("bert"), gru=open_bundle("seq2seq-en-fr"))
    at, said = SLIPS.index(slip), told(app)
    assert [one.value for one in app.latex] == [f"$$\n{formula}\n$$" for formula in FORMULAS[slip]]
    written, right = (significant(number[at], 3) for number in (found.written, found.right))
    assert f"Often written: **{written}**, right: **{right}**" in said
    (link,) = [one.proto for one in app.get("page_link") if PLACES[slip][0] in one.proto.page]
    assert all(f"{name}={value}" in link.query_string for name, value in PLACES[slip][1].items())
    assert f"{found.many(0.1)} of 12 slips" in said


@pytest.mark.parametrize(("many", "word"), [(3, "few"), (4, "half"), (7, "half"), (8, "most")])
def test_how_many_slips_count_is_said_by_their_number(many: int, word: str) -> None:
    apart = np.where(np.arange(12) < many, 0.11, 0.1)
    assert outcome_of(CommonSlips(SLIPS, apart, apart, apart)) == word


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


@pytest.mark.nightly
@pytest.mark.parametrize(
    ("name", "text"),
    [
        *(("heads", text) for text in ("a", "😀😀", "مرحبا", "无聊的电影", "[PAD] [PAD]", "bore " * 200)),
        *(
            (name, text)
            for name in ("projections", "symmetry", "gates", "slips")
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
        arguments = {"prompt": Prompt(bundle, TEXT, len(bundle.tokenizer.encode(TEXT))), **arguments}
    answer = ask(function, **arguments)
    repeats(answer.script, answer.arrays)


def test_parameters_are_counted_from_the_model_in_the_header() -> None:
    bundle = open_bundle("sentiment")
    saved = parameters_saved(bundle=bundle)
    assert saved.whole_own == bundle.n_parameters
    assert np.isclose(saved.shared / saved.own, 0.75)


def cost_of(times_of_layer: tuple[float, float]) -> SimpleNamespace:
    """Return what the question on cost is judged by."""
    return SimpleNamespace(layer=times_of_layer)


def unprojected(share: float, even: float = 0.1) -> SimpleNamespace:
    """Return a sentence whose words give this share to themselves at the vectors' own length."""
    return SimpleNamespace(shares=np.array([0.0, share]), reaches=np.array([0.0, 1.0]), even=even)


def tied(scores: float, weights: float) -> SimpleNamespace:
    """Return a head whose scores and weights are so asymmetric where Q = K."""
    return SimpleNamespace(scores_asymmetry=[1.0, scores], weights_asymmetry=[1.0, weights])


def trained(gap: float, noise: float) -> SimpleNamespace:
    """Return trainings whose variants lie so far apart, and seeds alone."""
    return SimpleNamespace(gap=lambda *_: gap, noise=lambda *_: noise)


def left_over(gradient: float) -> SimpleNamespace:
    """Return stacks of which those with pre-norm keep this much of a gradient."""
    return SimpleNamespace(norms=("none", "pre"), without_residuals=np.array([[9.0, 9.0], [9.0, gradient]]))


@pytest.mark.parametrize(
    ("judge", "found", "outcome"),
    [
        *(
            (heads._outcome, SimpleNamespace(targets=n, weights=range(6)), said)
            for n, said in ((1.9, "few"), (2.0, "half"), (3.9, "half"), (4.0, "many"))
        ),
        *(
            (heads._clock, ratio, said)
            for ratio, said in ((0.89, "shorter"), (0.91, "same"), (1.09, "same"), (1.11, "longer"))
        ),
        *(
            (scaling._outcome, SimpleNamespace(greatest=[share]), said)
            for share, said in ((0.5, "mixed"), (0.51, "most"), (0.9, "most"), (0.91, "winner"))
        ),
        *(
            (query_key._outcome_of_projections, unprojected(share, even), said)
            for share, even, said in (
                (0.19, 0.1, "even"),
                (0.21, 0.1, "half"),
                (0.49, 0.1, "half"),
                (0.5, 0.1, "self"),
                (0.6, 0.5, "self"),
            )
        ),
        *(
            (query_key._outcome_of_symmetry, tied(*two), said)
            for two, said in (((0.009, 0.009), "both"), ((0.009, 0.01), "scores"), ((0.01, 0.0), "neither"))
        ),
        *(
            (times._outcome_of_cost, cost_of(two), said)
            for two, said in (((1.0, 2.4), "two"), ((1.0, 2.5), "three"), ((1.0, 3.4), "three"), ((1.0, 3.5), "four"))
        ),
        *(
            (times._outcome_of_scorings, SimpleNamespace(ratio=ratio), said)
            for ratio, said in ((2.9, "alike"), (3.0, "tens"), (29.9, "tens"), (30.0, "hundred"))
        ),
        *(
            (lambda found: trials.clearly(found, "a", "b"), trained(*two), said)
            for two, said in (
                ((0.03, 0.02), "better"),
                ((0.02, 0.02), "same"),
                ((-0.02, 0.02), "same"),
                ((-0.03, 0.02), "worse"),
                ((0.01, 0.0), "same"),
                ((0.011, 0.0), "better"),
            )
        ),
        *(
            (residuals._outcome, left_over(left), said)
            for left, said in ((0.009, "vanished"), (0.01, "weaker"), (0.49, "weaker"), (0.5, "whole"))
        ),
        *(
            (gates_question._outcome, SimpleNamespace(silent_relu=np.array([share])), said)
            for share, said in ((0.24, "quarter"), (0.25, "half"), (0.59, "half"), (0.6, "most"))
        ),
    ],
)
def test_each_question_is_judged_by_its_number(judge: Callable[[Any], str], found: Any, outcome: str) -> None:
    assert judge(found) == outcome
