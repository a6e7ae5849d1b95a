"""A lecture with an audience: a room is opened, phones join and answer; a lecture is taken home as one file."""

import csv
import io
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, expect

from pages.hall.two_rooms import read_room
from pages.language import words
from tests.helpers.browser import download, rest
from tests.helpers.hall import (
    EN,
    check_light,
    check_usable,
    close_room,
    join,
    lecture_of,
    notes_of,
    open_room,
    phones_of,
    wait_ready,
)

MOST_BYTES_OF_A_FILE = 15_000_000
MARKUP = "<img src=x onerror=alert(1)> not a good film"


@pytest.fixture
def phones(browser: Browser) -> Iterator[list[Page]]:
    """Two phones, each with cookies of its own."""
    with phones_of(browser, 2) as phones:
        yield phones


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


@pytest.mark.nightly
def test_a_class_answers_changes_its_mind_and_sees_what_the_model_says(
    own_page: Page, phones: list[Page], address: str
) -> None:
    teacher, (one, other) = own_page, phones
    code = open_room(teacher, address, 8)
    for phone, here in zip(phones, ("1 phone is here", "2 phones are here"), strict=True):
        join(phone, address, code)
        expect(teacher.locator(".join")).to_contain_text(here)
    teacher.keyboard.press("Escape")
    one.locator(".options button").nth(2).tap()
    expect(one.get_by_text("Your answer is in.")).to_be_visible()
    one.locator(".options button").nth(0).tap()
    expect(one.locator(".options button").nth(0)).to_have_class(re.compile("chosen"))
    expect(one.get_by_text("Your answer is in.")).to_be_visible()
    other.locator(".options button").nth(1).tap()
    expect(teacher.locator(".question")).to_contain_text("2 answers from 2 phones")
    teacher.keyboard.press("ArrowDown")
    expect(teacher.locator(".question b")).to_have_text(["50% (1)", "50% (1)", "0% (0)"])
    expect(one.locator(".options b")).to_have_text(["50%", "50%", "0%"])
    expect(one.locator(".options button").first).to_be_disabled()
    teacher.keyboard.press("ArrowDown")
    expect(teacher.locator(".question")).to_contain_text("50% of the class said so")
    expect(one.locator(".told")).to_contain_text("Measured: it hardly moves")
    assert one.locator(".told").inner_text().strip() == teacher.locator(".measured").inner_text().strip()
    one.reload()
    expect(one.locator(".chosen")).to_contain_text("It hardly moves")
    with one.context.expect_page() as opened:
        one.get_by_role("link", name=EN["phone.look"]).tap()
    assert "/feed_forward?" in opened.value.url
    close_room(notes_of(teacher))


@pytest.mark.nightly
def test_phones_follow_the_scenes_and_a_reloaded_lecturer_takes_the_room_up_again(
    own_page: Page, phones: list[Page], address: str
) -> None:
    teacher, phone = own_page, phones[0]
    code = open_room(teacher, address, 8)
    join(phone, address, code)
    for _ in range(2):
        teacher.keyboard.press("ArrowRight")
    expect(phone.locator("h1")).to_have_text("When does it know?")
    phone.context.set_offline(True)
    teacher.keyboard.press("ArrowRight")
    expect(teacher.locator("h1")).to_have_text("The same parts, and it writes")
    teacher.reload()
    wait_ready(teacher, 11)
    expect(teacher.locator(".question")).to_contain_text(code)
    phone.context.set_offline(False)
    expect(phone.locator("h1")).to_have_text("The same parts, and it writes")
    close_room(notes_of(teacher))


def send_a_sentence(page: Page, phone: Page, address: str) -> Page:
    """Open a room at a scene that asks for sentences, send one, and return the window with notes."""
    join(phone, address, open_room(page, address, 12, name="how_an_encoder_learns"))
    phone.get_by_role("textbox").fill(MARKUP)
    phone.get_by_role("button", name=EN["phone.send"]).tap()
    expect(phone.get_by_text("Your answer is in.")).to_be_visible()
    return notes_of(page)


