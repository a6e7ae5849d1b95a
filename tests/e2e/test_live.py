"""Live figures in a browser: they follow the hand before the page runs, never go back, and come without the route."""

import json
import math
from collections.abc import Callable
from urllib.parse import unquote_plus

import pytest
from playwright.sync_api import Page, Route

from pages.ui.header import PAUSE
from pages.ui.pickers import shown_word
from tests.helpers import ROOT
from tests.helpers.browser import rest, settle, visit, wait_painted
from transformer_core import load
from transformer_core.analysis.masks.codes import painted_mask
from transformer_core.analysis.translation.greedy_steps import written_greedily

TEXT = "The film was not good"
MORE = " at all, I fear"
LISTEN = """
() => {
  window.painted = [];
  new PerformanceObserver((list) => {
    for (const { name, detail } of list.getEntries()) {
      if (name === "vitrine-matrix-painted") window.painted.push(detail.version);
    }
  }).observe({ type: "mark" });
  window.ran = 0;
  window.rested = []; // for each run of the page, ms since the last letter before it
  let typed = 0;
  document.addEventListener("input", () => (typed = performance.now()), { capture: true });
  const send = WebSocket.prototype.send;
  WebSocket.prototype.send = function (data) {
    window.ran += 1;
    window.rested.push(performance.now() - typed);
    return send.call(this, data);
  };
}
"""
VERDICT = "() => document.querySelector('[data-verdict=heads]').textContent"


def opened(page: Page, address: str, path: str = "attention", **query: str) -> None:
    """Open a page and listen to what is painted and to what the browser tells the page."""
    visit(page, address, path, **({"text": TEXT, "lang": "en"} | query))
    rest(page)
    page.evaluate(LISTEN)


def typed(page: Page, text: str, delay: float) -> None:
    """Type at the end of the text."""
    page.get_by_role("textbox").first.press("End")
    page.keyboard.type(text, delay=delay)


def ran_only_at_rest(page: Page) -> None:
    """Check that no run of the page began sooner after a letter than a hand rests, however slow the machine is."""
    assert min(page.evaluate("() => window.rested"), default=math.inf) >= float(PAUSE.removesuffix("ms"))


def test_each_letter_is_painted_before_the_page_runs_and_no_older_text_comes_back(page: Page, address: str) -> None:
    opened(page, address)
    typed(page, MORE, delay=100)
    wait_painted(page, f"0.0|{TEXT}{MORE}")
    assert len(page.evaluate("() => window.painted")) > len(MORE)
    live = page.evaluate(VERDICT)
    page.wait_for_function("(text) => new URLSearchParams(location.search).get('text') === text", arg=TEXT + MORE)
    ran_only_at_rest(page)
    settle(page)
    page.wait_for_timeout(300)
    assert page.evaluate(VERDICT) == live
    texts = [version.partition("|")[2].rpartition("|")[2] for version in page.evaluate("() => window.painted")]
    assert texts == sorted(texts, key=len)
    assert texts[-1] == TEXT + MORE


def test_without_the_route_the_page_works_as_it_does_with_it(page: Page, address: str) -> None:
    def refuse(route: Route) -> None:
        route.abort()

    page.route("**/live/**", refuse)
    opened(page, address)
    typed(page, MORE, delay=30)
    wait_painted(page, f"0.0|{TEXT}{MORE}")
    page.get_by_role("radiogroup", name="Layer").get_by_role("radio", name="2", exact=True).click()
    wait_painted(page, f"2.0|{TEXT}{MORE}")


