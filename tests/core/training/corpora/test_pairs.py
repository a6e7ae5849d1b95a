"""The grammar of short sentences: agreement, order and negation are right, and no sentence is in both parts."""

import pytest

from transformer_core.training.corpora.pairs import translation_pairs


@pytest.fixture(scope="module", params=["fr", "zh"])
def corpus(request: pytest.FixtureRequest) -> tuple[str, list[tuple[str, str]], list[tuple[str, str]]]:
    return request.param, *translation_pairs(request.param, train=6_000, held_out=300, seed=1)


def test_sentences_differ_and_come_again_with_their_seed(corpus) -> None:
    into, train, held_out = corpus
    sources = [source for source, _ in (*train, *held_out)]
    assert len(set(sources)) == len(sources) == 6_300
    assert translation_pairs(into, train=6_000, held_out=300, seed=1) == (train, held_out)
    assert translation_pairs(into, train=10, held_out=0, seed=2)[0] != train[:10]
    known = {word for source, target in train for word in f"{source} {target if into == 'fr' else ''}".split()}
    assert {word for source, _ in held_out for word in source.split()} <= known


def test_french_agrees_and_puts_most_adjectives_behind_the_noun() -> None:
    pairs = dict(translation_pairs("fr", train=12_000, held_out=0)[0])
    found = " | ".join(pairs.values())
    for right in (
        "une voiture rouge",
        "un petit chien",
        "la petite vache",
        "l'enfant",
        "une vieille maison",
        "n'aime pas",
    ):
        assert right in found
    for wrong in ("une rouge voiture", "le enfant", "la voiture vert ", "ne aime", "un vieille", "beau oiseau"):
        assert wrong not in found
    negated = [(source, target) for source, target in pairs.items() if "does not" in source]
    assert all(" pas " in target and (" ne " in target or " n'" in target) for _, target in negated)
    assert not any(" pas " in target for source, target in pairs.items() if "does not" not in source)


def test_chinese_has_measure_words_and_the_place_before_the_verb() -> None:
    pairs = dict(translation_pairs("zh", train=12_000, held_out=0)[0])
    for source, target in pairs.items():
        if source.startswith("a dog is running in the park"):
            assert target == "一只狗在公园里跑"
        assert " " not in target
    assert any("一匹" in target for target in pairs.values())
    assert not any("一只马" in target or "在在" in target for target in pairs.values())


def test_numbers_outside_what_there_is_are_refused() -> None:
    with pytest.raises(ValueError, match=r"train=-1 and held_out=0 must be at least 0"):
        translation_pairs("fr", train=-1, held_out=0)
