"""Who asks: at home one person; on a network a browser, told apart from the others, or an administrator.

A browser's key is a random cookie, signed by the server and read by no script on any page; the server keeps only its
hash, as the owner of what that browser made. Whoever made a run or opened a model may change it, and so may an
administrator. A key that was made up is none, and an address gets so many keys an hour: a class behind one address has
them, a machine that collects keys does not get far.
"""

import base64
import hashlib
import hmac
import os
import re
import secrets
import threading
import time
from collections import deque
from contextlib import suppress
from functools import lru_cache
from http.cookies import CookieError, SimpleCookie
from pathlib import Path
from tempfile import NamedTemporaryFile

import streamlit as st
from cachetools import LRUCache
from starlette.datastructures import MutableHeaders
from starlette.requests import HTTPConnection
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from pages.link import linked
from pages.serving.hosts import AT_HOME, HOSTS
from transformer_core.kept import kept_at

ADMIN, ADMINS = "VITRINE_ADMIN", "VITRINE_ADMINS"
SIGNING = "VITRINE_KEY"  # names the file of what keys are signed with, by default .runs/key
COOKIE, KEY, SIGNATURE = "vitrine", re.compile(r"[\w-]{32}"), 22
MOST_KEYS, SECONDS_OF_KEYS, MOST_ADDRESSES = 1_500, 3_600.0, 10_000
SECONDS_KEPT = 365 * 24 * 3_600
MOST_WRONG, SECONDS_OF_WRONG = 5, 60.0
SECONDS_ADMITTED = 24 * 3_600.0
_admitted: dict[str, float] = {}  # administrators' browsers, and since when
_wrong: LRUCache[str, deque[float]] = LRUCache(MOST_ADDRESSES)  # wrong secrets: when, by address
_given: LRUCache[str, deque[float]] = LRUCache(MOST_ADDRESSES)  # keys: when, by address
_lock = threading.Lock()


def is_home() -> bool:
    """Tell whether the server listens to this machine alone, by no other name: its one person may do everything."""
    return st.get_option("server.address") in AT_HOME and not os.environ.get(HOSTS)


def owner_of(key: str) -> str:
    """Return what the server keeps of a browser's key."""
    return hashlib.sha256(key.encode()).hexdigest()[:32]


@lru_cache(maxsize=1)
def _signing() -> bytes:
    """Return what keys are signed with; where it can be neither read nor kept, keys last as long as the server runs."""
    path = kept_at(SIGNING, "key")
    with suppress(OSError):
        path.parent.mkdir(parents=True, exist_ok=True)
        if not path.exists():
            with NamedTemporaryFile(dir=path.parent) as file:  # rights 0600
                file.write(secrets.token_bytes(32))
                file.flush()
                try:
                    os.link(file.name, path)
                except FileExistsError:
                    pass  # another process was first: both read the same whole file
                except OSError:  # no links there
                    path.touch(0o600, exist_ok=False)
                    path.write_bytes(Path(file.name).read_bytes())
        if len(kept := path.read_bytes()) == 32:
            return kept
    return secrets.token_bytes(32)


def signed(key: str) -> str:
    """Return a key as the server gives it to a browser."""
    code = hmac.digest(_signing(), key.encode(), "sha256")
    return f"{key}.{base64.urlsafe_b64encode(code).decode()[:SIGNATURE]}"


def _key_in(cookie: str) -> str:
    """Return the key that a cookie holds, "" where the server has not signed it."""
    key = cookie.partition(".")[0]
    return key if KEY.fullmatch(key) and hmac.compare_digest(signed(key).encode(), cookie.encode()) else ""


def _cookie_in(cookies: str) -> str:
    try:
        found = SimpleCookie(cookies).get(COOKIE)
    except CookieError:
        return ""
    return "" if found is None else found.value


def owner_in(cookies: str) -> str:
    """Return the owner that a Cookie header tells, "" where it tells none."""
    key = _key_in(_cookie_in(cookies))
    return owner_of(key) if key else ""


def person(cookies: str, address: str | None) -> str:
    """Return as whom somebody takes turns with others: the owner that a Cookie header tells, else the address."""
    return owner_in(cookies) or address or "somebody"


def person_of(asks: HTTPConnection) -> str:
    """Return as whom a request takes turns with others."""
    return person(asks.headers.get("cookie", ""), asks.client and asks.client.host)


def address() -> str:
    """Return where this session comes from, "" where that is not known."""
    return str(st.context.ip_address or "")


def _key() -> str:
    return _key_in(str(st.context.cookies.get(COOKIE, "")))


def is_person() -> bool:
    """Tell whether this visitor counts as a person: at home, or by a key that the server signed."""
    return is_home() or bool(_key())


def visitor() -> str:
    """Return the owner of what is made now: "" at home, else the hash of this browser's key.

    A browser that keeps no cookies is another one at each visit, and at each request of a link.
    """
    if is_home():
        return ""
    link = linked()
    if link is not None:
        return link.owner or owner_of(secrets.token_urlsafe(24))
    return owner_of(_key() or st.session_state.setdefault("key", secrets.token_urlsafe(24)))


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

    After five wrong ones within a minute from one address, none is right that comes from there.
    """
    wanted, now = os.environ.get(ADMIN, ""), time.monotonic()
    with _lock:
        wrong = _recent(_wrong, address(), SECONDS_OF_WRONG)
        if len(wrong) == MOST_WRONG:
            return False
        right = bool(wanted) and hmac.compare_digest(secret.encode("utf-8", "replace"), wanted.encode())
        if right:
            _admitted[visitor()] = now
        else:
            wrong.append(now)
    return right


def _recent(known: LRUCache[str, deque[float]], address: str, seconds: float) -> deque[float]:
    """Return the times that are kept of an address, the old ones dropped; of many addresses, the newest are kept."""
    times, now = known.setdefault(address, deque()), time.monotonic()
    while times and now - times[0] > seconds:
        times.popleft()
    return times


class GiveKey:
    """Give each browser that opens a page its key, where it has none (ASGI middleware).

    A key that an older version gave is signed. Over MOST_KEYS an hour, an address gets pages and no more keys.
    """

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request as the app does, with the cookie where it answers with a page."""
        cookies = next((value.decode("latin-1") for name, value in scope.get("headers", ()) if name == b"cookie"), "")
        if scope["type"] != "http" or owner_in(cookies):
            await self._app(scope, receive, send)
            return
        known = _cookie_in(cookies)
        key = known if KEY.fullmatch(known) else secrets.token_urlsafe(24)
        cookie = f"{COOKIE}={signed(key)}; Path=/; Max-Age={SECONDS_KEPT}; HttpOnly; SameSite=Lax"
        cookie += "; Secure" if scope["scheme"] == "https" else ""
        address = (scope.get("client") or ("",))[0]

        async def give(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                if headers.get("content-type", "").startswith("text/html"):
                    given = _recent(_given, address, SECONDS_OF_KEYS)
                    if len(given) < MOST_KEYS:
                        given.append(time.monotonic())
                        headers.append("set-cookie", cookie)
            await send(message)

        await self._app(scope, receive, give)
