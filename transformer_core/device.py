"""Which device computes: the fastest available, unless the caller names one."""

import os

import torch


def best_device(name: str | None = None) -> torch.device:
    """Return cuda, mps or cpu, the first that is available; `name` or the variable VITRINE_DEVICE overrides.

    Raises:
        ValueError: the named device is unknown or not available.
    """
    name = name or os.environ.get("VITRINE_DEVICE")
    counts = {"cuda": torch.cuda.device_count(), "mps": int(torch.backends.mps.is_available()), "cpu": 1}
    if not name:
        return torch.device(next(kind for kind, count in counts.items() if count))
    try:
        device = torch.device(name)
    except RuntimeError:
        raise ValueError(f"device={name!r} is unknown; it must be one of {', '.join(counts)}") from None
    if (device.index or 0) >= counts.get(device.type, 0):
        here = ", ".join(kind for kind, count in counts.items() if count)
        raise ValueError(f"device={name!r} is not at hand here; at hand: {here}")
    return device
