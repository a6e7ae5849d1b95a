"""Under the glass, as a person uses it: open, pick a tensor, point at a cell, read its numbers, take the files."""

import re

import numpy as np
import pytest
from playwright.sync_api import Page, expect

from tests.helpers.browser import BUNDLE, download, settle, visit, wait_painted
from transformer_core.analysis.arithmetic import Pass, explain_cell, read_through

TEXT = "The plot was thin but I loved every minute"
QUERY = "encoder.layer0.self_attention.query"
VALUE = "encoder.layer2.self_attention.value"


@pytest.fixture(scope="module")
def run() -> Pass:
    """Return what the model records over the text here, outside the app."""
    return read_through(BUNDLE, BUNDLE.tokenizer.encode(TEXT))


def formula_of_cell(page: Page, entry: str) -> str:
    """Wait for the arithmetic of a cell, and return the LaTeX it was drawn from."""
    source = page.locator("annotation").filter(has_text=f"{entry} &=").first  # the page's, or what came the short way
    source.wait_for(state="attached", timeout=30_000)
    return source.text_content() or ""


def look(page: Page, address: str, **query: str) -> None:
    """Open the box on the page of attention."""
    visit(page, address, "attention", text=TEXT, glass_open="true", **query)


def test_a_cell_chosen_by_keyboard_shows_the_models_own_numbers(page: Page, address: str, run: Pass) -> None:
    look(page, address, glass=QUERY, glass_head="2", glass_cell="3.7")
    wait_painted(page, f"{QUERY}|2|{TEXT}")
    expected = explain_cell(run, QUERY, (0, 2, 3, 7))
    assert expected.cell.numbers in formula_of_cell(page, expected.entry)
    canvas = page.locator(".st-key-glass_matrix .vm-canvas")
    canvas.focus()
    page.keyboard.press("ArrowDown")
    page.keyboard.press("ArrowRight")
    page.keyboard.press("Enter")
    page.wait_for_url(re.compile(r"glass_cell=4\.8"))
    expected = explain_cell(run, QUERY, (0, 2, 4, 8))
    assert expected.cell.numbers in formula_of_cell(page, expected.entry)
    assert f"= {expected.result} " in formula_of_cell(page, expected.entry)
    readout = page.locator(".st-key-glass_matrix .vm-readout").inner_text().replace("−", "-")
    assert any(abs(float(number) - expected.recorded) < 1e-3 for number in re.findall(r"-?\d+\.\d+", readout))


def test_a_click_on_the_matrix_moves_the_formula(page: Page, address: str, run: Pass) -> None:
    look(page, address, glass=QUERY, glass_cell="0.0")
    wait_painted(page, f"{QUERY}|0|{TEXT}")
    canvas = page.locator(".st-key-glass_matrix .vm-canvas")
    box = canvas.bounding_box()
    assert box is not None
    canvas.click(position={"x": box["width"] * 0.6, "y": box["height"] * 0.5})
    page.wait_for_function("() => !new URL(location).searchParams.get('glass_cell')?.startsWith('0.0')")
    row, col = map(int, page.evaluate("() => new URL(location).searchParams.get('glass_cell')").split("."))
    expected = explain_cell(run, QUERY, (0, 0, row, col))
    assert expected.cell.numbers in formula_of_cell(page, expected.entry)


def test_another_tensor_is_picked_by_hand_and_a_source_by_a_click(page: Page, address: str, run: Pass) -> None:
    look(page, address, glass="encoder.layer2.self_attention.heads")
    expect(page.get_by_text("Recomputed in float64: greatest difference")).to_be_visible()
    page.get_by_role("button").filter(has_text=VALUE).click()
    wait_painted(page, f"{VALUE}|0|{TEXT}")
    assert f"glass={VALUE}" in page.url
    expect(page.locator("code").filter(has_text='tap("value"')).to_be_visible()
    settle(page)
    box = page.get_by_role("combobox", name="Tensor", exact=True)
    box.scroll_into_view_if_needed()
    box.click()
    box.press_sequentially("weights")
    page.get_by_role("option").first.wait_for()
    page.keyboard.press("Enter")
    wait_painted(page, f"encoder.layer2.self_attention.weights|0|{TEXT}")
    weights = run.trace["encoder.layer2.self_attention.weights"][0, 0]
    row, col = map(int, np.unravel_index(int(weights.argmax()), weights.shape))
    expected = explain_cell(run, "encoder.layer2.self_attention.weights", (0, 0, row, col))
    assert expected.cell.numbers in formula_of_cell(page, expected.entry)


def test_files_hold_the_tensor(page: Page, address: str, run: Pass, tmp_path) -> None:
    look(page, address, glass=VALUE, glass_head="1")
    wait_painted(page, f"{VALUE}|1|{TEXT}")
    page.get_by_text("Export", exact=True).last.click()
    button = page.get_by_test_id("stDownloadButton").get_by_role("button")
    with np.load(download(page, button.filter(has_text=".npz"), tmp_path), allow_pickle=False) as arrays:
        np.testing.assert_allclose(arrays["values"], run.trace[VALUE].numpy(), atol=1e-6)
        assert arrays["name"] == VALUE
    script = download(page, button.filter(has_text="Python"), tmp_path).read_text(encoding="utf-8")
    assert f"name={VALUE!r}" in script
