"""Devices: which one computes, and that another one than the processor computes the same numbers."""

import pytest
import torch

from tests.helpers import nightly_but
from tests.helpers.engine import MODELS, close, exactly, first_of, inputs, made
from tests.helpers.pretend_device import NAME as PRETEND
from tests.helpers.pretend_device import computing_on
from transformer_core.device import best_device
from transformer_core.probe import capture


@pytest.fixture(autouse=True)
def _no_variable(monkeypatch):
    monkeypatch.delenv("VITRINE_DEVICE", raising=False)


@pytest.fixture
def no_accelerator(monkeypatch):
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 0)
    monkeypatch.setattr(torch.backends.mps, "is_available", lambda: False)


def with_devices(monkeypatch, cuda: int, mps: bool) -> None:
    monkeypatch.setattr(torch.cuda, "device_count", lambda: cuda)
    monkeypatch.setattr(torch.backends.mps, "is_available", lambda: mps)


@pytest.mark.parametrize(("cuda", "mps", "best"), [(1, True, "cuda"), (0, True, "cpu"), (0, False, "cpu")])
def test_a_cuda_card_computes_where_there_is_one_and_mps_never_by_itself(monkeypatch, cuda, mps, best):
    with_devices(monkeypatch, cuda, mps)
    assert best_device() == torch.device(best)
    assert best_device("cpu") == torch.device("cpu")


def test_the_variable_overrides_and_the_argument_overrides_it(monkeypatch):
    with_devices(monkeypatch, 2, True)
    monkeypatch.setenv("VITRINE_DEVICE", "mps")
    assert best_device() == torch.device("mps")
    assert best_device("cuda:1") == torch.device("cuda:1")
    monkeypatch.setenv("VITRINE_DEVICE", "")
    assert best_device() == torch.device("cuda")


@pytest.mark.usefixtures("no_accelerator")
@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("gpu", "device='gpu' is unknown; it must be one of cuda, mps, cpu"),
        ("cuda", "device='cuda' is not at hand here; at hand: cpu"),
        ("cuda:1", "device='cuda:1' is not at hand here; at hand: cpu"),
        ("mps", "device='mps' is not at hand here; at hand: cpu"),
        ("meta", "device='meta' is not at hand here; at hand: cpu"),
    ],
)
def test_a_device_that_is_not_there_is_named(monkeypatch, name, message):
    with pytest.raises(ValueError, match=exactly(message)):
        best_device(name)
    monkeypatch.setenv("VITRINE_DEVICE", name)
    with pytest.raises(ValueError, match=exactly(message)):
        best_device()


def test_a_second_card_that_is_not_there_is_named(monkeypatch):
    with_devices(monkeypatch, 1, False)
    assert best_device("cuda:0") == torch.device("cuda:0")
    with pytest.raises(ValueError, match=exactly("device='cuda:1' is not at hand here; at hand: cuda, cpu")):
        best_device("cuda:1")


@pytest.mark.parametrize("positions", nightly_but(("sinusoidal", "learned", "rotary", "alibi", "none"), {"sinusoidal"}))
@pytest.mark.parametrize("kind", MODELS, ids=lambda kind: kind.__name__)
def test_a_device_computes_the_same_numbers(device, kind, positions):
    given = inputs(kind)
    here, traced_here = capture(made(kind, positions=positions), *given)
    model, there = made(kind, positions=positions).to(device), tuple(part.to(device) for part in given)
    output, traced_there = capture(model, *there)
    with torch.inference_mode():
        silent = first_of(model(*there))
    close(first_of(output).cpu(), first_of(here), atol=1e-4)
    close(silent.cpu(), first_of(here), atol=1e-4)
    assert list(traced_there) == list(traced_here)
    for name, tensor in traced_here.items():
        close(traced_there[name].cpu(), tensor, atol=1e-4)


def test_a_device_without_float64_refuses_it_and_what_does_not_mix(monkeypatch):
    device = computing_on(PRETEND, monkeypatch)
    there = torch.ones(2, 3).to(device)
    assert there.cpu().double().dtype == torch.float64
    for refused in (
        lambda: there.double(),
        lambda: there.to("cpu", torch.float64),
        lambda: torch.zeros(2, dtype=torch.float64, device=device),
        lambda: torch.ones(2, dtype=torch.float64).to(device),
    ):
        with pytest.raises(TypeError, match="float64 on the device"):
            refused()
    with pytest.raises(RuntimeError, match="mixes tensors of the device"):
        there + torch.ones(2, 3)
    with pytest.raises(RuntimeError, match="numpy"):
        there.numpy()
