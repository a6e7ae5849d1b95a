"""One server and one browser for all end-to-end tests; each test gets a new page with empty storage."""

import os
from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, Page, sync_playwright

from tests.e2e.serving import browser_path, launch, serving
from tests.paths import ROOT


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Give all end-to-end tests to one worker, so that one browser runs; skip them where no browser can be had.

    With VITRINE_BROWSER=required they fail instead.
    """
    marks = [pytest.mark.xdist_group("browser")]
    if not browser_path() and os.environ.get("VITRINE_BROWSER") != "required":
        marks.append(pytest.mark.skip(reason="no Chromium: install Debian's package chromium for the end-to-end tests"))
    for item in items:
        if item.path.is_relative_to(ROOT / "tests" / "e2e"):
            for mark in marks:
                item.add_marker(mark)


@pytest.fixture(scope="session")
def address(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of a fresh server, whose runs lie in a folder of their own."""
    folder = tmp_path_factory.mktemp("server")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("VITRINE_RUNS", str(folder / "runs"))
        with serving(folder / "log") as address:
            yield address


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    """Headless Chromium."""
    if browser_path() is None:
        pytest.fail("VITRINE_BROWSER=required, but no Chromium was found")
    with sync_playwright() as playwright:
        browser = launch(playwright)
        yield browser
        browser.close()


@pytest.fixture
def page(browser: Browser) -> Iterator[Page]:
    """A new page, which fails its test where the page threw an error or reached for the network."""
    context = browser.new_context(viewport={"width": 1280, "height": 800}, locale="en-GB", accept_downloads=True)
    page = context.new_page()
    errors: list[str] = []
    page.on("pageerror", lambda error: errors.append(str(error)))
    page.on("request", lambda request: errors.append(request.url) if _is_elsewhere(request.url) else None)
    yield page
    context.close()
    assert not errors


def _is_elsewhere(url: str) -> bool:
    return not url.startswith(("http://localhost", "ws://localhost", "data:", "blob:"))
