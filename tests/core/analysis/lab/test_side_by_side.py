"""Two readings: CKA of every layer with every layer, by its definition, and beside shuffled positions."""

from dataclasses import replace

import numpy as np
import pytest

from tests.helpers.lab_models import MODEL, TEXT, bundle_of, cases_of, found_at
from transformer_core.analysis.lab.changes import streams
from transformer_core.analysis.lab.side_by_side import FEWEST, linear_cka, side_by_side
from transformer_core.bundle import MODELS
from transformer_core.config import ModelConfig


def by_definition(one: np.ndarray, other: np.ndarray) -> float:
    """Kornblith et al. 2019, eq. 4 with linear kernels."""
    one, other = one - one.mean(0), other - other.mean(0)
    crossed = np.linalg.norm(other.T @ one) ** 2
    return float(crossed / (np.linalg.norm(one.T @ one) * np.linalg.norm(other.T @ other)))


def test_cka_is_that_of_its_definition_for_tables_of_other_widths() -> None:
    draw = np.random.default_rng(2)
    ones, others = [draw.normal(size=(9, width)) for width in (4, 30)], [draw.normal(size=(9, 7)) for _ in range(3)]
    found = linear_cka(ones, others)
    expected = [[by_definition(one, other) for other in others] for one in ones]
    np.testing.assert_allclose(found, expected, rtol=1e-9)
    turned, _ = np.linalg.qr(draw.normal(size=(30, 30)))
    assert linear_cka([ones[1]], [3 * ones[1] @ turned + 1])[0, 0] == pytest.approx(1.0)
    assert np.isnan(linear_cka([np.ones((9, 4))], others)).all()


def test_layers_of_two_models_are_compared_each_with_each() -> None:
    first, second = bundle_of("classifier"), bundle_of("classifier post-norm", seed=5)
    asked = {"text": TEXT, "second_text": TEXT, "n_tokens": 20, "site": "encoder.layer0.residual"}
    found = side_by_side(bundle=first, second_bundle=second, **asked)
    tables = [
        [found_at(one, site, *cases_of(one).inputs)[0].double().numpy() for site in streams(one)["encoder"]]
        for one in (first, second)
    ]
    expected = [[by_definition(one, other) for other in tables[1]] for one in tables[0]]
    np.testing.assert_allclose(found.cka, expected, atol=1e-5)
    assert found.cka_shuffled.shape == (2, 2)
    alone = side_by_side(bundle=first, second_bundle=first, **asked)
    np.testing.assert_allclose(np.diag(alone.cka), 1.0, atol=1e-9)
    assert (alone.cka_shuffled < 1).all()


def test_models_of_other_depths_are_compared_and_too_few_tokens_are_not() -> None:
    first = bundle_of("classifier")
    deeper = MODELS["classifier"](ModelConfig(vocab_size=24, **(MODEL | {"n_layers": 3}))).eval()
    asked = {"bundle": first, "second_bundle": replace(first, model=deeper), "n_tokens": 20}
    asked |= {"text": TEXT, "site": "encoder.layer0.residual"}
    found = side_by_side(second_text=TEXT, **asked)
    assert found.cka.shape == found.cka_shuffled.shape == (2, 3)
    assert found.cosine.shape == (2,)
    apart = side_by_side(second_text="film", **asked)
    assert apart.cka.shape == (0, 0) or len(apart.pairs) >= FEWEST
