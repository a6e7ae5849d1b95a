"""What stands on the encoder page is what the model computes: read back from the screen."""

import re

from playwright.sync_api import Page, expect

from tests.helpers.browser import BUNDLE, visit, wait_painted
from transformer_core.analysis.encoder.layers import layer_verdicts
from transformer_core.analysis.encoder.logit_sum import logit_sum
from transformer_core.analysis.encoder.measures import measures
from transformer_core.analysis.encoder.two_sentences import sentence_pair

TEXT = "The plot was thin but I loved every minute"
OTHER = "The plot was thin but I hated every minute"
ASKED = {"bundle": BUNDLE, "text": TEXT, "n_tokens": len(BUNDLE.tokenizer.encode(TEXT))}


def metric(page: Page, label: str):
    """Return the number that stands large below a label."""
    return page.get_by_test_id("stMetric").filter(has_text=label).get_by_test_id("stMetricValue")


def test_the_first_screen_shows_the_curve_and_the_moves(page: Page, address: str) -> None:
    visit(page, address, "encoder", text=TEXT)
    found = layer_verdicts(**ASKED)
    expect(page.get_by_test_id("stVegaLiteChart").locator("canvas, svg").first).to_be_visible()
    expect(metric(page, "if read from the tokens' mean")).to_have_text(
        f"{found.probabilities[1, -1, found.winner]:.1%}"
    )
    wait_painted(page, f"moves|{TEXT}")


def test_the_last_sum_of_another_class_and_its_link(page: Page, address: str) -> None:
    visit(page, address, "encoder", text=TEXT, encoder_part="sum")
    page.get_by_role("radio", name="positive").click()
    found = logit_sum(**ASKED, target=1)
    formula = page.locator(".katex-html").filter(has_text=f"{abs(found.total):.4f}")
    expect(formula.first).to_be_visible(timeout=20_000)
    page.wait_for_url(re.compile("encoder_of=1"))
    page.goto(page.url)
    expect(formula.first).to_be_visible(timeout=20_000)


def test_a_word_is_foretold_and_the_bars_add_up(page: Page, address: str) -> None:
    visit(page, address, "encoder", text=TEXT, encoder_part="tokens")
    found = measures(**ASKED, steps=16, baseline="mask")
    first = BUNDLE.tokenizer.encode(TEXT).labels[int(found.first[2])]
    page.locator("[data-testid=stButtonGroup] button", has_text=first).first.click()
    expect(metric(page, "sum of the bars")).to_have_text(f"{found.saliency.summed:+.4f}", timeout=20_000)
    expect(page.get_by_text(f"Integrated gradients put {first}")).to_be_visible()


def test_a_second_sentence_is_written_and_told_apart(page: Page, address: str) -> None:
    visit(page, address, "encoder", text=TEXT, encoder_part="edit")
    page.get_by_role("textbox", name="The second sentence").fill(OTHER)
    found = sentence_pair(bundle=BUNDLE, text=TEXT, other=OTHER, n_tokens=64)
    wait_painted(page, f"spread|{'|'.join(found.labels)}")
    page.get_by_text("layer 3", exact=True).first.click()
    expect(page.get_by_text(f"moves by {100 * found.moved:+.1f} points")).to_be_visible(timeout=20_000)
    page.wait_for_url(re.compile("encoder_other="))
