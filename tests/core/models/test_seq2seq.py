"""Seq2Seq: padding and batch mates change nothing, later words change nothing, and steps are the whole in parts."""

from itertools import product

import pytest
import torch

from tests.helpers.engine import close, inputs, made
from transformer_core.bundle import Bundle
from transformer_core.generation import beam_search, best_of, greedy, translate
from transformer_core.models.recurrent import Seq2Seq
from transformer_core.probe import capture
from transformer_core.text import Tokenizer
from transformer_core.training.batching import PairBatch
from transformer_core.training.objectives import next_target_words

UNITS, ATTENTIONS = ("tanh", "gru", "lstm"), (None, "dot_product", "additive")
VARIANTS = [
    {"unit": unit, "attention": attention, "bidirectional": both}
    for unit, attention, both in product(UNITS, ATTENTIONS, (True, False))
]
each_variant = pytest.mark.parametrize("changes", VARIANTS, ids=lambda changes: "-".join(map(str, changes.values())))


@each_variant
def test_padding_and_batch_mates_change_nothing(changes: dict) -> None:
    model, (source, target) = made(Seq2Seq, **changes), inputs(Seq2Seq)
    together = model(source, target)
    for row in range(3):
        alone = model(source[row : row + 1, source[row] != 0], target[row : row + 1])
        close(alone, together[row : row + 1])


@each_variant
def test_probed_equals_unprobed(changes: dict) -> None:
    model, given = made(Seq2Seq, **changes), inputs(Seq2Seq)
    with torch.inference_mode():
        close(capture(model, *given)[0], model(*given))


@each_variant
def test_later_words_leave_earlier_scores_the_same(changes: dict) -> None:
    model, (source, target) = made(Seq2Seq, **changes), inputs(Seq2Seq)
    changed = target.clone()
    changed[:, 3:] = target[:, 3:] % 12 + 1
    close(model(source, changed)[:, :3], model(source, target)[:, :3])
    assert not torch.allclose(model(source, changed)[:, 3:], model(source, target)[:, 3:], atol=1e-2)


@each_variant
def test_word_by_word_scores_are_those_of_the_whole(changes: dict) -> None:
    model, (source, target) = made(Seq2Seq, **changes), inputs(Seq2Seq)
    whole, place = model(source, target), model.start(source)
    for position in range(target.shape[1]):
        logits, place = model.advance(target[:, position : position + 1], place)
        close(logits, whole[:, position])
    rows = torch.tensor([2, 0, 0])
    logits, _ = model.advance(target[rows, :1], model.reorder(model.start(source), rows))
    close(logits, whole[rows, 0])


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


@pytest.mark.parametrize("attention", ATTENTIONS)
def test_it_learns_to_reverse(attention) -> None:
    generator = torch.Generator().manual_seed(0)
    torch.manual_seed(0)
    model = made(Seq2Seq, attention=attention)
    words = torch.randint(3, 13, (24, 3), generator=generator)
    ends = torch.tensor([[1], [2]]).expand(2, 24)[..., None]
    batch = PairBatch(words, torch.cat((ends[0], words.flip(1), ends[1]), 1))
    optimizer = torch.optim.Adam(model.parameters(), 2e-2)
    losses = []
    for _ in range(25):
        loss = next_target_words(model, batch)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    assert losses[-1] < 0.5 * losses[0]


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
