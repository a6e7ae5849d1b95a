"""A trained model becomes a bundle: written in float16, measured as it lies on disk, its card beside it.

Read next: card.py.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Generic, TypeVar

import torch

from transformer_core.bundle import Bundle, save
from transformer_core.bundle_files import WEIGHTS
from transformer_core.checkpoints import load
from transformer_core.measured import NOTHING_MEASURED, Measured

M = TypeVar("M")


@dataclass(frozen=True, eq=False)
class OnDisk(Generic[M]):
    """A bundle as anybody will load it, with what was measured.

    Args:
        bundle: read back from the folder.
        measured: on it.
        full: the same, on the weights before they were rounded to float16.
        megabytes: of the weights on disk, in units of 1,000,000 bytes.
    """

    bundle: Bundle
    measured: M
    full: M
    megabytes: float


def write_bundle(
    bundle: Bundle,
    folder: Path,
    measure: Callable[[Bundle], M],
    card: Callable[[OnDisk[M]], str],
    beside: Callable[[Bundle], Measured] | None = None,
) -> OnDisk[M]:
    """Write a bundle in float16 with a card of what was measured on it as it lies on disk.

    Args:
        bundle: as it came out of training.
        folder: the bundle's.
        measure: from a bundle to its measures.
        card: from what was written and measured to the card's Markdown.
        beside: from the bundle as it lies on disk to what pages shall know of its weak sides.
    """
    full = measure(bundle)
    save(bundle, folder, dtype=torch.float16)
    read_back = load(folder, device="cpu")
    megabytes = (folder / WEIGHTS).stat().st_size / 1e6
    on_disk = OnDisk(read_back, measure(read_back), full, megabytes)
    measured = NOTHING_MEASURED if beside is None else beside(read_back)
    save(replace(read_back, card=card(on_disk), measured=measured), folder, dtype=torch.float16)
    return on_disk
