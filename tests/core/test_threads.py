"""One model serves many threads: no capture holds another's numbers."""

from concurrent.futures import ThreadPoolExecutor
from threading import Barrier

import pytest
import torch

from tests.helpers.engine import made
from transformer_core.models import Classifier, Gpt
from transformer_core.probe import capture

THREADS, CAPTURES = 8, 200
SITES = ("*.token_ids", "*.weights", "*.heads", "*logits")


def sentence(thread: int) -> torch.Tensor:
    return torch.randint(1, 13, (1, 3 + thread % 4), generator=torch.Generator().manual_seed(thread))


@pytest.mark.parametrize("kind", [Classifier, Gpt])
def test_captures_of_threads_do_not_mix(kind):
    model = made(kind, positions="alibi", n_layers=1)
    start, expected = Barrier(THREADS), []
    for thread in range(THREADS):
        output, trace = capture(model, sentence(thread), sites=SITES)
        expected.append((output, {name: tensor.clone() for name, tensor in trace.items()}))

    def work(thread: int) -> int:
        ids, (output, tensors) = sentence(thread), expected[thread]
        start.wait()
        for _ in range(CAPTURES):
            again, seen = capture(model, ids, sites=SITES)
            assert list(seen) == list(tensors)
            assert torch.allclose(again, output, atol=1e-6)
            assert all(torch.allclose(seen[name], tensor, atol=1e-6) for name, tensor in tensors.items())
        return CAPTURES

    with ThreadPoolExecutor(THREADS) as pool:
        assert sum(pool.map(work, range(THREADS))) == THREADS * CAPTURES


def test_edits_of_one_thread_stay_there():
    model, ids = made(Gpt, n_layers=1), sentence(0)
    plain = capture(model, ids)[0]
    start = Barrier(2)

    def work(edits) -> list[torch.Tensor]:
        start.wait()
        return [capture(model, ids, edits=edits)[0] for _ in range(50)]

    with ThreadPoolExecutor(2) as pool:
        edited, untouched = pool.map(work, ({"*.heads": torch.zeros_like}, None))
    assert all(torch.equal(output, plain) for output in untouched)
    assert not any(torch.allclose(output, plain, atol=1e-2) for output in edited)