def test_a_layer_a_head_and_a_click_in_the_grid_take_the_short_way(page: Page, address: str) -> None:
    opened(page, address)
    with page.expect_response("**/live/attention/heads?*layer=3*"):
        page.get_by_role("radiogroup", name="Layer").get_by_role("radio", name="3", exact=True).click()
    wait_painted(page, f"3.0|{TEXT}")
    canvas = page.locator(".vm-canvas").first
    frame = canvas.bounding_box()
    assert frame is not None
    with page.expect_response(lambda answer: "/live/" in answer.url and "head=0" not in answer.url):
        page.mouse.click(frame["x"] + frame["width"] * 0.6, frame["y"] + frame["height"] * 0.3)
    page.wait_for_function("() => Number(new URLSearchParams(location.search).get('head')) > 0")


def test_a_stroke_shows_its_weights_and_verdict_while_the_finger_is_down_and_stays(page: Page, address: str) -> None:
    opened(page, address, "masks", masks_preset="everything")
    canvas = page.locator(".vm-canvas").first
    canvas.scroll_into_view_if_needed()
    frame = canvas.bounding_box()
    assert frame is not None
    before = page.evaluate("() => document.querySelector('[data-verdict=masks_after]').textContent")
    page.mouse.move(frame["x"] + 120, frame["y"] + 120)
    page.mouse.down()
    for step in range(1, 12):
        page.mouse.move(frame["x"] + 120, frame["y"] + 120 + 8 * step)
        page.wait_for_timeout(30)
    assert page.evaluate("() => window.ran") == 0
    changed = "(before) => document.querySelector('[data-verdict=masks_after]').textContent !== before"
    page.wait_for_function(changed, arg=before)
    page.mouse.up()
    page.wait_for_function("() => new URLSearchParams(location.search).has('masks_rows')")
    settle(page)
    rows = page.evaluate("() => new URLSearchParams(location.search).get('masks_rows')")
    assert not painted_mask(rows).all()
    after = page.evaluate("() => document.querySelector('[data-verdict=masks_after]').textContent")
    visit(page, address, page.url.removeprefix(f"{address}/"))
    rest(page)
    assert page.evaluate("() => document.querySelector('[data-verdict=masks_after]').textContent") == after


WORDS_OF_CHART = """
(place) => [...document.querySelectorAll("[data-testid=stVegaLiteChart]")[place].querySelectorAll("text")]
  .map((text) => text.textContent)
"""


def changed(page: Page, place: int, before: list[str]) -> list[str]:
    """Wait until a chart of the page has other words than before, and return them."""
    script = f"([place, before]) => ({WORDS_OF_CHART})(place).join() !== before"
    page.wait_for_function(script, arg=[place, ",".join(before)])
    return page.evaluate(WORDS_OF_CHART, place)


def test_charts_follow_each_letter_and_the_page_brings_what_they_show(page: Page, address: str) -> None:
    opened(page, address, "gpt")
    strip, bars = (page.evaluate(WORDS_OF_CHART, place) for place in (0, 1))
    typed(page, " and bad", delay=100)
    assert page.evaluate("() => window.ran") == 0
    changed(page, 1, bars)
    page.wait_for_timeout(100)
    live = [page.evaluate(WORDS_OF_CHART, place) for place in (0, 1)]
    assert set(live[0]) - set(strip) == {"␣and", "␣bad"}
    page.wait_for_function("() => window.ran > 0")
    rest(page)
    page.wait_for_timeout(1_500)  # the page's own rows are shown again
    assert [page.evaluate(WORDS_OF_CHART, place) for place in (0, 1)] == live


def test_a_chart_goes_back_to_the_last_text_that_could_be_read(page: Page, address: str) -> None:
    opened(page, address, "gpt")
    with page.expect_response("**/live/gpt/next?*bad*"):
        typed(page, " and bad so", delay=60)
    page.keyboard.press("ControlOrMeta+a")
    page.keyboard.press("Delete")
    page.locator("[data-pale]").wait_for()
    page.wait_for_timeout(2_500)
    last = page.locator("[data-pale]").inner_text().partition("“")[2].partition("”")[0]
    assert last.startswith(TEXT)  # and on, where the machine is so slow that the hand seems to rest between letters
    shown = page.evaluate(WORDS_OF_CHART, 0)
    visit(page, address, "gpt", text=last, lang="en")
    rest(page)
    assert page.evaluate(WORDS_OF_CHART, 0) == shown


