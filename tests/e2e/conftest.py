"""One server, one browser and one tab for a worker's end-to-end tests; each test gets the tab blank and no storage."""

import os
from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, ConsoleMessage, Error, Page, Request, ViewportSize, expect, sync_playwright

from tests.helpers import ROOT
from tests.helpers.browser import PATIENCE, browser_path, launch, serving

VIEWPORT: ViewportSize = {"width": 1280, "height": 800}
expect.set_options(timeout=PATIENCE)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Skip the end-to-end tests where no browser can be had; with VITRINE_BROWSER=required they fail instead."""
    if browser_path() or os.environ.get("VITRINE_BROWSER") == "required":
        return
    for item in items:
        if item.path.is_relative_to(ROOT / "tests" / "e2e"):
            item.add_marker(pytest.mark.skip(reason="no Chromium: install Debian's package chromium"))


@pytest.fixture(scope="session")
def address(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of a fresh server, whose runs lie in a folder of their own."""
    folder = tmp_path_factory.mktemp("server")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("VITRINE_RUNS", str(folder / "runs"))
        patch.setenv("VITRINE_LOGS", str(folder / "logs"))
        with serving(folder / "log") as address:
            yield address


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    """Headless Chromium, which runs code as it comes: to optimise a page that is left at once costs a sixth more."""
    if browser_path() is None:
        pytest.fail("VITRINE_BROWSER=required, but no Chromium was found")
    with sync_playwright() as playwright:
        browser = launch(playwright, "--js-flags=--no-maglev --no-turbofan")
        yield browser
        browser.close()


@pytest.fixture(scope="session")
def tabs() -> list[Page]:
    """The tab that the next test takes, if there is one: in a tab that showed the app before, a visit costs a third."""
    return []


@pytest.fixture
def page(browser: Browser, tabs: list[Page]) -> Iterator[Page]:
    """A blank tab, which fails its test where the page threw an error, broke its policy or reached for the network."""
    page = tabs.pop() if tabs else _new_tab(browser)
    errors: list[str] = []

    def note_error(error: Error) -> None:
        errors.append(str(error))

    def note_request(request: Request) -> None:
        if _is_elsewhere(request.url):
            errors.append(request.url)

    def note_message(message: ConsoleMessage) -> None:
        if "Content Security Policy" in message.text:
            errors.append(message.text)

    page.on("pageerror", note_error)
    page.on("request", note_request)
    page.on("console", note_message)
    yield page
    page.remove_listener("pageerror", note_error)
    page.remove_listener("request", note_request)
    page.remove_listener("console", note_message)
    try:
        _clear(page)
        tabs.append(page)
    except Error:  # it crashed or was closed: the next test opens another
        page.context.close()
    assert not errors


@pytest.fixture
def own_page(browser: Browser) -> Iterator[Page]:
    """A tab for one test alone, for what cannot be taken back, such as a script that runs before the page's own."""
    page = _new_tab(browser)
    yield page
    page.context.close()


@pytest.fixture(scope="session")
def clock_tab(browser: Browser) -> Iterator[Page]:
    """A tab whose clock can be stopped; it is another, since that cannot be taken back."""
    tab = _new_tab(browser)
    tab.clock.install()
    yield tab
    tab.context.close()


@pytest.fixture
def clocked(clock_tab: Page) -> Iterator[Page]:
    """The tab whose clock can be stopped, going again; it fails its test where the page threw an error."""
    errors: list[str] = []

    def note_error(error: Error) -> None:
        errors.append(str(error))

    clock_tab.on("pageerror", note_error)
    yield clock_tab
    clock_tab.remove_listener("pageerror", note_error)
    clock_tab.unroute_all()
    clock_tab.clock.resume()
    clock_tab.goto("about:blank")
    assert not errors


def _new_tab(browser: Browser) -> Page:
    page = browser.new_context(viewport=VIEWPORT, locale="en-GB", accept_downloads=True).new_page()
    page.set_default_timeout(PATIENCE)
    return page


def _clear(page: Page) -> None:
    """Take back whatever a test did to its tab."""
    for other in page.context.pages:
        if other is not page:
            other.close()
    page.unroute_all()
    page.evaluate("() => { if (location.origin !== 'null') { localStorage.clear(); sessionStorage.clear(); } }")
    page.mouse.move(0, 0)
    page.goto("about:blank")
    page.context.clear_cookies()
    page.context.clear_permissions()
    page.set_viewport_size(VIEWPORT)
    page.emulate_media(color_scheme="light")
    page.set_default_timeout(PATIENCE)


def _is_elsewhere(url: str) -> bool:
    return not url.startswith(("http://localhost", "ws://localhost", "data:", "blob:"))
