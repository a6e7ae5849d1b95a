"""How a GPT writes on: step by step, with a person's tokens in it, in circles, and with a cache."""

from typing import Any

import numpy as np
import pytest

from tests.core.analysis.gpt.test_predictions import ASKED, BUNDLE, FREE, TOKENIZER
from transformer_core.analysis.gpt.cache_times import cache_times
from transformer_core.analysis.gpt.continuation import MOST_STEPS, greedy_loop, period_of, written_on


def test_greedy_writing_takes_the_likeliest_and_any_number_of_steps_agrees() -> None:
    rules = {"how": "greedy", **FREE, "seed": 0, "choices": ()}
    few, many = (written_on(**ASKED, **rules, steps=steps) for steps in (3, 12))
    assert [step.token_id for step in many.steps[:3]] == [step.token_id for step in few.steps]
    assert all(step.rank == 1 and step.chance == 1.0 for step in many.steps)
    assert TOKENIZER.decode([step.token_id for step in many.steps]) == many.written


def test_a_persons_token_leaves_what_stands_before_it_and_changes_what_follows() -> None:
    rules = {"how": "sample", **FREE, "seed": 5}
    free = written_on(**ASKED, **rules, choices=(), steps=20)
    other = next(id_ for id_ in free.steps[6].top_ids if id_ not in (free.steps[6].token_id, TOKENIZER.eos_id))
    put = written_on(**ASKED, **rules, choices=((6, other),), steps=20)
    assert [step.token_id for step in put.steps[:6]] == [step.token_id for step in free.steps[:6]]
    assert put.steps[6].token_id == other
    assert put.steps[6].by_person
    assert put.steps[6].top_probabilities == free.steps[6].top_probabilities


def test_writing_ends_with_the_end_token() -> None:
    assert TOKENIZER.eos_id is not None
    rules = {"how": "greedy", **FREE, "seed": 0, "choices": ((2, TOKENIZER.eos_id),)}
    found = written_on(**ASKED, **rules, steps=10)
    assert found.ended
    assert len(found.steps) == 3


def test_what_cannot_be_written_is_refused() -> None:
    rules: dict[str, Any] = {"how": "greedy", **FREE, "seed": 0}
    with pytest.raises(ValueError, match=f"steps={MOST_STEPS + 1} must be from 0 to {MOST_STEPS}"):
        written_on(**ASKED, **rules, choices=(), steps=MOST_STEPS + 1)
    with pytest.raises(ValueError, match="an id below"):
        written_on(**ASKED, **rules, choices=((0, 999),), steps=1)
    with pytest.raises(ValueError, match="how='beam'"):
        written_on(**ASKED, **(rules | {"how": "beam"}), choices=(), steps=1)


@pytest.mark.parametrize(
    ("ids", "found"),
    [
        ([1, 2, 3], (0, -1)),
        ([9, 1, 2, 1, 2, 1, 2], (2, 1)),
        ([7, 4, 4, 4], (1, 1)),
        ([1, 2, 1, 2], (0, -1)),
        ([], (0, -1)),
    ],
)
def test_a_circle_is_its_shortest_period(ids: list[int], found: tuple[int, int]) -> None:
    assert period_of(ids) == found


def test_a_circle_is_named_by_one_round() -> None:
    found = greedy_loop(**ASKED, steps=60)
    assert len(found.again) == found.period
    assert (found.since >= 0) == (found.period > 0)


def test_a_cache_gives_the_same_scores_and_its_size_is_that_of_keys_and_values() -> None:
    found = cache_times(**ASKED, measurement=0)
    config = BUNDLE.config
    assert found.apart < 1e-4
    assert (found.plain > 0).all()
    assert (found.cached > 0).all()
    per_token = 2 * config.n_layers * config.n_heads * (config.d_head or config.d_model // config.n_heads) * 4
    np.testing.assert_array_equal(found.size, found.lengths * per_token)
    assert found.lengths[-1] == config.max_len
