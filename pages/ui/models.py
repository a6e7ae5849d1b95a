"""The shipped models: their names, and each opened once for the whole server.

Read next: header.py.
"""

from functools import lru_cache

from pages.ui.language import ASSETS
from transformer_core.checkpoints import Bundle, load

CHECKPOINTS = ASSETS / "checkpoints"


def bundle_names() -> list[str]:
    """Return the names of the shipped bundles, in the order they are shown."""
    return sorted(path.parent.name for path in CHECKPOINTS.glob("*/config.json"))


@lru_cache(maxsize=8)
def open_bundle(name: str) -> Bundle:
    """Load a shipped bundle, once for all sessions; BundleError says what is wrong with it."""
    return load(CHECKPOINTS / name)
