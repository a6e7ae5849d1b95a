"""While a person types nothing above the picture moves, nothing collapses or turns grey; all see a picture at once."""

from contextlib import suppress

import pytest
from playwright.sync_api import Page, TimeoutError

from tests.helpers import nightly_but
from tests.helpers.browser import PAGES, low, rest, type_text, visit

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
    main.querySelectorAll("h2, [data-testid=stTextInput], [data-testid=stButtonGroup]").forEach((one, place) => {
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


@pytest.mark.parametrize("name", ["", *PAGES])
def test_typing_moves_nothing_and_the_picture_on_the_first_screen_follows(page: Page, address: str, name: str) -> None:
    visit(page, address, name)
    rest(page)
    wrong = low(page, name, first_part=True)
    page.evaluate(RECORD)
    drawn = page.evaluate("() => window.pictureOf()")
    page.get_by_role("textbox").first.press("End")
    page.keyboard.type(" and bad", delay=50)
    with suppress(TimeoutError):  # what does not follow is reported below, with the rest
        page.wait_for_function("(drawn) => window.pictureOf() !== drawn", arg=drawn, polling=100, timeout=10_000)
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
    page.wait_for_function(said, arg=text, timeout=60_000)
    rest(page)
    return page.evaluate("() => window.shift")


@pytest.mark.parametrize(("name", "part"), nightly_but(MOST_SHIFT, [("encoder", "tokens"), ("home", "")]))
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
