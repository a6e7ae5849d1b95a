"""While a person types nothing above the picture moves, nothing collapses or turns grey; all see a picture at once."""

from contextlib import suppress

import pytest
from playwright.sync_api import Page, TimeoutError

from tests.e2e.acting import visit
from tests.e2e.serving import rest
from tests.e2e.test_controls import PAGES, open_part

SEEN = """
(firstPart) => {
  const inside = (root) => [...root.querySelectorAll("*")].flatMap((one) =>
    one.shadowRoot ? [one, ...inside(one.shadowRoot)] : [one]);
  const main = document.querySelector(".stMainBlockContainer");
  const box = (one) => one.getBoundingClientRect();
  const large = (one) => box(one).width > 100 && box(one).height > 20;
  const drawn = "canvas, svg, .vt-rows, .tinted, .tr-line, .masks-batch, .masked-words, [data-testid=stVegaLiteChart]";
  const pictures = window.pictures = () => inside(main).filter((one) => one.matches(drawn) && large(one));
  const order = (a, b) => box(a).top - box(b).top || box(b).height - box(a).height;
  const first = window.firstPicture = () => pictures().sort(order)[0];
  const words = "[data-testid=stMarkdown] p, [data-testid=stCaptionContainer] p, [data-testid=stAlert] p";
  const asked = "[class*=st-key-cover_], [class*=st-key-question_]";
  const titles = (one) => one.childElementCount === 1 && one.firstElementChild.matches("strong");
  const above = () => {
    const picture = box(first());
    return [...main.querySelectorAll(words)].filter((one) => !one.closest("[data-testid=stExpander], button, label"))
      .filter((one) => box(one).bottom <= picture.top + 4 && box(one).right > picture.left && box(one).height > 8)
      .filter((one) => !titles(one) && (firstPart || !one.closest(asked)));
  };
  const linesOf = (one) => {
    const high = parseFloat(getComputedStyle(one).lineHeight);
    const count = Math.round(box(one).height / high);
    return Array.from({ length: count }, (_, line) => Math.round((box(one).top + line * high) / 12));
  };
  const picture = box(first());
  return {
    third: picture.top + (firstPart ? picture.height : Math.min(picture.height, 450)) / 3,
    lines: new Set(above().flatMap(linesOf)).size, // what stands side by side is one line
    said: above().map((one) => one.textContent),
  };
}
"""
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
MOST_LINES = 2
MOST_DIP = 40
FOLD = 800


def deepest_dip(heights: list[float]) -> float:
    """Return by how much a height fell that came back later."""
    deepest, before = 0.0, heights[0]
    for place, height in enumerate(heights):
        before = max(before, height)
        deepest = max(deepest, min(before, max(heights[place:])) - height)
    return deepest


def low(page: Page, name: str, *, first_part: bool) -> list[str]:
    """Say what keeps the first picture from the first screen; in later parts, besides the question that covers it."""
    seen = page.evaluate(SEEN, first_part)
    wrong = []
    if seen["third"] > FOLD:
        wrong.append(f"{name}: the picture's upper third ends at {seen['third']:.0f}")
    if seen["lines"] > MOST_LINES:
        wrong.append(f"{name}: {seen['lines']} lines of prose before the picture: {seen['said']}")
    return wrong


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


@pytest.mark.parametrize("name", PAGES)
def test_every_part_has_its_picture_on_the_first_screen(page: Page, address: str, name: str) -> None:
    key = "why" if name == "why" else f"{name}_part"
    visit(page, address, name)
    parts = page.locator(f"[class*='st-key-{key}-']").get_by_role("radio")
    parts.first.wait_for()
    wrong: list[str] = []
    for place in range(1, parts.count()):
        open_part(page, key, place)
        rest(page)
        wrong += low(page, f"{name}, {parts.nth(place).inner_text()}", first_part=False)
    assert not wrong, "\n".join(wrong)


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
