"""The tensor at each part of the diagram is the one that the model itself computes."""

import numpy as np
import pytest
import torch

from tests.helpers import ROOT
from transformer_core import load
from transformer_core.analysis.part_tensors import part_tensors

TEXT = "The actors were bad, the story was good."


@pytest.mark.parametrize("name", ["sentiment", "sentiment-zh", "bert", "gpt", "gpt-poem", "translation-en-fr"])
def test_each_part_has_its_tensor(name: str) -> None:
    bundle = load(ROOT / "assets/checkpoints" / name)
    found, config = part_tensors(bundle=bundle, text=TEXT, n_tokens=64), bundle.config
    ids = bundle.tokenizer.encode(TEXT, max_len=64).ids
    n = len(ids)
    assert found["tokens"].tolist() == list(ids)
    assert found["embedding"].shape == found["positions"].shape == (n, config.d_model)
    assert found["attention"].shape == (config.n_heads, n, n)
    np.testing.assert_allclose(found["attention"].sum(-1), 1, atol=1e-5)
    assert found["feed_forward"].shape == (n, config.d_ff)
    with torch.inference_mode():
        if name.startswith("sentiment"):
            own = bundle.model(torch.tensor([ids])).softmax(-1)[0]
            assert found["pooled"].shape == (config.d_model,)
        elif name.startswith("gpt"):
            own = bundle.model(torch.tensor([ids])).softmax(-1)[0]
        else:
            assert "outcome" not in found
            return
    if name.startswith("gpt"):
        np.testing.assert_allclose(found["word_scores"], own, atol=1e-6)
        assert found["outcome"].shape == (config.vocab_size,)
    else:
        np.testing.assert_allclose(found["outcome"], own, atol=1e-6)


def test_what_stands_at_mask_is_the_outcome_of_a_bert() -> None:
    bundle = load(ROOT / "assets/checkpoints/bert")
    found = part_tensors(bundle=bundle, text="A man is riding a [MASK].", n_tokens=64)
    place = found["tokens"].tolist().index(bundle.tokenizer.mask_id)
    np.testing.assert_allclose(found["outcome"], found["word_scores"][place], atol=1e-6)


def test_another_kind_is_told() -> None:
    with pytest.raises(ValueError, match="must be a Classifier"):
        part_tensors(bundle=load(ROOT / "assets/checkpoints/seq2seq-en-fr"), text=TEXT, n_tokens=64)


def test_a_text_of_one_token_keeps_its_shapes() -> None:
    bundle = load(ROOT / "assets/checkpoints/gpt-char")
    found = part_tensors(bundle=bundle, text="a", n_tokens=64)
    width = bundle.config.d_model
    assert [found[part].shape for part in ("tokens", "embedding", "positions")] == [(1,), (1, width), (1, width)]
    assert found["word_scores"].shape == (1, bundle.config.vocab_size)
