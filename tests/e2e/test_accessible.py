"""Everybody can use every page: contrast, names, roles and keyboard, checked by axe-core in the browser."""

import json

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Page

from pages.ui.navigation import ICONS
from tests.helpers.browser import rest

RULES = {
    "runOnly": {"type": "tag", "values": ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa"]},
    "resultTypes": ["violations"],
}


def violations(page: Page) -> list[str]:
    """Return what axe-core finds against WCAG 2.1 AA: rule, element and reason."""
    found = Axe().run(page, options=RULES).response["violations"]
    return [
        f"{rule['id']}: {json.dumps(node['target'])} {node['failureSummary']}"
        for rule in found
        for node in rule["nodes"]
    ]


@pytest.mark.parametrize(("language", "scheme"), [("en", "light"), ("zh", "dark")])
@pytest.mark.parametrize("name", ICONS)
def test_axe_finds_nothing(page: Page, address: str, name: str, language: str, scheme: str) -> None:
    page.set_viewport_size({"width": 1280, "height": 900})
    page.emulate_media(color_scheme=scheme)
    page.goto(f"{address}/{'' if name == 'home' else name}?lang={language}")
    page.get_by_role("heading").first.wait_for(timeout=60_000)
    rest(page)
    found = violations(page)
    assert not found, "\n".join(found)
