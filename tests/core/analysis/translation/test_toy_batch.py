"""The toy batch: it is the listing's, nothing hidden is looked at, and a change of convention changes nothing else."""

from typing import get_args

import numpy as np
import pytest
import torch

from transformer_core.analysis.translation.toy_batch import (
    CHANGES,
    CONFIG,
    LENGTH,
    TARGETS,
    Convention,
    Source,
    convention_changes,
    toy_batch,
    toy_model,
    toy_source,
)


def test_the_first_batch_is_the_listings_own() -> None:
    found = toy_batch(source="listing", seed=0, sentence=3, layer=0, head=0)
    assert found.source_ids.tolist() == [[1, 3, 4, 1, 2, 3]] * 4
    assert found.target_ids.tolist() == [
        [1, 0, 0, 0, 0, 0],
        [1, 3, 0, 0, 0, 0],
        [1, 3, 4, 0, 0, 0],
        [1, 3, 4, 1, 0, 0],
    ]
    assert found.parameters == 3_700_096
    assert (CONFIG.norm_order, CONFIG.activation, CONFIG.tied_output) == ("post", "gelu_tanh", False)
    assert found.logits.shape == (4, 6, 5)
    model = toy_model(0)
    with torch.inference_mode():
        logits = model(torch.tensor(found.source_ids), torch.tensor(found.target_ids))
    np.testing.assert_allclose(found.logits, logits, atol=1e-5)


def test_a_position_knows_nothing_of_later_ones() -> None:
    """Sentences share their source and the beginning of their target, so that they share the logits of it."""
    found = toy_batch(source="listing", seed=2, sentence=0, layer=0, head=0)
    assert found.first_apart < 1e-5
    for place in range(3):
        np.testing.assert_allclose(found.logits[place:, place], found.logits[[3] * (4 - place), place], atol=1e-5)
    assert toy_batch(source="random", seed=2, sentence=0, layer=0, head=0).first_apart > 1e-3


@pytest.mark.parametrize("source", get_args(Source))
@pytest.mark.parametrize("sentence", [0, 3])
def test_nothing_hidden_is_looked_at_and_nothing_is_nan(source: Source, sentence: int) -> None:
    found = toy_batch(source=source, seed=1, sentence=sentence, layer=2, head=5)
    assert found.row_sums < 1e-5
    for one in (found.encoder_self, found.decoder_self, found.cross):
        assert one.on_hidden == 0.0
        np.testing.assert_allclose(one.weights.sum(-1), one.mask.any(-1), atol=1e-5)
    unreal = [name for name, finite in zip(found.names, found.finite, strict=True) if not finite]
    assert all(name.endswith("masked_scores") for name in unreal)
    assert found.target_ids.tolist() == [list(target) for target in TARGETS]
    target = TARGETS[sentence]
    assert found.decoder_self.mask.tolist() == [
        [key <= query and target[key] != 0 for key in range(LENGTH)] for query in range(LENGTH)
    ]


def test_a_source_all_of_padding_gets_no_weight_where_a_fill_would_average_it() -> None:
    found = toy_batch(source="all_padding", seed=0, sentence=3, layer=0, head=0)
    assert found.cross.empty_rows == LENGTH
    assert not found.cross.weights.any()
    np.testing.assert_allclose(found.cross.filled, 1 / LENGTH, atol=1e-6)


def test_a_convention_changes_itself_and_leaves_the_other_weights() -> None:
    listed = toy_model(3).state_dict()
    for convention in get_args(Convention):
        weights = toy_model(3, convention).state_dict()
        differ = {name for name in weights.keys() & listed.keys() if not torch.equal(weights[name], listed[name])}
        assert differ <= {"output.proj.weight"}, convention
        assert bool(differ) == ("tied_output" in CHANGES[convention])


def test_what_conventions_change_is_counted_and_measured() -> None:
    found = convention_changes(source="listing", seed=0)
    by_name = dict(zip(found.conventions, found.parameters, strict=True))
    two_norms, one_matrix = 2 * 2 * CONFIG.d_model, CONFIG.vocab_size * CONFIG.d_model
    assert by_name == {
        "listing": 3_700_096,
        "pre_norm": 3_700_096 + two_norms,
        "exact_gelu": 3_700_096,
        "tied_output": 3_700_096 - one_matrix,
        "ours": 3_700_096 + two_norms - one_matrix,
    }
    moved = dict(zip(found.conventions, found.logits_moved, strict=True))
    assert moved["listing"] == 0.0
    assert 0.0 < moved["exact_gelu"] < 5e-3 < min(moved["pre_norm"], moved["tied_output"])
    listed, ours = (
        toy_batch(source="listing", seed=0, sentence=0, layer=0, head=0, convention=name).logits
        for name in ("listing", "ours")
    )
    assert moved["ours"] == pytest.approx(np.abs(ours - listed).max(), abs=1e-5)
    assert found.likeliest_moved[0] == 0.0
    assert ((found.likeliest_moved >= 0) & (found.likeliest_moved <= 1)).all()


def test_names_out_of_range_are_refused() -> None:
    with pytest.raises(ValueError, match="sentence=4 must be from 0 to 3"):
        toy_batch(source="random", seed=0, sentence=4, layer=0, head=0)
    with pytest.raises(ValueError, match="source='x' is unknown"):
        toy_source("x", 0)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="convention='x' is unknown"):
        toy_model(0, "x")  # type: ignore[arg-type]
