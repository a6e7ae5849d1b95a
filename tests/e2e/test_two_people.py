"""Two browsers on a server that listens to the network: a run belongs to the one that started it."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, expect

from pages.ui.language import words
from tests.helpers.browser import started

EN = words("en")
SMALL = "lang=en&d_model=32&n_heads=2&n_layers=1&epochs=40"


@pytest.fixture
def network(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """Start a server that other machines may ask, and yield its address."""
    monkeypatch.setenv("VITRINE_RUNS", str(tmp_path / "runs"))
    monkeypatch.setenv("VITRINE_ADMIN", "a long secret")
    with started(tmp_path / "log", "--server.address", "0.0.0.0") as (address, _):
        yield address


def person(browser: Browser, url: str) -> Page:
    """Return a browser of somebody's own at an address."""
    page = browser.new_context(viewport={"width": 1280, "height": 800}).new_page()
    page.goto(url)
    return page


def stop_button(page: Page):
    """Return the button that stops a run."""
    return page.get_by_role("button", name=EN["run.stop"])


def test_a_run_is_stopped_by_its_maker_or_the_administrator_and_watched_by_others(
    browser: Browser, network: str
) -> None:
    ann = person(browser, f"{network}/train?{SMALL}")
    start = ann.get_by_role("button", name=EN["train.start"])
    start.click(timeout=60_000)
    ann.wait_for_url("**run=**", timeout=60_000)
    expect(stop_button(ann)).to_be_visible(timeout=60_000)
    link = ann.url

    bob = person(browser, link)
    expect(bob.get_by_text(EN["run.of_another"])).to_be_visible(timeout=60_000)
    expect(stop_button(bob)).to_have_count(0)
    assert "vitrine=" not in bob.evaluate("() => document.cookie")  # no script reads who somebody is

    ann.reload()  # another session of the same browser
    expect(stop_button(ann)).to_be_visible(timeout=60_000)

    admin = person(browser, f"{network}/server?lang=en")
    admin.get_by_label(EN["server.secret"]).fill("a guess", timeout=60_000)
    admin.get_by_role("button", name=EN["server.enter"]).click()
    expect(admin.get_by_text(EN["server.wrong"])).to_be_visible()
    admin.get_by_label(EN["server.secret"]).fill("a long secret")
    admin.get_by_role("button", name=EN["server.enter"]).click()
    expect(admin.get_by_text(EN["server.people"])).to_be_visible()
    expect(admin.locator(f"a[href*='{link.partition('run=')[2].partition('&')[0]}']")).to_be_visible()
    admin.goto(link)  # as that link does, in a tab of its own
    expect(stop_button(admin)).to_be_visible(timeout=60_000)

    stop_button(ann).click()
    expect(bob.get_by_text(EN["state.stopped"]).first).to_be_visible(timeout=60_000)
    for page in (ann, bob, admin):
        page.context.close()
