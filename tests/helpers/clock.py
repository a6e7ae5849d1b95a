"""A live figure under a browser's clock that stands still: no time passes on the page until a test says so."""

from playwright.sync_api import Page

from pages.kit.header import PAUSE
from tests.helpers.browser import rest, visit
from tests.helpers.reading import wait_link

TEXT = "The film was not good"
REST = int(PAUSE.removesuffix("ms"))  # of a hand, until the page runs
LEAD = 1000  # ms for which what came the short way is newer than what the page's run brings (newest.js, live.js)
LISTEN = """
() => {
  window.painted = [];
  window.ran = 0;
  const host = [...document.querySelectorAll("*")].find((one) => one.shadowRoot?.querySelector(".vm"));
  if (host) new MutationObserver(([{ target }]) => painted.push(target.dataset.painted)).observe(
    host.shadowRoot.querySelector(".vm"), { attributeFilter: ["data-painted"] });
  const send = WebSocket.prototype.send;
  WebSocket.prototype.send = function (data) {
    window.ran += 1;
    return send.call(this, data);
  };
}
"""


def opened(page: Page, address: str, path: str = "attention", **query: str) -> None:
    """Open a page and listen to what is painted and to what the browser tells the page."""
    visit(page, address, path, **({"text": TEXT, "lang": "en"} | query))
    rest(page)
    page.evaluate(LISTEN)


def stopped(page: Page, address: str, path: str = "attention", **query: str) -> None:
    """Open a page and let no time pass there from now on."""
    opened(page, address, path, **query)
    page.clock.pause_at(page.evaluate("() => Date.now()") / 1000 + 60)


def typed(page: Page, text: str) -> None:
    """Type at the end of the text."""
    page.get_by_role("textbox").first.press("End")
    page.keyboard.type(text)


def nothing_ran(page: Page) -> bool:
    """Tell whether the browser has told the page nothing since it was opened."""
    return page.evaluate("() => window.ran") == 0


def run_page(page: Page, **asked: str) -> None:
    """Let the hand rest until the page runs and says this in its link, and longer than what came before it leads."""
    page.clock.run_for(2 * REST)
    wait_link(page, **asked)
    page.clock.run_for(LEAD)


def verdict(page: Page, name: str) -> str:
    """Return what stands at a verdict's place."""
    return page.locator(f"[data-verdict={name}]").first.text_content() or ""


def wait_other(page: Page, name: str, before: str) -> str:
    """Wait until a verdict is another than before, and return it."""
    script = "([name, before]) => document.querySelector(`[data-verdict=${name}]`).textContent !== before"
    page.wait_for_function(script, arg=[name, before])
    return verdict(page, name)


def link_of(page: Page, name: str) -> str:
    """Return what the link says of this."""
    return page.evaluate("(name) => new URLSearchParams(location.search).get(name)", name)
