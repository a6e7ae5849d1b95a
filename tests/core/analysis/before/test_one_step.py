"""One step taken apart adds up to what the trained layer computes."""

import numpy as np
import pytest
import torch

from tests.helpers import ROOT
from transformer_core.analysis.before.gates import gates_of_sentence, states_of_sentence
from transformer_core.analysis.before.one_step import one_step
from transformer_core.checkpoints import load

TEXT = "A man in a red shirt is riding a horse."
MODELS = ROOT / "assets" / "checkpoints"


def sigmoid(x: np.ndarray) -> np.ndarray:
    return 1 / (1 + np.exp(-x))


@pytest.mark.parametrize(
    ("model", "direction"),
    [("seq2seq-en-fr", "forward"), ("seq2seq-en-fr", "backward"), ("lm-gru", "forward"), ("lm-lstm", "forward")],
)
def test_the_terms_give_the_gates_and_the_states_that_the_layer_has(model: str, direction: str) -> None:
    bundle = load(MODELS / model, device="cpu")
    asked = {"bundle": bundle, "text": TEXT, "n_tokens": 40, "direction": direction}
    gates, states = gates_of_sentence(**asked), states_of_sentence(**asked)
    for place in (0, 5, len(gates.tokens) - 1):
        found = one_step(**asked, place=place)
        assert found.tokens == gates.tokens
        sums = found.from_input + found.from_state
        values = dict(zip(found.parts, found.values, strict=True))
        for name, row in zip(gates.names, gates.gates[:, place], strict=True):
            np.testing.assert_allclose(values[name], row, atol=1e-6)
            np.testing.assert_allclose(sigmoid(sums[found.parts.index(name)]), row, atol=1e-6)
        np.testing.assert_allclose(found.after, states.hidden[place], atol=1e-6)
        before = states.hidden[found.read_before] if found.read_before >= 0 else np.zeros_like(found.before)
        np.testing.assert_allclose(found.before, before, atol=1e-6)
        if found.unit == "gru":
            kept = values["update_gate"]
            new = (1 - kept) * values["candidate"] + kept * found.before
        else:
            cell = values["forget_gate"] * found.cell_before + values["input_gate"] * values["candidate"]
            np.testing.assert_allclose(found.cell_after, cell, atol=1e-5)
            new = values["output_gate"] * np.tanh(cell)
        np.testing.assert_allclose(found.after, new, atol=1e-5)


def test_the_plain_network_is_one_tanh() -> None:
    bundle = load(MODELS / "lm-rnn", device="cpu")
    found = one_step(bundle=bundle, text=TEXT, n_tokens=40, place=3)
    np.testing.assert_allclose(np.tanh(found.from_input + found.from_state)[0], found.after, atol=1e-6)
    cell, ids = bundle.model.recurrent.cell, bundle.tokenizer.encode(TEXT).ids
    with torch.inference_mode():
        own = cell.input_proj(bundle.model.embedding(torch.tensor([ids[3]])) * bundle.model.scale)
    np.testing.assert_allclose(found.from_input, own.numpy(), atol=1e-6)
    assert not len(found.cell_after)


def test_a_place_outside_the_text_is_refused(bundle_of) -> None:
    with pytest.raises(ValueError, match=r"place=99 must be from 0 to 7, the tokens of the text$"):
        one_step(bundle=bundle_of(), text="a cat sat on the mat", n_tokens=40, place=99)
