"""What a page of another site, and whatever a visitor brings in, can do to the app in a real browser: nothing."""

import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer

import pytest
from playwright.sync_api import Page, expect

from tests.helpers.browser import visit, wait_painted

TEXT = "still alive"
CLOSES = """(address) => new Promise((resolve) => {
  const socket = new WebSocket(address)
  socket.onopen = () => resolve("open")
  socket.onerror = () => resolve("refused")
})"""
ASKS = "(address) => fetch(address, { mode: 'no-cors' }).then((one) => one.type, (error) => String(error))"
BRINGS = """() => new Promise((resolve) => {
  const violations = []
  setTimeout(() => resolve(violations.sort()), 5_000)
  addEventListener("securitypolicyviolation", (event) => {
    violations.push(event.effectiveDirective)
    if (violations.length === 4) resolve(violations.sort())
  })
  const add = (name, values) => document.body.append(Object.assign(document.createElement(name), values))
  add("script", { textContent: "window.hacked = 1" })
  add("script", { src: "http://e.vil/a.js" })
  add("img", { src: "http://e.vil/a.png" })
  fetch("http://e.vil/").catch(() => {})
})"""


@pytest.fixture
def other_app(address: str) -> Iterator[str]:
    """The address of another app on this machine, whose page shows ours in a frame."""

    class Page(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.send_header("Content-Type", "text/html")
            self.end_headers()
            self.wfile.write(f"<iframe src={address}/attention></iframe>".encode())

        def log_message(self, *_: object) -> None: ...

    server = HTTPServer(("127.0.0.1", 0), Page)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://localhost:{server.server_port}"
    server.shutdown()
    server.server_close()


def test_a_page_of_another_local_app_opens_no_socket_and_shows_the_app_in_no_frame(
    own_page: Page, address: str, other_app: str
) -> None:
    said: list[str] = []
    own_page.on("console", lambda message: said.append(message.text))
    own_page.goto(other_app)
    stream = address.replace("http", "ws") + "/_stcore/stream"
    assert own_page.evaluate(CLOSES, stream) == "refused"
    expect(own_page.frame_locator("iframe").get_by_test_id("stApp")).to_have_count(0)
    assert any("frame-ancestors 'self'" in line for line in said)
    assert any("403" in line for line in said), "the socket was refused by the server, not by the browser"
    assert own_page.evaluate(ASKS, f"{address}/runs/underway").startswith("TypeError")


def test_what_comes_into_a_page_runs_no_script_and_fetches_nothing(own_page: Page, address: str) -> None:
    stopped = []
    own_page.on("requestfailed", lambda request: stopped.append((request.url, request.failure)))
    visit(own_page, address, "attention", text=TEXT)
    wait_painted(own_page, f"0.0|{TEXT}")
    assert own_page.evaluate(BRINGS) == ["connect-src", "img-src", "script-src-elem", "script-src-elem"]
    assert own_page.evaluate("() => window.hacked === undefined")
    assert stopped == [("http://e.vil/a.js", "csp"), ("http://e.vil/a.png", "csp")]


def test_a_file_to_download_is_taken_for_nothing_else(page: Page, address: str) -> None:
    visit(page, address, "tokens", text=TEXT)
    page.get_by_text("Export", exact=True).first.click()
    button = page.get_by_test_id("stDownloadButton").get_by_role("button").first
    with page.expect_download() as coming:
        button.click()
    headers = page.request.get(coming.value.url).headers
    assert headers["x-content-type-options"] == "nosniff"
    assert "frame-ancestors 'self'" in headers["content-security-policy"]
