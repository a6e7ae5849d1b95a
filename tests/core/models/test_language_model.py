"""RecurrentLm: torch's own layers with a linear map, the same step by step as at once, whatever comes later."""

import pytest
import torch
from torch import nn

from tests.helpers.engine import close, exactly, inputs, made, padded_ids, tiny_recurrent_lm
from transformer_core.bundle import Bundle, save
from transformer_core.checkpoints import load
from transformer_core.evaluation.evaluate import evaluate
from transformer_core.evaluation.gpt import measure_text
from transformer_core.generation import greedy_words, sample
from transformer_core.models.recurrent import RecurrentLm
from transformer_core.probe import capture
from transformer_core.recipes.lm import d_hidden_of
from transformer_core.sites import site_of
from transformer_core.text import Tokenizer
from transformer_core.training.objectives import next_words

TWINS = {"tanh": nn.RNN, "gru": nn.GRU, "lstm": nn.LSTM}
LEAVES = {
    "tanh": {"hidden"},
    "gru": {"reset_gate", "update_gate", "candidate", "hidden"},
    "lstm": {"input_gate", "forget_gate", "candidate", "output_gate", "cell", "hidden"},
}
TEXT = "to be, or not to be: that is the question\n" * 5
each_unit = pytest.mark.parametrize("unit", TWINS)


def full_ids(length: int = 9) -> torch.Tensor:
    """Return three texts without padding."""
    return torch.randint(1, 13, (3, length), generator=torch.Generator().manual_seed(2))


def bundle_of(unit: str) -> Bundle:
    """Return a bundle of a tiny model with a tokenizer of characters."""
    tokenizer = Tokenizer.train("character", [TEXT], vocab_size=100, min_frequency=1, template="none")
    return Bundle("tiny", made(RecurrentLm, unit=unit, vocab_size=tokenizer.vocab_size), tokenizer)


@each_unit
@torch.no_grad()
def test_scores_are_those_of_torchs_layer_and_a_linear_map(unit: str) -> None:
    model, ids = made(RecurrentLm, unit=unit), full_ids()
    layer, output = TWINS[unit](16, 10, batch_first=True), nn.Linear(10, 13)
    cell = model.recurrent.cell
    for ours, theirs in ((cell.input_proj, "ih"), (cell.hidden_proj, "hh")):
        getattr(layer, f"weight_{theirs}_l0").copy_(ours.weight)
        getattr(layer, f"bias_{theirs}_l0").copy_(ours.bias)
    output.weight.copy_(model.output.weight)
    output.bias.copy_(model.output.bias)
    close(model(ids), output(layer(4.0 * model.embedding.weight[ids])[0]))


@each_unit
def test_probed_equals_unprobed_and_every_tensor_is_as_its_site_says(unit: str) -> None:
    model, ids = made(RecurrentLm, unit=unit), padded_ids(3, 5)
    with torch.inference_mode():
        silent = model(ids)
    logits, trace = capture(model, ids)
    close(logits, silent)
    before = {f"recurrent.{leaf}" for leaf in ("token_ids", "token_embedding", "scaled_embedding")}
    assert set(trace) == before | {f"recurrent.{leaf}" for leaf in LEAVES[unit]} | {"logits"}
    sizes = {"batch": 3, "pos": 5, "d_model": 16, "d_hidden": 10, "vocab": 13}
    for name, tensor in trace.items():
        assert tuple(tensor.shape) == tuple(sizes[axis] for axis in site_of(name).axes), name


@each_unit
def test_later_words_leave_earlier_scores_the_same(unit: str) -> None:
    model, ids = made(RecurrentLm, unit=unit), full_ids()
    changed = ids.clone()
    changed[:, 4:] = ids[:, 4:] % 12 + 1
    close(model(changed)[:, :4], model(ids)[:, :4])
    assert not torch.allclose(model(changed)[:, 4:], model(ids)[:, 4:], atol=1e-2)


@each_unit
def test_padding_and_batch_mates_change_nothing(unit: str) -> None:
    model, (ids,) = made(RecurrentLm, unit=unit), inputs(RecurrentLm)
    together, state = model.read(ids, None)
    for row in range(3):
        alone, last = model.read(ids[row : row + 1, ids[row] != 0], None)
        close(together[row : row + 1, : alone.shape[1]], alone)
        for ours, theirs in zip(state, last, strict=True):
            close(ours[row : row + 1], theirs)


