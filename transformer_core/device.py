"""Which device computes: the quickest at hand, unless the caller names one.

Read next: bundle_files.py.
"""

import os

import torch


def best_device(name: str | None = None) -> torch.device:
    """Return cuda, mps or cpu, the first that is at hand; `name` or the variable VITRINE_DEVICE overrides.

    Raises:
        ValueError: the named device is unknown or not at hand.
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
