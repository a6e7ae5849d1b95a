"""The folder of a run: the names of its files, and the locks that tell who works on it.

A lock belongs to the process that holds it and goes when that dies, however it dies. Read next: records.py.
"""

import os
import re
import secrets
import shutil
import string
import tempfile
import time
from pathlib import Path

from filelock import FileLock, Timeout

from transformer_core.training.runs.errors import RunError, in_words

try:
    import fcntl
except ImportError:  # not on Windows
    fcntl = None

ABOUT, SPEC, DATABASE, TOKENIZER = "run.json", "spec.json", "run.sqlite", "tokenizer.json"
ORIGIN, SCRIPT, LOG, LOCK = "origin.safetensors", "repeat.py", "worker.log", "worker.lock"
STATE, FRAMES, BUNDLE = "state", "frames", "bundle"
REQUEST, LAUNCHED, KEPT, RESERVE = "request", "launched", "kept", "reserve"
TAKEN_NAMES = {
    *(ABOUT, SPEC, DATABASE, TOKENIZER, ORIGIN, SCRIPT, LOG, LOCK, STATE, FRAMES, BUNDLE),
    *(REQUEST, LAUNCHED, KEPT, RESERVE),
}
MAKING, LEAVING = ".new-", ".old-"
ID = re.compile(r"[a-z0-9]{8,12}")
LENGTH_OF_ID = 10
ALPHABET = string.ascii_lowercase + string.digits
SECONDS_TO_START = 30.0
PATIENCE = 10.0
MOST_BYTES_OF_DATA = 200 << 20
Data = bytes | Path


def default_root() -> Path:
    """Return where runs lie: the variable VITRINE_RUNS, else .runs/live under the project's root."""
    return Path(os.environ.get("VITRINE_RUNS") or Path(__file__).parents[3] / ".runs" / "live")


def new_id() -> str:
    """Return a random id."""
    return "".join(secrets.choice(ALPHABET) for _ in range(LENGTH_OF_ID))


def weights_file(folder: Path, frame: int) -> Path:
    """Return where the weights of a frame lie."""
    return folder / FRAMES / f"{frame:03d}.safetensors"


def write_whole(path: Path, content: str | bytes) -> None:
    """Write a file beside its place and move it there, so that nobody reads half of it."""
    data = content.encode("utf-8", "replace") if isinstance(content, str) else content
    handle, draft = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(data)
        os.chmod(draft, 0o644)
        os.replace(draft, path)
    except BaseException:
        Path(draft).unlink(missing_ok=True)
        raise


def put_data(data: Data, place: Path) -> None:
    """Lay a run's data in its place.

    Raises:
        RunError: they are too large, or cannot be read or written.
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
    """Tell whether a process holds a lock; asking disturbs neither the holder nor others that ask."""
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
    """Take a lock and return it; let go with its release().

    Raises:
        RunError: another process has it, after `patience` seconds still.
    """
    with in_words(f"{lock.name} cannot be taken"):
        held = FileLock(lock, thread_local=False, poll_interval=0.02)
        try:
            held.acquire(timeout=patience)
        except Timeout:
            raise RunError(f"{lock.name} is held by another process") from None
    return held


def was_just_launched(folder: Path) -> bool:
    """Tell whether a worker was called for this run so lately that it may not have taken the lock yet."""
    try:
        return time.time() - (folder / LAUNCHED).stat().st_mtime < SECONDS_TO_START
    except OSError:
        return False


def has_worker(folder: Path) -> bool:
    """Tell whether a worker has the run, or was called for it just now."""
    return is_held(folder / LOCK) or was_just_launched(folder)
