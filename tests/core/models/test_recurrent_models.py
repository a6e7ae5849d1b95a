"""Recurrent language models and translators: the same step by step as at once, whatever comes later."""

from itertools import product

import pytest
import torch
from torch import nn

from tests.helpers.engine import close, exactly, inputs, made, padded_ids, tiny_recurrent_lm
from transformer_core.bundle import Bundle, save
from transformer_core.checkpoints import load
from transformer_core.evaluation.evaluate import evaluate
from transformer_core.evaluation.gpt import measure_text
from transformer_core.generation import beam_search, best_of, greedy, greedy_words, sample, translate
from transformer_core.models.recurrent import RecurrentLm, Seq2Seq
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


UNITS, ATTENTIONS = ("tanh", "gru", "lstm"), (None, "dot_product", "additive")
VARIANTS = [
    {"unit": unit, "attention": attention, "bidirectional": both}
    for unit, attention, both in product(UNITS, ATTENTIONS, (True, False))
]
each_variant = pytest.mark.parametrize("changes", VARIANTS, ids=lambda changes: "-".join(map(str, changes.values())))


@each_variant
def test_the_attention_says_what_reaches_the_decoder(changes: dict) -> None:
    model, (source, target) = made(Seq2Seq, **changes), inputs(Seq2Seq)
    _, trace = capture(model, source, target)
    if changes["attention"] is None:
        assert not trace.select("*.weights")
        expected = trace["encoder.summary"][:, None].expand_as(trace["decoder.context"])
    else:
        weights = trace["decoder.alignment.weights"][:, 0]  # (batch, target_pos, source_pos)
        close(weights.sum(-1), torch.ones(weights.shape[:-1]))
        assert not weights.transpose(1, 2)[source == 0].any()
        expected = weights @ trace["encoder.annotations"]
    close(trace["decoder.context"], expected)


def test_an_edit_acts_at_every_step() -> None:
    model, given = made(Seq2Seq, bidirectional=False), inputs(Seq2Seq)
    shapes = []

    def shut(gate: torch.Tensor) -> torch.Tensor:
        shapes.append(tuple(gate.shape))
        return torch.ones_like(gate)

    _, trace = capture(model, *given, edits={"encoder.update_gate": shut})
    assert shapes == [(3, 1, 10)] * 6
    assert (trace["encoder.update_gate"] == 1).all()
    close(trace["encoder.hidden"], torch.zeros(3, 6, 10))  # a state that is kept whole stays at its beginning


def test_it_writes_by_every_search() -> None:
    tokenizer = Tokenizer.train("word", ["a cat sat on a mat"], min_frequency=1, template="bos_eos")
    bundle = Bundle("glass", made(Seq2Seq, vocab_size=tokenizer.vocab_size), tokenizer)
    texts = ["a cat", "a cat sat on a mat", "mat"]
    ends = {"bos_id": tokenizer.bos_id, "eos_id": tokenizer.eos_id}
    for text, translation in zip(texts, translate(bundle, texts, width=1), strict=True):
        source = torch.tensor([tokenizer.encode(text).ids])
        written = [step.token_id for step in greedy(bundle.model, source, most=11, **ends)]
        best = best_of(beam_search(bundle.model, source, width=1, most=11, **ends))
        assert list(best.token_ids) == written
        assert translation == tokenizer.decode(written)
    assert len(translate(bundle, texts, width=4)) == 3


@pytest.mark.parametrize(
    ("source", "target", "message"),
    [
        ([[1, 13]], [[1]], "source_ids holds 13, outside the vocabulary: ids run from 0 to 12"),
        ([[1]], [[-1]], "target_ids holds -1, outside the vocabulary"),
        ([[1] * 13], [[1]], "source_ids has 13 positions; max_len=12 is the most"),
        ([[]], [[1]], "source_ids"),
    ],
)
def test_bad_ids_are_refused(source: list, target: list, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        made(Seq2Seq)(torch.tensor(source), torch.tensor(target))


EVERY = [(RecurrentLm, {"unit": unit}) for unit in TWINS] + [(Seq2Seq, changes) for changes in VARIANTS]
each_model = pytest.mark.parametrize(("kind", "changes"), EVERY, ids=str)


def before_of(kind: type, source: torch.Tensor) -> tuple[torch.Tensor, ...]:
    """Return what a model reads before the text that it scores."""
    return (source,) if kind is Seq2Seq else ()


@each_model
def test_probed_equals_unprobed_and_later_words_leave_earlier_scores_the_same(kind: type, changes: dict) -> None:
    model, (source, ids) = made(kind, **changes), inputs(Seq2Seq)
    before = before_of(kind, source)
    with torch.inference_mode():
        whole = model(*before, ids)
    close(capture(model, *before, ids)[0], whole)
    changed = ids.clone()
    changed[:, 3:] = ids[:, 3:] % 12 + 1
    close(model(*before, changed)[:, :3], whole[:, :3])
    assert not torch.allclose(model(*before, changed)[:, 3:], whole[:, 3:], atol=1e-2)


@each_model
def test_padding_and_batch_mates_change_nothing(kind: type, changes: dict) -> None:
    model, given = made(kind, **changes), inputs(kind)
    together = model(*given)
    for row, first in enumerate(given[0]):
        alone = model(first[first != 0][None], *(part[row : row + 1] for part in given[1:]))
        close(together[row : row + 1, : alone.shape[1]], alone)


@each_model
def test_word_by_word_scores_are_those_of_the_whole(kind: type, changes: dict) -> None:
    model, ids, source = made(kind, **changes), full_ids(), inputs(Seq2Seq)[0]
    begun = 0 if kind is Seq2Seq else 2
    whole, state = model(*before_of(kind, source), ids), model.start(source if kind is Seq2Seq else ids[:, :begun])
    first = state
    for place in range(begun, ids.shape[1]):
        logits, state = model.advance(ids[:, place : place + 1], state)
        close(logits, whole[:, place])
    rows = torch.tensor([2, 0, 0, 1])
    close(model.advance(ids[rows, begun : begun + 1], model.reorder(first, rows))[0], whole[rows, begun])
