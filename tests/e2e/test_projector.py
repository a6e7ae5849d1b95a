"""The projector, as a lecturer uses it: by keys from scene to scene, a question revealed, notes in a second window."""

import re

import pytest
from playwright.sync_api import FrameLocator, Page, ViewportSize, expect

from pages.ui.language import words
from pages.ui.lectures import Lecture, lectures
from tests.helpers.browser import rest

NAME = "twelve_scenes"
LARGE: ViewportSize = {"width": 1920, "height": 1080}
SMALLEST_TEXT, SMALLEST_LABEL = 28, 20  # pixels at 1920 x 1080
# The size of each text that is seen, in pixels of the window, of the page itself and, enlarged, of what it frames.
SIZES = """
(page) => {
  const all = (root) => [...root.querySelectorAll("*")]
    .flatMap((one) => one.shadowRoot ? [one, ...all(one.shadowRoot)] : [one]);
  const said = (one) => [...one.childNodes].some((node) => node.nodeType === 3 && node.data.trim());
  const seen = (one) => one.checkVisibility({ visibilityProperty: true, opacityProperty: true }) &&
    one.getBoundingClientRect().width > 1;
  const silent = ["STYLE", "SCRIPT", "TITLE", "DESC"];
  return all(page.body).filter((one) => said(one) && seen(one) && !silent.includes(one.tagName))
    .map((one) => [parseFloat(getComputedStyle(one).fontSize), one.textContent.trim().slice(0, 40)]);
}
"""


def lecture_of(language: str) -> Lecture:
    found = lectures(language)[NAME]
    assert isinstance(found, Lecture)
    return found


def project(page: Page, address: str, scene: int = 1, language: str = "en", name: str = NAME) -> None:
    page.goto(f"{address}/?lecture={name}&scene={scene}&lang={language}")
    wait_ready(page, scene)


def wait_ready(page: Page, scene: int) -> None:
    page.wait_for_selector(f"main.screens[data-ready='{scene}']", timeout=60_000)


def screen(page: Page) -> FrameLocator:
    return page.frame_locator("iframe.shown")


@pytest.mark.parametrize("language", ["en", "zh"])
def test_the_arrow_keys_go_through_all_scenes(own_page: Page, address: str, language: str) -> None:
    page, lecture = own_page, lecture_of(language)
    project(page, address, language=language)
    for number, scene in enumerate(lecture.scenes, 1):
        wait_ready(page, number)
        expect(page.locator("h1")).to_have_text(scene.title)
        expect(page.locator(".place")).to_contain_text(str(number))
        expect(page.locator("iframe.shown.ready")).to_have_count(1)
        expect(screen(page).locator("[data-shown]").first).to_be_visible(timeout=20_000)
        expect(screen(page).get_by_text("Traceback")).to_have_count(0)
        assert f"scene={number}" in page.url
        page.keyboard.press("ArrowRight")
    expect(page.locator("h1")).to_have_text(lecture.scenes[-1].title)


def test_a_clicker_home_end_and_numbers_find_their_scene(own_page: Page, address: str) -> None:
    page, scenes = own_page, lecture_of("en").scenes
    project(page, address)
    for key, number in (("PageDown", 2), ("PageUp", 1), ("End", 12), ("Home", 1), (" ", 2), ("ArrowLeft", 1), ("7", 7)):
        page.keyboard.press(key)
        expect(page.locator("h1")).to_have_text(scenes[number - 1].title)
    page.wait_for_timeout(800)
    page.keyboard.press("1")
    page.keyboard.press("0")
    expect(page.locator("h1")).to_have_text(scenes[9].title)
    page.keyboard.press("b")
    expect(page.locator(".dark")).to_be_visible()
    page.keyboard.press("b")
    expect(page.locator(".dark")).to_be_hidden()


