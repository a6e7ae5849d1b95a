"""The folder of a run: the names of its files and locks, and deleting it in one piece.

The operating system releases a lock when the process that holds it ends, even if it is killed.
"""

import json
import os
import re
import secrets
import shutil
import string
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from filelock import FileLock, Timeout

from transformer_core.kept import kept_at
from transformer_core.training.runs.errors import RunError, in_words
from transformer_core.training.spec import START

try:
    import fcntl
except ImportError:  # not on Windows
    fcntl = None

ABOUT, SPEC, DATABASE, TOKENIZER = "run.json", "spec.json", "run.sqlite", "tokenizer.json"
ORIGIN, SCRIPT, LOG, LOCK = "origin.safetensors", "repeat.py", "worker.log", "worker.lock"
STATE, FRAMES, BUNDLE = "state", "frames", "bundle"
RECORDS, ARRAYS = "records.jsonl", "arrays.npz"  # in a zip, in place of the database
LAUNCH, KEPT, FOLLOWED, RESERVE = "launch.lock", "kept", "followed", "reserve"
PLACED, TAKER = "placed.json", "taker.lock"  # where a cluster computes the run, and what takes over what is new of it
RESERVED_NAMES = {
    *(ABOUT, SPEC, DATABASE, TOKENIZER, ORIGIN, SCRIPT, LOG, LOCK, STATE, FRAMES, BUNDLE, START),
    *(LAUNCH, KEPT, FOLLOWED, RESERVE, PLACED, TAKER, RECORDS, ARRAYS),
}
MAKING, LEAVING, MAKER = ".new-", ".old-", "maker.lock"
ID = re.compile(r"[a-z0-9]{8,12}")
LENGTH_OF_ID = 10
MOST_SECONDS = 1e12  # since 1970
ALPHABET = string.ascii_lowercase + string.digits
SECONDS_OF_SCRATCH = 3_600.0
SECONDS_BETWEEN_MARKS = 60.0
PATIENCE = 10.0
MOST_BYTES_OF_DATA = 200 << 20
RESERVED_BYTES, UNUSED, LONGEST_REASON = 1 << 18, b"\1", 2_000
Data = bytes | Path


def default_root() -> Path:
    """Return the folder of all runs."""
    return kept_at("VITRINE_RUNS", "live")


def new_id() -> str:
    """Return a random id."""
    return "".join(secrets.choice(ALPHABET) for _ in range(LENGTH_OF_ID))


def about(folder: Path) -> dict[str, Any]:
    """Return what is noted of a run's making; nothing where that cannot be read."""
    try:
        noted = json.loads((folder / ABOUT).read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError):
        return {}
    return noted if isinstance(noted, dict) else {}


def owner_of(folder: Path) -> str:
    """Return who made a run, "" where nobody is told apart."""
    owner = about(folder).get("owner")
    return owner if isinstance(owner, str) else ""


def created_at(folder: Path) -> float:
    """Return when a run was made, in seconds since 1970; 0 where that is not known."""
    created = about(folder).get("created")
    return float(created) if isinstance(created, int | float) and abs(created) < MOST_SECONDS else 0.0


def follow(folder: Path) -> None:
    """Note that somebody looks at a run now."""
    with suppress(OSError):
        if not is_followed(folder, SECONDS_BETWEEN_MARKS):
            (folder / FOLLOWED).touch()


def is_followed(folder: Path, seconds: float) -> bool:
    """Tell whether somebody looked at a run within the last seconds."""
    try:
        return time.time() - (folder / FOLLOWED).stat().st_mtime < seconds
    except OSError:
        return False


def weights_file(folder: Path, frame: int) -> Path:
    """Return the file of a frame's weights."""
    return folder / FRAMES / f"{frame:03d}.safetensors"


def write_whole(path: Path, content: str | bytes) -> None:
    """Write a file under another name and rename it, so that no reader sees half of it, and no other user any."""
    data = content.encode("utf-8", "replace") if isinstance(content, str) else content
    handle, draft = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(data)
        os.replace(draft, path)
    except BaseException:
        Path(draft).unlink(missing_ok=True)
        raise


