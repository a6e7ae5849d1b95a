"""The printed GRU and the computed one differ as their formulas do, and by nothing else."""

import numpy as np
import pytest
import torch

from tests.helpers import ROOT
from tests.helpers.browser import BUNDLE
from transformer_core.analysis.before.gates import gates_of_sentence
from transformer_core.analysis.before.printed_gru import PrintedGruCell, printed_gru
from transformer_core.checkpoints import load
from transformer_core.models.recurrent.cells import StepRecorder
from transformer_core.probe import SILENT

TEXT = "A man in a red shirt is riding a horse."
MODELS = ROOT / "assets" / "checkpoints"


def test_a_step_is_the_printed_formula() -> None:
    torch.manual_seed(0)
    cell = PrintedGruCell(3, 4).double()
    x, h = torch.randn(2, 3, dtype=torch.float64), torch.randn(2, 4, dtype=torch.float64)
    (w_r, w_z, w_n), (u_r, u_z, u_n) = (proj.weight.chunk(3) for proj in (cell.input_proj, cell.hidden_proj))
    (b_r, b_z, b_n), (c_r, c_z, c_n) = (proj.bias.chunk(3) for proj in (cell.input_proj, cell.hidden_proj))
    r = torch.sigmoid(x @ w_r.T + b_r + h @ u_r.T + c_r)
    z = torch.sigmoid(x @ w_z.T + b_z + h @ u_z.T + c_z)
    n = torch.tanh(x @ w_n.T + b_n + (r * h) @ u_n.T + r * c_n)
    (found,) = cell.step(cell.input_proj(x), (h,), StepRecorder(SILENT))
    torch.testing.assert_close(found, (1 - z) * n + z * h)


@pytest.mark.parametrize(
    ("model", "direction"), [("lm-gru", "forward"), ("seq2seq-en-fr", "forward"), ("seq2seq-en-fr", "backward")]
)
def test_trained_weights_give_other_states_where_the_gate_stands_elsewhere(model: str, direction: str) -> None:
    bundle = load(MODELS / model, device="cpu")
    asked = {"bundle": bundle, "text": TEXT, "n_tokens": 64, "direction": direction}
    found = printed_gru(**asked)
    np.testing.assert_allclose(found.computed, gates_of_sentence(**asked).hidden, atol=1e-6)
    first = found.last - len(found.tokens) + 1 if direction == "forward" else len(found.tokens) - 1
    assert found.greatest[first] < 1e-5  # the state before the first word is 0 in both
    assert found.greatest.max() > 0.5
    assert np.abs(found.printed).max() <= 1


def test_other_models_are_refused_by_name() -> None:
    with pytest.raises(ValueError, match=r"is of unit='lstm'; it must be gru$"):
        printed_gru(bundle=load(MODELS / "lm-lstm", device="cpu"), text=TEXT, n_tokens=64)
    with pytest.raises(ValueError, match=r"must be a seq2seq or an lm$"):
        printed_gru(bundle=BUNDLE, text=TEXT, n_tokens=64)
    with pytest.raises(ValueError, match=r"direction='backward' must be one of forward$"):
        printed_gru(bundle=load(MODELS / "lm-gru", device="cpu"), text=TEXT, n_tokens=64, direction="backward")
