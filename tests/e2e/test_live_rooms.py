"""Rooms whose pictures come the short way, by letters typed under a clock that stands still, then by the page's run."""

import re

import numpy as np
import pytest
from playwright.sync_api import Page, Route, expect
from starlette.applications import Starlette
from starlette.testclient import TestClient

from app import LIVE
from pages.kit.header import shown_word
from pages.kit.live import live_routes
from pages.translation import translated
from tests.helpers import ROOT
from tests.helpers.browser import BUNDLE, settle, type_text, visit, wait_painted
from tests.helpers.clock import TEXT, link_of, nothing_ran, run_page, stopped, typed
from tests.helpers.pages import minus
from tests.helpers.reading import metric, press, wait_link
from transformer_core.analysis.arithmetic import Pass, explain_cell, read_through
from transformer_core.analysis.counter_examples import counter_examples
from transformer_core.analysis.gpt.next_token import expected
from transformer_core.analysis.outcome import one_text
from transformer_core.analysis.translation.greedy_steps import written_greedily
from transformer_core.checkpoints import load
from transformer_core.prompt import Prompt
from transformer_core.text.encoding import words_of

LIKELIEST = """(wanted) => {
  const labels = [...(document.querySelectorAll("svg.marks")[1]?.querySelectorAll(".role-axis-label text") ?? [])];
  const down = labels.map((label) => [label.getBoundingClientRect().top, label.textContent]).sort(([a], [b]) => a - b);
  return JSON.stringify(down.slice(0, wanted.length).map(([, text]) => text)) === JSON.stringify(wanted);
}"""  # the axis' labels from top to bottom: the order on the screen is not that in the document
BEGUN = "() => document.querySelectorAll('svg.marks').forEach((one) => { one.begunBefore = true; })"
STILL_BEGUN = "() => [...document.querySelectorAll('svg.marks')].every((one) => one.begunBefore)"


def test_charts_follow_each_letter_hold_and_go_back_to_the_last_text_that_could_be_read(
    clocked: Page, address: str
) -> None:
    page, text = clocked, "The king is"
    model = load(ROOT / "assets" / "checkpoints" / "gpt-char", device="cpu")

    def next_of(text: str, place: int):
        return expected(prompt=Prompt(model, text, len(text)), place=place, top=10)

    def wait_charts(text: str) -> None:
        found = next_of(text, len(text))
        page.wait_for_function(LIKELIEST, arg=[*found.labels, f"all other {found.n_rest:,}"])

    stopped(page, address, "gpt", text=text, model="gpt-char")
    drawings = page.locator("svg.marks")
    expect(drawings).to_have_count(2)
    page.evaluate(BEGUN)
    for letter in " d":
        typed(page, letter)
        text += letter
        wait_charts(text)
    expect(drawings.first.get_by_text("d", exact=True)).to_be_visible()
    assert nothing_ran(page)
    run_page(page, text=text)
    wait_charts(text)
    entropy = metric(page, "Entropy")
    expect(entropy).to_have_text(f"{next_of(text, len(text)).entropy:.2f} bits")
    assert page.evaluate(STILL_BEGUN)

    typed(page, "og")
    wait_charts(f"{text}og")
    page.keyboard.press("ControlOrMeta+a")
    page.keyboard.press("Delete")
    run_page(page, text="")
    expect(page.locator("[data-pale]")).to_contain_text(f"“{text}”")
    wait_charts(text)

    page.clock.resume()
    type_text(page, text)
    wait_link(page, text=text)
    box = drawings.first.bounding_box()
    assert box is not None
    drawings.first.click(position={"x": box["width"] * (2 * 4 + 1) / 92, "y": box["height"] - 26})
    page.wait_for_url(re.compile(r"gpt_back=-\d+"))
    found = next_of(text, len(text) + int(link_of(page, "gpt_back")))
    expect(entropy).to_have_text(f"{found.entropy:.2f} bits")
    page.get_by_text("中文", exact=True).click()
    expect(page.locator("html[lang=zh]")).to_be_attached()
    expect(page.locator(".st-key-nav_next")).to_contain_text("下一页")  # the frame around the page speaks it, too
    expect(page.get_by_role("textbox").first).to_have_value(text)


