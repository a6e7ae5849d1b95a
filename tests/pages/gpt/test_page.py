"""The GPT page: every part and control, with numbers that the library computes, and what its own figures draw."""

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest
from streamlit.testing.v1 import AppTest

from pages.figures.charts import rows_of
from pages.gpt import draft
from pages.gpt.figures import (
    bits_by_stage,
    cache_curves,
    chance_by_stage,
    draws_bars,
    moved_board,
    rank_by_stage,
    surprise_pairs,
)
from pages.kit import header
from pages.kit.asking import ask
from pages.kit.charts import place_of
from pages.kit.models import open_bundle
from pages.kit.number_format import significant
from pages.language import words
from tests.helpers.pages import asks, first_screen, matrices, metrics, minus, repeats, run, told
from transformer_core.analysis.gpt.cache import kept_of_text
from transformer_core.analysis.gpt.causality import changed_word, without_mask
from transformer_core.analysis.gpt.continuation import MOST_STEPS, greedy_loop, written_on
from transformer_core.analysis.gpt.draft import drafted
from transformer_core.analysis.gpt.lens import logit_lens
from transformer_core.analysis.gpt.next_token import drawn, expected, redrawn, surprisals
from transformer_core.analysis.gpt.verse import measured_looks
from transformer_core.bundle import Bundle
from transformer_core.prompt import Prompt
from transformer_core.recipes.gpt_poem import in_form

TEXT = "The king is"
MODEL = "gpt-char"
EN = words("en")
FIGURE_WORDS = {
    name: name
    for name in (
        *("token", "bits", "rest", "count", "counted", "due", "length", "milliseconds", "plain", "cached"),
        *("masked", "unmasked", "stage", "place", "answer_probability", "embedding", "rank_axis", "moved"),
    )
} | {"layer": "Layer {number}"}


def asked() -> dict:
    """Return the arguments that every question about the text has."""
    bundle = open_bundle(MODEL)
    return {"prompt": Prompt(bundle, TEXT, len(bundle.tokenizer.encode(TEXT)))}


def opened(part: str, **query: str) -> AppTest:
    """Open a part of the page, by default on the text of these tests."""
    app = run("gpt", **{"text": TEXT, "model": MODEL, "gpt_part": part} | query)
    assert not app.exception
    return app


def test_the_entropy_at_a_place_is_the_models() -> None:
    app = opened("next", gpt_back="-3")
    place = asked()["prompt"].n_tokens - 3
    found = expected(**asked(), place=place, top=10)
    assert metrics(app)[EN["gpt.entropy"]] == EN["gpt.in_bits"].format(bits=f"{found.entropy:.2f}")
    assert f"**{found.came_bits:.2f}**" in told(app)
    assert f"**{surprisals(**asked()).mean_bits:.2f}**" in told(app)
    app.slider(key="gpt_back@gpt").set_value(0).run()
    found = expected(**asked(), place=place + 3, top=10)
    assert metrics(app)[EN["gpt.entropy"]] == EN["gpt.in_bits"].format(bits=f"{found.entropy:.2f}")


