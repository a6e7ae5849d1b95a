"""A draft changes how many passes are made, never what is written."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.core.models.test_properties import POSITIONS
from tests.core.tools.helpers import close, made
from transformer_core.generation import greedy, greedy_from_draft
from transformer_core.models import Translation

SOURCE = torch.tensor([[1, 5, 6, 7, 2]])
ENDS = {"bos_id": 1, "eos_id": 2, "most": 9}


def plainly(model: Translation) -> tuple[list[int], torch.Tensor]:
    steps = list(greedy(model, SOURCE, **ENDS))
    return [step.token_id for step in steps], torch.stack([step.logits for step in steps])


def drafted(model: Translation, draft: list[int]) -> tuple[list[int], torch.Tensor]:
    with torch.inference_mode():
        state = model.start(SOURCE)
    steps = list(greedy_from_draft(model, state, draft, **ENDS))
    return [step.token_id for step in steps], torch.stack([step.logits for step in steps])


@pytest.mark.parametrize("positions", POSITIONS)
@pytest.mark.parametrize("causal", [True, False])
def test_any_draft_gives_what_none_gives(positions, causal):
    model = made(Translation, positions=positions, causal=causal)
    written, logits = plainly(model)
    swapped = [*written[:2], (written[2] + 1) % 12, *written[3:]]
    for draft in ([], written, written[:3], swapped, written[1:], [*written, *written], [0] * 20):
        token_ids, scores = drafted(model, draft)
        assert token_ids == written
        close(scores, logits)


@given(st.lists(st.integers(0, 11), max_size=14))
@settings(max_examples=40)
def test_not_even_a_draft_at_random(draft):
    model = made(Translation)
    assert drafted(model, draft)[0] == plainly(model)[0]


def test_a_right_draft_costs_one_pass_and_a_wrong_word_one_more(monkeypatch):
    model = made(Translation)
    written, _ = plainly(model)
    assert len(written) > 4
    passes: list[int] = []
    read = Translation.read

    def counted(self, token_ids, state, **options):
        passes.append(token_ids.shape[1])
        return read(self, token_ids, state, **options)

    monkeypatch.setattr(Translation, "read", counted)
    drafted(model, written)
    assert len(passes) == 1
    passes.clear()
    drafted(model, [*written[:2], (written[2] + 1) % 12, *written[3:]])
    assert len(passes) == 2
    passes.clear()
    drafted(model, [(written[0] + 1) % 12, *written[1:]])
    assert passes[1:] == [1] * (len(written) - 1)  # nothing was right: the draft is put away


def test_an_id_outside_the_vocabulary_is_refused():
    model = made(Translation)
    with pytest.raises(ValueError, match="outside the vocabulary"):
        drafted(model, [10_000])
