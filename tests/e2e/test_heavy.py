"""Heavy work in a browser: a person sees that it is computed, cancels, asks again, and reads what comes."""

import re

import pytest
from playwright.sync_api import Page, expect

from pages.language import words
from tests.helpers.browser import rest, visit

WAITING = ".await progress"


def height_of(page: Page, selector: str) -> float:
    box = page.locator(selector).first.bounding_box()
    assert box is not None
    return box["height"]


@pytest.mark.nightly
def test_a_training_is_cancelled_and_asked_for_again(page: Page, address: str) -> None:
    said = words("en")
    visit(page, address, "why", why="values", shown="why_values", why_seed="17")
    expect(page.locator(WAITING)).to_be_visible()
    expect(page.locator(".await")).to_contain_text(said["why.trial_running"])
    expect(page.locator(f"{WAITING}[value]")).to_be_visible()  # how far it is
    expect(page.locator(".await")).to_contain_text(re.compile("[0-9]%"))
    page.get_by_role("button", name=said["await.cancel"]).click()
    expect(page.get_by_text(said["await.cancelled"])).to_be_visible()
    expect(page.locator(WAITING)).to_have_count(0)
    page.get_by_role("button", name=said["await.again"], exact=True).click()
    expect(page.locator(WAITING)).to_be_visible()
    page.get_by_role("button", name=said["await.cancel"]).click()
    expect(page.get_by_text(said["await.cancelled"])).to_be_visible()


@pytest.mark.nightly
def test_what_is_asked_for_again_comes_by_itself(page: Page, address: str) -> None:
    said = words("en")
    visit(page, address, "why", why="values", shown="why_values", why_seed="18")
    page.get_by_role("button", name=said["await.cancel"]).click()
    page.get_by_role("button", name=said["await.again"], exact=True).click()
    expect(page.locator("[class*='_judged']")).to_contain_text(re.compile("Measured"))
    expect(page.locator(WAITING)).to_have_count(0)
    expect(page.get_by_test_id("stVegaLiteChart")).to_have_count(3)


@pytest.mark.nightly
def test_a_second_person_sees_a_place_in_the_queue(page: Page, address: str) -> None:
    visit(page, address, "why", why="positions", shown="why_positions", why_seed="16")
    expect(page.locator(WAITING)).to_be_visible()
    other = page.context.new_page()
    visit(other, address, "embeddings", embeddings_part="map", embeddings_count="1250", embeddings_special="on")
    expect(other.locator(".await")).to_contain_text(words("en")["await.queue"].format(place=1))
    assert height_of(other, "[class*=st-key-room_]") > 400  # about that of the map
    expect(other.get_by_test_id("stVegaLiteChart").first).to_be_visible()
    expect(other.locator(WAITING)).to_have_count(0)
    other.close()
    rest(page)
    expect(page.get_by_test_id("stVegaLiteChart")).to_have_count(3)
