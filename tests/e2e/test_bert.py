"""What stands on the BERT page is what the model computes: read back from the screen."""

import re
from functools import lru_cache

import pytest
from playwright.sync_api import Page, expect

from pages.ui.number_format import percent
from tests.helpers import ROOT
from tests.helpers.browser import visit
from transformer_core.analysis.bert.masked_words import fill_in
from transformer_core.analysis.bert.sentence_pairs import pair_verdict
from transformer_core.analysis.bert.tied_output import one_score
from transformer_core.bundle import Bundle
from transformer_core.checkpoints import load

FOLDER = ROOT / "assets" / "checkpoints" / "bert"
TEXT, SECOND = "A man in a red shirt is riding a horse.", "Two dogs run on the beach."

pytestmark = pytest.mark.skipif(not FOLDER.is_dir(), reason="the bundle bert is not shipped yet")


@lru_cache(maxsize=1)
def bundle() -> Bundle:
    """Return the shipped BERT."""
    return load(FOLDER, device="cpu")


def place_of(word: str) -> int:
    """Return where a word of the text stands."""
    return bundle().tokenizer.encode(TEXT).labels.index(word)


def metric(page: Page, name: str):
    """Return a large number by what it is called."""
    return page.get_by_test_id("stMetric").filter(has_text=name).get_by_test_id("stMetricValue").first


def test_a_clicked_chip_is_hidden_and_the_link_keeps_it(page: Page, address: str) -> None:
    visit(page, address, "bert", text=TEXT)
    for word in ("horse", "red"):
        page.get_by_test_id("stButtonGroup").get_by_role("button", name=word, exact=True).click()
    page.wait_for_url(re.compile(rf"bert_hidden={place_of('red')}$|bert_hidden={place_of('red')}&"))
    asked = {"bundle": bundle(), "text": TEXT, "n_tokens": len(bundle().tokenizer.encode(TEXT))}
    found = fill_in(**asked, hidden=(place_of("red"),))
    expect(metric(page, "True word")).to_have_text("red")
    expect(metric(page, "Its probability")).to_have_text(percent(found.true_probabilities[0]))
    page.goto(page.url)
    expect(metric(page, "Its rank")).to_have_text(f"{found.true_ranks[0]:,}", timeout=30_000)


def test_a_mask_is_typed(page: Page, address: str) -> None:
    visit(page, address, "bert", text=TEXT)
    page.get_by_role("textbox").first.fill(TEXT.replace("red", "[MASK]"))
    expect(page.get_by_text("This mask was typed")).to_be_visible(timeout=20_000)


def test_the_sentences_swap_places(page: Page, address: str) -> None:
    visit(page, address, "bert", text=TEXT, bert_second=SECOND, bert_part="pair")
    found = pair_verdict(bundle=bundle(), text=TEXT, pair=SECOND, n_tokens=min(128, bundle().config.max_len))
    expect(page.get_by_text(f"{found.follows[0]:.1%}").first).to_be_visible()
    page.get_by_role("button", name="Swap A and B").click()
    expect(page.get_by_role("textbox").first).to_have_value(SECOND, timeout=20_000)
    expect(page.get_by_role("textbox").nth(1)).to_have_value(TEXT)
    expect(page.get_by_text(f"{found.follows[1]:.1%}").first).to_be_visible()


def test_a_score_is_recomputed(page: Page, address: str) -> None:
    visit(page, address, "bert", text=TEXT, bert_part="tied")
    asked = {"bundle": bundle(), "text": TEXT, "n_tokens": len(bundle().tokenizer.encode(TEXT))}
    hidden = (place_of("horse"),)
    first = int(fill_in(**asked, hidden=hidden).ids[0, 0])
    found = one_score(**asked, hidden=hidden, place=hidden[0], word_id=first)
    expect(page.get_by_text(f"{found.score:+.6f}").first).to_be_visible(timeout=20_000)
    expect(page.get_by_text("one tensor")).to_be_visible()
