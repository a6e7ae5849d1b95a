"""Removal: which old runs go, how a folder goes in one piece, and how a worker is ended that stands in the way.

Read next: export.py.
"""

import os
import shutil
import signal
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from transformer_core.training.runs.errors import RunError, in_words
from transformer_core.training.runs.folder import KEPT, LEAVING, LOCK, MAKING, has_worker, is_held, new_id
from transformer_core.training.runs.store import RunStore

PATIENCE = 3.0
SECONDS_OF_SCRATCH = 3_600.0


def too_old(folders: Sequence[Path], *, most: int, most_bytes: int) -> list[Path]:
    """Return the runs that go, oldest first, so that at most `most` are left with at most `most_bytes` in all.

    A run with a worker never goes, nor one that somebody has renamed.

    Args:
        folders: of all runs, newest first.
        most, most_bytes: that may be left; more are where runs never go.
    """
    sizes = {folder: _size_of(folder) for folder in folders}
    n_runs, n_bytes, going = len(sizes), sum(sizes.values()), []
    for folder in reversed(sizes):
        if n_runs <= most and n_bytes <= most_bytes:
            break
        if not (has_worker(folder) or (folder / KEPT).exists()):
            going.append(folder)
            n_runs, n_bytes = n_runs - 1, n_bytes - sizes[folder]
    return going


def remove(folder: Path) -> None:
    """Delete a run: it is gone for readers at once, and then from the disk.

    Raises:
        RunError: it cannot be deleted.
    """
    with in_words(f"run {folder.name} cannot be deleted"):
        shutil.rmtree(folder.rename(folder.parent / f"{LEAVING}{new_id()}"))


def sweep(root: Path) -> None:
    """Remove what a crash left behind while a run was being made or deleted."""
    for scratch in (*root.glob(f"{MAKING}*"), *root.glob(f"{LEAVING}*")):
        with suppress(OSError):
            if time.time() - scratch.stat().st_mtime > SECONDS_OF_SCRATCH:
                shutil.rmtree(scratch)


def end_worker(store: RunStore) -> None:
    """Ask a worker to stop, and kill it where it has not after three seconds.

    Raises:
        RunError: it does not end even so.
    """
    with suppress(RunError):
        store.ask("stop")
    if _is_free_within(PATIENCE, store.folder):
        return
    worker = store.worker()
    if worker is not None:
        with suppress(ProcessLookupError):
            os.kill(worker, getattr(signal, "SIGKILL", signal.SIGTERM))
    if not _is_free_within(PATIENCE, store.folder):
        raise RunError(f"the worker of run {store.id} cannot be stopped")


def _is_free_within(seconds: float, folder: Path) -> bool:
    until = time.monotonic() + seconds
    while is_held(folder / LOCK):
        if time.monotonic() > until:
            return False
        time.sleep(0.02)
    return True


def _size_of(folder: Path) -> int:
    total = 0
    for path in folder.rglob("*"):
        with suppress(OSError):
            total += path.lstat().st_size
    return total
