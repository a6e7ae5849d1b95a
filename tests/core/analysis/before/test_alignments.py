"""Alignments: rows of weights that belong to the words that were written, of both kinds of model."""

import numpy as np
import pytest
import torch

from tests.core.analysis.before.conftest import SENTENCE
from tests.helpers.engine import exactly
from transformer_core.analysis.before.alignments import both_alignments, word_alignment
from transformer_core.bundle import Bundle
from transformer_core.generation import greedy
from transformer_core.text import Tokenizer


def test_rows_are_of_the_words_that_greedy_writes(bundle_of, transformer) -> None:
    for bundle, layers in ((bundle_of(), 1), (bundle_of(unit="lstm", attention="dot_product"), 1), (transformer, 2)):
        found = word_alignment(bundle=bundle, text=SENTENCE, n_tokens=12)
        tokenizer = bundle.tokenizer
        source = torch.tensor([tokenizer.encode(SENTENCE).ids])
        steps = list(greedy(bundle.model, source, bos_id=tokenizer.bos_id, eos_id=tokenizer.eos_id, most=64))
        assert found.target_ids == tuple(step.token_id for step in steps)
        assert found.translation == tokenizer.decode(found.target_ids)
        assert found.weights.shape == (layers, len(found.target), len(found.source))
        np.testing.assert_allclose(found.weights.sum(-1), 1.0, atol=1e-6)
        likeliest = [float(step.logits.softmax(-1).max()) for step in steps]
        np.testing.assert_allclose(found.probabilities, likeliest, atol=1e-5)


def test_a_given_target_is_read_in_place_of_its_own(bundle_of) -> None:
    found = word_alignment(bundle=bundle_of(), text=SENTENCE, n_tokens=12, target="le chat dort")
    assert found.target == ("le", "chat", "dort", "[EOS]")
    assert found.translation == "le chat dort"
    assert word_alignment(bundle=bundle_of(), text="a", n_tokens=12, target="").target == ("[EOS]",)


def test_two_models_look_for_the_same_words(bundle_of, transformer) -> None:
    both = both_alignments(bundle=bundle_of(), other=transformer, text=SENTENCE, n_tokens=12)
    assert both.bundle.target == both.other.target
    assert both.bundle.translation == both.own
    assert both.difference.shape == (2, len(both.other.target))
    assert ((both.difference >= 0) & (both.difference <= 1)).all()
    peaks = both.other.weights.argmax(-1) == both.bundle.weights.argmax(-1)
    np.testing.assert_allclose(both.agree, peaks.mean(-1))


def test_a_model_is_alike_to_itself(bundle_of) -> None:
    both = both_alignments(bundle=bundle_of(), other=bundle_of(), text=SENTENCE, n_tokens=12, target="le chat")
    assert not both.difference.any()
    assert both.agree.tolist() == [1.0]


def test_what_cannot_be_laid_side_by_side_is_refused(bundle_of, transformer) -> None:
    message = "bundle='old' has attention=None, so that it looks nowhere; it must have attention"
    with pytest.raises(ValueError, match=exactly(message)):
        word_alignment(bundle=bundle_of(attention=None), text="a", n_tokens=12)
    text = transformer.tokenizer.to_json()
    other = Bundle("other", transformer.model, Tokenizer.from_json(text.replace('"cat"', '"dog"')))
    with pytest.raises(ValueError, match=r"bundle='old' and other='other' cut the sentence differently"):
        both_alignments(bundle=bundle_of(), other=other, text="a", n_tokens=12, target="cat")
    bare = Tokenizer.from_json(text.replace("[BOS]", "[START]"))
    with pytest.raises(ValueError, match=r"bundle='bare' has a tokenizer without \[BOS\] and \[EOS\]"):
        word_alignment(bundle=Bundle("bare", transformer.model, bare), text="a cat", n_tokens=12)
