"""Live figures in a browser: they follow the hand before the page runs, never go back, and come without the route.

The clock stands still where the app waits for a hand to rest: nothing runs until a test says that time passes.
"""

import json
import re
from collections.abc import Callable

import numpy as np
import pytest
from playwright.sync_api import Page, Route, expect

from tests.helpers.browser import BUNDLE, rest, settle, wait_painted
from tests.helpers.clock import (
    LEAD,
    REST,
    TEXT,
    link_of,
    nothing_ran,
    opened,
    run_page,
    stopped,
    typed,
    verdict,
    wait_other,
)
from tests.helpers.reading import press, wait_link
from transformer_core.analysis.masks.codes import painted_mask
from transformer_core.analysis.masks.masked_head import masked_head
from transformer_core.prompt import Prompt

OLDER = """async () => {
  const { parentElement } = document.querySelector("[data-verdict=heads]");
  parentElement.innerHTML = parentElement.innerHTML.replace(/[0-9.]+%/g, "0.0%"); // as the run of an older text does
  await null;
  return parentElement.querySelector("[data-verdict]").textContent;
}"""


def test_each_letter_is_painted_before_the_page_runs_and_no_older_text_comes_back(clocked: Page, address: str) -> None:
    page, text = clocked, TEXT
    stopped(page, address)
    for letter in " at all":
        typed(page, letter)
        text += letter
        wait_painted(page, f"0.0|{text}")
    page.clock.run_for(REST - 1)
    assert nothing_ran(page)
    page.clock.run_for(2)
    page.wait_for_function("() => window.ran > 0")
    typed(page, "!")  # while the page runs
    wait_painted(page, f"0.0|{text}!")
    newest = verdict(page, "heads")
    assert page.evaluate(OLDER) == newest
    wait_link(page, text=text)
    run_page(page, text=f"{text}!")
    typed(page, "!")  # while it does not
    wait_painted(page, f"0.0|{text}!!")
    live = verdict(page, "heads")
    run_page(page, text=f"{text}!!")
    assert verdict(page, "heads") == live
    texts = [version.partition("|")[2] for version in page.evaluate("() => window.painted")]
    assert texts == sorted(texts, key=len)
    assert texts[-1] == f"{text}!!"


@pytest.mark.nightly
def test_without_the_route_the_page_works_as_it_does_with_it(page: Page, address: str) -> None:
    def refuse(route: Route) -> None:
        route.abort()

    page.route("**/live/**", refuse)
    opened(page, address)
    typed(page, " at all")
    wait_painted(page, f"0.0|{TEXT} at all")
    page.get_by_role("radiogroup", name="Layer").get_by_role("radio", name="2", exact=True).click()
    wait_painted(page, f"2.0|{TEXT} at all")


def test_a_box_of_several_lines_is_read_once_the_hand_rests_and_keeps_what_is_typed(
    clocked: Page, address: str
) -> None:
    page, masks = clocked, {"masks_part": "batch"}
    stopped(page, address, "masks", **masks)
    box = page.locator(".st-key-masks_lines-masks textarea")
    box.press("Control+End")
    page.keyboard.type(" Oh")
    expect(page.locator("[data-lines=masks_batch_ids]")).to_contain_text("oh")
    assert nothing_ran(page)
    page.clock.run_for(2 * REST)
    target = page.locator(".st-key-masks_target-masks input")
    expect(target).to_have_value(re.compile("superb. Oh$"))
    page.keyboard.type(" no")
    page.clock.run_for(2 * REST)
    expect(target).to_have_value(re.compile("superb. Oh no$"))
    expect(box).to_be_focused()
    assert box.input_value().endswith("superb. Oh no")


def weights_shown(page: Page) -> np.ndarray:
    """Return the weights from the painter's table, made to show the third panel."""
    canvas = page.locator(".vm-canvas").first
    for _ in range(3):
        press(page, canvas, "PageDown")
        if "Weights" in page.locator(".vm-live").first.inner_text():
            break
    page.clock.run_for(LEAD)  # the table is built after a pause
    rows = page.locator(".vm-table tbody").first.evaluate(
        "(body) => [...body.rows].map((row) => [...row.querySelectorAll('td')].map((cell) => cell.textContent))"
    )
    plain = str.maketrans("⁻⁰¹²³⁴⁵⁶⁷⁸⁹−", "-0123456789-")
    return np.array([[float(cell.replace("×10", "e").translate(plain)) for cell in row] for row in rows])