@each_unit
@pytest.mark.parametrize("before", [0, 1, 4])
def test_word_by_word_scores_are_those_of_the_whole(unit: str, before: int) -> None:
    model, ids = made(RecurrentLm, unit=unit), full_ids()
    whole, state = model(ids), model.start(ids[:, :before])
    for place in range(before, ids.shape[1]):
        logits, state = model.advance(ids[:, place : place + 1], state)
        close(logits, whole[:, place])
    rows = torch.tensor([2, 0, 0, 1])
    logits, _ = model.advance(ids[rows, 4:6], model.reorder(model.start(ids[:, :4]), rows))
    close(logits, whole[rows, 5])


@each_unit
def test_a_text_is_continued_from_its_state_however_long_it_grows(unit: str) -> None:
    model, ids = made(RecurrentLm, unit=unit), full_ids()[:1]
    written = list(greedy_words(model, ids, most=20))
    text = torch.cat((ids, torch.tensor([[step.token_id for step in written]])), 1)  # past max_len=12
    with torch.inference_mode():
        logits = model(text)[0, 8:-1]
    close(torch.stack([step.logits for step in written]), logits)
    draws = [list(sample(model, ids, most=9, generator=torch.Generator().manual_seed(3))) for _ in range(2)]
    assert [step.token_id for step in draws[0]] == [step.token_id for step in draws[1]]


@each_unit
def test_a_bundle_comes_back_and_is_measured_in_windows_of_max_len(unit: str, tmp_path) -> None:
    bundle = bundle_of(unit)
    save(bundle, tmp_path / "tiny")
    loaded = load(tmp_path / "tiny", device="cpu")
    assert (loaded.kind, loaded.config) == ("lm", bundle.config)
    (tmp_path / "text.txt").write_text(TEXT)
    measured = evaluate(tmp_path / "tiny", tmp_path / "text.txt", device="cpu", batch_size=3)
    assert measured["loss_nats"] == measure_text(bundle, TEXT)["loss_nats"]
    ids = torch.tensor([bundle.tokenizer.encode(TEXT).ids])
    losses = [
        (len(window) - 1) * next_words(bundle.model, window[None]).item()
        for window in (ids[0, start : start + 13] for start in range(0, ids.shape[1] - 1, 12))
    ]
    assert measured["loss_nats"] == pytest.approx(sum(losses) / (ids.shape[1] - 1), abs=1e-4)


@each_unit
def test_it_learns_a_text_by_heart(unit: str) -> None:
    torch.manual_seed(0)
    model = RecurrentLm(tiny_recurrent_lm(unit=unit, d_hidden=24)).train()
    ids = full_ids()
    optimizer = torch.optim.Adam(model.parameters(), 2e-2)
    for _ in range(60):
        optimizer.zero_grad()
        loss = next_words(model, ids)
        loss.backward()
        optimizer.step()
    assert loss.item() < 0.2


@each_unit
@pytest.mark.parametrize("n_parameters", [30_000, 1_818_240])
def test_a_width_is_found_for_a_number_of_parameters(unit: str, n_parameters: int) -> None:
    sizes = {"d_model": 48, "vocab_size": 72}

    def count(d_hidden: int) -> int:
        config = tiny_recurrent_lm(unit=unit, d_hidden=d_hidden, **sizes)
        with torch.device("meta"):
            return sum(parameter.numel() for parameter in RecurrentLm(config).parameters())

    width = d_hidden_of(unit, n_parameters=n_parameters, **sizes)
    assert width % 8 == 0
    away = {other: abs(count(other) - n_parameters) for other in (width - 8, width, width + 8)}
    assert min(away, key=away.__getitem__) == width


def test_what_cannot_be_read_or_made_is_refused() -> None:
    with pytest.raises(ValueError, match="token_ids holds 13, outside the vocabulary: ids run from 0 to 12"):
        made(RecurrentLm)(torch.tensor([[1, 13]]))
    message = "unit='rnn' is unknown; it must be one of 'tanh', 'gru', 'lstm'"
    with pytest.raises(ValueError, match=exactly(message)):
        tiny_recurrent_lm(unit="rnn")
    message = "n_parameters=500 must be at least 1,225, more than the embedding has"
    with pytest.raises(ValueError, match=exactly(message)):
        d_hidden_of("gru", n_parameters=500, d_model=16, vocab_size=72)
