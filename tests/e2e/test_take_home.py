"""A lecture is taken home: one file, opened in a fresh browser without any network."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, expect

from pages.ui.language import words
from pages.ui.lectures import Lecture, lectures
from tests.e2e.test_projector import project
from tests.e2e.test_room import code_of, join
from tests.helpers.browser import rest

MOST_BYTES = 15_000_000
MARKUP = "<img src=x onerror=alert(1)>"


@pytest.fixture
def at_home(browser: Browser) -> Iterator[Page]:
    """A fresh browser without a network, which fails the test where the file wants one or throws an error."""
    context = browser.new_context(offline=True, locale="en-GB")
    page, wrong = context.new_page(), list[str]()
    page.on("pageerror", lambda error: wrong.append(str(error)))

    def note(url: str) -> None:
        if not url.startswith(("file:", "data:", "blob:")):
            wrong.append(url)

    page.on("request", lambda request: note(request.url))
    page.on("dialog", lambda dialog: wrong.append(dialog.message))
    yield page
    context.close()
    assert not wrong


def saved_from_the_page(page: Page, address: str, name: str, folder: Path, language: str) -> Path:
    page.goto(f"{address}/lectures?lang={language}")
    rest(page)
    box = page.locator(f"[class*='st-key-lecture_{name}']")
    box.get_by_text(words(language)["lectures.take_home"], exact=True).click()
    button = box.get_by_role("button", name=words(language)["lectures.save_file"])
    button.wait_for(timeout=120_000)
    with page.expect_download() as coming:
        button.click()
    file = folder / "lecture.html"
    coming.value.save_as(file)
    return file


@pytest.mark.parametrize(("name", "language"), [("twelve_scenes", "en"), ("from_recurrence", "zh")])
def test_a_lecture_opens_anywhere_with_its_figures_alive(
    own_page: Page, at_home: Page, address: str, tmp_path: Path, name: str, language: str
) -> None:
    lecture = lectures(language)[name]
    assert isinstance(lecture, Lecture)
    file = saved_from_the_page(own_page, address, name, tmp_path, language)
    assert file.stat().st_size < MOST_BYTES
    at_home.goto(file.as_uri())
    expect(at_home.locator("article")).to_have_count(len(lecture.scenes))
    expect(at_home.locator("article h2")).to_have_text(
        [f"{number}. {scene.title}" for number, scene in enumerate(lecture.scenes, 1)]
    )
    expect(at_home.locator(".quiet")).to_have_count(0)
    questions = at_home.locator(".question")
    asked = [scene for scene in lecture.scenes if scene.question is not None]
    expect(questions).to_have_count(len(asked))
    for number in range(len(asked)):
        questions.nth(number).get_by_role("button").click()
        expect(questions.nth(number).locator(".measured")).to_contain_text(re.compile(r"[0-9]"))
        expect(questions.nth(number).locator("li.right")).to_have_count(1)
    assert at_home.locator(".chart svg").count() >= 3
    canvas = at_home.locator("canvas.vm-canvas").first
    canvas.scroll_into_view_if_needed()
    box = canvas.bounding_box()
    assert box is not None
    at_home.mouse.move(box["x"] + 0.6 * box["width"], box["y"] + 0.5 * box["height"])
    expect(at_home.locator(".vm .vm-readout").first).to_contain_text(re.compile(r"\d\.\d"))


def test_the_file_of_a_room_has_the_classs_answers_and_no_markup_of_theirs(
    own_page: Page, at_home: Page, browser: Browser, address: str, tmp_path: Path
) -> None:
    page = own_page
    project(page, address, 12, name="how_an_encoder_learns")
    page.keyboard.press("r")
    expect(page.locator(".join .code")).to_be_visible()
    context = browser.new_context(viewport={"width": 390, "height": 844}, has_touch=True, locale="en-GB")
    phone = context.new_page()
    join(phone, address, code_of(page))
    phone.get_by_role("textbox").fill(MARKUP)
    phone.get_by_role("button", name=words("en")["phone.send"]).tap()
    expect(phone.get_by_text("Your answer is in.")).to_be_visible()
    page.keyboard.press("Home")
    expect(phone.locator("h1")).to_contain_text("It can read reviews")
    phone.locator(".options button").first.tap()
    expect(phone.get_by_text("Your answer is in.")).to_be_visible()
    context.close()
    with page.context.expect_page() as opened:
        page.keyboard.press("n")
    notes = opened.value
    with notes.expect_download(timeout=180_000) as coming:
        notes.get_by_role("button", name=words("en")["projector.take_home"]).click()
    file = tmp_path / "lecture.html"
    coming.value.save_as(file)
    notes.on("dialog", lambda dialog: dialog.accept())
    notes.get_by_role("button", name=words("en")["projector.close_room"]).click()
    expect(notes.get_by_role("button", name=words("en")["projector.open_room"])).to_be_visible()
    at_home.goto(file.as_uri())
    expect(at_home.locator("article").nth(11).locator(".question li")).to_have_text([MARKUP])
    assert at_home.locator("article img").count() == 0
    first = at_home.locator(".question").first
    first.get_by_role("button").click()
    expect(first.locator("li b").first).to_have_text("100% (1)")
    expect(at_home.locator("article").nth(1).locator(".quiet")).to_contain_text("train?")
