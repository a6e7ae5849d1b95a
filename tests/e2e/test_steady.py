"""What a person does moves nothing but what it should: typing, taps, two fingers, the pointer on a term."""

import re
from collections.abc import Iterator
from urllib.parse import parse_qs, urlparse

import pytest
from playwright.sync_api import Browser, Page, ViewportSize, expect

from pages.language import words as words_of
from tests.helpers import nightly_but
from tests.helpers.browser import PAGES, low, rest, settle, type_text, visit
from tests.helpers.hall import phones_of

PHONE: ViewportSize = {"width": 390, "height": 844}
RECORD = """
() => {
  const main = document.querySelector(".stMainBlockContainer");
  const box = (one) => one.getBoundingClientRect();
  window.pictureOf = () => pictures().map((one) =>
    one.matches("canvas") ? one.toDataURL() : one.outerHTML + one.textContent).join("|");
  window.frames_ = [];
  const look = () => {
    const tops = {};
    const scrolled = document.querySelector("[data-testid=stMain]").scrollTop;
    const picture = firstPicture();
    if (picture) tops.picture = box(picture).top + scrolled;
    const above = main.querySelectorAll("h2, [data-testid=stTextInput], [data-testid=stButtonGroup]");
    [...above].filter((one) => box(one).height).forEach((one, place) => {  // without what an older run left, unseen
      if (picture && box(one).bottom <= box(picture).top) tops[place] = box(one).top + scrolled;
    });
    const faded = [...main.querySelectorAll("[data-stale=true]")].filter((one) => getComputedStyle(one).opacity < 1);
    const height = box(main.querySelector(".stVerticalBlock")).height;
    window.frames_.push({ tops, height, faded: faded.length, pictures: pictures().length });
    window.looking = requestAnimationFrame(look);
  };
  look();
}
"""
STOP = "() => { cancelAnimationFrame(window.looking); return window.frames_; }"
MOST_DIP = 40


def deepest_dip(heights: list[float]) -> float:
    """Return by how much a height fell that came back later."""
    deepest, before = 0.0, heights[0]
    for place, height in enumerate(heights):
        before = max(before, height)
        deepest = max(deepest, min(before, max(heights[place:])) - height)
    return deepest


@pytest.mark.parametrize("name", nightly_but(["", *PAGES], ["attention"]))
def test_typing_moves_nothing_and_the_picture_on_the_first_screen_follows(page: Page, address: str, name: str) -> None:
    visit(page, address, name)
    rest(page)
    wrong = low(page, name, first_part=True)
    page.evaluate(RECORD)
    drawn = page.evaluate("() => window.pictureOf()")
    page.get_by_role("textbox").first.press("End")
    page.keyboard.type(" and bad", delay=50)
    page.wait_for_function("(drawn) => window.pictureOf() !== drawn", arg=drawn, polling=100)
    rest(page)
    if page.evaluate("() => window.pictureOf()") == drawn:
        wrong.append("the picture does not follow the sentence")
    frames = page.evaluate(STOP)
    dip = deepest_dip([frame["height"] for frame in frames])
    if dip > MOST_DIP:
        wrong.append(f"the page fell by {dip:.0f} px and came back")
    for place in frames[0]["tops"]:
        tops = [frame["tops"].get(place) for frame in frames]
        if None in tops or max(tops) - min(tops) > 2:
            wrong.append(f"{place} went away or moved: {sorted(set(map(str, tops)))[:4]}")
    if any(frame["faded"] for frame in frames):
        wrong.append("something turned grey")
    assert not wrong, "\n".join(wrong)


LETTERS = " and then it was good after all"
TYPINGS = [(name, time) for name in PAGES for time in range(10)]


@pytest.mark.parametrize(("name", "time"), nightly_but(TYPINGS, [("bert", 0)]))
def test_no_letter_of_what_is_typed_fast_on_a_fresh_page_is_lost(
    page: Page, address: str, name: str, time: int
) -> None:
    page.goto(f"{address}/{name}")
    box = page.get_by_role("textbox").first
    box.press("End")
    before = box.input_value()
    page.keyboard.type(LETTERS, delay=5 * time)
    page.wait_for_url(lambda url: parse_qs(urlparse(url).query).get("text") == [before + LETTERS])
    rest(page)
    assert box.input_value() == before + LETTERS


