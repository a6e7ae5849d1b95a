"""A lecture with an audience: the lecturer opens a room, phones join by its code, answer, and see what comes of it."""

import csv
import io
import os
import signal
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser, Page, Response, ViewportSize, expect

from pages.ui.language import words
from tests.e2e.test_projector import project, wait_ready
from tests.helpers.browser import started

PHONE: ViewportSize = {"width": 360, "height": 640}
MOST_BYTES = 60_000


@pytest.fixture
def phones(browser: Browser) -> Iterator[list[Page]]:
    """Two phones, each with cookies of its own."""
    contexts = [browser.new_context(viewport=PHONE, has_touch=True, is_mobile=True, locale="en-GB") for _ in range(2)]
    yield [context.new_page() for context in contexts]
    for context in contexts:
        context.close()


@pytest.fixture
def teacher(own_page: Page, address: str) -> Iterator[Page]:
    """The projector at a question, with a room that is open; closed at the end."""
    own_page.on("dialog", lambda dialog: dialog.accept())
    open_room(own_page, address, 8)
    yield own_page
    with suppress(Exception):
        close_room(own_page)


def open_room(page: Page, address: str, scene: int, name: str = "twelve_scenes") -> None:
    project(page, address, scene, name=name)
    page.keyboard.press("r")
    expect(page.locator(".join .code")).to_be_visible()


def close_room(page: Page) -> None:
    with page.context.expect_page() as opened:
        page.keyboard.press("n")
    notes = opened.value
    notes.on("dialog", lambda dialog: dialog.accept())
    notes.get_by_role("button", name=words("en")["projector.close_room"]).click()
    expect(notes.get_by_role("button", name=words("en")["projector.open_room"])).to_be_visible()
    notes.close()


def code_of(page: Page) -> str:
    return page.locator(".join .code").text_content() or ""


def join(phone: Page, address: str, code: str) -> None:
    phone.goto(f"{address}/room")
    phone.get_by_role("textbox").fill(code.lower())
    phone.get_by_role("button", name=words("en")["phone.enter"]).tap()
    expect(phone.locator("h1")).not_to_be_empty()
    phone.wait_for_selector(".options")


def test_a_class_answers_changes_its_mind_and_sees_what_the_model_says(
    teacher: Page, phones: list[Page], address: str
) -> None:
    one, other = phones
    code = code_of(teacher)
    for phone in phones:
        join(phone, address, code)
    expect(teacher.locator(".join")).to_contain_text("2 phones")
    teacher.keyboard.press("Escape")
    one.locator(".options button").nth(2).tap()
    expect(one.get_by_text("Your answer is in.")).to_be_visible()
    one.locator(".options button").nth(0).tap()
    expect(one.get_by_text("Sending")).to_be_visible()
    expect(one.get_by_text("Your answer is in.")).to_be_visible()
    other.locator(".options button").nth(1).tap()
    expect(teacher.locator(".question")).to_contain_text("2 answers from 2 phones")
    expect(teacher.locator(".question b")).to_have_count(0)
    expect(one.locator(".options b")).to_have_count(0)
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
        one.get_by_role("link", name=words("en")["phone.look"]).tap()
    assert "/feed_forward?" in opened.value.url


def test_phones_follow_the_scenes_and_a_reloaded_lecturer_takes_the_room_up_again(
    teacher: Page, phones: list[Page], address: str
) -> None:
    phone, code = phones[0], code_of(teacher)
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
    expect(phone.locator("h1")).to_have_text("The same parts, and it writes", timeout=30_000)


