"""What stands on the GPT page is what the model computes: read back from the screen."""

import re

from playwright.sync_api import Page, expect

from tests.helpers import ROOT
from tests.helpers.browser import type_text, visit
from transformer_core.analysis.gpt.continuation import written_on
from transformer_core.analysis.gpt.next_token import expected
from transformer_core.checkpoints import load

BUNDLE = load(ROOT / "assets" / "checkpoints" / "gpt-char", device="cpu")
TEXT = "The king is"
SLOW = 40_000
DOWN = """(wanted) => {
  const labels = [...(document.querySelectorAll("svg.marks")[1]?.querySelectorAll(".role-axis-label text") ?? [])];
  const down = labels.map((label) => [label.getBoundingClientRect().top, label.textContent]).sort(([a], [b]) => a - b);
  return JSON.stringify(down.slice(0, wanted.length).map(([, text]) => text)) === JSON.stringify(wanted);
}"""  # the axis' labels from top to bottom: the order on the screen is not that in the document
RULES = {"how": "sample", "temperature": 0.7, "top_k": None, "top_p": 0.9, "seed": 0}


def asked(text: str = TEXT) -> dict:
    """Return the arguments that every question about a text has."""
    return {"bundle": BUNDLE, "text": text, "n_tokens": len(BUNDLE.tokenizer.encode(text))}


def entropy(text: str, place: int | None = None) -> str:
    """Return the entropy as the page writes it."""
    known = asked(text)
    return f"{expected(**known, place=place or known['n_tokens'], top=10).entropy:.2f} bits"


def test_the_entropy_follows_the_typing_and_a_click_on_the_strip(page: Page, address: str) -> None:
    visit(page, address, "gpt", text=TEXT, model="gpt-char")
    metric = page.get_by_test_id("stMetric").filter(has_text="Entropy").get_by_test_id("stMetricValue")
    expect(metric).to_have_text(entropy(TEXT), timeout=SLOW)
    longer = f"{TEXT} d"
    type_text(page, longer)
    expect(metric).to_have_text(entropy(longer), timeout=SLOW)
    chart = page.get_by_test_id("stVegaLiteChart").first
    drawn = chart.locator("canvas, svg").first
    expect(drawn).to_be_visible(timeout=SLOW)
    box = drawn.bounding_box()
    assert box is not None
    drawn.click(position={"x": box["width"] * (2 * 4 + 1) / 92, "y": box["height"] - 26})
    page.wait_for_url(re.compile(r"gpt_back=-\d+"), timeout=SLOW)
    back = int(re.findall(r"gpt_back=(-\d+)", page.url)[0])
    expect(metric).to_have_text(entropy(longer, len(longer) + back), timeout=SLOW)


def test_a_token_is_written_and_another_put_in_its_place(page: Page, address: str) -> None:
    visit(page, address, "gpt", text=TEXT, model="gpt-char", gpt_part="write", gpt_steps="4")
    shown = page.get_by_test_id("stCode").first
    free = written_on(**asked(), **RULES, choices=(), steps=5)
    page.get_by_role("button", name="One token").click()
    expect(shown).to_contain_text(free.written.strip().split("\n")[-1], timeout=SLOW)
    page.wait_for_url(re.compile("gpt_steps=5"), timeout=SLOW)
    step = free.steps[4]
    other = next(place for place, id_ in enumerate(step.top_ids) if id_ != step.token_id)
    page.get_by_role("radio", name=re.compile(rf"^{re.escape(step.top_labels[other])} \d")).click()
    page.wait_for_url(re.compile(f"gpt_choices=4.{step.top_ids[other]}"), timeout=SLOW)
    put = written_on(**asked(), **RULES, choices=((4, step.top_ids[other]),), steps=5)
    expect(shown).to_contain_text(put.written.strip().split("\n")[-1], timeout=SLOW)


def test_nothing_before_the_changed_word_moves(page: Page, address: str) -> None:
    visit(page, address, "gpt", text=TEXT, model="gpt-char", gpt_part="mask")
    metric = page.get_by_test_id("stMetric").get_by_test_id("stMetricValue")
    expect(metric).to_have_text("0 (exactly)", timeout=SLOW)
    page.get_by_text("all of them", exact=True).click()
    expect(page.get_by_text("earlier positions move")).to_be_visible(timeout=SLOW)


def test_a_key_moves_the_marks_and_begins_no_chart_anew(page: Page, address: str) -> None:
    visit(page, address, "gpt", text=TEXT, model="gpt-char")
    drawings = page.locator("svg.marks")
    expect(drawings).to_have_count(2, timeout=SLOW)
    page.evaluate("() => document.querySelectorAll('svg.marks').forEach((one) => { one.begunBefore = true; })")
    type_text(page, f"{TEXT} d")
    metric = page.get_by_test_id("stMetric").filter(has_text="Entropy").get_by_test_id("stMetricValue")
    expect(metric).to_have_text(entropy(f"{TEXT} d"), timeout=SLOW)
    expect(drawings.first.get_by_text("d", exact=True)).to_be_visible(timeout=SLOW)
    assert page.evaluate("() => [...document.querySelectorAll('svg.marks')].every((one) => one.begunBefore)")


def test_after_typing_the_likeliest_token_is_on_top_and_all_others_are_at_the_bottom(page: Page, address: str) -> None:
    visit(page, address, "gpt", text=TEXT, model="gpt-char")
    typed = TEXT
    page.get_by_role("textbox").first.press("End")
    for letter in ("", " ", "n"):
        typed += letter
        page.keyboard.type(letter)
        found = expected(**asked(typed), place=len(typed), top=10)
        wanted = [*found.labels, f"all other {found.n_rest:,}"]
        page.wait_for_function(DOWN, arg=wanted, timeout=SLOW)


def test_another_language_reaches_the_frame_around_the_page(page: Page, address: str) -> None:
    visit(page, address, "gpt", text=TEXT, model="gpt-char")
    page.get_by_text("中文", exact=True).click()
    expect(page.locator("html[lang=zh]")).to_be_attached(timeout=SLOW)
    expect(page.locator(".st-key-nav_next")).to_contain_text("下一页", timeout=SLOW)
    expect(page.get_by_role("textbox").first).to_have_value(TEXT)
