"""Models learn: one batch can be overfitted, and the same seed gives the same curve."""

import pytest
import torch
import torch.nn.functional as F

from tests.helpers.engine import padded_ids, tiny
from transformer_core.models import Bert, Classifier, Gpt, Translation

SOURCE, TARGET = padded_ids(4, 6, seed=3), padded_ids(4, 5, seed=4)
LABELS = torch.tensor([0, 1, 1, 0])


def next_word_loss(logits: torch.Tensor, ids: torch.Tensor) -> torch.Tensor:
    return F.cross_entropy(logits[:, :-1].flatten(0, 1), ids[:, 1:].flatten(), ignore_index=0)


LOSSES = {
    Classifier: lambda model: F.cross_entropy(model(SOURCE), LABELS),
    Gpt: lambda model: next_word_loss(model(SOURCE), SOURCE),
    Translation: lambda model: next_word_loss(model(SOURCE, TARGET), TARGET),
    Bert: lambda model: F.cross_entropy(model(SOURCE).mlm_logits.flatten(0, 1), SOURCE.flatten(), ignore_index=0),
}
each_task = pytest.mark.parametrize("kind", LOSSES, ids=lambda kind: kind.__name__)


def curve(kind, seed: int, steps: int, **changes) -> list[float]:
    """Train on one batch; return the loss in nats before each step."""
    torch.manual_seed(seed)
    model = kind(tiny(**changes)).train()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
    losses = []
    for _ in range(steps):
        loss = LOSSES[kind](model)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses


@each_task
@pytest.mark.parametrize("norm_order", ["pre", "post"])
def test_one_batch_can_be_overfitted(kind, norm_order):
    losses = curve(kind, 0, 60, norm_order=norm_order)
    assert losses[-1] < 0.1 < 0.3 < losses[0]


@each_task
def test_the_same_seed_gives_the_same_curve(kind):
    first, again, other = (curve(kind, seed, 5, dropout=0.3) for seed in (0, 0, 1))
    assert first == again
    assert first != other


@each_task
@pytest.mark.parametrize("changes", [{}, {"scoring": "additive", "positions": "learned", "n_segments": 2}])
def test_every_parameter_gets_a_gradient(kind, changes):
    torch.manual_seed(0)
    model = kind(tiny(embedding_norm=True, **changes))
    LOSSES[kind](model).backward()
    idle = {name for name, parameter in model.named_parameters() if parameter.grad is None or not parameter.grad.any()}
    without = ("pooler_proj", "nsp_head") if kind is Bert else ()
    assert {name for name in idle if not name.startswith(without) and "key_proj.bias" not in name} == set()
