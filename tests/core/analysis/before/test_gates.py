"""Gates: what they say of a sentence adds up to the state at its end."""

import numpy as np
import pytest
import torch

from tests.core.analysis.before.conftest import SENTENCE
from tests.helpers.engine import exactly
from transformer_core.analysis.before.gates import gates_of_sentence, states_of_sentence
from transformer_core.analysis.before.reach import sentence_reach
from transformer_core.probe import capture


@pytest.mark.parametrize("direction", ["forward", "backward"])
@pytest.mark.parametrize("unit", ["gru", "lstm"])
def test_what_survives_of_each_candidate_sums_to_the_end(bundle_of, unit: str, direction: str) -> None:
    bundle = bundle_of(unit=unit)
    found = gates_of_sentence(bundle=bundle, text=SENTENCE, n_tokens=12, direction=direction)
    ids = torch.tensor([bundle.tokenizer.encode(SENTENCE).ids])
    leaf = "hidden" if unit == "gru" else "cell"
    _, trace = capture(bundle.model, ids, ids[:, :1], sites=(f"encoder.{direction}.{leaf}",))
    end = trace[f"encoder.{direction}.{leaf}"][0, found.last].numpy()
    np.testing.assert_allclose((found.surviving * found.candidate).sum(0), end, atol=1e-6)
    assert found.share.sum() == pytest.approx(1)
    assert found.last == (0 if direction == "backward" else len(found.tokens) - 1)
    assert found.gates.shape == (len(found.names), len(found.tokens), 10)
    assert ((found.gates > 0) & (found.gates < 1)).all()


def test_a_direction_alone_is_named_so(bundle_of) -> None:
    alone = bundle_of(bidirectional=False)
    assert gates_of_sentence(bundle=alone, text="a cat", n_tokens=12).tokens == ("[BOS]", "a", "cat", "[EOS]")
    message = "direction='backward' must be one of forward"
    with pytest.raises(ValueError, match=exactly(message)):
        gates_of_sentence(bundle=alone, text="a cat", n_tokens=12, direction="backward")
    with pytest.raises(ValueError, match=exactly(message)):
        sentence_reach(bundle=alone, text="a cat", n_tokens=12, direction="backward")


def test_a_text_is_cut_at_n_tokens_and_at_max_len(bundle_of) -> None:
    assert len(gates_of_sentence(bundle=bundle_of(), text=SENTENCE, n_tokens=4).tokens) == 4
    assert len(gates_of_sentence(bundle=bundle_of(), text="cat " * 40, n_tokens=64).tokens) == 12
    assert gates_of_sentence(bundle=bundle_of(), text="", n_tokens=12).tokens == ("[BOS]", "[EOS]")


def test_other_kinds_are_refused(bundle_of, transformer) -> None:
    with pytest.raises(ValueError, match=exactly("bundle='new' is a translation; it must be a seq2seq or an lm")):
        gates_of_sentence(bundle=transformer, text="a", n_tokens=12)
    with pytest.raises(ValueError, match="without gates"):
        gates_of_sentence(bundle=bundle_of(unit="tanh"), text="a", n_tokens=12)


@pytest.mark.parametrize("direction", ["forward", "backward"])
def test_the_gradient_of_the_end_is_that_of_small_changes(bundle_of, direction: str) -> None:
    bundle = bundle_of()
    found = sentence_reach(bundle=bundle, text=SENTENCE, n_tokens=12, direction=direction)
    layer = bundle.model.encoder.get_submodule(f"{direction}_layer").double()
    ids = torch.tensor([bundle.tokenizer.encode(SENTENCE).ids])
    embedded = (bundle.model.embedding(ids) * bundle.model.scale).double()

    def end(x: torch.Tensor) -> torch.Tensor:
        return layer(x, backward=direction == "backward")[1][0][0]

    jacobian = torch.autograd.functional.jacobian(end, embedded)[:, 0]  # (unit, pos, d_model)
    np.testing.assert_allclose(found.norms, jacobian.square().sum((0, 2)).sqrt(), rtol=1e-3, atol=1e-6)
    assert len(found.norms) == len(found.tokens)


@pytest.mark.parametrize("unit", ["gru", "lstm"])
def test_what_survives_in_a_language_model_sums_to_its_last_state(lm_of, unit: str) -> None:
    bundle = lm_of(unit=unit)
    found = gates_of_sentence(bundle=bundle, text=SENTENCE, n_tokens=24)
    ids = torch.tensor([bundle.tokenizer.encode(SENTENCE).ids])
    _, trace = capture(bundle.model, ids, sites=("recurrent.*",))
    end = trace["recurrent.hidden" if unit == "gru" else "recurrent.cell"][0, -1].numpy()
    np.testing.assert_allclose((found.surviving * found.candidate).sum(0), end, atol=1e-6)
    assert found.tokens == tuple(SENTENCE.replace(" ", "␣"))
    with pytest.raises(ValueError, match=exactly("direction='backward' must be one of forward")):
        gates_of_sentence(bundle=bundle, text=SENTENCE, n_tokens=24, direction="backward")


@pytest.mark.parametrize("unit", ["tanh", "gru", "lstm"])
def test_states_are_those_that_the_layer_passes_on(lm_of, unit: str) -> None:
    bundle = lm_of(unit=unit)
    found = states_of_sentence(bundle=bundle, text=SENTENCE, n_tokens=24)
    ids = torch.tensor([bundle.tokenizer.encode(SENTENCE).ids])
    state = bundle.model.read(ids[:, :5], None)[1]
    np.testing.assert_allclose(found.hidden[4], state[0][0].numpy(), atol=1e-6)
    assert found.cell.shape == ((20, 10) if unit == "lstm" else (0, 10))
    if unit == "lstm":
        np.testing.assert_allclose(found.cell[4], state[1][0].numpy(), atol=1e-6)
    first, second = found.hidden[:2]
    assert np.isnan(found.alike[0])
    assert found.alike[1] == pytest.approx(first @ second / np.sqrt((first @ first) * (second @ second)))
    assert found.moved.shape == (10,)


def test_states_of_the_direction_that_reads_backward_begin_at_the_end(bundle_of) -> None:
    found = states_of_sentence(bundle=bundle_of(), text=SENTENCE, n_tokens=12, direction="backward")
    assert np.isnan(found.alike).tolist() == [False] * (len(found.tokens) - 1) + [True]


def test_the_gradient_of_a_language_models_end_reaches_each_character(lm_of) -> None:
    found = sentence_reach(bundle=lm_of(), text=SENTENCE, n_tokens=24)
    assert found.last == len(SENTENCE) - 1
    assert (found.norms > 0).all()
