"""The Why? page in a browser: a guess is judged, a slider reveals, and what is shown and saved is what is computed."""

import re

import numpy as np
from playwright.sync_api import Page, expect

from pages.ui.number_format import significant
from tests.helpers.browser import BUNDLE, download, visit, weights
from transformer_core.analysis.why.projections import tied_query_key
from transformer_core.analysis.why.scaling import WIDTHS, spread_by_width

TEXT = "The plot was thin but I loved every minute"


def measured(page: Page) -> str:
    """Return what the page says was measured."""
    box = page.locator("[class*='_judged']")
    expect(box).to_contain_text(re.compile("Measured|As you predicted"), timeout=30_000)
    return box.inner_text()


def test_a_guess_is_judged_and_the_slider_reveals(page: Page, address: str) -> None:
    found = spread_by_width(seed=0)
    visit(page, address, "why", text=TEXT, why="scaling")
    expect(page.get_by_test_id("stVegaLiteChart")).to_have_count(4, timeout=30_000)
    page.get_by_text("more than 90%", exact=True).click()
    assert "As you predicted" in measured(page)
    slider = page.get_by_role("slider").first
    slider.focus()
    for _ in range(2):
        page.keyboard.press("ArrowRight")
    index = WIDTHS.index(16)
    said = f"At d_k = 16 it is {significant(found.variance[index], 3)}"
    expect(page.locator("[class*='_judged']")).to_contain_text(said)
    assert f"{found.greatest[index]:.0%}" in measured(page)
    page.wait_for_url("**why_scaling_width=16**")


def test_a_question_opens_with_the_models_own_heads(page: Page, address: str) -> None:
    labels, expected = weights(TEXT, 1, 2)
    visit(page, address, "why", text=TEXT, layer="1", why="heads", shown="why_heads")
    matrix = page.locator(".vm").first
    expect(matrix).to_be_visible(timeout=30_000)
    canvas = matrix.locator(".vm-canvas")
    canvas.focus()
    for _ in range(2):
        page.keyboard.press("PageDown")
    page.keyboard.press("Enter")
    matrix.locator(".vm-tool-table").click()
    cells = matrix.locator(".vm-table tbody tr:nth-child(1) td").all_inner_texts()
    shown = np.array([float(cell.replace("−", "-")) for cell in cells])[: len(labels)]
    np.testing.assert_allclose(shown, expected[0], atol=2.5e-3)  # one byte a value


def test_a_link_rebuilds_the_screen(page: Page, address: str) -> None:
    asked = {"bundle": BUNDLE, "text": TEXT, "n_tokens": len(BUNDLE.tokenizer.encode(TEXT))}
    found = tied_query_key(**asked, layer=2, head=3, share=1.0, seed=0)
    visit(
        page,
        address,
        "why",
        text=TEXT,
        why="symmetry",
        layer="2",
        head="3",
        why_symmetry_share="1.0",
        shown="why_symmetry",
    )
    told = measured(page)
    assert f"head 3 of layer 2 has an asymmetry of {found.scores_asymmetry[0]:.2f}" in told
    assert f"{found.weights_asymmetry[-1]:.2f}" in told


def test_a_chart_is_saved_with_its_numbers_and_script(page: Page, address: str, tmp_path) -> None:
    found = spread_by_width(seed=0)
    visit(page, address, "why", text=TEXT, why="scaling", shown="why_scaling")
    page.get_by_text("Export", exact=True).first.click()
    button = page.get_by_test_id("stDownloadButton").get_by_role("button")
    arrays = np.load(download(page, button.filter(has_text=".npz"), tmp_path), allow_pickle=False)
    np.testing.assert_allclose(arrays["variance"], found.variance, rtol=1e-4)
    script = download(page, button.filter(has_text="Python"), tmp_path).read_text(encoding="utf-8")
    assert re.search(r"spread_by_width\(\s+seed=0,\s+\)", script)
    svg = download(page, button.filter(has_text="SVG"), tmp_path)
    assert svg.read_bytes()[:200].count(b"<svg") == 1
