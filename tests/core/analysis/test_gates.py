"""Gates: what they say of a sentence adds up to its states, and one step taken apart is what the layer computes."""

import numpy as np
import pytest
import torch

from tests.helpers import nightly_but, refusals
from tests.helpers.engine import SENTENCE, lm_bundle, seq2seq_bundle, shipped, translation_bundle
from transformer_core.analysis.before.gate_ranges import TEXTS, gate_ranges
from transformer_core.analysis.before.gates import gates_of_sentence, layer_of, states_of_sentence
from transformer_core.analysis.before.one_step import one_step
from transformer_core.analysis.before.printed_gru import PrintedGruCell, printed_gru
from transformer_core.analysis.before.reach import sentence_reach
from transformer_core.models.recurrent.cells import StepRecorder
from transformer_core.probe import SILENT, capture
from transformer_core.prompt import Prompt
from transformer_core.training.corpora.reviews import reviews


@pytest.mark.parametrize("direction", ["forward", "backward"])
@pytest.mark.parametrize("unit", ["gru", "lstm"])
def test_what_survives_of_each_candidate_sums_to_the_end(unit: str, direction: str) -> None:
    bundle = seq2seq_bundle(unit=unit)
    found = gates_of_sentence(prompt=Prompt(bundle, SENTENCE, 12), direction=direction)
    ids = torch.tensor([bundle.tokenizer.encode(SENTENCE).ids])
    leaf = "hidden" if unit == "gru" else "cell"
    _, trace = capture(bundle.model, ids, ids[:, :1], sites=(f"encoder.{direction}.{leaf}",))
    end = trace[f"encoder.{direction}.{leaf}"][0, found.last].numpy()
    np.testing.assert_allclose((found.surviving * found.candidate).sum(0), end, atol=1e-6)
    assert found.share.sum() == pytest.approx(1)
    assert found.last == (0 if direction == "backward" else len(found.tokens) - 1)
    assert found.gates.shape == (len(found.names), len(found.tokens), 10)
    assert ((found.gates > 0) & (found.gates < 1)).all()


def test_a_direction_alone_is_named_so() -> None:
    alone = seq2seq_bundle(bidirectional=False)
    assert gates_of_sentence(prompt=Prompt(alone, "a cat", 12)).tokens == ("[BOS]", "a", "cat", "[EOS]")


def test_a_text_is_cut_at_n_tokens_and_at_max_len() -> None:
    assert len(gates_of_sentence(prompt=Prompt(seq2seq_bundle(), SENTENCE, 4)).tokens) == 4
    assert len(gates_of_sentence(prompt=Prompt(seq2seq_bundle(), "cat " * 40, 64)).tokens) == 12
    assert gates_of_sentence(prompt=Prompt(seq2seq_bundle(), "", 12)).tokens == ("[BOS]", "[EOS]")


@pytest.mark.parametrize("direction", ["forward", "backward"])
def test_the_gradient_of_the_end_is_that_of_small_changes(direction: str) -> None:
    bundle = seq2seq_bundle()
    found = sentence_reach(prompt=Prompt(bundle, SENTENCE, 12), direction=direction)
    layer = bundle.model.encoder.get_submodule(f"{direction}_layer").double()
    ids = torch.tensor([bundle.tokenizer.encode(SENTENCE).ids])
    embedded = (bundle.model.embedding(ids) * bundle.model.scale).double()

    def end(x: torch.Tensor) -> torch.Tensor:
        return layer(x, backward=direction == "backward")[1][0][0]

    jacobian = torch.autograd.functional.jacobian(end, embedded)[:, 0]  # (unit, pos, d_model)
    np.testing.assert_allclose(found.norms, jacobian.square().sum((0, 2)).sqrt(), rtol=1e-3, atol=1e-6)
    assert len(found.norms) == len(found.tokens)


@pytest.mark.parametrize("unit", ["gru", "lstm"])
def test_what_survives_in_a_language_model_sums_to_its_last_state(unit: str) -> None:
    bundle = lm_bundle(unit=unit)
    found = gates_of_sentence(prompt=Prompt(bundle, SENTENCE, 24))
    ids = torch.tensor([bundle.tokenizer.encode(SENTENCE).ids])
    _, trace = capture(bundle.model, ids, sites=("recurrent.*",))
    end = trace["recurrent.hidden" if unit == "gru" else "recurrent.cell"][0, -1].numpy()
    np.testing.assert_allclose((found.surviving * found.candidate).sum(0), end, atol=1e-6)
    assert found.tokens == tuple(SENTENCE.replace(" ", "␣"))


