"""Which device computes, and what it is called."""

import os
import platform

import torch

CORES = "VITRINE_CORES"  # set where a process may use fewer than the machine has


def cores() -> int:
    """Return the number of processors that this process may use."""
    here = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return min(here, int(os.environ.get(CORES, here)))


def devices_here() -> dict[str, int]:
    """Return how many devices of each kind this machine has."""
    return {"cuda": torch.cuda.device_count(), "mps": int(torch.backends.mps.is_available()), "cpu": 1}


def best_device(name: str | None = None) -> torch.device:
    """Return cuda where there is one, else cpu; `name` or the variable VITRINE_DEVICE overrides.

    mps computes only where it is named.

    Raises:
        ValueError: the named device is unknown or not available.
    """
    name = name or os.environ.get("VITRINE_DEVICE")
    counts = devices_here()
    if not name:
        return torch.device("cuda" if counts["cuda"] else "cpu")
    try:
        device = torch.device(name)
    except RuntimeError:
        raise ValueError(f"device={name!r} is unknown; it must be one of {', '.join(counts)}") from None
    if (device.index or 0) >= counts.get(device.type, 0):
        here = ", ".join(kind for kind, count in counts.items() if count)
        raise ValueError(f"device={name!r} is not at hand here; at hand: {here}")
    return device


def device_name(device: torch.device) -> str:
    """Return what a device is called: a card's name, or the type of the processor and how many cores it has."""
    if device.type == "cuda":
        return torch.cuda.get_device_name(device)
    kind = platform.machine() or "unknown"
    return f"{kind}, {cores()} cores" if device.type == "cpu" else kind
