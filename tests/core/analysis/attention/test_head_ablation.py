"""Heads switched off: the board is what switching off each head alone gives."""

import numpy as np
import pytest

from tests.helpers.engine import made, small_bundle, small_tokenizer
from transformer_core.analysis.attention.head_ablation import head_effects, without_head
from transformer_core.analysis.attention.heads import attention_scope, head_off, heads_of_text, layer_looks
from transformer_core.analysis.attention.heads import without as replaced
from transformer_core.analysis.outcome import read
from transformer_core.bundle import Bundle
from transformer_core.models import Bert, Classifier, Gpt

TEXT = "a glass box a bell"


@pytest.mark.parametrize("how", ["zero", "mean"])
def test_the_board_is_each_head_off_alone(how) -> None:
    bundle = small_bundle()
    board = head_effects(bundle=bundle, text=TEXT, n_tokens=12, how=how)
    encoding = bundle.tokenizer.encode(TEXT)
    before = read(bundle, encoding, sites=("class_logits",)).probabilities
    assert board.winner == int(np.argmax(before))
    assert board.before == pytest.approx(max(before), abs=1e-6)
    for layer in range(2):
        for head in range(2):
            edits = head_off(attention_scope(bundle, layer), head, how)
            after = read(bundle, encoding, sites=("class_logits",), edits=edits).probabilities
            moved = after[board.winner] - before[board.winner]
            assert board.change[layer, head] == pytest.approx(moved, abs=1e-6)
            one = without_head(bundle=bundle, text=TEXT, n_tokens=12, layer=layer, head=head, how=how)
            assert one.after == pytest.approx(after, abs=1e-6)
            assert one.moved == pytest.approx(moved, abs=1e-6)
            assert one.flips == bool(board.flips[layer, head])


@pytest.mark.parametrize("how", ["zero", "mean"])
@pytest.mark.parametrize("kind", [Classifier, Bert, Gpt])
@pytest.mark.parametrize(
    "changes",
    [{"norm_order": "post"}, {"positions": "alibi", "pooling": "mean"}, {"projections": False}, {"residual": False}],
)
def test_going_on_from_the_whole_pass_is_as_good_as_passes_from_the_text(how, kind, changes) -> None:
    tokenizer = small_tokenizer()
    bundle = Bundle("glass", made(kind, **changes), tokenizer, ("no", "yes"))
    text = "a glass [MASK] a bell" if kind is Bert else TEXT
    board = head_effects(bundle=bundle, text=text, n_tokens=12, how=how)
    for layer in range(2):
        for head in range(2):
            one = without_head(bundle=bundle, text=text, n_tokens=12, layer=layer, head=head, how=how)
            assert board.change[layer, head] == pytest.approx(one.moved, abs=1e-5)
            assert board.winner == one.winner
            assert bool(board.flips[layer, head]) == one.flips


def test_the_board_names_its_extremes() -> None:
    board = head_effects(bundle=small_bundle(), text=TEXT, n_tokens=12)
    assert board.strongest[board.most_weight] == board.strongest.max()
    assert abs(board.change[board.most_effect]) == np.abs(board.change).max()
    assert 1 <= board.place <= 4
    larger = (np.abs(board.change) > abs(board.change[board.most_weight])).sum()
    assert board.place == larger + 1
    for layer, head in board.idle.tolist():
        assert board.strongest[layer, head] >= 0.5
        assert abs(board.change[layer, head]) < 0.01


def test_the_mean_is_the_same_at_every_position_and_other_heads_stay() -> None:
    import torch

    heads = torch.randn(1, 3, 4, 2, generator=torch.Generator().manual_seed(0))
    after = replaced(heads, 1, "mean")
    assert torch.equal(after[:, [0, 2]], heads[:, [0, 2]])
    torch.testing.assert_close(after[0, 1], heads[0, 1].mean(0).expand(4, 2))
    assert replaced(heads, 1).abs()[:, 1].max() == 0


def test_another_way_to_switch_off_is_refused() -> None:
    with pytest.raises(ValueError, match="how='half' must be zero or mean"):
        head_effects(bundle=small_bundle(), text=TEXT, n_tokens=12, how="half")  # pyright: ignore


def test_a_layer_that_is_not_there_is_refused() -> None:
    with pytest.raises(ValueError, match="layer=5 must be from 0 to 1"):
        heads_of_text(bundle=small_bundle(), text=TEXT, n_tokens=12, layer=5, head=0)


def test_heads_of_text_are_the_traces_own() -> None:
    bundle = small_bundle()
    found = heads_of_text(bundle=bundle, text=TEXT, n_tokens=12, layer=1, head=1)
    trace = read(bundle, bundle.tokenizer.encode(TEXT)).trace
    np.testing.assert_allclose(found.weights, trace.stack("*.self_attention.weights")[:, 0].numpy(), atol=1e-6)
    np.testing.assert_allclose(found.steps.weights, found.weights[1, 1])


def test_looks_over_a_layer() -> None:
    asked = {"bundle": small_bundle(), "text": TEXT, "n_tokens": 12, "layer": 0, "head": 1}
    weights = heads_of_text(**asked).weights[0]
    np.testing.assert_array_equal(layer_looks(**asked).weights, weights[1])
    np.testing.assert_allclose(layer_looks(**asked, over="mean").weights, weights.mean(0))
    most = layer_looks(**asked, over="max")
    np.testing.assert_array_equal(most.weights, weights.max(0))
    query, key = most.sharpest
    assert query != key
    assert most.weights[query, key] == np.where(np.eye(len(most.weights)), 0, most.weights).max()
    with pytest.raises(ValueError, match="over='sum' must be head, mean or max"):
        layer_looks(**asked, over="sum")  # pyright: ignore
