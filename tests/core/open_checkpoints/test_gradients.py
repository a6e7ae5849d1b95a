"""The gradients of an opened checkpoint, of every family, are those of plain autograd and of central differences."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

from tests.core.open_checkpoints.test_parity import READERS, TRANSLATING
from tests.core.test_gradients import by_autograd, compare_with_differences
from tests.helpers import nightly_but
from tests.helpers.open_checkpoints import written
from transformer_core.analysis.attention.heads import head_off
from transformer_core.analysis.gradients.loss import text_loss
from transformer_core.bundle import Bundle
from transformer_core.checkpoints import load
from transformer_core.probe import capture

FAMILIES = {
    **{
        name: READERS[name]
        for name in (
            *("bert with both heads", "distilbert of words", "roberta of classes", "xlm-roberta of words"),
            *("electra of words", "albert of words", "modernbert of words", "modernbert of the mean"),
            *("gpt2", "llama 3", "mistral", "qwen2 by yarn", "qwen3", "gemma", "gemma 2", "gemma 3"),
            *("phi 3 by longrope", "olmo 2", "mixtral", "qwen2 moe", "qwen3 moe", "olmoe", "pythia"),
        )
    },
    **{name: (architecture, "translation", changes) for name, (architecture, changes) in TRANSLATING.items()},
}
GATE = ("electra of words", "modernbert of words", "gemma 2", "qwen2 moe", "pythia", "mt5")


def opened(name: str, folder: Path) -> tuple[Bundle, tuple[Tensor, ...], Callable[[Any], Tensor]]:
    """Return a family's tiny checkpoint, opened, one text for it, and its loss."""
    architecture, kind, changes = FAMILIES[name]
    written(architecture, folder, **changes)
    bundle = load(folder, device="cpu")
    assert bundle.kind == kind
    encoding = bundle.tokenizer.encode("a glass café, 你好!", max_len=bundle.config.max_len)
    target = bundle.tokenizer.encode("好 a glass").ids if kind == "translation" else None
    inputs = (encoding.ids, *((target,) if target else ()))
    return bundle, tuple(torch.tensor([ids]) for ids in inputs), text_loss(bundle, encoding, target_ids=target)


@pytest.mark.parametrize("name", nightly_but(FAMILIES, GATE))
def test_every_gradient_is_autograds_and_that_of_central_differences(name: str, tmp_path: Path) -> None:
    bundle, given, loss = opened(name, tmp_path)
    model = bundle.model
    before = [weight.clone() for weight in model.parameters()]
    scope = "decoder.layer0.self_attention" if bundle.kind == "gpt" else "encoder.layer0.self_attention"
    for edits in ({}, head_off(scope, 1)):
        _, trace = capture(model, *given, edits=edits, backward=loss)
        assert trace.gradients is not None
        assert list(trace.gradients) == [site for site, tensor in trace.items() if tensor.is_floating_point()]
        tensors = {site: trace[site] for site in trace.gradients if site not in edits}
        largest = max(float(gradient.abs().max()) for gradient in trace.gradients.values())
        assert largest > 0
        expected = by_autograd(tensors, lambda probe: model(*given, probe=probe), loss, edits)
        for site, gradient in expected.items():
            assert float((trace.gradients[site] - gradient).abs().max()) <= 1e-6 * largest, site
    for weight, kept in zip(model.parameters(), before, strict=True):
        assert weight.grad is None
        assert not weight.requires_grad
        assert torch.equal(weight, kept)
    compare_with_differences(model, given, loss, most=16)