def test_a_slider_takes_the_short_way_while_it_is_held(page: Page, address: str) -> None:
    opened(page, address, "gpt", gpt_part="draw", gpt_temperature="0.1", gpt_top_p="1.0")
    slider = page.locator(".st-key-gpt_temperature-gpt [role=group]")
    slider.scroll_into_view_if_needed()
    frame = slider.bounding_box()
    assert frame is not None
    before = page.evaluate(WORDS_OF_CHART, 0)
    height = frame["y"] + frame["height"] / 2
    page.mouse.move(frame["x"] + 2, height)
    page.mouse.down()
    with page.expect_response("**/live/gpt/draw?*gpt_temperature=*"):
        page.mouse.move(frame["x"] + 90, height, steps=4)
    changed(page, 0, before)
    page.mouse.up()
    rest(page)


def test_homes_verdict_follows_each_letter_before_the_page_runs(page: Page, address: str) -> None:
    opened(page, address, "")
    before = page.evaluate("() => document.querySelector('[data-verdict=home]').textContent")
    with page.expect_response("**/live/home/verdict?*fear*"):
        typed(page, MORE, delay=60)
    ran_only_at_rest(page)
    verdict = "(before) => document.querySelector('[data-verdict=home]').textContent !== before"
    page.wait_for_function(verdict, arg=before)
    live = page.evaluate("() => document.querySelector('[data-verdict=home] [data-name]').textContent")
    page.wait_for_function("() => window.ran > 0")
    rest(page)
    assert page.evaluate("() => document.querySelector('[data-verdict=home] [data-name]').textContent") == live


def test_what_a_question_covers_follows_and_stays_covered(page: Page, address: str) -> None:
    opened(page, address, "attention", attention_part="effect")
    typed(page, MORE, delay=60)
    wait_painted(page, f"zero|0.0|{TEXT}{MORE}")
    assert page.locator(".st-key-cover_attention_effects i.covered").count() == 1
    rest(page)
    assert page.locator(".st-key-cover_attention_effects i.covered").count() == 1


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


@pytest.mark.parametrize(
    ("path", "query", "act", "said"),
    [
        ("attention", {"attention_part": "flow"}, lambda page: typed(page, "x", delay=0), f"{TEXT}x"),
        ("gpt", {"gpt_part": "draw"}, lambda page: typed(page, "x", delay=0), ""),
        ("positions", {"positions_part": "matrix"}, lambda page: page.keyboard.press("ArrowRight"), ""),
    ],
)
def test_what_follows_a_finger_has_but_a_part_of_the_page_styled_anew(
    page: Page, address: str, path: str, query: dict[str, str], act: Callable[[Page], None], said: str
) -> None:
    opened(page, address, path, **query)
    if path == "positions":
        page.locator(".st-key-positions_pos-positions input").first.focus()
    browser = page.context.browser
    assert browser is not None
    page.evaluate(
        "() => { WebSocket.prototype.send = () => {}; }"
    )  # the page's run, which comes later, is not looked at
    browser.start_tracing(page=page, categories=["devtools.timeline"])
    with page.expect_response(lambda answer: f"/live/{path}/" in answer.url and said in unquote_plus(answer.url)):
        act(page)
    page.wait_for_timeout(300)  # until it is painted
    events = json.loads(browser.stop_tracing())["traceEvents"]
    styled = [
        event["args"]["elementCount"] for event in events if event["name"] == "UpdateLayoutTree" and "args" in event
    ]
    assert styled
    assert max(styled) < 0.4 * page.evaluate("() => document.querySelectorAll('*').length")


