"""Every target weighed: nothing beats the exhaustive search."""

import numpy as np
import pytest

from transformer_core.analysis.translation.letter_search import (
    letter_search,
    letter_survey,
    letters_of,
    trained_letters,
)


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
