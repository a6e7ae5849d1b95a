"""Common slips: both versions against plain torch, and what a text or model cannot show is left open."""

import math

import numpy as np
import pytest
import torch
from torch.nn import functional

from transformer_core.analysis.why.slips import SLIPS, CommonSlips, common_slips
from transformer_core.bundle import Bundle
from transformer_core.checkpoints import load
from transformer_core.probe import capture
from transformer_core.prompt import Prompt

TEXT = "The film was not good, but I loved the ending."


@pytest.fixture(scope="module")
def bundles() -> dict[str, Bundle]:
    """Shipped models of the three kinds."""
    return {name: load(name, device="cpu") for name in ("sentiment", "bert", "seq2seq-en-fr")}


def slips_of(bundles: dict[str, Bundle], text: str) -> CommonSlips:
    prompt = Prompt(bundles["sentiment"], text, 64)
    return common_slips(prompt=prompt, bert=bundles["bert"], gru=bundles["seq2seq-en-fr"])


@torch.no_grad()
def by_torch(bundle: Bundle) -> dict[str, tuple[torch.Tensor, torch.Tensor]]:
    """Return both versions of some slips, written in plain torch."""
    ids = torch.tensor([bundle.tokenizer.encode(TEXT).ids])
    logits, trace = capture(bundle.model, ids, sites=("encoder.layer0.*",))
    attention = {leaf: trace[f"encoder.layer0.self_attention.{leaf}"][0] for leaf in ("query", "key", "weights")}
    products = attention["query"] @ attention["key"].mT
    x = trace["encoder.layer0.feed_forward.pre_activation"].double()
    length, width = ids.shape[1], bundle.config.d_model
    place, even = torch.arange(length)[:, None], torch.arange(0, width, 2)
    tables = [
        torch.stack([torch.sin(place / 10_000 ** (sines / width)), torch.cos(place / 10_000 ** (cosines / width))], -1)
        for sines, cosines in ((2 * even, 2 * (even + 1)), (even, even))
    ]
    winner = logits.argmax(-1)
    return {
        "gelu": (x - functional.gelu(x), functional.gelu(x)),
        "scale": ((products / math.sqrt(width)).softmax(-1), attention["weights"]),
        "exponent": (tables[0], tables[1]),
        "loss": (functional.cross_entropy(logits.softmax(-1), winner), functional.cross_entropy(logits, winner)),
        "hidden": (torch.full((length,), 1 / length), torch.zeros(length)),
    }


def test_both_versions_are_those_of_plain_torch(bundles: dict[str, Bundle]) -> None:
    found = slips_of(bundles, TEXT)
    for name, (written, right) in by_torch(bundles["sentiment"]).items():
        at, length = SLIPS.index(name), right.norm() if right.any() else written.norm()
        gap = float((written - right).abs().max())
        assert abs(found.written[at] - found.right[at]) == pytest.approx(gap, rel=1e-4), name
        if name != "hidden":  # whose row is one of each head
            assert found.apart[at] == pytest.approx(float((written - right).norm() / length), rel=1e-4), name
    assert np.isfinite(found.apart).all()
    assert found.many(0.1) == (found.apart > 0.1).sum()


def test_what_a_text_cannot_show_is_left_open_and_the_rest_stands(bundles: dict[str, Bundle]) -> None:
    found = slips_of(bundles, "[PAD]")
    assert found.names == SLIPS
    assert np.isfinite(found.apart[[SLIPS.index(name) for name in ("gelu", "loss", "exponent")]]).all()
    with pytest.raises(ValueError, match="must be a classifier"):
        common_slips(prompt=Prompt(bundles["bert"], TEXT, 64), bert=bundles["bert"], gru=bundles["seq2seq-en-fr"])
