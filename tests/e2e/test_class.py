"""The class is the experiment, in the browser: three phones and a projector go through a draw, a guess and a cut."""

import csv
import io
import re
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser, Locator, Page, Response, ViewportSize, expect

from pages.language import words
from tests.helpers.browser import download
from tests.helpers.engine import shipped
from tests.helpers.hall import EN, close_room, lecture_of, notes_of
from transformer_core.analysis.classroom.cuts import cuts
from transformer_core.analysis.classroom.draws import forecast
from transformer_core.prompt import Prompt

PHONE: ViewportSize = {"width": 360, "height": 640}
MOST_BYTES_OF_A_PHONES_PAGE = 60_000
NAME = "you_are_the_model"
SLOW = {"offline": False, "latency": 400, "downloadThroughput": 50_000, "uploadThroughput": 50_000}  # ms, bytes/s
GUESSES = ("They", "saw", "<img src=x onerror=alert(1)>")


@pytest.fixture
def phones(browser: Browser) -> Iterator[list[Page]]:
    """Three phones, each with cookies of its own."""
    contexts = [browser.new_context(viewport=PHONE, has_touch=True, is_mobile=True, locale="en-GB") for _ in range(3)]
    yield [context.new_page() for context in contexts]
    for context in contexts:
        context.close()


def opened(page: Page, address: str, scene: int) -> str:
    """Project a scene of the lecture, open a room and return its code."""
    page.goto(f"{address}/?lecture={NAME}&scene={scene}&lang=en")
    expect(page.locator(".class-screen figure").first).to_be_visible()
    page.keyboard.press("r")
    expect(page.locator(".join .code")).to_be_visible()
    code = page.locator(".join .code").text_content() or ""
    page.keyboard.press("Escape")
    return code


def numbers(row: Locator) -> list[float]:
    """Return the numbers of a bar: the class's, the exact one, and how many."""
    found = [re.sub(r"[^0-9.−-]", "", text).replace("−", "-") for text in row.locator("td.value").all_inner_texts()]
    return [float(text) if text not in ("", "-") else float("nan") for text in found]


def all_draw(teacher: Page, phones: list[Page], link: str) -> None:
    """Let each phone draw twice; one is reloaded and keeps what it drew."""
    tokens = list[str]()
    for phone in phones:
        phone.goto(link)
        for number in range(2):
            phone.get_by_role("button", name="Draw", exact=True).tap()
            expect(phone.locator(".came li")).to_have_count(number + 1)
        tokens += re.findall("“(.*?)”", " ".join(phone.locator(".came li").all_inner_texts()))
    shown = phones[0].locator(".came").inner_text()
    phones[0].reload()
    expect(phones[0].locator(".came li")).to_have_count(2)
    assert phones[0].locator(".came").inner_text() == shown
    expect(teacher.locator(".question")).to_contain_text("6 answers of 3 phones, 3 are here")
    exact = forecast(prompt=Prompt(shipped("gpt"), "Once upon a time, there was a little", 128)).shares(1.0)
    first = teacher.locator(".bars tbody tr").first
    own, softmax, n = numbers(first)
    label = first.locator("th").inner_text().strip("“”")
    assert (own, n) == (pytest.approx(100 * tokens.count(label) / 6, abs=0.05), tokens.count(label))
    assert softmax == pytest.approx(100 * exact[0], abs=0.05)


def all_guess(teacher: Page, phones: list[Page]) -> None:
    """Let each phone guess the first word; one of three is right."""
    for phone, guess in zip(phones, GUESSES, strict=True):
        phone.get_by_label("The next word").fill(guess[:24])
        phone.get_by_role("button", name="70%").tap()
        expect(phone.locator(".came li")).to_have_count(1)
        expect(phone.locator(".came")).to_contain_text("It was “They”")
    expect(teacher.locator(".bars tbody tr").first).to_contain_text("n = 3")
    expect(teacher.locator(".class-screen")).not_to_contain_text("They")
    teacher.keyboard.press("ArrowDown")
    first = teacher.locator(".bars tbody tr").first
    expect(first).to_contain_text("1. They")
    right, wrong = 0.7, 0.3 / (shipped("gpt").config.vocab_size - 1)
    assert numbers(first)[0] == pytest.approx(-np.log2((right + 2 * wrong) / 3), abs=0.006)
    assert teacher.locator(".class-screen img").count() == 0


def all_cut(teacher: Page, phones: list[Page]) -> None:
    """Let each phone foretell a head's worth, and compare the measured board with our own measurement."""
    for phone in phones:
        phone.get_by_role("slider").fill("0.2")
        phone.get_by_role("button", name="Send").tap()
        expect(phone.locator(".came")).to_contain_text("Measured:")
    teacher.keyboard.press("ArrowDown")
    teacher.keyboard.press("ArrowDown")
    expect(teacher.locator("table.board")).to_have_count(2)
    found = cuts(prompt=Prompt(shipped("gpt"), "Lily had a dog. The dog's name was", 128), of="head")
    cells = teacher.locator("table.board").nth(1).locator("tbody td").all_inner_texts()
    assert [float(cell.replace("−", "-")) for cell in cells] == pytest.approx((100 * found.change).tolist(), abs=0.06)


