"""Data of the classifiers: three parts without a common text, and no phrase of a sentence that is set aside."""

from collections import Counter
from itertools import combinations

import pytest

from tests.helpers.engine import separable
from transformer_core.recipes.classifiers import ClassifierMeasures, divided, everyday_table, without_parts_of
from transformer_core.recipes.wording import Say
from transformer_core.training.examples import Example

EXAMPLES = [*separable(300), *(Example(f"  {example.text.upper()} ", example.label) for example in separable(300))]


@pytest.mark.parametrize("balanced", [True, False])
def test_no_text_is_in_two_of_the_three_parts(balanced: bool) -> None:
    parts = divided(EXAMPLES, choice=20, test=40, seed=3, balanced=balanced)
    assert [len(part) for part in parts[1:]] == [20, 40]
    assert sum(map(len, parts)) == 300
    texts = [{" ".join(example.text.casefold().split()) for example in part} for part in parts]
    assert not any(first & second for first, second in combinations(texts, 2))
    assert parts == divided(EXAMPLES, choice=20, test=40, seed=3, balanced=balanced)
    assert parts != divided(EXAMPLES, choice=20, test=40, seed=4, balanced=balanced)


def test_a_balanced_part_has_half_of_each_class_and_any_other_as_many_as_the_data() -> None:
    lopsided = [*separable(80), *(Example(f"more {example.text}", 1) for example in separable(80))]
    shares = [Counter(e.label for e in part) for part in divided(lopsided, choice=20, test=20, seed=0)[1:]]
    assert shares == [{0: 10, 1: 10}] * 2
    shares = [Counter(e.label for e in part) for part in divided(lopsided, choice=20, test=20, seed=0, balanced=False)]
    assert shares[1:] == [{0: 5, 1: 15}] * 2


def test_too_few_examples_are_refused() -> None:
    with pytest.raises(ValueError, match="to set 20 aside, more are needed"):
        divided(separable(40), choice=2, test=40, seed=0)


def test_phrases_of_a_sentence_set_aside_are_left_out_but_single_words_stay() -> None:
    sentences = [Example("The plot, though thin, is never dull.", 1)]
    inside = ["never dull", "Though thin , is never dull", "the plot though"]
    outside = ["dull", "plot", "dull never", "is dull", "a thin plot", "the plot is never dull"]
    left = without_parts_of([Example(text, 1) for text in inside + outside], sentences)
    assert [example.text for example in left] == outside


def test_a_table_of_everyday_sentences_says_which_are_right() -> None:
    measured = ClassifierMeasures({}, (0.9, 0.5, 0.7))
    sentences = (("Good.", 1), ("Bad.", 0), ("Awful.", 0))
    assert measured.right(sentences) == [True, True, False]
    assert everyday_table(measured, sentences, Say("en")).splitlines()[2:] == [
        "| Good. | positive | 0.90 | yes |",
        "| Bad. | negative | 0.50 | yes |",
        "| Awful. | negative | 0.70 | **no** |",
    ]
    assert "| Awful. | 负面 | 0.70 | **否** |" in everyday_table(measured, sentences, Say("zh"))
