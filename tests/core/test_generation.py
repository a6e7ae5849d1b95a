"""Generation: greedy takes the likeliest word each time; sampling follows the temperature; both stop where told."""

import pytest
import torch

from tests.core.helpers import made
from transformer_core.generation import greedy, sample
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
