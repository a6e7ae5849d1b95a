"""Reading a link instead of a session: so a page's functions can be asked for a picture alone, where no page runs.

What a person chose is in the link, and a page's functions ask for it by name (url.current). While a link is read, they
get what that link says.
"""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass

import streamlit as st


@dataclass(frozen=True)
class Link:
    """What a link says, by name, and who asks for it: an owner as in pages/serving/owners.py."""

    said: Mapping[str, str]
    owner: str = ""


LIVE: set[tuple[str, str]] = set()  # pages and their parts whose pictures come the short way, see pages/kit/live.py
LEAVES = "leaves"  # marks the link of another page that opens, see index.py
_link: ContextVar[Link | None] = ContextVar("link", default=None)


def linked() -> Link | None:
    """Return the link that is being read, None where a page runs for a session."""
    return _link.get()


@contextmanager
def reading(link: Link) -> Iterator[None]:
    """Let all choices be those of a link."""
    token = _link.set(link)
    try:
        yield
    finally:
        _link.reset(token)


def below_base(path: str) -> str:
    """Return the path at which the server answers a route of ours, below server.baseUrlPath."""
    base = str(st.get_option("server.baseUrlPath") or "").strip("/")
    return f"/{base}/{path}" if base else f"/{path}"
