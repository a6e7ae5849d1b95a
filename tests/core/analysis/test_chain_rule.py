"""The sum of products that the chain rule shows at a cell is the gradient that autograd gave it, at every site."""

import pytest
import torch
from torch import nn

from tests.core.analysis.test_arithmetic import ALL, CHANGES, GATE, LM, RECURRENT, some_cells
from tests.helpers import nightly_but
from tests.helpers.engine import first_of, inputs, made, shipped, value_of
from transformer_core.analysis.arithmetic import Pass, explain_gradient, pass_through
from transformer_core.analysis.gradients.loss import TextLoss
from transformer_core.models import Bert, Classifier
from transformer_core.reader import Reader

SWALLOWED = ("article",)  # -1e20 is added to a hidden score: see tests/core/test_gradients.py


class Scores(Reader):
    """Takes what a model gives, whatever it is, for scores of outcomes."""

    def scores(self, output):
        found = first_of(output)
        return found if found.dim() > 2 else found[:, None]


class ScoresOfClasses(Scores):
    """The same of a classifier."""

    asks = "class"


def differentiated(kind: type[nn.Module], variant: str) -> Pass:
    """Return a tiny model's pass over a batch with padding, with the gradients of a loss of its first text."""
    model = made(kind, **(CHANGES | RECURRENT | LM)[variant])
    segments = torch.tensor([[0, 0, 1, 1, 1]] * 3) if kind is Bert and model.config.n_segments else None
    output = first_of(model(*inputs(kind)))
    slots = (0,) if output.dim() == 2 else (0, 2, 3)
    reader = ScoresOfClasses if kind is Classifier else Scores
    loss = TextLoss(reader(model.config, shipped("gpt-char").tokenizer, ()), slots, (1,) * len(slots))
    return pass_through(model, *inputs(kind), segment_ids=segments, loss=loss)


@pytest.mark.parametrize(
    ("kind", "variant"),
    nightly_but([one for one in ALL if one[1] not in SWALLOWED], [one for one in GATE[::4] if one[1] not in SWALLOWED]),
)
def test_the_terms_of_every_site_make_its_recorded_gradient(kind: type[nn.Module], variant: str) -> None:
    run = differentiated(kind, variant)
    gradients = run.trace.gradients
    assert gradients is not None
    ends = [name for name in gradients if name.rpartition(".")[2] in ("class_logits", "logits")]
    for name, gradient in gradients.items():
        if not ends and name == list(gradients)[-1]:
            continue  # what the model gives is not scores
        for index in some_cells(tuple(gradient.shape)):
            found = explain_gradient(run, name, index)
            assert found.recorded == float(gradient[index])
            assert found.agrees, f"{name} {index}: {found}"
            assert found.value == pytest.approx(found.recorded, rel=1e-4, abs=1e-5), f"{name} {index}"
            for line in (*found.symbols, *(part.slope for part in found.parts)):
                assert line.count("{") == line.count("}")
                assert "<" not in line
            for part in found.parts:
                assert value_of(part.numbers) == pytest.approx(part.value, rel=2e-2, abs=1e-2)
