"""How far a long computation is: loops count their items, and whoever waits may listen.

Nothing is counted where nobody listens, as in a script.
"""

from collections.abc import Callable, Iterable, Iterator, Sized
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TypeVar

T = TypeVar("T")
Listener = Callable[[int, int], None]
_listener: ContextVar[Listener | None] = ContextVar("listener", default=None)


@contextmanager
def listening(listener: Listener) -> Iterator[None]:
    """Call a listener with the parts done and their number, while the body computes."""
    token = _listener.set(listener)
    try:
        yield
    finally:
        _listener.reset(token)


def counted(items: Iterable[T], total: int | None = None) -> Iterator[T]:
    """Yield items, and tell who listens how many are done; a counted loop inside such a loop is a part of its item.

    Args:
        total: how many there are, where the items do not know.
    """
    listener = _listener.get()
    if listener is None:
        yield from items
        return
    count = len(items) if total is None and isinstance(items, Sized) else total or 0
    for done, item in enumerate(items):
        listener(done, count)

        def inside(parts: int, of: int, done: int = done) -> None:
            listener(done * of + parts, count * of)

        with listening(inside):
            yield item
