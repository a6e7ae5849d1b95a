"""Who asks: at home one person; on a network a browser, told apart from the others, or an administrator.

A browser's key is a random cookie, which no script on any page can read; the server keeps only its hash, as the owner
of what that browser made. Whoever made a run or opened a model may change it, and so may an administrator.
"""

import hashlib
import hmac
import os
import re
import secrets
import threading
import time
from collections import deque
from http.cookies import CookieError, SimpleCookie

import streamlit as st
from starlette.datastructures import MutableHeaders
from starlette.requests import HTTPConnection
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from pages.ui.guard import AT_HOME, HOSTS
from pages.ui.link import linked

ADMIN, ADMINS = "VITRINE_ADMIN", "VITRINE_ADMINS"
COOKIE, KEY = "vitrine", re.compile(r"[\w-]{32}")
SECONDS_KEPT = 365 * 24 * 3_600
MOST_WRONG, SECONDS_OF_WRONG = 5, 60.0
SECONDS_ADMITTED = 24 * 3_600.0
_admitted: dict[str, float] = {}  # administrators' browsers, and since when
_wrong: deque[float] = deque(maxlen=MOST_WRONG)
_lock = threading.Lock()


def is_home() -> bool:
    """Tell whether the server listens to this machine alone, by no other name: its one person may do everything."""
    return st.get_option("server.address") in AT_HOME and not os.environ.get(HOSTS)


def owner_of(key: str) -> str:
    """Return what the server keeps of a browser's key."""
    return hashlib.sha256(key.encode()).hexdigest()[:32]


def owner_in(cookies: str) -> str:
    """Return the owner that a Cookie header tells, "" where it tells none."""
    try:
        found = SimpleCookie(cookies).get(COOKIE)
    except CookieError:
        return ""
    return owner_of(found.value) if found is not None and KEY.fullmatch(found.value) else ""


def person(cookies: str, address: str | None) -> str:
    """Return as whom somebody takes turns with others: the owner that a Cookie header tells, else the address."""
    return owner_in(cookies) or address or "somebody"


def person_of(asks: HTTPConnection) -> str:
    """Return as whom a request takes turns with others."""
    return person(asks.headers.get("cookie", ""), asks.client and asks.client.host)


def visitor() -> str:
    """Return the owner of what is made now: "" at home, else the hash of this browser's key.

    A browser that keeps no cookies is another one at each visit.
    """
    if is_home():
        return ""
    link = linked()
    if link is not None:
        return link.owner
    key = str(st.context.cookies.get(COOKIE, ""))
    return owner_of(key if KEY.fullmatch(key) else st.session_state.setdefault("key", secrets.token_urlsafe(24)))


def is_admin() -> bool:
    """Tell whether this visitor may do all: at home, with the secret, or signed in under a name of VITRINE_ADMINS."""
    if is_home():
        return True
    admitted = _admitted.get(visitor())
    return (admitted is not None and time.monotonic() - admitted < SECONDS_ADMITTED) or (
        linked() is None and _is_named()
    )


def may_change(owner: str) -> bool:
    """Tell whether this visitor may change what an owner made."""
    return is_admin() or owner == visitor()


def _is_named() -> bool:
    names = {name.strip().casefold() for name in os.environ.get(ADMINS, "").split(",")} - {""}
    if not (names and st.user.get("is_logged_in")):
        return False
    return st.user.get("email_verified") is not False and str(st.user.get("email", "")).casefold() in names


def admit(secret: str) -> bool:
    """Let this browser do all for a day if the secret is VITRINE_ADMIN.

    After five wrong ones within a minute, none is right.
    """
    wanted, now = os.environ.get(ADMIN, ""), time.monotonic()
    with _lock:
        if len(_wrong) == MOST_WRONG and now - _wrong[0] < SECONDS_OF_WRONG:
            return False
        right = bool(wanted) and hmac.compare_digest(secret.encode(), wanted.encode())
        if right:
            _admitted[visitor()] = now
        else:
            _wrong.append(now)
    return right


class GiveKey:
    """Give each browser that opens a page its key, where it has none (ASGI middleware)."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request as the app does, with the cookie where it answers with a page."""
        cookies = next((value.decode("latin-1") for name, value in scope.get("headers", ()) if name == b"cookie"), "")
        if scope["type"] != "http" or owner_in(cookies):
            await self._app(scope, receive, send)
            return
        cookie = f"{COOKIE}={secrets.token_urlsafe(24)}; Path=/; Max-Age={SECONDS_KEPT}; HttpOnly; SameSite=Lax"
        cookie += "; Secure" if scope["scheme"] == "https" else ""

        async def give(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                if headers.get("content-type", "").startswith("text/html"):
                    headers.append("set-cookie", cookie)
            await send(message)

        await self._app(scope, receive, give)