def test_a_class_draws_guesses_and_cuts_and_the_projector_has_its_numbers_beside_the_models(
    own_page: Page, phones: list[Page], address: str, tmp_path: Path
) -> None:
    teacher = own_page
    all_draw(teacher, phones, f"{address}/room/{opened(teacher, address, 1)}")
    teacher.keyboard.press("ArrowRight")
    teacher.keyboard.press("ArrowRight")
    all_guess(teacher, phones)
    teacher.keyboard.press("ArrowRight")
    all_cut(teacher, phones)
    notes = notes_of(teacher)
    table = download(notes, notes.get_by_role("button", name=EN["projector.csv"]), tmp_path)
    rows = list(csv.DictReader(io.StringIO(table.read_text(encoding="utf-8-sig"))))
    counted = {scene: sum(int(row["count"]) for row in rows if row["scene"] == scene) for scene in ("1", "3", "4")}
    assert counted == {"1": 6, "3": 3, "4": 3}
    assert "<img" not in table.read_text()
    close_room(notes)


@pytest.mark.nightly
def test_the_phones_part_is_light_and_can_be_heard(own_page: Page, phones: list[Page], address: str) -> None:
    phone, sizes = phones[0], list[int]()

    def weigh(response: Response) -> None:
        if not response.url.endswith("/events"):
            sizes.append(len(response.body()))

    code = opened(own_page, address, 1)
    phone.on("response", weigh)
    phone.goto(f"{address}/room/{code}")
    for scene, told in enumerate(lecture_of(name=NAME).scenes[:7], 1):
        expect(phone.locator("h1")).to_have_text(told.title)
        expect(phone.locator(".options button").first).to_be_visible()
        if scene == 1:
            assert sum(sizes) < MOST_BYTES_OF_A_PHONES_PAGE
        assert phone.evaluate("() => document.documentElement.scrollWidth <= innerWidth")
        for height in phone.locator("button, a, input").evaluate_all("(all) => all.map((one) => one.offsetHeight)"):
            assert height >= 48
        found = Axe().run(phone)
        assert found.violations_count == 0, found.generate_report()
        own_page.keyboard.press("ArrowRight")
    phone.get_by_role("button", name="中文").tap()
    expect(phone.locator("header")).to_contain_text(words("zh")["phone.room"].format(code=code))
    close_room(notes_of(own_page))


@pytest.mark.nightly
def test_on_a_slow_network_a_phone_that_reloads_in_the_middle_keeps_its_part_and_is_counted_once(
    own_page: Page, phones: list[Page], address: str
) -> None:
    teacher, phone = own_page, phones[0]
    code = opened(teacher, address, 1)
    network = phone.context.new_cdp_session(phone)
    network.send("Network.enable")
    network.send("Network.emulateNetworkConditions", SLOW)
    phone.goto(f"{address}/room/{code}")
    came, counted = phone.locator(".came li"), teacher.locator(".question .joined").last

    def reload_once_counted(answers: int, results: int) -> None:
        """Reload as soon as the server has what was sent, of which the phone has hardly heard."""
        expect(counted).to_have_text(re.compile(rf"^{answers} answers? of 1 phone,"))
        phone.reload()
        expect(came).to_have_count(results)
        assert phone.evaluate("() => document.documentElement.scrollWidth <= innerWidth")

    draw = phone.get_by_role("button", name="Draw", exact=True)
    draw.tap()
    expect(came).to_have_count(1)
    first = came.inner_text()
    draw.tap()
    reload_once_counted(2, 2)
    assert came.first.inner_text() == first
    for scene in (1, 2):
        teacher.keyboard.press("ArrowRight")
        expect(phone.locator("h1")).to_have_text(lecture_of(name=NAME).scenes[scene].title)
    phone.get_by_label("The next word").fill("They")
    phone.get_by_role("button", name="70%").tap()
    reload_once_counted(1, 1)
    expect(came).to_contain_text("It was “They”")
    teacher.keyboard.press("ArrowRight")
    phone.get_by_role("slider").fill("0.2")
    phone.get_by_role("button", name="Send").tap()
    reload_once_counted(1, 2)
    expect(came.first).to_contain_text("Measured:")
    expect(counted).to_have_text("1 answer of 1 phone, 1 is here")
    close_room(notes_of(teacher))


@pytest.mark.nightly
def test_one_person_at_home_does_the_part_in_the_tours_bar(page: Page, address: str) -> None:
    page.goto(f"{address}/gpt?tour={NAME}&scene=1&lang=en&gpt_part=next&model=gpt")
    part = page.frame_locator("iframe[src*='hall/alone']")
    expect(part.locator("body")).to_contain_text("There is no class here: 60 others")
    for number in range(5):
        part.get_by_role("button", name="Draw", exact=True).click()
        expect(part.locator(".came li")).to_have_count(number + 1)
    expect(part.locator(".said")).to_contain_text("n = 305 draws")
