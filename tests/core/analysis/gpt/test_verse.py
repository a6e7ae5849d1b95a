"""Verse: which characters stand above and which rhyme, and what a head gives them and is worth there."""

import numpy as np
import pytest
import torch

from transformer_core.analysis.gpt.verse import laid_out, looks_of, measured_looks, poem_head, verse_looks
from transformer_core.bundle import Bundle
from transformer_core.config import ModelConfig
from transformer_core.models import Gpt
from transformer_core.probe import capture
from transformer_core.text import Tokenizer

POEM = "春风吹落日，秋月照空山。客路三千里，人家一水间。"
OTHER = "白日依山尽，黄河入海流。欲穷千里目，更上一层楼。"
TOKENIZER = Tokenizer.train("character", [POEM, OTHER], min_frequency=1, template="none")


def bundle() -> Bundle:
    """Return a GPT of two layers with random weights."""
    torch.manual_seed(0)
    sizes = {"d_model": 16, "n_heads": 2, "d_ff": 32, "n_layers": 2, "max_len": 64, "positions": "learned"}
    model = Gpt(ModelConfig(vocab_size=TOKENIZER.vocab_size, dropout=0.0, **sizes))
    return Bundle("poet", model.eval().requires_grad_(False), TOKENIZER)


def test_a_character_stands_under_its_place_of_the_line_before_and_even_lines_rhyme() -> None:
    above, rhyme = looks_of(POEM)
    assert laid_out(POEM)[6:8] == [(1, 0), (1, 1)]
    assert not above[:6].any()
    assert np.argwhere(above[6:11]).tolist() == [[place, place] for place in range(5)]
    assert not above[11].any()  # a sign stands under nothing
    assert np.argwhere(rhyme).tolist() == [[22, 10]]


def test_the_weights_on_a_poem_are_those_of_the_query_before_each_character() -> None:
    poet = bundle()
    found = poem_head(bundle=poet, text=POEM, n_tokens=64, layer=1, head=0)
    ids = torch.tensor([TOKENIZER.encode(POEM).ids])
    _, trace = capture(poet.model, ids, sites=("decoder.layer1.self_attention.weights",))
    weights = trace["decoder.layer1.self_attention.weights"][0, 0].numpy()
    assert np.allclose(found.weights[1:], weights[:-1])
    assert not found.weights[0].any()
    assert "".join(found.characters) == POEM


def test_the_mean_over_poems_is_that_of_their_weights_and_heads_are_worth_what_is_lost_without_them() -> None:
    poet = bundle()
    found = verse_looks(poet, [POEM, OTHER])
    assert found.places == (30, 2)
    on_rhyme = [
        poem_head(bundle=poet, text=text, n_tokens=64, layer=0, head=1).weights[22, 10] for text in (POEM, OTHER)
    ]
    assert found.weights[1, 0, 1] == pytest.approx(np.mean(on_rhyme), rel=1e-5)
    assert found.uniform[1] == pytest.approx(1 / 22)
    assert found.worth.any()


def test_what_nobody_measured_is_refused() -> None:
    with pytest.raises(ValueError, match="'poet' has 0 measured looks"):
        measured_looks(bundle=bundle())
    with pytest.raises(ValueError, match="no line that rhymes"):
        verse_looks(bundle(), ["春风吹落日，"])
