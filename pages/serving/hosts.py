"""Who may speak to the server: visitors who call it by a name of its own, from no page of another site.

A foreign page reaches a server at home through the visitor's own browser: under its own Origin, or under a name that
it lets point at this machine. Both are refused before Streamlit sees them, which at a foreign Origin would ask two
addresses on the internet for this machine's own and answer nobody meanwhile.
"""

import html
import ipaddress
import logging
import os
import re
from contextlib import suppress
from urllib.parse import urlsplit

import streamlit as st
from starlette.datastructures import Headers, MutableHeaders
from starlette.requests import ClientDisconnect
from starlette.responses import HTMLResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from pages.language import LANGUAGES, words
from pages.serving.headers import headers

HOSTS = "VITRINE_HOSTS"
AT_HOME = frozenset({"localhost", "127.0.0.1", "::1"})
EVERYWHERE = frozenset({"0.0.0.0", "::"})
CLOSED = "/_stcore/metrics"
SECONDS_UNTIL_ROOM = 30
log = logging.getLogger("vitrine")


def _plain(host: str) -> str:
    """Return a host as it is compared: in lower case, an IPv4 address that came over IPv6 as IPv4."""
    host = host.lower().rstrip(".")
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        return host
    return str(getattr(address, "ipv4_mapped", None) or address)


def _called(header: str) -> str | None:
    """Return the host that a Host header names, without its port; None where it names none."""
    try:
        parts = urlsplit(f"//{header}")
        host, _ = parts.hostname, parts.port
    except ValueError:
        return None
    return _plain(host) if host and parts.username is None and re.fullmatch(r"[\w.:\[\]-]+", header) else None


def allowed_hosts() -> frozenset[str]:
    """Return the names that the server goes by: those at home, its address in Streamlit's options, VITRINE_HOSTS.

    Raises:
        ValueError: VITRINE_HOSTS holds something else than names.
    """
    given = os.environ.get(HOSTS, "")
    named = [name.strip() for name in given.split(",") if name.strip()]
    if not all(_called(f"[{name}]" if ":" in name else name) for name in named):
        raise ValueError(f"{HOSTS}={given!r} must be names such as vitrine.example.org, with commas between, no port")
    configured = [st.get_option(option) or "" for option in ("server.address", "browser.serverAddress")]
    return AT_HOME | {_plain(name) for name in (*named, *configured) if name} - EVERYWHERE


class Guard:
    """Refuse foreign hosts, foreign pages, and visitors for whom there is no room; send headers with every answer.

    A visitor is one open WebSocket.
    """

    def __init__(self, app: ASGIApp, *, hosts: frozenset[str], most: int) -> None:
        """Stand before an app.

        Args:
            app: that answers whoever may come in.
            hosts: names that the server goes by; its own address, at which a connection came in, is always one.
            most: visitors at once.
        """
        self._app = app
        self._hosts = hosts
        self._most = most
        self._visitors = 0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer, or hand on to the app."""
        if scope["type"] == "lifespan":
            return await self._app(scope, receive, send)
        sent = Headers(scope=scope)
        refusal = self._refusal(scope, sent)
        along = headers("" if refusal else sent["host"])

        async def send_along(message: Message) -> None:
            if message["type"] in ("http.response.start", "websocket.http.response.start"):
                MutableHeaders(scope=message).update(along)
            await send(message)

        if refusal:
            return await refusal(scope, receive, send_along)
        if scope["type"] == "http":
            with suppress(ClientDisconnect):  # whoever goes before the end of a request needs no answer
                await self._app(scope, receive, send_along)
            return None
        self._visitors += 1
        try:
            await self._app(scope, receive, send_along)
        finally:
            self._visitors -= 1

    def _refusal(self, scope: Scope, sent: Headers) -> Response | None:
        """Return the answer to whoever may not come in."""
        hosts = sent.getlist("host")
        host = _called(hosts[0]) if len(hosts) == 1 else None
        reached = (scope.get("server") or ("",))[0]  # this machine's own address, at which the connection came in
        if host is None or (host not in self._hosts and host != _plain(reached)):
            return _refused(421, "guard.host")
        origin = sent.get("origin")
        if origin is not None and urlsplit(origin).netloc.lower() != hosts[0].lower():
            return _refused(403, "guard.origin")
        foreign = scope["type"] == "http" and sent.get("sec-fetch-site") in ("cross-site", "same-site")
        if foreign and sent.get("sec-fetch-mode") != "navigate":
            return _refused(403, "guard.origin")
        if scope["path"].rstrip("/").endswith(CLOSED):
            return Response(status_code=404)
        opens = scope["type"] == "websocket" or sent.get("sec-fetch-dest") in ("document", "iframe")
        if opens and self._visitors >= self._most:
            refusal = _refused(503, "guard.full", most=f"{self._most:,}")
            refusal.headers["Retry-After"] = str(SECONDS_UNTIL_ROOM)
            return refusal
        return None


def _refused(status: int, key: str, **values: object) -> Response:
    """Return a page of one sentence in each language, and note for those who run the server why."""
    log.warning("refused: %s (%d)", key.removeprefix("guard."), status)
    said = [(lang, html.escape(words(lang)[key].format(**values))) for lang in LANGUAGES]
    lines = "".join(f'<p lang="{lang}">{line}</p>' for lang, line in said)
    meta = '<meta charset="utf-8"><meta name="viewport" content="width=device-width"><title>Vitrine</title>'
    return HTMLResponse(f"<!DOCTYPE html>{meta}{lines}", status_code=status, headers={"Cache-Control": "no-store"})