@pytest.mark.parametrize("unit", ["tanh", "gru", "lstm"])
def test_states_are_those_that_the_layer_passes_on(unit: str) -> None:
    bundle = lm_bundle(unit=unit)
    found = states_of_sentence(prompt=Prompt(bundle, SENTENCE, 24))
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


def test_states_of_the_direction_that_reads_backward_begin_at_the_end() -> None:
    found = states_of_sentence(prompt=Prompt(seq2seq_bundle(), SENTENCE, 12), direction="backward")
    assert np.isnan(found.alike).tolist() == [False] * (len(found.tokens) - 1) + [True]


def test_the_gradient_of_a_language_models_end_reaches_each_character() -> None:
    found = sentence_reach(prompt=Prompt(lm_bundle(), SENTENCE, 24))
    assert found.last == len(SENTENCE) - 1
    assert (found.norms > 0).all()


@pytest.mark.parametrize("direction", nightly_but(("forward", "backward"), ["backward"]))
def test_the_influence_is_the_gradient_of_one_unit_after_the_other(direction: str) -> None:
    bundle = shipped("seq2seq-en-fr")
    found = gate_ranges(bundle=bundle, direction=direction)
    assert found.n_texts == TEXTS
    rows = [bundle.tokenizer.encode(one.text).ids for one in reviews("en", train=0, held_out=200, seed=0)[1]]
    ids = torch.tensor([row[: found.window] for row in rows if len(row) >= found.window][:TEXTS])
    layer, unit, backward = layer_of(bundle.model, direction), 7, direction == "backward"
    x = (bundle.model.embedding(ids) * bundle.model.scale).detach().requires_grad_(True)
    layer(x, backward=backward)[1][0][:, unit].sum().backward()
    assert x.grad is not None
    lengths = x.grad.norm(dim=-1).mean(0).numpy()
    np.testing.assert_allclose(found.influence[unit], lengths if backward else lengths[::-1], rtol=1e-4)
    assert found.ranges[unit] == pytest.approx(np.average(np.arange(found.window), weights=found.influence[unit]))


@pytest.mark.nightly
def test_update_gates_go_with_a_units_range_and_reset_gates_hardly_do() -> None:
    for name, direction in (("seq2seq-en-fr", "forward"), ("seq2seq-en-fr-plain", "backward")):
        found = gate_ranges(bundle=shipped(name), direction=direction)
        rho = {gate: one.rho for gate, one in zip(found.names, found.correlations, strict=True)}
        assert rho["update_gate"] > 0.6
        assert 0 < rho["reset_gate"] < rho["update_gate"] - 0.2


@pytest.mark.nightly
def test_of_many_units_some_are_measured() -> None:
    found = gate_ranges(bundle=shipped("lm-lstm"))
    assert len(found.units) == len(found.ranges) == found.gates.shape[1] == 192
    assert found.names == ("input_gate", "forget_gate", "output_gate")


TEXT = "A man in a red shirt is riding a horse."


def sigmoid(x: np.ndarray) -> np.ndarray:
    return 1 / (1 + np.exp(-x))


@pytest.mark.parametrize(
    ("model", "direction"),
    [("seq2seq-en-fr", "forward"), ("seq2seq-en-fr", "backward"), ("lm-gru", "forward"), ("lm-lstm", "forward")],
)
def test_the_terms_give_the_gates_and_the_states_that_the_layer_has(model: str, direction: str) -> None:
    bundle = shipped(model)
    asked = {"prompt": Prompt(bundle, TEXT, 40), "direction": direction}
    gates, states = gates_of_sentence(**asked), states_of_sentence(**asked)
    for place in (0, 5, len(gates.tokens) - 1):
        found = one_step(**asked, place=place)
        assert found.tokens == gates.tokens
        sums = found.from_input + found.from_state
        values = dict(zip(found.parts, found.values, strict=True))
        for name, row in zip(gates.names, gates.gates[:, place], strict=True):
            np.testing.assert_allclose(values[name], row, atol=3e-6)
            np.testing.assert_allclose(sigmoid(sums[found.parts.index(name)]), row, atol=3e-6)
        np.testing.assert_allclose(found.after, states.hidden[place], atol=3e-6)
        before = states.hidden[found.read_before] if found.read_before >= 0 else np.zeros_like(found.before)
        np.testing.assert_allclose(found.before, before, atol=3e-6)
        if found.unit == "gru":
            kept = values["update_gate"]
            new = (1 - kept) * values["candidate"] + kept * found.before
        else:
            cell = values["forget_gate"] * found.cell_before + values["input_gate"] * values["candidate"]
            np.testing.assert_allclose(found.cell_after, cell, atol=1e-5)
            new = values["output_gate"] * np.tanh(cell)
        np.testing.assert_allclose(found.after, new, atol=1e-5)


