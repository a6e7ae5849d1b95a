"""What stands on the translation page is what the model computes: written, looked up and searched in a browser.

The server has the shipped bundles alone, so that these wait until one that translates is among them.
"""

import re

import pytest
from playwright.sync_api import Page, expect

from tests.helpers import ROOT
from tests.helpers.browser import visit, wait_painted
from transformer_core.analysis.translation.beam_tree import beam_tree
from transformer_core.analysis.translation.greedy_steps import written_greedily
from transformer_core.analysis.translation.letter_search import letter_search
from transformer_core.bundle import Bundle
from transformer_core.checkpoints import load

FOLDER = ROOT / "assets" / "checkpoints" / "translation-en-fr"
TEXT = "A dog runs on the beach."
shipped = pytest.mark.skipif(not (FOLDER / "config.json").exists(), reason="translation-en-fr is not shipped yet")
pytestmark = shipped


@pytest.fixture(scope="module")
def bundle() -> Bundle:
    """The shipped translator, as the page opens it."""
    return load(FOLDER, device="cpu")


def asked(bundle: Bundle) -> dict:
    """Return what the page asks the library with."""
    return {"bundle": bundle, "text": TEXT, "n_tokens": len(bundle.tokenizer.encode(TEXT))}


def test_a_step_is_scrubbed_to_and_its_link_is_followed(page: Page, address: str, bundle: Bundle) -> None:
    written = written_greedily(**asked(bundle))
    visit(page, address, "translation", text=TEXT, translation_step="2")
    came = page.get_by_text(f"with a probability of {written.probabilities[2]:.2%}")
    expect(came).to_be_visible(timeout=30_000)
    page.get_by_role("slider").first.focus()
    page.keyboard.press("ArrowLeft")
    expect(page.get_by_text(f"with a probability of {written.probabilities[1]:.2%}")).to_be_visible(timeout=20_000)
    page.wait_for_url(re.compile("translation_step=1"))
    wait_painted(page, f"rows 0.1|{TEXT}")
    page.goto(page.url)
    expect(page.get_by_text(f"with a probability of {written.probabilities[1]:.2%}")).to_be_visible(timeout=30_000)


def test_a_click_on_a_small_map_shows_that_head_large(page: Page, address: str) -> None:
    visit(page, address, "translation", text=TEXT, translation_part="cross")
    wait_painted(page, f"all|0|{TEXT}")
    grid = page.locator(".vm-canvas").nth(1)
    grid.focus()
    page.keyboard.press("PageDown")
    page.keyboard.press("Enter")
    wait_painted(page, f"weights|0.1|{TEXT}")
    assert "translation_over=head" in page.url


def test_the_ranking_of_a_beam_is_read_back(page: Page, address: str, bundle: Bundle) -> None:
    tree = beam_tree(**asked(bundle), width=2, length_penalty=0.6)
    visit(page, address, "translation", text=TEXT, translation_part="beam", translation_width="2")
    row = page.get_by_role("row").nth(1)
    expect(row).to_contain_text(f"{tree.ranking.scores[0]:.3f}", timeout=30_000)
    expect(row).to_contain_text(tree.ranking.texts[0])
    expect(page.get_by_test_id("stVegaLiteChart").locator("canvas, svg").first).to_be_visible()


def test_every_target_of_three_letters_is_searched(page: Page, address: str) -> None:
    found = letter_search(rule="copy", source="abc", epochs=1, seed=0, length_penalty=0.6)
    query = {"translation_part": "search", "translation_letters": "abc", "translation_epochs": "1"}
    visit(page, address, "translation", **query)
    last = page.get_by_role("row").last
    expect(last).to_contain_text(f"{found.best_scores[0]:.3f}", timeout=60_000)
    expect(last).to_contain_text(f"{found.n_targets:,}")
