"""A draft changes how many passes are made, never what is written."""

from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any, cast

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.core.models.test_properties import POSITIONS
from tests.helpers.engine import close, made
from transformer_core.generation import SpeculativePass, greedy, greedy_from_drafts
from transformer_core.models import Translation

SOURCE = torch.tensor([[1, 5, 6, 7, 2]])
ENDS = {"bos_id": 1, "eos_id": 2, "most": 9}


def plainly(model: Translation) -> tuple[list[int], torch.Tensor]:
    steps = list(greedy(model, SOURCE, **ENDS))
    return [step.token_id for step in steps], torch.stack([step.logits for step in steps])


def drafted(model: Translation, *drafts: list[int]) -> tuple[list[int], torch.Tensor]:
    with torch.inference_mode():
        state = model.start(SOURCE)
    passes = list(greedy_from_drafts(model, state, drafts, **ENDS))
    return words_of(passes), torch.cat([one.logits for one in passes])


def words_of(passes: list[SpeculativePass]) -> list[int]:
    return [token_id for one in passes for token_id in one.token_ids]


@pytest.mark.parametrize("positions", POSITIONS)
@pytest.mark.parametrize("causal", [True, False])
def test_any_draft_gives_what_none_gives(positions, causal):
    model = made(Translation, positions=positions, causal=causal)
    written, logits = plainly(model)
    swapped = [*written[:2], (written[2] + 1) % 12, *written[3:]]
    for draft in ([], written, written[:3], swapped, written[1:], [*written, *written], [0] * 20):
        for drafts in ([draft], [draft, written], [[3, 4], draft]):
            token_ids, scores = drafted(model, *drafts)
            assert token_ids == written
            close(scores, logits)


@given(st.lists(st.integers(0, 11), max_size=14))
@settings(max_examples=40)
def test_not_even_a_draft_at_random(draft):
    model = made(Translation)
    assert drafted(model, draft)[0] == plainly(model)[0]


@dataclass(frozen=True)
class Place:
    """The state of a model that has its words by heart: how many it has read."""

    length: int
    memory: torch.Tensor

    def truncated(self, length: int) -> "Place":
        return Place(length, self.memory)


class ByHeart:
    """Writes the same words whatever comes, and counts the passes."""

    def __init__(self, *words: int) -> None:
        self.words, self.passes = words, []
        self.config = SimpleNamespace(max_len=40, causal=True)

    def read(self, token_ids: torch.Tensor, state: Place, *, probe: object) -> tuple[torch.Tensor, Place]:
        count = token_ids.shape[1]
        self.passes.append(count)
        logits = torch.zeros(1, count, 40)
        for place in range(count):
            logits[0, place, self.words[min(state.length + place, len(self.words) - 1)]] = 1.0
        return logits, Place(state.length + count, state.memory)


WRITTEN = (11, 12, 13, 14, 15, 16, 17, 2)


@pytest.mark.parametrize(
    ("draft", "passes"),
    [
        (WRITTEN, 1),
        ((11, 12, 30, 14, 15, 16, 17, 2), 2),  # another word
        ((30, 12, 13, 14, 15, 16, 17, 2), 2),  # the first one another
        ((11, 12, 13, 30, 14, 15, 16, 17, 2), 2),  # a word too many
        ((11, 12, 13, 15, 16, 17, 2), 3),  # a word too few
        ((15, 16, 17, 11, 12, 13, 14, 2), 3),  # in another order
        ((30, 31, 32), 8),  # nothing of it
        ((), 8),
    ],
)
def test_a_draft_saves_passes_wherever_it_is_right(draft, passes):
    assert written_in_passes(WRITTEN, draft) == passes


def written_in_passes(words: tuple[int, ...], *drafts: tuple[int, ...]) -> int:
    """Return in how many passes a model writes its words from drafts."""
    model: Any = ByHeart(*words)
    start = cast(Any, Place(0, torch.zeros(1)))
    passes = list(greedy_from_drafts(model, start, drafts, bos_id=1, eos_id=2, most=len(words) + 1))
    assert tuple(words_of(passes)) == words
    assert len(passes) == len(model.passes)
    return len(passes)


def test_after_a_word_that_comes_twice_the_draft_goes_on_where_more_words_are_alike():
    assert written_in_passes((11, 5, 12, 13, 5, 14, 15, 2), (11, 5, 12, 30, 5, 14, 15, 2)) == 2


def test_a_second_draft_goes_on_where_the_first_is_wrong():
    first, second = (11, 12, 13, 30, 31, 32, 33, 2), (11, 12, 14, 15, 16, 17, 18, 2)
    assert written_in_passes((11, 12, 13, 14, 15, 16, 17, 18, 2), first) == 6
    assert written_in_passes((11, 12, 13, 14, 15, 16, 17, 18, 2), first, second) == 2


def test_what_is_written_again_and_again_needs_no_draft():
    assert written_in_passes((*(11, 12, 13) * 9, 2)) == 10


def test_an_id_outside_the_vocabulary_is_refused():
    model = made(Translation)
    with pytest.raises(ValueError, match="outside the vocabulary"):
        drafted(model, [10_000])
