"""Signing in with OpenID Connect: an administrator is whoever the provider names and VITRINE_ADMINS lists."""

import json
import re
import threading
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import parse_qs, urlencode, urlsplit

import pytest
from joserfc import jwt
from joserfc.jwk import RSAKey
from playwright.sync_api import Browser, expect

from pages.ui.language import words
from tests.e2e.test_two_people import person
from tests.helpers.browser import free_port, started

EN = words("en")
CLIENT = "vitrine"
KEY = RSAKey.generate_key(2048, {"kid": "one", "use": "sig", "alg": "RS256"})


class Provider(BaseHTTPRequestHandler):
    """A provider that lets everybody in at once, under the address that it was told."""

    email = ""
    nonces: dict[str, str] = {}  # noqa: RUF012

    @property
    def issuer(self) -> str:
        """Its own address."""
        return f"http://localhost:{self.server.server_address[1]}"

    def answer(self, body: object) -> None:
        """Send JSON."""
        data = json.dumps(body).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def do_GET(self) -> None:
        """Tell what it offers, its keys, or send a browser back with a code."""
        asked = urlsplit(self.path)
        if asked.path.endswith("/openid-configuration"):
            places = {"authorization_endpoint": "authorize", "token_endpoint": "token", "jwks_uri": "keys"}
            self.answer(
                {name: f"{self.issuer}/{place}" for name, place in places.items()}
                | {"issuer": self.issuer, "id_token_signing_alg_values_supported": ["RS256"]}
                | {"response_types_supported": ["code"], "subject_types_supported": ["public"]}
            )
        elif asked.path == "/keys":
            self.answer({"keys": [KEY.as_dict(private=False)]})
        else:
            query = {name: values[0] for name, values in parse_qs(asked.query).items()}
            self.nonces["code"] = query["nonce"]
            self.send_response(302)
            back = urlencode({"code": "code", "state": query["state"]})
            self.send_header("Location", f"{query['redirect_uri']}?{back}")
            self.end_headers()

    def do_POST(self) -> None:
        """Give a token for the code."""
        self.rfile.read(int(self.headers["Content-Length"]))
        claims = {"iss": self.issuer, "aud": CLIENT, "sub": "1", "email": self.email, "email_verified": True}
        times = {"iat": int(time.time()), "exp": int(time.time()) + 600, "nonce": self.nonces["code"]}
        token = jwt.encode({"alg": "RS256", "kid": "one"}, claims | times, KEY)
        self.answer({"access_token": "x", "token_type": "Bearer", "expires_in": 600, "id_token": token})

    def log_message(self, *_: object) -> None:
        """Say nothing."""


@pytest.fixture
def network(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """Start a provider and a server of the network that trusts it, and yield the server's address."""
    provider = ThreadingHTTPServer(("127.0.0.1", 0), Provider)
    threading.Thread(target=provider.serve_forever, daemon=True).start()
    port = free_port()
    secrets = tmp_path / "secrets.toml"
    secrets.write_text(
        f"""[auth]
redirect_uri = "http://localhost:{port}/oauth2callback"
cookie_secret = "a long secret of the test's own"
client_id = "{CLIENT}"
client_secret = "of the client"
server_metadata_url = "http://localhost:{provider.server_address[1]}/.well-known/openid-configuration"
"""
    )
    monkeypatch.setenv("VITRINE_RUNS", str(tmp_path / "runs"))
    monkeypatch.setenv("VITRINE_ADMINS", "Ann@example.org, other@example.org")
    options = ("--server.address", "0.0.0.0", "--secrets.files", str(secrets))
    try:
        with started(tmp_path / "log", *options, port=port) as (address, _):
            yield address
    finally:
        provider.shutdown()


def test_whoever_is_named_is_the_administrator_after_signing_in_and_nobody_else(browser: Browser, network: str) -> None:
    for email, named in (("ann@example.org", True), ("eve@example.org", False)):
        Provider.email = email
        page = person(browser, f"{network}/server?lang=en")
        page.get_by_role("button", name=EN["server.sign_in"]).click(timeout=60_000)
        page.wait_for_url(re.compile(r":[0-9]+/(\?|$)"), timeout=60_000)  # the provider has sent the browser back
        page.goto(f"{network}/server?lang=en")
        if named:
            expect(page.get_by_text(EN["server.people"])).to_be_visible(timeout=60_000)
        else:
            expect(page.get_by_role("button", name=EN["server.sign_in"])).to_be_visible(timeout=60_000)
            expect(page.get_by_text(EN["server.people"])).to_have_count(0)
