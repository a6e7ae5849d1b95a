"""Generation: greedy takes the likeliest word each time; sampling follows the temperature; both stop where told."""

import pytest
import torch

from tests.core.models.test_properties import POSITIONS
from tests.helpers.engine import close, made
from transformer_core.generation import Written, greedy, greedy_words, sample
from transformer_core.models import Gpt, Translation


def test_greedy_takes_the_likeliest_word_given_what_it_wrote() -> None:
    model, source = made(Translation), torch.tensor([[1, 5, 6, 7, 2]])
    written = [step.token_id for step in greedy(model, source, bos_id=1, eos_id=2, most=6)]
    target = torch.tensor([[1, *written]])
    logits = model(source, target[:, :-1])
    assert logits[0].argmax(-1).tolist() == written
    assert len(written) == 6 or written[-1] == 2


def test_greedy_ends_with_the_end_token() -> None:
    model, source = made(Translation), torch.tensor([[1, 5, 2]])
    likeliest = next(greedy(model, source, bos_id=1, eos_id=2, most=1)).token_id
    assert [step.token_id for step in greedy(model, source, bos_id=1, eos_id=likeliest, most=9)] == [likeliest]


def test_a_sample_repeats_with_its_seed_and_reads_its_last_tokens() -> None:
    model = made(Gpt)
    beginning = torch.randint(1, model.config.vocab_size, (1, model.config.max_len + 3))

    def write(seed: int) -> list[int]:
        generator = torch.Generator().manual_seed(seed)
        return [step.token_id for step in sample(model, beginning, most=12, generator=generator)]

    assert write(0) == write(0)
    assert write(0) != write(1)
    assert len(write(0)) == 12


def test_a_low_temperature_takes_the_likeliest() -> None:
    model, beginning = made(Gpt), torch.tensor([[3, 4, 5]])
    for step in sample(model, beginning, most=5, temperature=1e-4):
        assert step.token_id == int(step.logits.argmax())


def test_what_cannot_be_sampled_is_refused() -> None:
    model = made(Gpt)
    with pytest.raises(ValueError, match="temperature=0 must be more than 0"):
        next(sample(model, torch.tensor([[3]]), most=1, temperature=0))
    with pytest.raises(ValueError, match="at least one token"):
        next(sample(model, torch.zeros(1, 0, dtype=torch.long), most=1))


@pytest.mark.parametrize("positions", POSITIONS)
@pytest.mark.parametrize("causal", [True, False])
def test_a_cache_changes_nothing_not_even_past_the_window(positions, causal):
    model, beginning = made(Gpt, positions=positions, causal=causal), torch.tensor([[3, 4, 5]])

    def drawn(cached: bool) -> list[Written]:
        return list(sample(model, beginning, most=16, generator=torch.Generator().manual_seed(0), cached=cached))

    greedily = [list(greedy_words(model, beginning, most=16, cached=cached)) for cached in (True, False)]
    for kept, whole in (greedily, (drawn(True), drawn(False))):
        assert [step.token_id for step in kept] == [step.token_id for step in whole]
        close(torch.stack([step.logits for step in kept]), torch.stack([step.logits for step in whole]))


def test_what_is_excluded_is_never_written_and_nothing_is_unasked():
    model, beginning = made(Gpt), torch.tensor([[3, 4]])
    likeliest = next(greedy_words(model, beginning, most=1)).token_id
    assert next(greedy_words(model, beginning, most=1, exclude=(likeliest,))).token_id != likeliest
    drawn = {step.token_id for step in sample(model, beginning, most=60, temperature=1e4)}
    assert drawn == set(range(13))
    drawn = {step.token_id for step in sample(model, beginning, most=60, temperature=1e4, exclude=(0, 1))}
    assert drawn == set(range(2, 13))


def test_top_k_of_one_is_greedy():
    model, beginning = made(Gpt), torch.tensor([[3, 4]])
    greedily = [step.token_id for step in greedy_words(model, beginning, most=9)]
    assert [step.token_id for step in sample(model, beginning, most=9, top_k=1)] == greedily
