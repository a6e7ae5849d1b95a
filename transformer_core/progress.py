"""How far a long computation is: loops count their items, and whoever waits may listen.

Nothing is counted where nobody listens, which is what a script does.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TypeVar

T = TypeVar("T")
Listener = Callable[[int, int], None]
_listener: ContextVar[Listener | None] = ContextVar("listener", default=None)


@contextmanager
def listening(listener: Listener) -> Iterator[None]:
    """Call a listener with the items done and their number, while the body computes."""
    token = _listener.set(listener)
    try:
        yield
    finally:
        _listener.reset(token)


def counted(items: Sequence[T]) -> Iterator[T]:
    """Yield items, and tell who listens how many are done; loops inside such a loop are part of it."""
    listener = _listener.get()
    if listener is None:
        yield from items
        return
    token = _listener.set(None)
    try:
        for done, item in enumerate(items):
            listener(done, len(items))
            yield item
    finally:
        _listener.reset(token)