def test_a_stroke_shows_its_weights_and_verdict_while_the_finger_is_down_and_stays(clocked: Page, address: str) -> None:
    page = clocked
    stopped(page, address, "masks", masks_preset="everything")
    canvas = page.locator(".vm-canvas").first
    canvas.scroll_into_view_if_needed()
    frame = canvas.bounding_box()
    assert frame is not None
    before = verdict(page, "masks_after")
    page.mouse.move(frame["x"] + 120, frame["y"] + 120)
    page.mouse.down()
    page.mouse.move(frame["x"] + 120, frame["y"] + 210, steps=5)
    wait_other(page, "masks_after", before)
    assert nothing_ran(page)
    page.mouse.up()
    page.clock.run_for(2 * REST)
    page.wait_for_url("**masks_rows=**")
    settle(page)
    code = link_of(page, "masks_rows")
    rows, cols = np.nonzero(~painted_mask(code).numpy())
    assert len(set(cols)) == 1
    assert rows.tolist() == list(range(rows[0], rows[0] + len(rows)))  # none was skipped
    assert len(rows) > 1
    asked = {"prompt": Prompt(BUNDLE, TEXT, len(BUNDLE.tokenizer.encode(TEXT))), "pads": 0}
    found = masked_head(**asked, layer=0, head=0, everywhere=True, mask=code)
    np.testing.assert_allclose(weights_shown(page), found.steps.weights, atol=6e-4)
    first = int(found.before.argmax())
    moved = f"{100 * (found.after[first] - found.before[first]):+.1f}".replace("-", "")
    expect(page.locator("[data-number=masks_change]")).to_contain_text(moved)

    press(page, canvas, "PageDown", "Home", "Space")  # from the third panel to the mask
    page.clock.run_for(2 * REST)
    page.wait_for_url(lambda url: code not in url)
    settle(page)
    other = link_of(page, "masks_rows")
    assert (painted_mask(other) != painted_mask(code)).sum() == 1
    page.get_by_role("radio", name="causal").click()
    wait_painted(page, f"causal|0.0.all|0|{TEXT}")
    page.get_by_role("radio", name="painted").click()
    wait_painted(page, f"{other}|0.0.all|0|{TEXT}")


WORDS_OF_CHART = """
() => [...document.querySelectorAll("[data-testid=stVegaLiteChart]")[0].querySelectorAll("text")]
  .map((text) => text.textContent).join()
"""


@pytest.mark.nightly
def test_a_slider_takes_the_short_way_while_it_is_held(page: Page, address: str) -> None:
    opened(page, address, "gpt", gpt_part="draw", gpt_temperature="0.1", gpt_top_p="1.0")
    slider = page.locator(".st-key-gpt_temperature-gpt [role=group]")
    slider.scroll_into_view_if_needed()
    frame = slider.bounding_box()
    assert frame is not None
    before = page.evaluate(WORDS_OF_CHART)
    height = frame["y"] + frame["height"] / 2
    page.mouse.move(frame["x"] + 2, height)
    page.mouse.down()
    with page.expect_response("**/live/gpt/draw?*gpt_temperature=*"):
        page.mouse.move(frame["x"] + 90, height, steps=4)
    page.wait_for_function(f"(before) => ({WORDS_OF_CHART})() !== before", arg=before)
    page.mouse.up()
    rest(page)