def test_a_right_guess_is_judged_right() -> None:
    app = opened("next", gpt_guess_open="true")
    found = expected(**asked(), place=(asked()["prompt"].n_tokens + 1) // 2, top=10)
    asks(app)[0].set_value(str(found.ids[0])).run()
    assert not app.exception
    assert EN["try.right"] in told(app)


def test_no_rank_is_shown_where_the_text_ends() -> None:
    app = opened("next", text="T", gpt_guess_open="true", lang="zh")
    likeliest = expected(prompt=Prompt(open_bundle(MODEL), "T", 1), place=1, top=10).ids[0]
    asks(app)[0].set_value(str(likeliest)).run()
    assert not app.exception
    assert words("zh")["gpt.guess_end"] in told(app)


def test_the_rules_are_those_of_the_controls() -> None:
    app = opened("draw", gpt_temperature="1.5", gpt_top_k="4", gpt_top_p="1")
    place = asked()["prompt"].n_tokens
    found = redrawn(**asked(), place=place, temperature=1.5, top_k=4, top_p=None, top=10)
    shown = metrics(app)
    assert shown[EN["gpt.kept"]] == f"4 / {found.n_tokens}"
    assert shown[EN["gpt.entropy_after"]] == EN["gpt.in_bits"].format(bits=f"{found.entropy_after:.2f}")
    app.button(key="gpt_draw_again").click().run()
    many = drawn(**asked(), place=place, temperature=1.5, top_k=4, top_p=None, top=10, seed=1, draws=1_000)
    assert f"{many.distance:.2%}" in told(app)
    assert app.query_params["gpt_seed"] == "1"


def test_what_cooling_does_is_shown_after_a_prediction() -> None:
    app = opened("draw", gpt_cold_open="true")
    asks(app)[0].set_value("rises").run()
    assert not app.exception
    found = redrawn(**asked(), place=asked()["prompt"].n_tokens, temperature=0.3, top_k=None, top_p=None, top=10)
    assert f"{found.entropy_after:.2f}" in told(app)


def test_tokens_are_written_one_by_one_and_kept_in_the_link() -> None:
    app = opened("write", gpt_steps="3", gpt_how="greedy")
    rules = {"how": "greedy", "temperature": 1.0, "top_k": None, "top_p": None, "seed": 0, "choices": ()}
    assert app.code[0].value == TEXT + written_on(**asked(), **rules, steps=3).written
    app.button(key="gpt_one").click().run()
    assert app.code[0].value == TEXT + written_on(**asked(), **rules, steps=4).written
    assert app.query_params["gpt_steps"] == "4"
    app.button(key="gpt_over").click().run()
    assert app.code[0].value == TEXT
    assert not app.exception


def test_another_token_is_put_in_and_gone_on_from() -> None:
    rules = {"how": "sample", "temperature": 0.7, "top_k": None, "top_p": 0.9, "seed": 4}
    free = written_on(**asked(), **rules, choices=(), steps=6)
    other = next(id_ for id_ in free.steps[1].top_ids if id_ != free.steps[1].token_id)
    app = opened("write", gpt_steps="6", gpt_seed="4", gpt_step="1", gpt_choices=f"1.{other}")
    put = written_on(**asked(), **rules, choices=((1, other),), steps=6)
    assert app.code[0].value == TEXT + put.written
    assert put.steps[0] == free.steps[0]
    assert EN["gpt.step_person"].format(chance=f"{put.steps[1].probability:.2%}") in told(app)


def test_greedy_writing_is_shown_after_a_prediction() -> None:
    app = opened("write", gpt_steps="2", gpt_circle_open="true")
    asks(app)[0].set_value("no").run()
    assert not app.exception
    found = greedy_loop(**asked(), steps=100)
    assert found.written.written in app.code[1].value


def test_the_cache_is_measured_after_a_prediction() -> None:
    app = opened("cache", gpt_cache_open="true")
    asks(app)[0].set_value("far").run()
    assert not app.exception
    assert "KiB" in told(app) or "MiB" in told(app)


@pytest.mark.parametrize(("options", "language"), [("llama", "en"), ("multi_query", "zh"), ("window", "en")])
def test_the_cache_is_shown_with_the_bytes_of_more_heads_and_fewer(
    options: str, language: str, opened_odd: Callable[[str, str], Bundle]
) -> None:
    bundle, said = opened_odd("gpt", options), words(language)
    app = run("gpt", lang=language, model=bundle.name, text=TEXT, gpt_part="cache", gpt_kept="value", layer="0")
    assert not app.exception
    prompt = Prompt(bundle, TEXT, bundle.config.max_len)
    found = kept_of_text(prompt=prompt, layer=0)
    header, arrays = matrices(app)[0]
    assert [panel["title"] for panel in header["panels"]] == {
        "llama": ["heads that read it: 0, 1", "heads that read it: 2, 3"],
        "multi_query": ["读它的头：0, 1, 2, 3"],
        "window": ["heads that read it: 0", "heads that read it: 1"],
    }[options]
    np.testing.assert_allclose(np.array([*arrays.values()]), found.value, atol=1e-6)
    count, size = len(prompt.encoding), f"{found.size / 2**10:.1f} KiB"
    sizes = {"count": count, "size": size, "layers": 2, "heads": bundle.config.kv_heads}
    assert said["gpt.cache_size"].format(**sizes) in told(app)
    for other in found.here:
        assert f"{other / 2**10:.1f} KiB" in told(app)
    assert (said["gpt.cache_window"].format(spare=64) in told(app)) == (options == "window")


@pytest.mark.parametrize(
    ("query", "language"),
    [({"gpt_drafter": "gpt-draft"}, "en"), ({"gpt_drafter": "layers", "gpt_draft_layers": "3"}, "zh")],
)
def test_drafts_are_drawn_and_counted(query: dict[str, str], language: str) -> None:
    app, said = opened("draft", model="gpt", lang=language, gpt_draft_length="3", **query), words(language)
    bundle, layers = open_bundle("gpt"), query.get("gpt_draft_layers")
    found = drafted(
        prompt=Prompt(bundle, TEXT, len(bundle.tokenizer.encode(TEXT))),
        drafter=None if layers else open_bundle("gpt-draft"),
        layers=int(layers) if layers else None,
        length=3,
        steps=32,
    )
    (chart,) = app.get("vega_lite_chart")
    cells = pa.ipc.open_stream(chart.proto.datasets[0].data.data).read_all().to_pylist()
    kinds = [cell["kind"] for cell in cells]
    assert kinds.count(said["gpt.draft_accepted"]) == found.accepted
    assert kinds.count(said["gpt.draft_own"]) == len(found.passes)
    assert len(cells) == found.guessed + len(found.passes)
    written = bundle.tokenizer.encode(found.text).labels
    assert [cell["token"] for cell in cells if cell["written"]] == [*written]
    assert found.same == found.tokens == 32
    assert f"{found.accepted / found.guessed:.0%}" in told(app)
    assert f"{found.weights:.1f}" in told(app)


def test_drafts_of_a_large_model_wait_until_somebody_asks_for_them_of_this_text(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(draft, "LARGE", 1)
    app = opened("draft", model="gpt", lang="en")
    go = "Write 32 tokens"
    assert not app.get("vega_lite_chart")
    next(button for button in app.button if button.label == go).click().run()
    assert app.get("vega_lite_chart")
    assert go not in [button.label for button in app.button]
    app.text_input[0].set_value("Tom saw a").run()
    assert go in [button.label for button in app.button]


def test_a_text_without_room_is_told_that_drafts_have_none() -> None:
    app = opened("draft", text="a" * 200)
    assert not app.exception
    assert words("en")["gpt.draft_full"].format(most=128) in told(app)


def test_the_lens_shows_the_surprisal_with_and_without_the_last_layer() -> None:
    app = opened("lens", gpt_back="-2", gpt_lens_open="true")
    found = logit_lens(**asked(), first=1, count=24)
    assert len(found.places) == asked()["prompt"].n_tokens
    asks(app)[0].set_value("some").run()
    assert not app.exception
    full, without = f"**{found.mean_bits[-1]:.2f}**", f"**{found.mean_bits[-2]:.2f}**"
    assert full in told(app)
    assert without in told(app)


@pytest.mark.parametrize("language", ["en", "zh"])
def test_the_tuned_lens_is_a_switch_with_what_it_changes_beside_it(language: str) -> None:
    app = opened("lens", lens="tuned", gpt_back="-2", gpt_lens_open="true", lang=language)
    found = logit_lens(**asked(), first=1, count=24, through="tuned")
    asks(app)[0].set_value("some").run()
    assert not app.exception
    shown, rows = told(app), asked()["prompt"].bundle.measured.lens
    assert f"**{found.mean_bits[-2]:.2f}**" in shown
    for row in rows:
        assert f"| {row.logit:.2f} | {row.tuned:.2f} | {minus(f'{row.tuned - row.logit:+.2f}')} |" in shown
    assert f"{rows[0].tokens:,}" in shown
    assert words(language)["lens.nearer_all"].format(stages=len(rows)) in shown


def test_a_model_without_a_tuned_lens_says_so_and_offers_one_that_has(monkeypatch: pytest.MonkeyPatch) -> None:
    bundle = open_bundle(MODEL)
    monkeypatch.setattr(header, "open_bundle", lambda name: replace(bundle, lens=None))
    app = opened("lens", lens="tuned")
    assert words("en")["lens.needs_trained"].format(name=MODEL) in [one.value for one in app.info]
    assert "logit lens" not in [one.label for one in app.button_group]
    assert logit_lens(**asked(), first=1, count=24).answers


def test_what_a_changed_word_moves_is_shown_with_the_mask_and_without_it() -> None:
    app = opened("mask", gpt_changed="-3", gpt_words="to")
    place = asked()["prompt"].n_tokens - 3
    found = changed_word(**asked(), place=place, words="to")
    assert metrics(app)[EN["gpt.earlier_masked"]] == EN["gpt.exactly_zero"]
    asks(app)[0].set_value("all").run()
    assert significant(found.earlier_unmasked) in told(app)
    asks(app)[1].set_value("worse").run()
    off = without_mask(**asked())
    assert f"**{off.mean_unmasked:.2f}**" in told(app)
    assert not app.exception


@pytest.mark.nightly
@pytest.mark.parametrize(
    ("part", "query"),
    [
        ("write", {"gpt_steps": "1e9", "gpt_choices": "0.999999_5"}),
        ("write", {"gpt_steps": str(MOST_STEPS + 1), "gpt_choices": "<b>", "gpt_how": "beam"}),
        ("write", {"gpt_step": "99", "gpt_steps": "5"}),
    ],
    ids=str,
)
def test_odd_values_in_the_link_raise_nothing(part: str, query: dict[str, str]) -> None:
    opened(part, **query)


def test_every_tensor_can_be_looked_at_under_the_glass() -> None:
    app = opened("next", glass_open="true")
    assert EN["glass.heading"] in {box.label for box in app.expander}


def test_a_first_line_becomes_a_poem_and_its_heads_are_shown_as_measured() -> None:
    poet = open_bundle("gpt-poem")
    app = first_screen("gpt", lang="zh", gpt_part="write")
    assert app.selectbox(key="model@gpt").value == "gpt-poem"
    assert in_form(app.code[0].value)
    app = first_screen("gpt", lang="zh", gpt_part="verse")
    assert not app.exception
    looks = measured_looks(bundle=poet)
    best = np.unravel_index(looks.weights[1].argmax(), looks.weights[1].shape)
    assert app.selectbox(key="gpt_verse_head@gpt").value == f"{best[0]}.{best[1]}"
    assert f"**{looks.weights[1][best]:.0%}**" in told(app)
    assert minus(f"{looks.worth[1][best]:+.3f}") in told(app)


def test_a_model_without_verse_offers_the_poet() -> None:
    app = run("gpt", gpt_part="verse")
    assert words("en")["gpt.needs_verse"].format(name="gpt") in told(app)
    app.button(key="offer").click().run()
    assert app.selectbox(key="model@gpt").value == "gpt-poem"
    assert words("en")["gpt.verse_head"] in {box.label for box in app.selectbox}


def test_a_click_on_a_chart_names_a_place() -> None:
    assert place_of({"selection": {"place": [{"place": 3}]}}) == 3
    assert place_of({"selection": {"place": []}}) is None
    assert place_of(None) is None


def test_the_scripts_compute_the_same() -> None:
    rules = {"temperature": 0.7, "top_k": 5, "top_p": None}
    for answer in (
        ask(written_on, **asked(), how="sample", **rules, seed=1, choices=((1, 9),), steps=4),
        ask(changed_word, **asked(), place=5, words="x"),
    ):
        repeats(answer.script, answer.arrays)


def test_draws_stand_beside_what_is_due() -> None:
    bars = draws_bars(["a"], np.array([0.25, 0.75]), np.array([30.0, 70.0]), np.array([4.0, 4.0]), FIGURE_WORDS)
    rows = rows_of(bars)
    assert [(row["count"], row["due"], row["low"], row["high"]) for row in rows] == [
        (30.0, 25.0, 17.0, 33.0),
        (70.0, 75.0, 67.0, 83.0),
    ]


def test_curves_hold_their_numbers() -> None:
    assert [row["value"] for row in rows_of(rank_by_stage(np.array([7, 1]), FIGURE_WORDS, most=50))] == [7, 1]
    assert [row["value"] for row in rows_of(bits_by_stage(np.array([4.0, 2.0]), FIGURE_WORDS))] == [4.0, 2.0]
    assert [row["value"] for row in rows_of(chance_by_stage(np.array([0.1, 0.9]), FIGURE_WORDS))] == [0.1, 0.9]
    pairs = rows_of(surprise_pairs(["a", "b"], np.array([np.nan, 1.0]), np.array([np.nan, 2.0]), FIGURE_WORDS))
    assert [row["bits"] for row in pairs] == [None, 1.0, None, 2.0]
    times = rows_of(cache_curves(np.array([8, 16]), np.array([0.002, 0.004]), np.array([0.001, 0.001]), FIGURE_WORDS))
    assert [row["ms"] for row in times] == [2.0, 4.0, 1.0, 1.0]


def test_small_moves_are_seen_beside_large_ones_and_none_stays_none() -> None:
    moves = np.array([[0.0, 1.0], [0.0, 63.0]])
    board = moved_board(moves, None, ["a", "b"], ["a", "c"], FIGURE_WORDS)
    np.testing.assert_allclose(board.panels[0].values, [[0.0, 1.0], [0.0, 6.0]])