def without(text: str, word: int) -> float:
    """Return what the likeliest class of a text loses when one of its words is hidden, computed without the page."""
    encoding = BUNDLE.tokenizer.encode(text)
    ids = one_text(BUNDLE, encoding)
    hidden = ids.clone()
    hidden[0, list(words_of(encoding)[word].places)] = BUNDLE.tokenizer.mask_id
    whole, rest = (BUNDLE.model(each).softmax(-1)[0] for each in (ids, hidden))
    return float(whole.max() - rest[whole.argmax()])


@pytest.mark.nightly
def test_homes_verdict_follows_each_letter_is_explained_and_one_click_turns_it(clocked: Page, address: str) -> None:
    page, text = clocked, "The story was dull, but the music was lovely."
    stopped(page, address, "", text="The story was dull,")
    typed(page, text.removeprefix("The story was dull,"))
    encoding = BUNDLE.tokenizer.encode(text)
    probabilities = BUNDLE.model(one_text(BUNDLE, encoding)).softmax(-1)[0]
    best = int(probabilities.argmax())
    said = f"{BUNDLE.labels[best]} {float(probabilities[best]):.1%}"
    expect(page.locator("[data-verdict=home]")).to_contain_text(said)
    assert nothing_ran(page)
    run_page(page, text=text)
    expect(page.locator("[data-verdict=home]")).to_contain_text(said)
    page.clock.resume()

    tinted = page.locator(".tinted [role=listitem]")
    worth = [without(text, word) for word in range(tinted.count())]
    told = [word.get_attribute("aria-label") or "" for word in tinted.all()]
    assert all(minus(f"{100 * each:+.1f} points") in there for each, there in zip(worth, told, strict=True))
    most = tinted.nth(worth.index(max(worth))).inner_text().split("\n")[0]
    sentence = page.get_by_text(re.compile(r"pushed towards (positive|negative) by"))
    expect(sentence).to_contain_text(f"{most} pushed towards")
    expect(sentence).to_contain_text(f"by {round(100 * max(worth))} points")

    found = counter_examples(prompt=Prompt(BUNDLE, text, len(encoding))).found[0]
    page.get_by_role("button", name=re.compile(re.escape(found.new))).first.click()
    expect(page.get_by_role("textbox").first).to_have_value(found.text)
    turned = f"{BUNDLE.labels[found.winner]} {found.probability:.1%}"
    expect(page.locator("span[style*='text-stroke:0.5px']")).to_have_text(re.compile(re.escape(turned)))
    settle(page)
    page.locator("[data-part=classifier]").click()
    page.wait_for_url(re.compile("/encoder.*encoder_part=sum"))
    expect(page.get_by_role("heading", name="Encoder")).to_be_visible()


WRITTEN = "[...document.querySelectorAll('.tr-word:not(.tr-source)')].map((word) => word.textContent)"


