"""What the server gives at most: every bound that whoever runs it may set, read from the environment.

| variable | bounds | by default |
|---|---|---|
| `VITRINE_CONNECTIONS` | visitors at once | as many as the limit of open files allows, at most 1,000 |
| `VITRINE_UPLOAD_MB` | one uploaded file, in MB | 500, which is also the most |
| `VITRINE_SESSION_UPLOADS_MB` | the files that one visitor holds at once, in MB | 600 |
| `VITRINE_ALL_UPLOADS_MB` | the files that all visitors hold at once, in MB of memory | 2,000 |
| `VITRINE_PERSON_RUNS` | runs that a person keeps, on a network | 6 |
| `VITRINE_PERSON_RUNS_MB` | the files of a person's runs, in MB, on a network | 1,000 |
| `VITRINE_PERSON_LIVE_RUNS` | a person's runs that compute, wait or pause, on a network | 3 |
| `VITRINE_PERSON_MODELS` | models that a person has opened at once, on a network | 3 |
| `VITRINE_PERSON_MODELS_MB` | the files of a person's opened models, in MB, on a network | 1,500 |
| `VITRINE_OPEN_MODELS_MB` | the weights of models that are in memory, in MB; those used last stay | 3,000 |
| `VITRINE_HEAVY_PROCESSES` | processes that compute what takes long, at once | cores but one, from 1 to 4 |
| `VITRINE_ROOMS_OPEN` | rooms of lectures that are open at once | 20 |
| `VITRINE_READ_ONLY` | with 1, visitors only look: no runs, no uploads, no models opened | 0 |
"""

import os
import re
import sys
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from transformer_core.device import cores

if sys.platform != "win32":
    import resource

FILES_OF_A_VISITOR = 4  # a socket, and three of the event loop that Streamlit makes for each
FILES_OF_THE_SERVER = 640  # 256 of its own, and 3 of each of 128 visitors who have gone and may come back
MOST_VISITORS = 1_000
MOST_UPLOAD_MB = 500
MOST_HEAVY_UNASKED = 4  # each takes 0.3 GB and more


@dataclass(frozen=True)
class Limits:
    """The bounds in force; `connections` is 0 where nobody set it."""

    connections: int
    upload_mb: int
    session_uploads_mb: int
    all_uploads_mb: int
    person_runs: int
    person_runs_mb: int
    person_live_runs: int
    person_models: int
    person_models_mb: int
    open_models_mb: int
    heavy_processes: int
    rooms: int
    read_only: bool


def limits() -> Limits:
    """Return the bounds in force.

    Raises:
        ValueError: a variable is not a number of the kind that it must be.
    """
    return Limits(
        connections=_number("VITRINE_CONNECTIONS", 0),
        upload_mb=_number("VITRINE_UPLOAD_MB", MOST_UPLOAD_MB, most=MOST_UPLOAD_MB),
        session_uploads_mb=_number("VITRINE_SESSION_UPLOADS_MB", 600),
        all_uploads_mb=_number("VITRINE_ALL_UPLOADS_MB", 2_000),
        person_runs=_number("VITRINE_PERSON_RUNS", 6),
        person_runs_mb=_number("VITRINE_PERSON_RUNS_MB", 1_000),
        person_live_runs=_number("VITRINE_PERSON_LIVE_RUNS", 3),
        person_models=_number("VITRINE_PERSON_MODELS", 3),
        person_models_mb=_number("VITRINE_PERSON_MODELS_MB", 1_500),
        open_models_mb=_number("VITRINE_OPEN_MODELS_MB", 3_000),
        heavy_processes=_number("VITRINE_HEAVY_PROCESSES", max(1, min(cores() - 1, MOST_HEAVY_UNASKED)), most=256),
        rooms=_number("VITRINE_ROOMS_OPEN", 20, most=1_000),
        read_only=bool(_number("VITRINE_READ_ONLY", 0, least=0, most=1)),
    )


def _number(name: str, default: int, *, least: int = 1, most: int = 10**9) -> int:
    given = os.environ.get(name, "").strip()
    if not given:
        return default
    if not re.fullmatch(r"[0-9]{1,10}", given) or not least <= int(given) <= most:
        raise ValueError(f"{name}={given!r} must be a whole number from {least} to {most:,}")
    return int(given)


def raise_open_files() -> int:
    """Raise the limit of open files as far as the system lets a process do so, and return it."""
    if sys.platform == "win32":
        return 8_192  # sockets have no bound of their own there
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    for most in (hard, 10_240):  # macOS states no bound and gives this many
        with suppress(ValueError, OSError):
            resource.setrlimit(resource.RLIMIT_NOFILE, (most, hard))
            break
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return sys.maxsize if soft == resource.RLIM_INFINITY else soft


def visitors_for(open_files: int) -> int:
    """Return how many visitors a limit of open files has room for."""
    return max(1, min((open_files - FILES_OF_THE_SERVER) // FILES_OF_A_VISITOR, MOST_VISITORS))


def readable_folder() -> Path | None:
    """Return the only folder of this machine of which visitors may name something: VITRINE_DATA; None where unset."""
    given = os.environ.get("VITRINE_DATA")
    return Path(given).resolve() if given else None


def may_read(path: Path) -> bool:
    """Tell whether a visitor may name this path, wherever the visitor sits."""
    folder = readable_folder()
    return folder is not None and path.resolve().is_relative_to(folder)
