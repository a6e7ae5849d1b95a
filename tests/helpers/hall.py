"""A lecture in the browser: the projector at a scene, a room that is open, and phones that join it."""

from collections.abc import Iterator
from contextlib import contextmanager

from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser, FrameLocator, Page, Response, ViewportSize, expect

from pages.hall.lectures import Lecture, lectures
from pages.language import words

EN = words("en")
PHONE: ViewportSize = {"width": 360, "height": 640}
MOST_BYTES_OF_A_PHONES_PAGE = 60_000


def lecture_of(language: str = "en", name: str = "twelve_scenes") -> Lecture:
    """Return a shipped lecture."""
    found = lectures(language)[name]
    assert isinstance(found, Lecture)
    return found


def project(page: Page, address: str, scene: int = 1, language: str = "en", name: str = "twelve_scenes") -> None:
    """Open the projector at a scene and wait until its figures are there."""
    page.goto(f"{address}/?lecture={name}&scene={scene}&lang={language}")
    wait_ready(page, scene)


def wait_ready(page: Page, scene: int) -> None:
    """Wait until a scene's figures are there."""
    page.wait_for_selector(f"main.screens[data-ready='{scene}']")


def screen(page: Page) -> FrameLocator:
    """Return the page of the app that the projector shows."""
    return page.frame_locator("iframe.shown")


def notes_of(page: Page) -> Page:
    """Open the lecturer's window with notes; it says yes to whatever it is asked."""
    with page.context.expect_page() as opened:
        page.keyboard.press("n")
    opened.value.on("dialog", lambda dialog: dialog.accept())
    return opened.value


def open_room(page: Page, address: str, scene: int, name: str = "twelve_scenes") -> str:
    """Open a room at a scene and return its code."""
    project(page, address, scene, name=name)
    page.keyboard.press("r")
    expect(page.locator(".join .code")).to_be_visible()
    return page.locator(".join .code").text_content() or ""


def close_room(notes: Page) -> None:
    """Close the room from the window with notes."""
    notes.get_by_role("button", name=EN["projector.close_room"]).click()
    expect(notes.get_by_role("button", name=EN["projector.open_room"])).to_be_visible()


@contextmanager
def phones_of(browser: Browser, count: int, size: ViewportSize = PHONE) -> Iterator[list[Page]]:
    """Yield so many phones, each with cookies of its own."""
    contexts = [
        browser.new_context(viewport=size, has_touch=True, is_mobile=True, locale="en-GB") for _ in range(count)
    ]
    yield [context.new_page() for context in contexts]
    for context in contexts:
        context.close()


def check_light(phone: Page, address: str, ready: str) -> None:
    """Open a phone's page until something is there; check the bytes that came."""
    sizes = list[int]()

    def weigh(response: Response) -> None:
        if not response.url.endswith("/events"):
            sizes.append(len(response.body()))

    phone.on("response", weigh)
    phone.goto(address)
    expect(phone.locator(ready).first).to_be_visible()
    assert sum(sizes) < MOST_BYTES_OF_A_PHONES_PAGE


def check_usable(phone: Page) -> None:
    """Check that a phone's page fits, can be touched and can be heard."""
    assert phone.evaluate("() => document.documentElement.scrollWidth <= innerWidth")
    for height in phone.locator("button, a, input").evaluate_all("(all) => all.map((one) => one.offsetHeight)"):
        assert height >= 48
    found = Axe().run(phone)
    assert found.violations_count == 0, found.generate_report()


def join(phone: Page, address: str, code: str) -> None:
    """Join a room by its code."""
    phone.goto(f"{address}/room")
    phone.get_by_role("textbox").fill(code.lower())
    phone.get_by_role("button", name=EN["phone.enter"]).tap()
    expect(phone.locator("h1")).not_to_be_empty()
    phone.wait_for_selector(".options")