def test_a_sentence_from_the_class_is_shown_as_text_and_run_live(
    own_page: Page, phones: list[Page], address: str
) -> None:
    page, phone, markup = own_page, phones[0], "<img src=x onerror=alert(1)> not a good film"
    open_room(page, address, 12, name="how_an_encoder_learns")
    join(phone, address, code_of(page))
    phone.get_by_role("textbox").fill(markup)
    phone.get_by_role("button", name=words("en")["phone.send"]).tap()
    expect(phone.get_by_text("Your answer is in.")).to_be_visible()
    with page.context.expect_page() as opened:
        page.keyboard.press("n")
    notes = opened.value
    notes.on("dialog", lambda dialog: dialog.accept())
    expect(notes.locator(".sent")).to_contain_text(markup)
    expect(page.locator("body")).not_to_contain_text(markup)
    notes.get_by_role("button", name=words("en")["projector.pick"]).click()
    expect(page.locator(".question blockquote")).to_have_text(markup)
    expect(phone.locator(".told blockquote")).to_have_text(markup)
    box = page.frame_locator("iframe.shown").get_by_role("textbox").first
    expect(box).to_have_value(markup, timeout=30_000)
    page.keyboard.press("ArrowDown")
    page.keyboard.press("ArrowDown")
    expect(phone.locator(".told")).to_contain_text("Measured")
    assert page.locator(".question img, body > img").count() == 0
    with notes.expect_download() as coming:
        notes.get_by_role("button", name=words("en")["projector.csv"]).click()
    rows = list(csv.DictReader(io.StringIO(Path(coming.value.path()).read_text())))
    assert [(row["answer"], row["count"]) for row in rows] == [(markup, "1")]
    notes.get_by_role("button", name=words("en")["projector.close_room"]).click()
    expect(phone.locator("h1")).to_have_text(words("en")["phone.closed"])


def test_only_the_lecturer_steps_and_a_wrong_code_is_answered_slowly(teacher: Page, address: str) -> None:
    request, code = teacher.request, code_of(teacher)
    refused = request.post(f"{address}/room/{code}/step", data={"secret": "guessed", "scene": 1, "stage": "asked"})
    assert refused.status == 404
    for path in ("lecturer", "answers", "close", "pick", "enter"):
        assert request.post(f"{address}/room/{code}/{path}", data={"secret": "guessed"}).status == 404
    took = teacher.evaluate(
        "async (path) => { const began = performance.now(); await fetch(path); return performance.now() - began; }",
        "./room/AAAA/events",
    )
    assert took >= 900
    expect(teacher.locator("h1")).to_have_text("Each word by itself: the feed-forward layer")
    for bad in (b"[1]", b"{", b"x" * 10_000):
        assert request.post(f"{address}/room/open", data=bad).status in (400, 413)
    assert request.post(f"{address}/room/open", data={"lecture": "none"}).status == 404


def test_the_phones_page_is_light_and_can_be_heard(teacher: Page, phones: list[Page], address: str) -> None:
    phone, sizes = phones[0], list[int]()

    def weigh(response: Response) -> None:
        if not response.url.endswith("/events"):
            sizes.append(len(response.body()))

    phone.on("response", weigh)
    phone.goto(f"{address}/room/{code_of(teacher)}")
    phone.wait_for_selector(".options")
    assert sum(sizes) < MOST_BYTES
    assert phone.evaluate("() => document.documentElement.scrollWidth <= innerWidth")
    for height in phone.locator("button, a").evaluate_all("(all) => all.map((one) => one.offsetHeight)"):
        assert height >= 48
    found = Axe().run(phone)
    assert found.violations_count == 0, found.generate_report()
    phone.get_by_role("button", name="中文").tap()
    expect(phone.get_by_role("link")).to_have_text(words("zh")["phone.look"])
    assert phone.evaluate("() => document.documentElement.lang") == "zh"


def test_a_server_that_was_killed_goes_on_with_its_rooms(
    own_page: Page, phones: list[Page], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("VITRINE_ROOMS", str(tmp_path / "rooms.sqlite3"))
    phone = phones[0]
    with started(tmp_path / "log") as (address, process):
        open_room(own_page, address, 8)
        join(phone, address, code_of(own_page))
        phone.locator(".options button").first.tap()
        expect(phone.get_by_text("Your answer is in.")).to_be_visible()
        own_page.keyboard.press("ArrowRight")
        expect(phone.locator("h1")).to_have_text("What holds it together: residual and norm")
        link, code = own_page.url, code_of(own_page)
        os.kill(process, signal.SIGKILL)
    with started(tmp_path / "log") as (again, _):
        own_page.goto(link.replace(address, again))
        wait_ready(own_page, 9)
        expect(own_page.locator(".question")).to_contain_text(code)
        phone.goto(f"{again}/room/{code}")
        expect(phone.locator("h1")).to_have_text("What holds it together: residual and norm")
        own_page.keyboard.press("ArrowLeft")
        own_page.keyboard.press("ArrowDown")
        expect(own_page.locator(".question b").first).to_have_text("100% (1)")
