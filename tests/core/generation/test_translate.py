"""Translating many sentences at once: each comes out as it would alone."""

from typing import Any

import pytest
import torch

from tests.helpers.engine import made
from transformer_core.bundle import Bundle
from transformer_core.generation import beam_search, best_of, greedy, translate
from transformer_core.models import Gpt, Translation
from transformer_core.text import Tokenizer

TEXTS = ["a dog runs", "two men", "a man and a dog run", "", "dog", "men and two dogs and a man run and run"] * 14


@pytest.fixture(scope="module")
def bundle() -> Bundle:
    tokenizer = Tokenizer.train("word", TEXTS, vocab_size=40, min_frequency=1, template="bos_eos")
    return Bundle("tiny", made(Translation, seed=4, vocab_size=tokenizer.vocab_size, max_len=14), tokenizer)


@pytest.mark.parametrize(("width", "alpha", "most"), [(1, 0.6, None), (3, 0.6, None), (4, 0.0, 5), (2, 2.0, 8)])
def test_each_sentence_comes_out_as_alone(bundle, width, alpha, most):
    together = translate(bundle, TEXTS, width=width, length_penalty=alpha, most=most)
    ends: Any = {"bos_id": bundle.tokenizer.bos_id, "eos_id": bundle.tokenizer.eos_id}
    for text, translation in list(zip(TEXTS, together, strict=True))[:6]:
        source = torch.tensor([bundle.tokenizer.encode(text, max_len=14).ids])
        steps = beam_search(bundle.model, source, width=width, length_penalty=alpha, most=most or 13, **ends)
        assert translation == bundle.tokenizer.decode(best_of(steps).token_ids)
        if width == 1:
            steps = greedy(bundle.model, source, most=most or 13, **ends)
            assert translation == bundle.tokenizer.decode([step.token_id for step in steps])
    assert together[:6] * 14 == together
    options: Any = {"width": width, "length_penalty": alpha, "most": most}
    assert together[:6] == translate(bundle, TEXTS[:6], batch_size=2, **options)


def test_nothing_gives_nothing(bundle):
    assert translate(bundle, []) == []


def test_other_kinds_are_refused(bundle):
    with pytest.raises(ValueError, match="is of kind 'gpt'; translation or seq2seq is needed"):
        translate(Bundle("g", made(Gpt, vocab_size=40), bundle.tokenizer), ["a"])
    with pytest.raises(ValueError, match="width=0 must be at least 1"):
        translate(bundle, ["a"], width=0)
