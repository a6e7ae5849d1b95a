"""No projections, and one projection for queries and keys."""

import numpy as np
import pytest
import torch

from tests.core.analysis.why.conftest import TEXT
from transformer_core.analysis.why.projections import asymmetry, tied_query_key, without_projections
from transformer_core.analysis.why.sentence_attention import sentence_attention
from transformer_core.bundle import Bundle


@pytest.mark.parametrize("vectors", ["tokens", "embedded", "read"])
def test_vectors_of_no_length_attend_evenly(bundle: Bundle, vectors: str) -> None:
    asked = {"bundle": bundle, "text": TEXT, "n_tokens": 12, "layer": 1, "vectors": vectors}
    found = without_projections(**asked, reach=0.0)
    if bundle.config.positions != "alibi":
        np.testing.assert_allclose(found.weights, found.even, atol=1e-6)
    assert found.share == pytest.approx(found.shares[0])
    longer = without_projections(**asked, reach=1.0)
    assert longer.share == pytest.approx(longer.shares[np.abs(longer.reaches - 1.0).argmin()], abs=1e-5)
    np.testing.assert_allclose(longer.weights.sum(-1), 1.0, atol=1e-5)
    assert longer.trained_share == pytest.approx(longer.trained_shares.mean(), abs=1e-6)


def test_unknown_vectors_are_refused(bundle: Bundle) -> None:
    with pytest.raises(ValueError, match="vectors='words' is unknown"):
        without_projections(bundle=bundle, text=TEXT, n_tokens=12, layer=0, vectors="words", reach=1.0)


def test_asymmetry_runs_from_symmetric_to_opposite() -> None:
    matrix = torch.randn(5, 5)
    assert float(asymmetry(matrix + matrix.T)) == pytest.approx(0.0, abs=1e-6)
    assert float(asymmetry(matrix - matrix.T)) == pytest.approx(1.0)
    assert float(asymmetry(torch.zeros(3, 3))) == 0.0


def test_tied_queries_and_keys_have_symmetric_scores(bundle: Bundle) -> None:
    asked = {"bundle": bundle, "text": TEXT, "n_tokens": 12, "layer": 1, "head": 0, "seed": 0}
    own, tied = tied_query_key(**asked, share=0.0), tied_query_key(**asked, share=1.0)
    np.testing.assert_allclose(own.scores, sentence_attention(bundle, TEXT, 12).layers[1].scores[0].numpy(), atol=1e-5)
    assert own.asymmetry == pytest.approx(own.scores_asymmetry[0]) == pytest.approx(own.own[1, 0])
    assert tied.tied.max() < 1e-5
    np.testing.assert_allclose(tied.residue, 0.0, atol=1e-5)
    np.testing.assert_allclose(tied.scores, tied.scores.T, atol=1e-5)
    assert 0.5 < own.chance < 0.9


def test_a_head_that_is_not_there_is_named(bundle: Bundle) -> None:
    with pytest.raises(ValueError, match="head=9 must be from 0 to 1"):
        tied_query_key(bundle=bundle, text=TEXT, n_tokens=12, layer=0, head=9, share=0.0, seed=0)
