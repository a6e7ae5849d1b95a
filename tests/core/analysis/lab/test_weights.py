"""Painted weights: strokes as blocks, one over another, in a copy of the model."""

import json
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
import torch

from tests.helpers.lab_models import bundle_of, cases_of
from transformer_core.analysis.lab.changes import change_of, code_of
from transformer_core.analysis.lab.intervention import changed_answers
from transformer_core.analysis.lab.weights import MOST_BLOCKS, WeightEdit, blocks_of, damaged, matrices_of

QUERY = "encoder.stack.layers.0.self_attention.query_proj.weight"


@pytest.mark.parametrize("share", [0.0, 0.1, 0.5, 0.9, 1.0])
def test_blocks_cover_just_the_painted_cells_each_once(share: float) -> None:
    cells = np.random.default_rng(4).random((13, 21)) < share
    covered = np.zeros(cells.shape, dtype=int)
    for row, col, height, width in blocks_of(cells):
        covered[row : row + height, col : col + width] += 1
    np.testing.assert_array_equal(covered, cells)


def test_a_full_rectangle_is_one_block() -> None:
    cells = np.zeros((9, 9), dtype=bool)
    cells[2:7, 1:5] = True
    assert blocks_of(cells) == ((2, 1, 5, 4),)


def test_later_strokes_lie_over_earlier_ones_and_the_model_stays() -> None:
    model = bundle_of("classifier").model
    before = dict(model.named_parameters())[QUERY].clone()
    edit = WeightEdit(QUERY, "paint", strokes=((0.0, ((0, 0, 4, 5),)), (1.5, ((3, 4, 2, 1), (0, 9, 1, 2)))))
    after = dict(damaged(model, (edit,)).named_parameters())[QUERY]
    expected = before.clone()
    expected[:4, :5] = 0.0
    expected[3:5, 4] = 1.5
    expected[0, 9:11] = 1.5
    torch.testing.assert_close(after, expected, rtol=0, atol=0)
    torch.testing.assert_close(dict(model.named_parameters())[QUERY], before, rtol=0, atol=0)
    assert change_of(json.loads(json.dumps(code_of(edit)))) == edit


@pytest.mark.parametrize(
    ("strokes", "said"),
    [
        (((0.0, ((0, 0, 99, 1),)),), "must lie within 16 x 16"),
        (((0.0, ((-1, 0, 1, 1),)),), "must lie within 16 x 16"),
        (((0.0, ((3, 0, 0, 1),)),), "must lie within 16 x 16"),
        (((float("nan"), ()),), "must be a number"),
        (((0.0, ((0, 0, 1, 1),) * (MOST_BLOCKS + 1)),), "at most"),
    ],
)
def test_strokes_that_cannot_be_are_told(strokes: tuple, said: str) -> None:
    with pytest.raises(ValueError, match=said):
        damaged(bundle_of("classifier").model, (WeightEdit(QUERY, "paint", strokes=strokes),))


def test_eight_threads_that_damage_and_eight_that_read_get_what_they_get_alone() -> None:
    bundle = bundle_of("gpt")
    cases, names = cases_of(bundle), matrices_of(bundle.model)
    before = {name: weight.clone() for name, weight in bundle.model.named_parameters()}
    everybody = [(WeightEdit(names[number], "noise", 1.0, seed=number),) for number in range(8)] + [()] * 8

    def answered(changes: tuple[WeightEdit, ...]) -> float:
        return float(changed_answers(cases, changes).log_prob[0])

    alone = list(map(answered, everybody))
    with ThreadPoolExecutor(16) as pool:
        for _ in range(20):
            assert list(pool.map(answered, everybody)) == alone
    assert len(set(alone)) == 9
    assert all(torch.equal(weight, before[name]) for name, weight in bundle.model.named_parameters())
