"""Where the project lies, and where it keeps what people make: runs, opened models, logs, lectures, rooms, the key."""

import os
from pathlib import Path

PROJECT = Path(__file__).parents[1]


def kept_at(variable: str, name: str) -> Path:
    """Return the path that a variable of the environment names, else this one of .runs under the project's root.

    What pip installed has no requirements.txt and keeps nothing beside itself, but in .vitrine in the home folder.
    """
    own = PROJECT / ".runs" if (PROJECT / "requirements.txt").exists() else Path.home() / ".vitrine"
    return Path(os.environ.get(variable) or own / name)