def put_data(data: Data, place: Path) -> None:
    """Copy a run's data to a file.

    Raises:
        RunError: the data are too large, or cannot be read or written.
    """
    with in_words(f"{place.name} cannot be copied"):
        size = data.stat().st_size if isinstance(data, Path) else len(data)
        if size > MOST_BYTES_OF_DATA:
            raise RunError(f"{place.name} has {size:,} bytes; a run's data may have {MOST_BYTES_OF_DATA:,}")
        if isinstance(data, Path):
            shutil.copyfile(data, place)
        else:
            place.write_bytes(data)


def is_held(lock: Path) -> bool:
    """Tell whether a process holds a lock; the check disturbs neither the holder nor other readers."""
    if fcntl is None:
        return _is_held_elsewhere(lock)
    try:
        handle = os.open(lock, os.O_RDONLY)
    except OSError:
        return False
    try:
        fcntl.flock(handle, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except OSError:
        return True
    finally:
        os.close(handle)
    return False


def _is_held_elsewhere(lock: Path) -> bool:
    if not lock.exists():
        return False
    try:
        FileLock(lock, timeout=0, thread_local=False).acquire().lock.release()
    except Timeout:
        return True
    return False


def hold(lock: Path, *, patience: float = PATIENCE) -> FileLock:
    """Take a lock and return it; its release() frees it.

    Raises:
        RunError: another process still holds it after `patience` seconds.
    """
    with in_words(f"{lock.name} cannot be taken"):
        held = FileLock(lock, thread_local=False, poll_interval=0.02)
        try:
            held.acquire(timeout=patience)
        except Timeout:
            raise RunError(f"{lock.name} is held by another process") from None
    return held


def has_worker(folder: Path) -> bool:
    """Tell whether a worker holds the run, or is being started for it."""
    return is_held(folder / LAUNCH) or is_held(folder / LOCK)


def reserve_room(folder: Path) -> None:
    """Take room on the disk for what a failing worker has to write.

    Raises:
        OSError: there is none; nothing of it is kept.
    """
    try:
        (folder / RESERVE).write_bytes(UNUSED * RESERVED_BYTES)
    except OSError:
        free_room(folder)
        raise


def leave_reason(folder: Path, reason: str) -> None:
    """Write why a worker fails over its reserved room, and free the rest of it: that succeeds on a full disk, too."""
    with suppress(OSError), (folder / RESERVE).open("r+b") as file:
        file.write(reason.encode("utf-8", "replace")[:LONGEST_REASON])
        file.truncate()


def left_reason(folder: Path) -> str:
    """Return why the last worker failed, where it could write it nowhere else; else nothing."""
    try:
        with (folder / RESERVE).open("rb") as file:
            reason = file.read(LONGEST_REASON)
    except OSError:
        return ""
    return "" if reason.startswith(UNUSED) else reason.decode("utf-8", "replace")


def free_room(folder: Path) -> None:
    """Free the reserved room, with the reason that may stand there."""
    (folder / RESERVE).unlink(missing_ok=True)


def remove(folder: Path) -> None:
    """Delete a run: readers lose it at once, then it goes from the disk.

    Raises:
        RunError: it cannot be deleted.
    """
    with in_words(f"run {folder.name} cannot be deleted"):
        shutil.rmtree(folder.rename(folder.parent / f"{LEAVING}{new_id()}"))


@contextmanager
def making(root: Path) -> Iterator[Path]:
    """Yield a new folder, which only this user reads, to make something in; it goes afterwards unless it was moved.

    What makers left there who were killed goes first.

    Raises:
        OSError: the folder cannot be made.
    """
    root.mkdir(parents=True, exist_ok=True)
    sweep(root)
    scratch = Path(tempfile.mkdtemp(prefix=MAKING, dir=root))
    maker = hold(scratch / MAKER)
    try:
        (scratch / "made").mkdir(mode=0o700)
        yield scratch / "made"
    finally:
        maker.release()
        shutil.rmtree(scratch, ignore_errors=True)


def sweep(root: Path) -> None:
    """Remove what a crash left behind while something was being made or deleted."""
    for scratch in (*root.glob(f"{MAKING}*"), *root.glob(f"{LEAVING}*")):
        with suppress(OSError):
            abandoned = (scratch / MAKER).exists() and not is_held(scratch / MAKER)
            if abandoned or time.time() - scratch.stat().st_mtime > SECONDS_OF_SCRATCH:
                shutil.rmtree(scratch)