WATCH = """
() => {
  window.watching?.disconnect();
  window.shift = 0;
  window.watching = new PerformanceObserver((list) => {
    for (const { value } of list.getEntries()) window.shift += value; // typing counts, too: hadRecentInput is no excuse
  });
  window.watching.observe({ type: "layout-shift", buffered: false });
}
"""
FILM = ("The film was {} and the story was {}.", [("bad", "good"), ("great", "poor"), ("dull", "fun")])
HORSE = ("A man in a {} shirt is riding a {}.", [("blue", "bike"), ("green", "horse"), ("red", "bus")])
TEN_WORDS = " and then the man was very good to the dog"
MOST_SHIFT = {  # of parts whose own words change with the sentence's, beside numbers: with other words, with ten more
    ("encoder", "tokens"): (0.002, 0.004),
    ("encoder", "edit"): (0.002, 0.004),
    ("bert", "fill"): (0.003, 0.003),
    ("gpt", "next"): (0.0, 0.001),
    ("translation", "steps"): (0.0005, 0.001),
    ("home", ""): (0.003, 0.003),
    ("encoder", "layers"): (0.0005, 0.004),
    **{("encoder", part): (0.0, 0.004) for part in ("sum", "agree", "sure")},
    **{("attention", part): (0.0, 0.0) for part in ("heads", "arcs", "flow", "effect")},
    ("attention", "tendencies"): (0.001, 0.02),
    ("masks", "paint"): (0.0, 0.0),
    ("masks", "batch"): (0.0, 0.0),
    ("embeddings", "sentence"): (0.0, 0.0),
}


def shifted(page: Page, text: str) -> float:
    """Return how far things moved since WATCH, as the browser weighs it, once the page has run with this text."""
    said = "(text) => new URLSearchParams(location.search).get('text') === text"  # the server writes the link
    page.wait_for_function(said, arg=text)
    rest(page)
    return page.evaluate("() => window.shift")


@pytest.mark.nightly
@pytest.mark.parametrize(("name", "part"), MOST_SHIFT)
def test_where_only_numbers_change_nothing_changes_its_place(page: Page, address: str, name: str, part: str) -> None:
    sentence, changes = HORSE if name in ("bert", "translation") else FILM
    query = {"text": sentence.format(*changes[-1]), "lang": "en"} | ({f"{name}_part": part} if part else {})
    visit(page, address, "" if name == "home" else name, **query)
    rest(page)
    page.evaluate(WATCH)
    with_others = 0.0
    for words in changes:
        type_text(page, sentence.format(*words))
        with_others = shifted(page, sentence.format(*words))
    page.evaluate(WATCH)
    page.get_by_role("textbox").first.press("End")
    page.keyboard.type(TEN_WORDS, delay=60)
    with_more = shifted(page, sentence.format(*changes[-1]) + TEN_WORDS)
    most_with_others, most_with_more = MOST_SHIFT[name, part]
    assert with_others <= most_with_others
    assert with_more <= most_with_more


@pytest.mark.nightly
def test_a_component_stays_until_its_place_is_gone(page: Page, address: str) -> None:
    visit(page, address, "attention")
    page.locator(".vm").first.wait_for()
    left = page.evaluate(
        """async () => {
          const place = [...document.querySelectorAll("*")].find((one) => one.shadowRoot?.querySelector(".vm"));
          const module = [...document.querySelectorAll("script[src*=matrix]")].pop().src;
          const { release } = await import(new URL("../kit.js", module));
          const there = () => Boolean(place.shadowRoot.querySelector(".vm"));
          release(place.shadowRoot);
          const stayed = there();
          place.remove();
          release(place.shadowRoot);
          return [stayed, there()];
        }"""
    )
    assert left == [True, False]


COVERED = [
    ("feed_forward", {"feed_forward_part": "dead"}, "feed_forward_dead", ".role-mark"),
    ("encoder", {"encoder_part": "tokens"}, "encoder_tokens", ".vm-canvas"),
    ("masks", {"masks_part": "cheat"}, "masks_cheat", ".mark-line"),  # a training that nobody asked for yet
]


