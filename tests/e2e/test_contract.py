"""The contract of a part: what holds for every part of every page, looked at in one visit.

The gate shows one page in English and light and the next in Chinese and dark, of a page one part, and none that trains
a model before it shows its picture; pages that tests of their own open there are left to the nightly tier, which shows
each in both. Without a browser, the gate opens every part: tests/pages/kit/test_contract.py.
What axe-core says is asked of every sixth page in the gate, and of the next ones whether a reload shows the same
controls; in the nightly tier of each, and whether a part chosen again after the others shows what it did.
"""

import json
from itertools import groupby
from urllib.parse import parse_qs, urlencode, urlparse

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Page, ViewportSize, WebSocket, expect

from tests.helpers import nightly_but
from tests.helpers.browser import ALL, low, rest
from tests.helpers.pages import ALL_SCREENS, CHOSEN_BY, named

DESK: ViewportSize = {"width": 1280, "height": 800}
PHONE: ViewportSize = {"width": 390, "height": 844}
TABLET: ViewportSize = {"width": 820, "height": 1180}
PAGES = [(page, [part for _, part in parts]) for page, parts in groupby(ALL_SCREENS, lambda screen: screen[0])]
NAMES = [name for name, _ in PAGES]
LOOKS = (("en", "light"), ("zh", "dark"))
RACING = ("translation",)  # a part chosen right after a slider left a blank page before clear_with_inner
SEEN = ("attention", "gpt", "lab", "lectures", "my_model", "tokens", "train")  # in the gate by tests of their own
TRAINED = {("why", "values"), ("why", "positions"), ("embeddings", "counts"), ("masks", "cheat")}
VISITS = nightly_but(
    [(name, LOOKS[number % 2 ^ other]) for other in (0, 1) for number, name in enumerate(NAMES)],
    lambda visit: NAMES.index(visit[0]) % 2 == LOOKS.index(visit[1]) and visit[0] not in (*RACING, *SEEN),
)
OF_THE_GATE = {
    name: (untrained := [part for part in parts if (name, part) not in TRAINED])[number % len(untrained)]
    for number, (name, parts) in enumerate(PAGES)
}
WITHOUT_PICTURE = ("compare", "sweep", "my_model", "server", "lectures", "train", "lab")
WITHOUT_FILES = {
    ("bert", "names"),
    ("bert", "answers"),
    ("lab", "steer"),
    ("feed_forward", "mixture"),  # of a dense model
    ("home", ""),
    *((page, "") for page in WITHOUT_PICTURE),
}
SMALLEST = 40
RULES = {
    "runOnly": {"type": "tag", "values": ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa"]},
    "resultTypes": ["violations"],
}
# A picture that waits for an answer is pale on purpose and cannot be used, the controls on it included.
COVERED = "[class*=st-key-cover_]:has(> .stElementContainer i.covered)"
Controls = dict[str, list[str]]
SHOWN = """() => Object.fromEntries([...document.querySelectorAll('[class*="st-key-"] > [data-testid]')].map((widget) =>
{
  const all = (what) => [...widget.querySelectorAll(what)]
  const read = {
    stSlider: () => all('input').map((one) => one.ariaValueText ?? one.value),
    stCheckbox: () => all('input').map((one) => one.checked ? 'on' : 'off'),
    stTextInput: () => all('input').map((one) => one.value),
    stTextArea: () => all('textarea').map((one) => one.value),
    stSelectbox: () => all('input').map((one) => one.value),
    stMultiSelect: () => [widget.innerText],
    stButtonGroup: () => all('[aria-checked=true], [aria-pressed=true]').map((one) => one.innerText),
  }[widget.dataset.testid]
  const key = [...widget.parentElement.classList].find((name) => name.startsWith('st-key-'))
  return [key.slice(7), [widget.dataset.testid, ...(read ? read() : [])]]
}).filter(([, read]) => read.length > 1))"""
# What a window of this width cuts off: by how much the page scrolls sideways, by how much charts are wider than their
# place (on a phone they scroll there), words that end in dots, and (under a finger) controls that are seen and too low,
# their room to hit counted.
NARROW = (
    """
(smallest) => {
"""
    + ALL
    + """
  const main = document.querySelector(".stMain");
  const sideways = Math.max(document.scrollingElement.scrollWidth - innerWidth, main.scrollWidth - main.clientWidth);
  const metrics = document.querySelectorAll('[data-testid^="stMetric"], [data-testid^="stMetric"] *');
  const css = [...metrics].filter((node) => {
    const { textOverflow, overflowX } = getComputedStyle(node);
    return textOverflow === "ellipsis" && overflowX !== "visible" && node.scrollWidth > node.clientWidth + 1;
  });
  const drawn = [...document.querySelectorAll("svg.marks text")].filter((node) => {
    const kind = node.closest("[class*=role-]")?.getAttribute("class") ?? "";
    return /legend|title/.test(kind) && node.textContent.endsWith("…") && node.textContent !== node.__data__.text;
  });
  const seen = (one) => one.checkVisibility({ visibilityProperty: true, opacityProperty: true });
  const controls = "button, select, input:not([type=checkbox]):not([type=radio]), textarea, summary, [role=radio]";
  const small = all(document.body).filter((one) => one.matches(controls) && seen(one)).map((one) => {
    const place = one.closest(one.matches("input") ? ".stSlider, .stMultiSelect" : "label") ?? one;
    const more = Math.min(parseFloat(getComputedStyle(one, "::after").inset) || 0, 0);
    return [one.getAttribute("aria-label") || one.innerText || one.className, place.offsetHeight - 2 * more];
  }).filter(([, height]) => height > 1 && height < smallest);
  const ROWS = "[class*=of_several_rows]";
  const charts = smallest ? [] : [...document.querySelectorAll(".stVegaLiteChart")];
  const right = (one) => one?.getBoundingClientRect().right ?? 0;
  const over = charts.map((one) => Math.round(right(one.querySelector(".marks")) - right(one.closest(ROWS) ?? one)));
  return {
    sideways: Math.max(sideways, 0),
    over: over.filter((pixels) => pixels > 1),
    cut: [...css, ...drawn].map((node) => node.textContent.trim()),
    small: smallest ? small : [],
  };
}
"""
)
NOTHING_WRONG = {"sideways": 0, "over": [], "cut": [], "small": []}
FILES = """() => Boolean(document.querySelector("[class*=st-key-export], [data-testid=stDownloadButton], .vm-tools"))"""


@pytest.mark.parametrize(("name", "look"), VISITS, ids=lambda given: given if isinstance(given, str) else given[0])
def test_every_part_keeps_the_contract(
    page: Page, address: str, name: str, look: tuple[str, str], request: pytest.FixtureRequest
) -> None:
    nightly = request.node.get_closest_marker("nightly") is not None
    parts = dict(PAGES)[name] if nightly else [OF_THE_GATE[name]]
    language, scheme = look
    page.emulate_media(color_scheme=scheme)
    page.set_viewport_size(DESK)
    with page.expect_websocket() as socket:
        page.goto(f"{address}/{'' if name == 'home' else name}?{urlencode(named(name, parts[0]) | {'lang': language})}")
    rest(page)
    wrong, seen = [], []
    for place, part in enumerate(parts):
        if place:
            choose(page, name, part)
        axe = nightly or name in NAMES[::6]
        first = part == dict(PAGES)[name][0]
        found = looked_at(page, name, part, first=first, tablet=nightly and first, axe=axe)
        wrong += [f"{name} {part} ({language}): {one}" for one in found]
        move(page, socket.value)
        seen.append(shown(page))
        wrong += [f"{name} {part}: {one}" for one in apart(page, seen[-1], name)]
    for part, before in zip(parts, seen, strict=True) if nightly and len(parts) > 1 else ():
        wrong += found_again(page, name, part, before)
    for part, before in zip(parts, seen, strict=True) if nightly or name in NAMES[1::6] else ():
        if nightly and len(parts) > 1:
            choose(page, name, part)
        wrong += rebuilt(page, name, before)
    assert not wrong, "\n".join(wrong)


def choose(page: Page, name: str, part: str) -> None:
    """Choose a part above the picture, and wait until it stands: the server writes its name into the link."""
    key = CHOSEN_BY.get(name, f"{name}_part")
    parts = dict(PAGES)[name]
    page.locator(f"[class*='st-key-{key}-']").get_by_role("radio").nth(parts.index(part)).click()
    page.wait_for_function(
        "([key, said]) => said.includes(new URLSearchParams(location.search).get(key))",
        arg=[key, [part, None] if part == parts[0] else [part]],
    )
    rest(page)


def looked_at(page: Page, name: str, part: str, *, first: bool, tablet: bool, axe: bool) -> list[str]:
    """Say what is wrong with a part as it stands, on a desk, on a phone and perhaps on a tablet."""
    wrong = []
    if page.get_by_text("Traceback").count():
        wrong.append("an error")
    if name not in WITHOUT_PICTURE:
        wrong += low(page, part, first_part=first)
    if (name, part) not in WITHOUT_FILES and not page.evaluate(FILES):
        wrong.append("no files to take home")
    if axe:
        wrong += violations(page)
    fingers = page.context.new_cdp_session(page)
    for size, smallest in ((DESK, 0), (PHONE, SMALLEST), *([(TABLET, SMALLEST)] if tablet else [])):
        page.set_viewport_size(size)
        if size is not DESK:
            fingers.send("Emulation.setTouchEmulationEnabled", {"enabled": True, "maxTouchPoints": 5})
            rest(page)
        found = page.evaluate(NARROW, smallest)
        if size is not DESK:  # a legend that has no room there shows its words when it is tapped
            found["cut"] = []
        if found != NOTHING_WRONG:
            wrong.append(f"{size['width']} px: {found}")
    fingers.send("Emulation.setTouchEmulationEnabled", {"enabled": False})
    fingers.detach()
    page.set_viewport_size(DESK)
    rest(page)
    return wrong


def violations(page: Page) -> list[str]:
    """Return what axe-core finds against WCAG 2.1 AA: rule, element and reason."""
    found = Axe().run(page, context={"exclude": [[COVERED]]}, options=RULES).response["violations"]
    return [
        f"{rule['id']}: {json.dumps(node['target'])} {node['failureSummary']}"
        for rule in found
        for node in rule["nodes"]
    ]


def shown(page: Page) -> Controls:
    """Return what every control on the page shows, by its key."""
    return page.evaluate(SHOWN)


def move(page: Page, socket: WebSocket) -> None:
    """Move the first slider of a part away from where it begins."""
    sliders = page.locator("[data-testid=stSlider] input:not([disabled])")
    if sliders.count():
        before = sliders.first.input_value()
        with socket.expect_event("framereceived"), socket.expect_event("framesent"):  # the run has begun
            sliders.first.press("ArrowRight")
            if sliders.first.input_value() == before:
                sliders.first.press("ArrowLeft")
        rest(page)


def apart(page: Page, controls: Controls, path: str) -> list[str]:
    """Say which sliders and switches differ from the link, which the server writes from what it computes with."""
    link = {name: values[0] for name, values in parse_qs(urlparse(page.url).query).items()}
    wrong = []
    for key, (kind, value, *_) in controls.items():
        said = link.get(key.removesuffix(f"-{path}"))
        if said is None:
            continue
        other = kind == "stCheckbox" and value != said
        if other or (kind == "stSlider" and float(value.rstrip("%")) != pytest.approx(float(said), abs=0.006)):
            wrong.append(f"{key} shows {value}, the link says {said}")
    return wrong


def rebuilt(page: Page, name: str, before: Controls) -> list[str]:
    """Open the link that the page stands at, and say what differs then."""
    page.goto(page.url)
    rest(page)
    return differing(before, shown(page), f"{name}, by its link")


def found_again(page: Page, name: str, part: str, before: Controls) -> list[str]:
    """Choose a part after the others, and say which controls show not what they did, or not what the link says."""
    choose(page, name, part)
    after = shown(page)
    return [*differing(before, after, f"{name} {part}, after the others"), *apart(page, after, name)]


def differing(before: Controls, after: Controls, when: str) -> list[str]:
    """Say which controls show something else."""
    return [f"{when}: {key} shows {after.get(key)}, not {was}" for key, was in before.items() if after.get(key) != was]


def test_on_a_phone_what_comes_of_painting_stays_in_sight_and_the_menu_has_a_word(own_page: Page, address: str) -> None:
    own_page.set_viewport_size(PHONE)
    own_page.goto(f"{address}/masks?lang=en")
    rest(own_page)
    verdict = own_page.locator("[data-verdict='masks_after']")
    own_page.locator(".vm-canvas").evaluate("(one) => one.scrollIntoView({ block: 'center' })")
    expect(verdict).to_be_in_viewport(ratio=1)
    expect(own_page.locator(".vm-canvas")).to_be_in_viewport()
    menu = own_page.get_by_test_id("stExpandSidebarButton")
    assert "Menu" in menu.evaluate("(one) => getComputedStyle(one, '::after').content")


def test_an_export_menu_shows_all_of_its_entries(own_page: Page, address: str) -> None:
    own_page.set_viewport_size(DESK)
    own_page.goto(f"{address}/attention?lang=en")
    rest(own_page)
    own_page.get_by_role("button", name="Export").first.click()
    entries = own_page.get_by_test_id("stPopoverBody").get_by_role("button")
    expect(entries.last).to_have_text("Notebook")
    for entry in entries.all():
        expect(entry).to_be_in_viewport(ratio=1)
