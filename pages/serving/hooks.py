"""What else is to be done as the server starts and stops; pages/lifespan.py does it."""

from collections.abc import Callable

SERVING: list[Callable[[], None]] = []
STOPPING: list[Callable[[], None]] = []


def before_serving(look: Callable[[], None]) -> None:
    """Let a function look, as the server starts, whether all is there that it will need."""
    SERVING.append(look)


def before_stopping(end: Callable[[], None]) -> None:
    """Let a function end what would keep the server from stopping: it waits until every answer has been sent.

    Args:
        end: called in the server's loop.
    """
    STOPPING.append(end)