@pytest.mark.parametrize(("path", "query", "name", "mark"), nightly_but(COVERED, COVERED[:1]))
def test_one_tap_shows_a_covered_picture_where_it_stands(
    page: Page, address: str, path: str, query: dict[str, str], name: str, mark: str
) -> None:
    visit(page, address, path, **query)
    picture = page.locator(f".st-key-cover_{name}")
    judged = page.locator(f".st-key-cover_{name}_judged")
    first = picture.locator(mark).first
    first.wait_for(state="attached")
    assert float(picture.evaluate("it => getComputedStyle(it).opacity")) < 1
    assert "blur" in first.evaluate("it => getComputedStyle(it).filter")
    assert picture.evaluate("it => getComputedStyle(it).pointerEvents") == "none"
    assert not re.search("[a-mo-z0-9]", judged.inner_text().lower())
    settle(page)
    above = judged.bounding_box()
    place = picture.bounding_box()
    page.get_by_role("button", name="Show me").first.click()
    expect(judged).to_contain_text("Measured:")
    expect(picture).to_have_css("opacity", "1")
    assert "blur" not in first.evaluate("it => getComputedStyle(it).filter")
    settle(page)
    assert above is not None
    assert place is not None
    now_above, now = judged.bounding_box(), picture.bounding_box()
    assert now_above is not None
    assert now is not None
    assert now_above["y"] == pytest.approx(above["y"], abs=1)
    assert now["y"] == pytest.approx(place["y"], abs=28)  # the words may be a line shorter than what stood for them
    assert f"shown={name}" in page.url


@pytest.mark.nightly
def test_a_tap_on_an_option_answers(page: Page, address: str) -> None:
    visit(page, address, "feed_forward", feed_forward_part="dead")
    page.get_by_role("radio", name="none", exact=True).click()
    judged = page.locator(".st-key-cover_feed_forward_dead_judged")
    expect(judged).to_contain_text(re.compile("As you predicted|Not so"))
    page.get_by_role("button", name="Cover again").click()
    expect(page.get_by_role("button", name="Show me")).to_be_visible()
    expect(judged).not_to_contain_text(re.compile("As you predicted|Not so"))


@pytest.mark.nightly
def test_headings_of_a_card_are_smaller_than_the_pages_title(page: Page, address: str) -> None:
    visit(page, address)
    size = "it => parseFloat(getComputedStyle(it).fontSize)"
    title = page.locator(".st-key-title h2").evaluate(size)
    page.get_by_text("The model's card").click()
    heading = page.locator(".stExpander h1").first
    heading.wait_for(state="visible")
    assert heading.evaluate(size) < title


MEANING = "(term) => getComputedStyle(term, '::after').content.slice(1, -1)"


@pytest.mark.nightly
@pytest.mark.parametrize("language", ["en", "zh"])
def test_a_term_says_what_it_means_and_moves_nothing(page: Page, address: str, language: str) -> None:
    said = words_of(language)
    visit(page, address, "attention", attention_part="flow", lang=language)
    term = page.locator("dfn", has_text=said["term.entropy"]).first
    term.wait_for()
    assert term.evaluate(MEANING) in ("", "on")  # of "none" or "normal", nothing
    term.scroll_into_view_if_needed()
    before = page.locator(".vm").first.bounding_box()
    term.hover()
    assert term.evaluate(MEANING) == said["meaning.entropy"]
    page.mouse.move(2, 2)
    term.focus()
    assert term.evaluate(MEANING) == said["meaning.entropy"]
    assert page.locator(".vm").first.bounding_box() == before
    page.get_by_role("button", name=said["glossary.heading"]).click()
    for name in ("nats", "rho"):
        expect(page.get_by_text(said[f"meaning.{name}"][:20])).to_be_visible()


@pytest.fixture
def phone(browser: Browser) -> Iterator[Page]:
    with phones_of(browser, 1, PHONE) as (phone,):
        yield phone


def test_a_tap_reads_a_cell_and_pins_it_and_two_fingers_zoom(phone: Page, address: str) -> None:
    visit(phone, address, "attention")
    rest(phone)
    matrix = phone.locator(".vm").nth(1)
    canvas = matrix.locator("canvas.vm-canvas")
    canvas.scroll_into_view_if_needed()
    canvas.tap(position={"x": 150, "y": 150})
    expect(matrix.locator(".vm-readout").first).to_contain_text("pinned")
    phone.wait_for_url(re.compile("cell="))
    box = canvas.bounding_box()
    assert box is not None
    x, y = box["x"] + box["width"] / 2, box["y"] + box["height"] / 2
    fingers = phone.context.new_cdp_session(phone)
    assert canvas.evaluate("(one) => one.style.touchAction") == "pan-x pan-y"
    for kind, apart in (("touchStart", 30), ("touchMove", 60), ("touchMove", 90), ("touchMove", 120)):
        points = [{"x": x - apart / 2, "y": y, "id": 0}, {"x": x + apart / 2, "y": y, "id": 1}]
        fingers.send("Input.dispatchTouchEvent", {"type": kind, "touchPoints": points})
    fingers.send("Input.dispatchTouchEvent", {"type": "touchEnd", "touchPoints": []})
    assert canvas.evaluate("(one) => one.style.touchAction") == "none", "one finger moves what two have enlarged"
