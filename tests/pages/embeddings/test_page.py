"""The embeddings page: every part, control and link, with the numbers of the library."""

import re
from types import SimpleNamespace
from typing import Any

import pytest

from pages.embeddings.dot import outcome_of
from pages.kit.asking import ask, ask_once
from pages.kit.models import open_bundle
from pages.language import words
from tests.helpers.pages import asks, repeats, run, saved_by, told
from transformer_core.analysis.arrays import arrays_of
from transformer_core.analysis.words.nearest_words import analogy, nearest_words
from transformer_core.analysis.words.one_hot import one_hot_row
from transformer_core.analysis.words.sentence_vectors import dot_and_cosine, same_word, sentence_vectors
from transformer_core.analysis.words.two_embeddings import agreement, counted_space
from transformer_core.analysis.words.vocabulary import find
from transformer_core.analysis.words.vocabulary_map import vocabulary_map
from transformer_core.prompt import Prompt

TEXT = "The film was dull, but the ending was superb."
FEW = "250"


def ids_of(*typed: str) -> list[int]:
    """Return the ids of words of the shipped model."""
    return [find(open_bundle("sentiment").tokenizer, word).ids[0] for word in typed]


def test_each_stage_shows_its_closest_words() -> None:
    app = run("embeddings", text=TEXT)
    bundle = open_bundle("sentiment")
    n_tokens = len(bundle.tokenizer.encode(TEXT))
    for stage in ("with_positions", "after_layers"):
        app.button_group(key="embeddings_stage@embeddings").set_value(stage).run()
        assert not app.exception
        found = sentence_vectors(prompt=Prompt(bundle, TEXT, n_tokens), stage=stage)
        assert found.closest is not None
        assert f"{found.cosine[found.closest]:.3f}" in told(app)


def test_the_same_word_is_followed_after_a_prediction() -> None:
    app = run("embeddings", text=TEXT, embeddings_try_same="true")
    asks(app)[0].set_value("close").run()
    bundle = open_bundle("sentiment")
    found = same_word(prompt=Prompt(bundle, TEXT, len(bundle.tokenizer.encode(TEXT))))
    assert f"**{found.cosine[-1]:.3f}**" in told(app)


def test_the_row_is_the_product_and_is_timed_after_a_prediction() -> None:
    app = run("embeddings", text=TEXT, embeddings_part="row")
    app.selectbox(key="embeddings_token@embeddings").set_value("2").run()
    config = open_bundle("sentiment").config
    numbers = ["0", f"{config.vocab_size * config.d_model:,}", f"{config.d_model}"]
    assert [metric.value for metric in app.metric] == numbers
    asks(app)[0].set_value("hundred").run()
    assert not app.exception
    assert "µs" in told(app)


def test_neighbours_by_each_measure_have_the_librarys_average() -> None:
    app = run("embeddings", text=TEXT, embeddings_part="neighbours", embeddings_word="superb")
    (token_id,) = ids_of("superb")
    for measure in ("centred", "euclidean", "cosine"):
        app.button_group(key="embeddings_measure@embeddings").set_value(measure).run()
        assert not app.exception
        found = nearest_words(bundle=open_bundle("sentiment"), token_id=token_id, measure=measure)
        assert f"{found.average:.3f}" in told(app)


def test_a_word_that_is_not_one_token_is_explained() -> None:
    app = run("embeddings", text=TEXT, embeddings_part="neighbours")
    for word, said in (("unwatchability", "2 tokens"), ("电影", "no entry"), ("", "Type a word")):
        app.text_input(key="embeddings_word@embeddings").set_value(word).run()
        assert not app.exception
        assert said in told(app)


def test_an_analogy_shows_its_measured_rank_after_a_prediction() -> None:
    app = run("embeddings", text=TEXT, embeddings_part="neighbours", embeddings_analogy="queen")
    asks(app)[0].set_value("first").run()
    a, b, c, expected = ids_of("king", "man", "woman", "queen")
    found = analogy(bundle=open_bundle("sentiment"), a=a, b=b, c=c, expected=expected)
    assert f"**{found.rank:,}**" in told(app)
    assert f"**{found.rank_with_given:,}**" in told(app)


def test_an_analogy_of_typed_words_waits_for_words_that_are_known() -> None:
    app = run("embeddings", text=TEXT, embeddings_part="neighbours", embeddings_analogy="own", embeddings_d="xyzzyq")
    assert "tokens" in told(app)
    app.text_input(key="embeddings_d@embeddings").set_value("awful").run()
    asks(app)[0].set_value("ten").run()
    assert not app.exception
    assert "rank" in told(app)


