"""Every target weighed, and the toy batch: nothing beats the exhaustive search, and nothing hidden is looked at."""

import numpy as np
import pytest

from transformer_core.analysis.translation.letter_search import (
    letter_search,
    letter_survey,
    letters_of,
    trained_letters,
)
from transformer_core.analysis.translation.toy_batch import LENGTH, TARGET, toy_batch, toy_source


@pytest.mark.parametrize("rule", ["copy", "reverse"])
def test_no_search_beats_the_best_of_all_targets(rule) -> None:
    found = letter_search(rule=rule, source="abcab", epochs=2, seed=0, length_penalty=0.6)
    assert (found.scores <= found.best_scores[0] + 1e-5).all()  # scored in batches of other sizes
    assert (np.diff(found.best_scores) <= 0).all()
    assert found.n_targets == sum(3**length for length in range(7))
    assert found.answer == ("a b c a b" if rule == "copy" else "b a c b a")
    assert all(text == found.best_texts[0] for text, best in zip(found.texts, found.found, strict=True) if best)


def test_the_same_arguments_train_the_same_translator() -> None:
    first, again = (letter_search(rule="copy", source="ab", epochs=1, seed=3, length_penalty=0.0) for _ in range(2))
    np.testing.assert_array_equal(first.scores, again.scores)
    assert trained_letters("copy", epochs=1, seed=3) is trained_letters("copy", epochs=1, seed=3)


def test_a_survey_counts_what_single_searches_find(monkeypatch: pytest.MonkeyPatch) -> None:
    letters = trained_letters("copy", epochs=2, seed=0)
    few = type(letters)(**{**vars(letters), "sources": letters.sources[:3], "answers": letters.answers[:3]})
    monkeypatch.setattr("transformer_core.analysis.translation.letter_search.trained_letters", lambda *_, **__: few)
    survey = letter_survey(rule="copy", epochs=2, seed=0, length_penalty=0.6)
    assert survey.n_sources == 3
    assert len(survey.missed) == round((1 - survey.found[0]) * 3)
    each = [letter_search(rule="copy", source=source, epochs=2, seed=0, length_penalty=0.6) for source in few.sources]
    np.testing.assert_allclose(survey.found, np.mean([one.found for one in each], axis=0))


@pytest.mark.parametrize("source", ["", "a", "abcabc", "abd", "你好", "a" * 500])
def test_other_letters_are_refused(source: str) -> None:
    with pytest.raises(ValueError, match="must be 2 to 5 letters out of a, b, c"):
        letters_of(source, "copy")


@pytest.mark.parametrize("source", ["random", "ones", "padded", "all_padding"])
@pytest.mark.parametrize("sentence", [0, 3])
def test_nothing_hidden_is_looked_at_and_nothing_is_nan(source, sentence: int) -> None:
    found = toy_batch(source=source, seed=1, sentence=sentence, layer=2, head=5)
    assert found.row_sums < 1e-5
    for one in (found.encoder_self, found.decoder_self, found.cross):
        assert one.on_hidden == 0.0
        np.testing.assert_allclose(one.weights.sum(-1), one.mask.any(-1), atol=1e-5)
    unreal = [name for name, finite in zip(found.names, found.finite, strict=True) if not finite]
    assert all(name.endswith("masked_scores") for name in unreal)
    assert found.target_ids.tolist() == [list(TARGET)] * 4
    assert found.decoder_self.mask.tolist() == [
        [key <= query and TARGET[key] != 0 for key in range(LENGTH)] for query in range(LENGTH)
    ]


def test_a_source_all_of_padding_gets_no_weight_where_a_fill_would_average_it() -> None:
    found = toy_batch(source="all_padding", seed=0, sentence=3, layer=0, head=0)
    assert found.cross.empty_rows == LENGTH
    assert not found.cross.weights.any()
    np.testing.assert_allclose(found.cross.filled, 1 / LENGTH, atol=1e-6)


def test_names_out_of_range_are_refused() -> None:
    with pytest.raises(ValueError, match="sentence=4 must be from 0 to 3"):
        toy_batch(source="random", seed=0, sentence=4, layer=0, head=0)
    with pytest.raises(ValueError, match="source='x' is unknown"):
        toy_source("x", 0)  # type: ignore[arg-type]
