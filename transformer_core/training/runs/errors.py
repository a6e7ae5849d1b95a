"""RunError, and the words for failures of disk, memory and database that the screen shows."""

import errno
import re
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager

import torch
from safetensors import SafetensorError

FULL = "the disk is full; free some space and try again: what was written before is kept"
NO_MEMORY = "the memory does not suffice; choose a smaller model, batch or length"
OUT_OF_MEMORY = re.compile(r"can't allocate memory|Cannot allocate memory|bad_alloc|out of memory")
LONGEST = 500
PATH = re.compile(r"(?:[A-Za-z]:\\|[\\/])(?:[^\s'\"\\/:]+[\\/])+")


class RunError(ValueError):
    """A run cannot be made, read, started, written or imported."""


def without_paths(text: str) -> str:
    """Return a text in which files keep their names but lose their folders."""
    return PATH.sub("", text)


def words_of(error: BaseException) -> str:
    """Return an error message for the screen; it names no folder of the machine."""
    if isinstance(error, MemoryError | torch.OutOfMemoryError):
        return NO_MEMORY
    if isinstance(error, RuntimeError | OSError) and OUT_OF_MEMORY.search(str(error)):  # torch, and a system call
        return NO_MEMORY
    if isinstance(error, sqlite3.Error):
        return _words_of_sqlite(error)
    if isinstance(error, OSError):
        return _words_of_system(error)
    if isinstance(error, SafetensorError) and re.search(r"os error (27|28|122)\b|No space left", str(error)):
        return FULL
    words = without_paths(str(error))[:LONGEST]
    return words if isinstance(error, ValueError) and words else f"{type(error).__name__}: {words}"


@contextmanager
def in_words(doing: str) -> Iterator[None]:
    """Turn failures of disk and database in the body into RunError, which begins with `doing`."""
    try:
        yield
    except (OSError, sqlite3.Error, SafetensorError) as error:
        raise RunError(f"{doing}: {words_of(error)}") from error


def _words_of_system(error: OSError) -> str:
    if error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG):
        return FULL
    if error.errno in (errno.EROFS, errno.EACCES, errno.EPERM):
        return "the folder of runs may not be written to; set VITRINE_RUNS to a folder that may"
    return without_paths(error.strerror or str(error) or type(error).__name__)[:LONGEST]


def _words_of_sqlite(error: sqlite3.Error) -> str:
    code = (getattr(error, "sqlite_errorcode", None) or 0) & 0xFF
    if code == sqlite3.SQLITE_FULL:
        return FULL
    if code == sqlite3.SQLITE_IOERR:
        return "the disk is full or damaged; free some space and try again: what was written before is kept"
    if code in (sqlite3.SQLITE_READONLY, sqlite3.SQLITE_PERM, sqlite3.SQLITE_CANTOPEN):
        return "the run's database may not be opened or written to; look at the rights of the folder of runs"
    if code in (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB):
        return "the run's database is damaged"
    if code in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED):
        return "another process holds the run's database"
    return f"the run's database fails: {without_paths(str(error))[:LONGEST]}"