def test_the_plain_network_is_one_tanh() -> None:
    bundle = shipped("lm-rnn")
    found = one_step(prompt=Prompt(bundle, TEXT, 40), place=3)
    np.testing.assert_allclose(np.tanh(found.from_input + found.from_state)[0], found.after, atol=1e-6)
    cell, ids = bundle.model.recurrent.cell, bundle.tokenizer.encode(TEXT).ids
    with torch.inference_mode():
        own = cell.input_proj(bundle.model.embedding(torch.tensor([ids[3]])) * bundle.model.scale)
    np.testing.assert_allclose(found.from_input, own.numpy(), atol=1e-6)
    assert not len(found.cell_after)


def test_a_step_is_the_printed_formula() -> None:
    torch.manual_seed(0)
    cell = PrintedGruCell(3, 4).double()
    x, h = torch.randn(2, 3, dtype=torch.float64), torch.randn(2, 4, dtype=torch.float64)
    (w_r, w_z, w_n), (u_r, u_z, u_n) = (proj.weight.chunk(3) for proj in (cell.input_proj, cell.hidden_proj))
    (b_r, b_z, b_n), (c_r, c_z, c_n) = (proj.bias.chunk(3) for proj in (cell.input_proj, cell.hidden_proj))
    r = torch.sigmoid(x @ w_r.T + b_r + h @ u_r.T + c_r)
    z = torch.sigmoid(x @ w_z.T + b_z + h @ u_z.T + c_z)
    n = torch.tanh(x @ w_n.T + b_n + (r * h) @ u_n.T + c_n)
    (found,) = cell.step(cell.input_proj(x), (h,), StepRecorder(SILENT))
    torch.testing.assert_close(found, (1 - z) * n + z * h)


@pytest.mark.parametrize(
    ("model", "direction", "greatest"),
    [("lm-gru", "forward", 1.993), ("seq2seq-en-fr", "forward", 1.789), ("seq2seq-en-fr", "backward", 1.902)],
)
def test_trained_weights_give_other_states_where_the_gate_stands_elsewhere(
    model: str, direction: str, greatest: float
) -> None:
    bundle = shipped(model)
    asked = {"prompt": Prompt(bundle, TEXT, 64), "direction": direction}
    found = printed_gru(**asked)
    np.testing.assert_allclose(found.computed, gates_of_sentence(**asked).hidden, atol=1e-6)
    assert found.greatest.max() == pytest.approx(greatest, abs=5e-4)
    assert np.abs(found.printed).max() <= 1


ALONE = {"prompt": Prompt(seq2seq_bundle(bidirectional=False), "a cat", 12), "direction": "backward"}
LM = {"prompt": Prompt(lm_bundle(), SENTENCE, 24)}
PLAIN = seq2seq_bundle(unit="tanh")
REFUSED = [
    (lambda: gates_of_sentence(**ALONE), "direction='backward' must be one of forward"),
    (lambda: sentence_reach(**ALONE), "direction='backward' must be one of forward"),
    (lambda: gates_of_sentence(**LM, direction="backward"), "direction='backward' must be one of forward"),
    (lambda: printed_gru(**LM, direction="backward"), "direction='backward' must be one of forward"),
    (
        lambda: gates_of_sentence(prompt=Prompt(translation_bundle(), "a", 12)),
        "bundle='new' is a translation; it must be a seq2seq or an lm",
    ),
    (lambda: printed_gru(prompt=Prompt(translation_bundle(), "a", 12)), "must be a seq2seq or an lm"),
    (lambda: printed_gru(prompt=Prompt(lm_bundle(unit="lstm"), "a", 12)), "is of unit='lstm'; it must be gru"),
    (lambda: gates_of_sentence(prompt=Prompt(PLAIN, "a", 12)), "without gates"),
    (lambda: gate_ranges(bundle=PLAIN), "without gates; it must have gru or lstm"),
    (
        lambda: one_step(prompt=Prompt(PLAIN, SENTENCE, 24), place=99),
        "place=99 must be from 0 to 7, the tokens of the text",
    ),
]
test_what_cannot_be_asked_is_told = refusals(REFUSED)
