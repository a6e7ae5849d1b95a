"""A step of byte-pair encoding: its counts are those of the text at that moment, its cut that of the sentence."""

import re
from collections import Counter
from itertools import islice, pairwise

import numpy as np
import pytest

from transformer_core.analysis.words.bpe_merges import MOST_CHARACTERS, learnable, merge_step
from transformer_core.analysis.words.tokenizer_comparison import corpus_text
from transformer_core.text.merges import ALPHABETS, join, learn_merges, spell, split_words

SENTENCE = "The story was dull, 这部电影很无聊 👍 the end."
CHOICE = {"corpus": "both", "pasted": "", "alphabet": "characters", "merges": 300, "step": 120, "text": SENTENCE}


@pytest.mark.parametrize("alphabet", ALPHABETS)
@pytest.mark.parametrize("step", [0, 1, 2, 37])
def test_rivals_are_the_most_frequent_pairs_of_that_moment(alphabet: str, step: int) -> None:
    found = merge_step(**CHOICE | {"alphabet": alphabet, "step": step, "corpus": "zh"})
    words = Counter(word for word, _ in split_words(corpus_text("zh")))
    lines = {word: spell(word, alphabet) for word in words}
    for merge in islice(learn_merges(words, alphabet=alphabet), max(step - 1, 0)):
        lines = {word: join(line, merge.pair) for word, line in lines.items()}
    counts = Counter[tuple[str, str]]()
    for word, line in lines.items():
        for pair in pairwise(line):
            counts[pair] += words[word]
    assert found.rival_counts == tuple(count for _, count in counts.most_common(10))
    assert found.rival_counts[0] == found.counts[max(step - 1, 0)]
    if step:
        assert found.rivals[0] == f"{found.lefts[step - 1]} + {found.rights[step - 1]}"


@pytest.mark.parametrize("alphabet", ALPHABETS)
def test_the_sentence_closes_up_and_its_places_lead_back(alphabet: str) -> None:
    for step in (0, 5, 120, 300):
        found = merge_step(**CHOICE | {"alphabet": alphabet, "step": step})
        assert found.sentence_tokens[step] == len(found.labels)
        assert bytes.fromhex("".join(found.spelled)).decode() == SENTENCE
        spans = list(zip(found.starts, found.ends, strict=True))
        if alphabet == "characters":
            assert "".join(SENTENCE[start:end] for start, end in spans) == SENTENCE
            assert not any(found.shared)
        else:
            assert {place for start, end in spans for place in range(start, end)} == set(range(len(SENTENCE)))
            assert not any(found.unknown)
    assert np.all(np.diff(found.sentence_tokens) <= 0)
    assert np.all(np.diff(found.n_tokens) < 0)
    assert np.all(np.diff(found.counts) <= 0)


def test_what_a_step_joined_is_marked_and_has_the_newest_id() -> None:
    for step in range(1, 60):
        found = merge_step(**CHOICE | {"step": step, "corpus": "en"})
        fresh = [id_ for id_, new in zip(found.ids, found.fresh, strict=True) if new]
        assert set(fresh) <= {max(found.ids)}
        assert bool(fresh) == bool(found.sentence_tokens[step - 1] - found.sentence_tokens[step])


def test_letters_that_the_text_lacks_are_unknown() -> None:
    found = merge_step(**CHOICE | {"corpus": "own", "pasted": "ab ab ab", "merges": 1, "step": 1, "text": "abc"})
    assert (found.labels, found.unknown, found.ids[1]) == (("ab", "c"), (False, True), -1)


def test_a_bounded_text_has_a_bounded_lesson() -> None:
    assert learnable(corpus="own", pasted="one two", alphabet="characters") == 0
    assert learnable(corpus="own", pasted="ab ab", alphabet="bytes") == 1
    assert learnable(corpus="both", pasted="", alphabet="bytes") == 1_000


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"corpus": "fr"}, "corpus='fr' is unknown; it must be one of 'both'"),
        ({"corpus": "own", "pasted": "a b c"}, "no two neighbours occur twice among 3 words"),
        (
            {"corpus": "own", "pasted": "a" * (MOST_CHARACTERS + 1)},
            "pasted has 200,001 characters; it may have 200,000",
        ),
        ({"corpus": "own", "pasted": "ab ab \ud83d"}, "text must be valid Unicode"),
        ({"alphabet": "letters"}, "alphabet='letters' must be one of"),
        ({"merges": 0}, "merges=0 must be from 1 to 1000"),
        ({"step": 301}, "step=301 must be from 0 to 300"),
    ],
)
def test_errors_say_what_is_needed(options: dict, message: str) -> None:
    with pytest.raises(ValueError, match=re.escape(message)):
        merge_step(**CHOICE | options)