@pytest.mark.parametrize(("method", "colour"), [("tsne", "plain"), ("pca", "verdict"), ("space", "verdict")])
def test_the_map_says_how_far_it_may_be_trusted(method: str, colour: str) -> None:
    asked = {"embeddings_method": method, "embeddings_colour": colour, "embeddings_count": FEW}
    app = run("embeddings", text=TEXT, embeddings_part="map", embeddings_search="dull nosuchword", **asked)
    assert not app.exception
    found = vocabulary_map(bundle=open_bundle("sentiment"), count=250, method=method)  # type: ignore[arg-type]
    assert f"{found.trustworthiness:.3f}" in told(app)
    assert "nosuchword" in told(app)


def test_neighbours_on_the_map_agree_as_measured() -> None:
    app = run("embeddings", text=TEXT, embeddings_part="map", embeddings_count=FEW, embeddings_try_map="true")
    asks(app)[0].set_value("high").run()
    found = vocabulary_map(bundle=open_bundle("sentiment"), count=250)
    assert f"**{found.same_side:.1%}**" in told(app)


@pytest.mark.nightly
@pytest.mark.parametrize("language", ["en", "zh"])
def test_counting_and_training_are_compared(language: str) -> None:
    app = run("embeddings", lang=language, embeddings_part="counts", embeddings_dimension="8")
    assert not app.metric
    asks(app)[0].set_value("few").run()
    assert not app.exception
    word = {"en": "dull", "zh": "片"}[language]
    found = ask_once(agreement, window=4, language=language, dimension=8, word=word, k=10).value
    assert [metric.value for metric in app.metric] == [f"{found.word:.0%}", f"{found.mean:.1%}", f"{found.chance:.1%}"]


def test_the_glass_shows_the_embeddings_own_tensors() -> None:
    app = run("embeddings", text=TEXT, glass_open="true")
    assert not app.exception
    assert any("token_embedding" in str(option) for box in app.selectbox for option in box.options)


@pytest.mark.nightly
def test_every_script_repeats_its_numbers() -> None:
    bundle = open_bundle("sentiment")
    answers = (
        ask(sentence_vectors, prompt=Prompt(bundle, TEXT, 16), stage="after_layers"),
        ask(one_hot_row, bundle=bundle, token_id=389),
        ask(counted_space, language="en", window=2, dimension=8, word="dull", k=10),
    )
    for answer in answers:
        repeats(answer.script, answer.arrays)


def test_the_maps_script_repeats_all_but_the_seconds() -> None:
    answer = ask(vocabulary_map, bundle=open_bundle("sentiment"), count=60, method="pca", fragments=False, special=True)
    saved = saved_by(answer.script)
    shown = arrays_of(answer.value)
    assert saved.keys() == shown.keys()
    assert abs(saved["xy"] - shown["xy"]).max() < 1e-4


@pytest.mark.parametrize("language", ["en", "zh"])
def test_a_dot_product_is_shown_beside_the_cosine_that_it_is_called(language: str) -> None:
    text = "The film was not good, but I loved the ending."
    app = run("embeddings", lang=language, text=text, embeddings_dot_open="true")
    assert not app.exception
    bundle = open_bundle("sentiment")
    found = dot_and_cosine(prompt=Prompt(bundle, text, 64), stage="after_layers")
    share = found.others / len(found.labels)
    outcome = "few" if share < 0.1 else "some" if share < 0.5 else "many"
    next(pills for pills in asks(app) if "embeddings_dot" in str(pills.key)).set_value(outcome).run()
    assert words(language)["try.right"] in told(app)
    after = dot_and_cosine(prompt=Prompt(bundle, text, 64), stage="handed_on")
    for stage, there in (("after_layers", found), ("handed_on", after)):
        named = told(app).split(words(language)[f"embeddings.dot_{stage}"])[-1]
        counted = re.search(r"\*\*(\d+)\*\*", named)
        assert counted is not None
        assert counted[1] == str(there.others)


@pytest.mark.parametrize(
    ("others", "count", "outcome"), [(0, 9, "few"), (1, 11, "few"), (1, 10, "some"), (4, 9, "some"), (5, 10, "many")]
)
def test_how_many_disagree_is_judged_by_their_share(others: int, count: int, outcome: str) -> None:
    found: Any = SimpleNamespace(others=others, labels=("a",) * count)
    assert outcome_of(found) == outcome