def test_a_second_sentence_has_its_verdict_before_the_page_runs(page: Page, address: str) -> None:
    other = "The film was bad"
    opened(page, address, "encoder", encoder_part="edit", encoder_other=other, text="The film was good")
    shown = "() => document.querySelector('[data-verdict=encoder_second]').textContent"
    before = page.evaluate(shown)
    page.get_by_role("textbox").nth(1).press("End")
    page.keyboard.type(" but I", delay=40)
    page.wait_for_function(f"(before) => ({shown})() !== before", arg=before)
    ran_only_at_rest(page)
    live = page.evaluate(shown)
    page.wait_for_function("() => window.ran > 0")
    settle(page)
    page.wait_for_timeout(300)
    assert page.evaluate(shown) == live


def test_a_translation_is_shown_from_its_first_words_on_and_ends_as_the_library_has_it(
    page: Page, address: str
) -> None:
    text = "The story was slow at first but the actors were good and I forgot the time"
    opened(page, address, "translation", model="translation-en-fr", text=text)
    words = "() => [...document.querySelectorAll('.tr-word:not(.tr-source)')].map((word) => word.textContent)"
    said = []
    page.on("response", lambda answer: said.append(answer.url) if "/live/translation/steps" in answer.url else None)
    typed(page, " and laughed", delay=0)
    page.wait_for_function(f"() => !({words})().join().includes('…')")
    rest(page)
    bundle = load(ROOT / "assets" / "checkpoints" / "translation-en-fr")
    written = written_greedily(bundle=bundle, text=f"{text} and laughed", n_tokens=bundle.config.max_len)
    shown = page.evaluate(words)
    assert [word.rsplit(f"{chance:.0%}", 1)[0] for word, chance in zip(shown, written.probabilities, strict=True)] == [
        shown_word(word) for word in written.words
    ]
    last = [url for url in said if "laughed" in url]
    assert len(last) > 1  # its end was asked for
    assert len(last) < len(written.words)  # not word by word


def test_an_old_picture_stays_under_the_box_and_nothing_below_it_moves(page: Page, address: str) -> None:
    words = "The story was slow at first but the actors were good and I forgot the time in the end"
    opened(page, address, "encoder", encoder_part="tokens", encoder_steps="128", text=words, shown="encoder_tokens")
    top = "() => Math.round(document.querySelector('.stVegaLiteChart').getBoundingClientRect().top)"
    before = page.evaluate(top)
    typed(page, " of it all", delay=5)
    page.locator(".await").wait_for()
    assert page.locator("i.old").count() == 1
    assert abs(page.evaluate(top) - before) <= 4  # a line of words may be a pixel or two higher
    rest(page)
    assert not page.locator("i.old").count()


SEEN = """
() => [...document.querySelectorAll(".st-key-formula_glass_cell annotation")].filter(
  (one) => one.closest(".katex").getBoundingClientRect().width)
"""
FORMULA = f"() => ({SEEN})().map((one) => one.textContent).join()"
SIZE = f"() => ({SEEN})().map((one) => one.closest('.katex').getBoundingClientRect().toJSON())"


def test_the_glass_explains_another_cell_before_the_page_runs_and_nothing_moves(page: Page, address: str) -> None:
    opened(page, address, glass_open="true", glass="encoder.layer0.self_attention.query", glass_cell="3.7")
    before = page.evaluate(FORMULA)
    page.locator(".st-key-glass_matrix .vm-canvas").focus()
    page.keyboard.press("ArrowDown")
    page.keyboard.press("Enter")
    page.wait_for_function(f"(before) => ({FORMULA})() !== before", arg=before)
    assert page.evaluate("() => window.ran") == 0
    live, size = page.evaluate(FORMULA), page.evaluate(SIZE)
    assert "_{4,7}" in live
    page.wait_for_function("() => window.ran > 0")
    rest(page)
    page.wait_for_timeout(1_500)  # the page's own formula is shown again
    assert not page.locator("[data-formula] *").count()
    assert (page.evaluate(FORMULA), page.evaluate(SIZE)) == (live, size)