SLIDERS = [
    ("why", {"why": "symmetry"}, "why_symmetry_share", "0.05|0.0|"),
    ("why", {"why": "projections"}, "why_projections_reach", "tokens|0.3|0|"),
    ("feed_forward", {"feed_forward_part": "neurons", "feed_forward_neuron": "7"}, "feed_forward_neuron", "0.8|"),
    ("positions", {"positions_part": "exponent"}, "positions_xlength", "65x128"),
    ("positions", {"positions_part": "schemes", "positions_places": "9"}, "positions_places", "'length': 10"),
    ("translation", {"translation_part": "beam", "translation_depth": "2"}, "translation_depth", ""),
    ("gpt", {"gpt_part": "lens", "gpt_back": "-2"}, "gpt_back", ""),
    ("why", {"why": "scaling", "why_scaling_width": "16", "shown": "why_scaling"}, "why_scaling_width", ""),
    ("encoder", {"encoder_part": "sum", "encoder_padding_open": "on"}, "encoder_pads", ""),
    ("encoder", {"encoder_part": "sure"}, "encoder_temperature", ""),
    ("gpt", {"gpt_part": "verse"}, "gpt_verse_place", ""),
    ("gpt", {"gpt_part": "mask", "gpt_changed": "-3"}, "gpt_changed", f"{TEXT}| dragon|"),
    ("gpt", {"gpt_part": "write", "gpt_steps": "6", "gpt_step": "2"}, "gpt_step", ""),
]


@pytest.mark.nightly
@pytest.mark.parametrize(("path", "query", "slider", "said"), SLIDERS)
def test_a_slider_moves_its_picture_the_short_way(
    page: Page, address: str, path: str, query: dict[str, str], slider: str, said: str
) -> None:
    opened(page, address, path, **query)
    page.locator(f".st-key-{slider}-{path} input").first.focus()
    with page.expect_response(lambda answer: f"/live/{path}/" in answer.url) as heard:
        page.keyboard.press("ArrowRight")
    assert heard.value.status == 200
    if said:
        page.wait_for_function("(said) => window.painted.some((version) => version.includes(said))", arg=said)
    settle(page)
    assert not page.locator("[data-testid=stException]").count()


STYLED = [
    ("attention", {"attention_part": "flow"}, lambda page: typed(page, "x")),
    ("gpt", {"gpt_part": "draw"}, lambda page: typed(page, "x")),
    ("positions", {"positions_part": "matrix"}, lambda page: page.keyboard.press("ArrowRight")),
]


@pytest.mark.nightly
@pytest.mark.parametrize(("path", "query", "act"), STYLED)
def test_what_follows_a_finger_has_but_a_part_of_the_page_styled_anew(
    clocked: Page, address: str, path: str, query: dict[str, str], act: Callable[[Page], None]
) -> None:
    page = clocked
    stopped(page, address, path, **query)
    if path == "positions":
        page.evaluate("() => { WebSocket.prototype.send = () => {}; }")  # a slider waits for no rest
        page.locator(".st-key-positions_pos-positions input").first.focus()
    browser = page.context.browser
    assert browser is not None
    browser.start_tracing(page=page, categories=["devtools.timeline"])
    with page.expect_response(lambda answer: f"/live/{path}/" in answer.url) as heard:
        act(page)
    heard.value.finished()
    page.evaluate("() => document.body.getBoundingClientRect()")  # after the answer's own work, in the same order
    events = json.loads(browser.stop_tracing())["traceEvents"]
    styles = (event.get("args", {}) for event in events if event["name"] == "UpdateLayoutTree")
    styled = [counted["elementCount"] for counted in styles if "elementCount" in counted]  # one that began has none yet
    assert styled
    assert max(styled) < 0.4 * page.evaluate("() => document.querySelectorAll('*').length")


@pytest.mark.nightly
def test_an_old_picture_stays_under_the_box_and_nothing_below_it_moves(page: Page, address: str) -> None:
    words = "The story was slow at first but the actors were good and I forgot the time in the end"
    opened(page, address, "encoder", encoder_part="tokens", encoder_steps="128", text=words, shown="encoder_tokens")
    top = "() => Math.round(document.querySelector('.stVegaLiteChart').getBoundingClientRect().top)"
    before = page.evaluate(top)
    typed(page, " of it all")
    page.locator(".await").wait_for()
    assert page.locator("i.old").count() == 1
    assert abs(page.evaluate(top) - before) <= 4  # a line of words may be a pixel or two higher
    rest(page)
    assert not page.locator("i.old").count()