def test_the_question_is_asked_and_then_answered_by_the_model(own_page: Page, address: str) -> None:
    page = own_page
    project(page, address, 8)
    expect(page.locator(".question li")).to_have_count(3)
    expect(page.locator(".question li.right")).to_have_count(0)
    covered = screen(page).locator("i.covered")
    expect(covered.first).to_be_attached()
    page.keyboard.press("Enter")
    expect(page.locator(".measured")).to_contain_text("Measured", timeout=30_000)
    expect(page.locator(".question li.right")).to_have_count(1)
    expect(covered).to_have_count(0)
    page.keyboard.press("ArrowUp")
    expect(page.locator(".measured")).to_have_count(0)


def test_what_is_typed_on_the_projector_is_run_and_steps_no_scene(own_page: Page, address: str) -> None:
    page = own_page
    project(page, address)
    box = screen(page).get_by_role("textbox").first
    verdict = screen(page).locator("[data-verdict]").first
    before = verdict.inner_text()
    box.fill("")
    box.press_sequentially("A bad, bad, bad film 12")
    expect(verdict).not_to_have_text(before)
    assert box.input_value() == "A bad, bad, bad film 12"
    assert "scene=1" in page.url
    screen(page).get_by_test_id("stMain").focus()
    page.keyboard.press("ArrowRight")
    expect(page.locator("h1")).to_have_text(lecture_of("en").scenes[1].title)


def test_the_window_with_notes_follows_and_leads(own_page: Page, address: str) -> None:
    page, scenes = own_page, lecture_of("en").scenes
    project(page, address)
    with page.context.expect_page() as opened:
        page.keyboard.press("n")
    notes = opened.value
    expect(notes.locator("h1")).to_contain_text(scenes[0].title)
    expect(notes.locator(".notes")).to_contain_text("Let the class vote")
    expect(notes.locator(".following")).to_contain_text(scenes[1].title)
    expect(notes.locator(".clock")).to_contain_text(re.compile(r"\d\d:\d\d"))
    page.keyboard.press("ArrowRight")
    expect(notes.locator("h1")).to_contain_text(scenes[1].title)
    notes.get_by_role("button", name=words("en")["projector.next"]).click()
    expect(page.locator("h1")).to_have_text(scenes[2].title)
    notes.get_by_role("button", name=words("en")["projector.reveal"], exact=True).click()
    expect(page.locator(".measured")).to_contain_text("Measured", timeout=30_000)
    expect(notes.locator(".measured")).to_contain_text("Measured")


@pytest.mark.parametrize("scene", [1, 2, 3, 5, 6, 12])
def test_the_last_row_can_read_it(own_page: Page, address: str, scene: int) -> None:
    page = own_page
    page.set_viewport_size(LARGE)
    project(page, address, scene)
    page.wait_for_timeout(1_500)  # until figures that came late have found their size
    for size, text in page.evaluate(f"({SIZES})(document)"):
        assert size >= SMALLEST_TEXT, text
    zoom = page.evaluate("() => document.querySelector('iframe.shown').contentWindow.devicePixelRatio")
    for size, text in page.evaluate(f"({SIZES})(document.querySelector('iframe.shown').contentDocument)"):
        assert size * zoom >= SMALLEST_LABEL - 0.5, text


def test_a_lecture_that_is_not_there_is_named(own_page: Page, address: str) -> None:
    answer = own_page.goto(f"{address}/?lecture=<b>none</b>&lang=en")
    assert answer is not None
    assert answer.status == 404
    assert "there is no lecture <b>none</b>" in own_page.locator("body").inner_text()


def test_the_page_of_lectures_leads_to_the_projector(own_page: Page, address: str) -> None:
    own_page.goto(f"{address}/lectures?lang=en")
    rest(own_page)
    link = own_page.locator(f"[class*='st-key-project-{NAME}'] a")
    assert link.get_attribute("href") == f"./?lecture={NAME}&scene=1&lang=en"
    with own_page.context.expect_page() as opened:
        link.click()
    expect(opened.value.locator("h1")).to_have_text(lecture_of("en").scenes[0].title)