@pytest.mark.nightly
def test_a_sentence_from_the_class_is_text_on_every_screen_and_in_the_table_and_is_run_live(
    own_page: Page, phones: list[Page], address: str, tmp_path: Path
) -> None:
    page, phone = own_page, phones[0]
    notes = send_a_sentence(page, phone, address)
    expect(notes.locator(".sent")).to_contain_text(MARKUP)
    expect(page.locator("body")).not_to_contain_text(MARKUP)
    notes.get_by_role("button", name=EN["projector.pick"]).click()
    expect(page.locator(".question blockquote")).to_have_text(MARKUP)
    expect(phone.locator(".told blockquote")).to_have_text(MARKUP)
    expect(page.frame_locator("iframe.shown").get_by_role("textbox").first).to_have_value(MARKUP)
    steps: list[str] = []
    for moment in ("request", "requestfinished"):
        page.on(moment, lambda request, moment=moment: request.url.endswith("/step") and steps.append(moment))
    page.keyboard.press("ArrowDown")
    page.keyboard.press("ArrowDown")
    expect(phone.locator(".told")).to_contain_text("Measured")
    assert steps[:3] == ["request", "requestfinished", "request"]  # of two at once the older could come last
    assert page.locator(".question img, body > img").count() == 0
    table = download(notes, notes.get_by_role("button", name=EN["projector.csv"]), tmp_path)
    rows = list(csv.DictReader(io.StringIO(table.read_text())))
    assert [(row["answer"], row["count"]) for row in rows] == [(MARKUP, "1")]
    close_room(notes)
    expect(phone.locator("h1")).to_have_text(EN["phone.closed"])


@pytest.mark.nightly
def test_the_file_of_a_room_has_the_classs_answers_and_no_markup_of_theirs(
    own_page: Page, phones: list[Page], at_home: Page, address: str, tmp_path: Path
) -> None:
    page, phone = own_page, phones[0]
    notes = send_a_sentence(page, phone, address)
    page.keyboard.press("Home")
    expect(phone.locator("h1")).to_contain_text("It can read reviews")
    phone.locator(".options button").first.tap()
    expect(phone.get_by_text("Your answer is in.")).to_be_visible()
    notes.set_default_timeout(180_000)
    file = download(notes, notes.get_by_role("button", name=EN["projector.take_home"]), tmp_path)
    close_room(notes)
    at_home.goto(file.as_uri())
    expect(at_home.locator("article").nth(11).locator(".question li")).to_have_text([MARKUP])
    assert at_home.locator("article img").count() == 0
    first = at_home.locator(".question").first
    first.get_by_role("button").click()
    expect(first.locator("li b").first).to_have_text("100% (1)")
    expect(at_home.locator("article").nth(1).locator(".quiet")).to_contain_text("train?")
    assert MARKUP in [row["answer"] for row in read_room(file.read_bytes())]


@pytest.mark.nightly
def test_the_phones_page_is_light_and_can_be_heard(own_page: Page, phones: list[Page], address: str) -> None:
    phone = phones[0]
    code = open_room(own_page, address, 8)
    check_light(phone, f"{address}/room/{code}", ".options")
    check_usable(phone)
    phone.get_by_role("button", name="中文").tap()
    expect(phone.locator("header")).to_contain_text(words("zh")["phone.room"].format(code=code))
    expect(phone.get_by_role("link")).to_have_count(0)  # the screen shows what is asked
    assert phone.evaluate("() => document.documentElement.lang") == "zh"
    close_room(notes_of(own_page))


@pytest.mark.nightly
@pytest.mark.parametrize(("name", "language"), [("twelve_scenes", "en"), ("from_recurrence", "zh")])
def test_a_lecture_opens_anywhere_with_its_figures_alive(
    own_page: Page, at_home: Page, address: str, tmp_path: Path, name: str, language: str
) -> None:
    lecture, said = lecture_of(language, name), words(language)
    own_page.goto(f"{address}/lectures?lang={language}")
    rest(own_page)
    box = own_page.locator(f"[class*='st-key-lecture_{name}']")
    box.get_by_text(said["lectures.take_home"], exact=True).click()
    button = box.get_by_role("button", name=said["lectures.save_file"])
    button.wait_for()
    file = download(own_page, button, tmp_path)
    assert file.stat().st_size < MOST_BYTES_OF_A_FILE
    at_home.goto(file.as_uri())
    expect(at_home.locator("article h2")).to_have_text(
        [f"{number}. {scene.title}" for number, scene in enumerate(lecture.scenes, 1)]
    )
    expect(at_home.locator(".missing")).to_have_count(0)
    questions = at_home.locator(".question")
    expect(questions).to_have_count(sum(scene.question is not None for scene in lecture.scenes))
    for question in questions.all():
        question.get_by_role("button").click()
        expect(question.locator(".measured")).to_contain_text(re.compile(r"[0-9]"))
        expect(question.locator("li.right")).to_have_count(1)
    assert at_home.locator(".chart svg").count() >= 3
    canvas = at_home.locator("canvas.vm-canvas").first
    canvas.scroll_into_view_if_needed()
    area = canvas.bounding_box()
    assert area is not None
    at_home.mouse.move(area["x"] + 0.6 * area["width"], area["y"] + 0.5 * area["height"])
    expect(at_home.locator(".vm .vm-readout").first).to_contain_text(re.compile(r"\d\.\d"))