def test_a_translation_is_shown_from_its_first_words_on_and_ends_as_the_library_has_it(
    clocked: Page, address: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    page, text, more = clocked, "The actors were good and I forgot the time", " and laughed"
    monkeypatch.setattr(translated, "MOMENT", 0.0)  # after which the words written so far are shown
    link = {"lang": "en", "model": "translation-en-fr", "text": text + more, "translation_part": "steps"}
    first = TestClient(Starlette(routes=live_routes(LIVE))).get("/live/translation/steps", params=link).content
    asked, waiting, shown = list[str](), list[Route](), list[str]()

    def bring_the_first_words_alone(route: Route) -> None:
        asked.append(route.request.url)
        if len(asked) == 1:
            route.fulfill(body=first)
        elif shown:
            route.continue_()
        else:
            waiting.append(route)

    stopped(page, address, "translation", model="translation-en-fr", text=text)
    page.route(re.compile("/live/translation/steps.*laughed"), bring_the_first_words_alone)
    type_text(page, text + more)
    page.wait_for_function(f"() => {WRITTEN}.length && {WRITTEN}.at(-1).startsWith('…')")
    shown += page.evaluate(WRITTEN)
    for route in waiting:
        route.continue_()
    page.wait_for_function(f"() => !{WRITTEN}.join().includes('…')")
    assert nothing_ran(page)
    bundle = load(ROOT / "assets" / "checkpoints" / "translation-en-fr", device="cpu")
    written = written_greedily(prompt=Prompt(bundle, text + more, bundle.config.max_len))
    shown[:] = page.evaluate(WRITTEN)
    assert [word.rsplit(f"{chance:.0%}", 1)[0] for word, chance in zip(shown, written.probabilities, strict=True)] == [
        shown_word(word) for word in written.words
    ]
    run_page(page, text=text + more)
    assert page.evaluate(WRITTEN) == shown


SEEN = """
() => [...document.querySelectorAll(".st-key-formula_glass_cell annotation")].filter(
  (one) => one.closest(".katex").getBoundingClientRect().width)
"""
FORMULA = f"() => ({SEEN})().map((one) => one.textContent).join()"
SIZE = f"() => ({SEEN})().map((one) => one.closest('.katex').getBoundingClientRect().toJSON())"
QUERY, VALUE = "encoder.layer0.self_attention.query", "encoder.layer2.self_attention.value"


def wait_formula(page: Page, run: Pass, name: str, *index: int) -> None:
    """Wait until the glass explains this cell with the model's own numbers."""
    found = explain_cell(run, name, (0, *index))
    script = f"(parts) => parts.every((part) => ({FORMULA})().includes(part))"
    page.wait_for_function(script, arg=[f"{found.entry} &=", found.cell.numbers, f"= {found.result} "])


@pytest.mark.nightly
def test_the_glass_explains_another_cell_before_the_page_runs_and_nothing_moves(clocked: Page, address: str) -> None:
    page, run = clocked, read_through(BUNDLE, BUNDLE.tokenizer.encode(TEXT))
    stopped(page, address, glass_open="true", glass=QUERY, glass_head="2", glass_cell="3.7")
    wait_formula(page, run, QUERY, 2, 3, 7)
    canvas = page.locator(".st-key-glass_matrix .vm-canvas")
    press(page, canvas, "ArrowDown", "ArrowRight", "Enter")
    wait_formula(page, run, QUERY, 2, 4, 8)
    assert nothing_ran(page)
    live, size = page.evaluate(FORMULA), page.evaluate(SIZE)
    run_page(page, glass_cell="4.8")
    assert not page.locator("[data-formula] *").count()  # the page's own formula is shown again
    assert (page.evaluate(FORMULA), page.evaluate(SIZE)) == (live, size)
    readout = page.locator(".st-key-glass_matrix .vm-readout").inner_text().replace("−", "-")
    recorded = explain_cell(run, QUERY, (0, 2, 4, 8)).recorded
    assert any(abs(float(number) - recorded) < 1e-3 for number in re.findall(r"-?\d+\.\d+", readout))
    page.clock.resume()

    box = canvas.bounding_box()
    assert box is not None
    canvas.click(position={"x": box["width"] * 0.6, "y": box["height"] * 0.5})
    page.wait_for_url(lambda url: "glass_cell=4.8" not in url)
    row, col = map(int, link_of(page, "glass_cell").split("."))
    wait_formula(page, run, QUERY, 2, row, col)


@pytest.mark.nightly
def test_another_tensor_is_picked_by_hand_and_a_source_by_a_click(page: Page, address: str) -> None:
    run = read_through(BUNDLE, BUNDLE.tokenizer.encode(TEXT))
    visit(page, address, "attention", text=TEXT, glass_open="true", glass="encoder.layer2.self_attention.heads")
    expect(page.get_by_text("Recomputed in float64: greatest difference")).to_be_visible()
    page.get_by_role("button").filter(has_text=VALUE).click()
    wait_painted(page, f"{VALUE}|0|{TEXT}")
    wait_link(page, glass=VALUE)
    expect(page.locator("code").filter(has_text='tap("value"')).to_be_visible()
    box = page.get_by_role("combobox", name="Tensor", exact=True)
    box.scroll_into_view_if_needed()
    box.click()
    box.press_sequentially("weights")
    page.get_by_role("option").first.wait_for()
    page.keyboard.press("Enter")
    name = "encoder.layer2.self_attention.weights"
    wait_painted(page, f"{name}|0|{TEXT}")
    weights = run.trace[name][0, 0]
    row, col = map(int, np.unravel_index(int(weights.argmax()), weights.shape))
    wait_formula(page, run, name, 0, row, col)
