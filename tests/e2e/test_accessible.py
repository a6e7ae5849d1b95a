"""Everybody can use every page: contrast, names, roles and keyboard, checked by axe-core in the browser."""

import json

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser

from pages.ui.navigation import ICONS
from tests.e2e.serving import settle

RULES = {"runOnly": {"type": "tag", "values": ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa"]}}


def violations(page) -> list[str]:
    """Return what axe-core finds against WCAG 2.1 AA: rule, element and reason."""
    found = Axe().run(page, options=RULES).response["violations"]
    return [
        f"{rule['id']}: {json.dumps(node['target'])} {node['failureSummary']}"
        for rule in found
        for node in rule["nodes"]
    ]


@pytest.mark.parametrize(("language", "scheme"), [("en", "light"), ("zh", "dark")])
@pytest.mark.parametrize("name", ICONS)
def test_axe_finds_nothing(browser: Browser, address: str, name: str, language: str, scheme: str) -> None:
    context = browser.new_context(viewport={"width": 1280, "height": 900}, color_scheme=scheme)
    page = context.new_page()
    page.goto(f"{address}/{'' if name == 'home' else name}?lang={language}")
    page.get_by_role("heading").first.wait_for(timeout=60_000)
    settle(page)
    page.wait_for_timeout(1_000)
    found = violations(page)
    context.close()
    assert not found, "\n".join(found)
