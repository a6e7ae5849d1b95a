"""The tour, as one person takes it: from Home's first button through all scenes, off the way and back."""

import re

import pytest
from playwright.sync_api import Page, expect

from pages.ui.language import words
from pages.ui.lectures import Lecture, lectures
from tests.helpers.browser import rest, type_text, visit, wait_painted


def scenes_of(language: str) -> Lecture:
    found = lectures(language)["twelve_scenes"]
    assert isinstance(found, Lecture)
    return found


@pytest.mark.parametrize("language", ["en", "zh"])
def test_all_scenes_from_home_to_the_last(own_page: Page, address: str, language: str) -> None:
    page, lecture = own_page, scenes_of(language)
    visit(page, address, "", lang=language)
    page.locator(".st-key-tour_begin button").click()
    bar = page.locator(".st-key-tour")
    for number, scene in enumerate(lecture.scenes, 1):
        expect(bar).to_contain_text(scene.title)
        expect(page.get_by_role("textbox").first).to_have_value(scene.state["text"])
        page.wait_for_url(re.compile(rf"/{'' if scene.page == 'home' else scene.page}\?.*scene={number}\b"))
        rest(page)
        expect(page.get_by_text("Traceback")).to_have_count(0)
        if scene.question is not None:
            bar.locator(f".st-key-show_tour_{number} button").click()
            expect(bar).to_contain_text("Measured" if language == "en" else "测得")
        following = bar.locator(".st-key-tour_next button")
        if number < len(lecture.scenes):
            following.click()
        else:
            expect(following).to_be_disabled()
    bar.locator(".st-key-tour_leave button").click()
    expect(bar).to_have_count(0)
    assert "tour=" not in page.url


def test_a_person_steps_off_plays_and_steps_back_on(own_page: Page, address: str) -> None:
    page, scene = own_page, scenes_of("en").scenes[5]
    visit(page, address, "attention", lang="en", tour="twelve_scenes", scene="6", text=scene.state["text"])
    wait_painted(page, f"0.0|{scene.state['text']}")
    type_text(page, "A text of my own")
    wait_painted(page, "0.0|A text of my own")
    page.get_by_role("radio", name="2", exact=True).first.click()
    wait_painted(page, "2.0|A text of my own")
    page.get_by_role("button", name=words("en")["nav.input"]).click()
    page.get_by_role("menuitem", name=words("en")["nav.masks"]).click()
    expect(page.locator(".st-key-tour")).to_contain_text(scene.title)
    page.locator(".st-key-tour_again button").click()
    wait_painted(page, f"0.0|{scene.state['text']}")
    expect(page.get_by_role("textbox").first).to_have_value(scene.state["text"])
    page.go_back()
    expect(page.locator(".st-key-tour")).to_contain_text(scene.title)


def test_a_lecture_begins_a_run_and_comes_back_to_it(own_page: Page, address: str) -> None:
    page, name = own_page, "how_an_encoder_learns"
    lecture = lectures("en")[name]
    assert isinstance(lecture, Lecture)
    small = "preset=quick&examples=200&held_out=100&epochs=1&frames=4"
    page.goto(f"{address}/train?{small}&lang=en&tour={name}&scene=2")
    page.get_by_role("button", name="Start training").click()
    page.wait_for_url(re.compile(r"[?&]run="), timeout=60_000)
    run = re.search(r"[?&]run=([a-z0-9]+)", page.url)
    assert run is not None
    bar = page.locator(".st-key-tour")
    for scene in lecture.scenes[2:7]:
        bar.locator(".st-key-tour_next button").click()
        expect(bar).to_contain_text(scene.title)
    assert lecture.scenes[6].state["run"] == "newest"
    page.wait_for_url(re.compile(rf"/train\?.*run={run[1]}"))
    expect(page.get_by_role("button", name="Export")).to_be_visible(timeout=60_000)
