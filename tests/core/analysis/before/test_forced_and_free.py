"""Teacher forcing scores the given words one by one; free running is the model's own translation."""

import itertools

import pytest
import torch

from tests.helpers import ROOT
from transformer_core.analysis.before.alignments import word_alignment
from transformer_core.analysis.before.forced_and_free import forced_and_free
from transformer_core.analysis.translation.teacher_forcing import forced_target
from transformer_core.checkpoints import load

TEXT = "A man in a red shirt is riding a horse."
RIGHT = "Un homme vêtu d'une chemise rouge fait du cheval."
MODELS = ROOT / "assets" / "checkpoints"


def test_each_word_is_scored_after_the_right_ones_and_the_rest_is_what_the_model_writes() -> None:
    bundle = load(MODELS / "seq2seq-en-fr", device="cpu")
    found = forced_and_free(bundle=bundle, text=TEXT, n_tokens=64, target=RIGHT)
    alone = word_alignment(bundle=bundle, text=TEXT, n_tokens=64)
    assert found.free_text == alone.translation
    assert [word for word in found.free if word] == list(alone.target[: len(found.words)])
    tokenizer, ids = bundle.tokenizer, bundle.tokenizer.encode(RIGHT).ids
    source = torch.tensor([tokenizer.encode(TEXT).ids])
    with torch.inference_mode():
        place = bundle.model.start(source)
        for step, (read, word) in enumerate(itertools.pairwise(ids)):
            logits, place = bundle.model.advance(torch.tensor([[read]]), place)
            chances = logits[0].double().softmax(-1)
            assert found.probabilities[step] == pytest.approx(float(chances[word]), abs=1e-6)
            assert found.favourites[step] == tokenizer.label_of(int(chances.argmax()))
    assert found.forced_right == sum(one == other for one, other in zip(found.words, found.favourites, strict=True))
    assert found.forced_right > found.free_right
    assert found.words[: found.leaves] == found.free[: found.leaves]
    assert found.words[found.leaves] != found.free[found.leaves]


def test_its_own_translation_is_found_whole_either_way() -> None:
    bundle = load(MODELS / "seq2seq-en-fr", device="cpu")
    own = word_alignment(bundle=bundle, text=TEXT, n_tokens=64)
    found = forced_and_free(bundle=bundle, text=TEXT, n_tokens=64, target=own.translation)
    assert found.leaves == -1
    assert found.forced_right == found.free_right == len(found.words) == len(own.target)


def test_a_transformer_is_scored_as_on_its_own_page() -> None:
    bundle = load(MODELS / "translation-en-fr", device="cpu")
    found = forced_and_free(bundle=bundle, text=TEXT, n_tokens=64, target=RIGHT)
    forced = forced_target(bundle=bundle, text=TEXT, n_tokens=64, target=RIGHT)
    assert found.words == forced.words
    assert found.probabilities == pytest.approx(forced.probabilities, abs=1e-6)
    assert found.favourites == forced.favourites
