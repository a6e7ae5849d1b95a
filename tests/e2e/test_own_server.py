"""What needs a server of its own: a first visit, the network's visitors, signing in, and a server that was killed."""

import json
import os
import re
import signal
import threading
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import parse_qs, urlencode, urlsplit

import pytest
from joserfc import jwt
from joserfc.jwk import RSAKey
from playwright.sync_api import Browser, Page, expect

from pages.language import words
from tests.helpers.browser import free_port, serving, started, visit
from tests.helpers.hall import join, open_room, wait_ready

EN = words("en")
TEXT = "A slow film, but not a bad one"
LONG = "lang=en&d_model=32&n_heads=2&n_layers=1&epochs=40"
CLIENT = "vitrine"
KEY = RSAKey.generate_key(2048, {"kid": "one", "use": "sig", "alg": "RS256"})


@pytest.fixture
def network(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """Start a server that other machines may ask, and yield its address."""
    monkeypatch.setenv("VITRINE_RUNS", str(tmp_path / "runs"))
    monkeypatch.setenv("VITRINE_ADMIN", "a long secret")
    with started(tmp_path / "log", "--server.address", "0.0.0.0") as (address, _):
        yield address


@pytest.fixture
def person(browser: Browser) -> Iterator:
    """Return a function that returns a browser of somebody's own at an address."""
    contexts = []

    def new(url: str, **options) -> Page:
        contexts.append(browser.new_context(viewport={"width": 1280, "height": 800}, **options))
        page = contexts[-1].new_page()
        page.goto(url)
        return page

    yield new
    for context in contexts:
        context.close()


def stop_button(page: Page):
    """Return the button that stops a run."""
    return page.get_by_role("button", name=EN["run.stop"])


def is_whole(page: Page, address: str, path: str) -> None:
    """Open a deep link and see that its whole page is there."""
    visit(page, address, path, text=TEXT)
    expect(page.get_by_role("textbox").first).to_have_value(TEXT)
    expect(page.get_by_role("button", name="Inside")).to_be_visible()
    expect(page.get_by_text("Traceback")).to_have_count(0)


@pytest.mark.nightly
@pytest.mark.parametrize("path", ["attention", ""])
def test_the_first_deep_link_to_a_fresh_server_shows_the_whole_page(own_page: Page, tmp_path: Path, path: str) -> None:
    with serving(tmp_path / "log") as address:
        is_whole(own_page, address, path)


@pytest.mark.nightly
def test_a_fresh_server_shows_a_deep_link_whole_and_a_run_is_its_makers_and_the_administrators(
    person, network: str
) -> None:
    ann = person("about:blank", locale="en-GB")
    is_whole(ann, network, "Attention")
    ann.goto(f"{network}/train?{LONG}")
    ann.get_by_role("button", name=EN["train.start"]).click()
    ann.wait_for_url("**run=**")
    expect(stop_button(ann)).to_be_visible()
    link = ann.url

    bob = person(link)
    expect(bob.get_by_text(EN["run.of_another"])).to_be_visible()
    expect(stop_button(bob)).to_have_count(0)
    assert "vitrine=" not in bob.evaluate("() => document.cookie")  # no script reads who somebody is

    ann.reload()  # another session of the same browser
    expect(stop_button(ann)).to_be_visible()

    admin = person(f"{network}/server?lang=en")
    admin.get_by_label(EN["server.secret"]).fill("a guess")
    admin.get_by_role("button", name=EN["server.enter"]).click()
    expect(admin.get_by_text(EN["server.wrong"])).to_be_visible()
    admin.get_by_label(EN["server.secret"]).fill("a long secret")
    admin.get_by_role("button", name=EN["server.enter"]).click()
    expect(admin.get_by_text(EN["server.people"])).to_be_visible()
    expect(admin.locator(f"a[href*='{link.partition('run=')[2].partition('&')[0]}']")).to_be_visible()
    admin.goto(link)  # as that link does, in a tab of its own
    expect(stop_button(admin)).to_be_visible()

    stop_button(ann).click()
    expect(bob.get_by_text(EN["state.stopped"]).first).to_be_visible()


@pytest.mark.nightly
def test_a_server_that_was_killed_goes_on_with_its_rooms(
    own_page: Page, person, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("VITRINE_ROOMS", str(tmp_path / "rooms.sqlite3"))
    phone = person("about:blank", has_touch=True, locale="en-GB")
    with started(tmp_path / "log") as (address, process):
        code = open_room(own_page, address, 8)
        join(phone, address, code)
        phone.locator(".options button").first.tap()
        expect(phone.get_by_text("Your answer is in.")).to_be_visible()
        own_page.keyboard.press("ArrowRight")
        expect(phone.locator("h1")).to_have_text("What holds it together: residual and norm")
        link = own_page.url
        os.kill(process, signal.SIGKILL)
    with started(tmp_path / "log", port=int(address.rpartition(":")[2])):  # where the browser keeps the room's secret
        own_page.goto(link)
        wait_ready(own_page, 9)
        expect(own_page.locator(".question")).to_contain_text(code)
        phone.goto(f"{address}/room/{code}")
        expect(phone.locator("h1")).to_have_text("What holds it together: residual and norm")
        own_page.keyboard.press("ArrowLeft")
        own_page.keyboard.press("ArrowDown")
        expect(own_page.locator(".question b").first).to_have_text("100% (1)")


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
def trusting(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
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
        provider.server_close()


@pytest.mark.nightly
def test_whoever_is_named_is_the_administrator_after_signing_in_and_nobody_else(person, trusting: str) -> None:
    for email, named in (("ann@example.org", True), ("eve@example.org", False)):
        Provider.email = email
        page = person(f"{trusting}/server?lang=en")
        page.get_by_role("button", name=EN["server.sign_in"]).click()
        page.wait_for_url(re.compile(r":[0-9]+/(\?|$)"))  # the provider has sent the browser back
        page.goto(f"{trusting}/server?lang=en")
        if named:
            expect(page.get_by_text(EN["server.people"])).to_be_visible()
        else:
            expect(page.get_by_role("button", name=EN["server.sign_in"])).to_be_visible()
            expect(page.get_by_text(EN["server.people"])).to_have_count(0)
