"""What stands on the attention page is what the model computes: read back from the screen and from the downloads."""

import csv
import io
import json
import re

import numpy as np
import pytest
from playwright.sync_api import Page, Position, expect

from tests.helpers.browser import download, grid, large, type_text, visit, wait_painted, weights

TEXT = "The plot was thin but I loved every minute"


def test_typing_repaints_every_head(page: Page, address: str) -> None:
    visit(page, address, "attention", text=TEXT)
    wait_painted(page, f"0.0|{TEXT}")
    type_text(page, TEXT.replace("loved", "hated"))
    wait_painted(page, f"0.0|{TEXT.replace('loved', 'hated')}")


def test_a_click_on_the_grid_opens_that_head(page: Page, address: str) -> None:
    visit(page, address, "attention", text=TEXT)
    wait_painted(page, f"0.0|{TEXT}")
    canvas = grid(page).locator(".vm-canvas")
    canvas.focus()
    for _ in range(9):
        page.keyboard.press("PageDown")
    page.keyboard.press("Enter")
    wait_painted(page, f"1.1|{TEXT}")
    page.wait_for_url("**layer=1&head=1**")


@pytest.mark.parametrize(("row", "col"), [(0, 3), (5, 0)])
def test_the_table_and_the_readout_hold_the_models_numbers(page: Page, address: str, row: int, col: int) -> None:
    labels, expected = weights(TEXT, 2, 3)
    visit(page, address, "attention", text=TEXT, layer="2", head="3", cell=f"{row}.{col}")
    wait_painted(page, f"2.3|{TEXT}")
    large(page).locator(".vm-tool-table").click()
    cells = large(page).locator(f".vm-table tbody tr:nth-child({row + 1}) td").all_inner_texts()
    shown = np.array([float(cell.replace("−", "-")) for cell in cells])
    np.testing.assert_allclose(shown, expected[row], atol=6e-4)
    readout = large(page).locator(".vm-readout").inner_text()
    assert labels[row] in readout
    assert any(abs(float(number) - expected[row, col]) < 1e-3 for number in re.findall(r"\d\.\d+(?:e-?\d+)?", readout))


def test_the_browser_recomputes_the_weights_from_query_and_key(page: Page, address: str) -> None:
    visit(page, address, "attention", text=TEXT, layer="1", head="4", cell="2.3")
    wait_painted(page, f"1.4|{TEXT}")
    badge = large(page).locator(".vm-badge").inner_text()
    powers = re.findall(r"\d\.?\d*×10⁻([⁰¹²³⁴⁵⁶⁷⁸⁹]+)", badge)
    assert len(powers) == 2, badge
    assert all(int(power.translate(str.maketrans("⁰¹²³⁴⁵⁶⁷⁸⁹", "0123456789"))) >= 6 for power in powers)


def test_downloads_hold_the_numbers_on_the_screen(page: Page, address: str, tmp_path) -> None:
    labels, expected = weights(TEXT, 3, 6)
    visit(page, address, "attention", text=TEXT, layer="3", head="6")
    wait_painted(page, f"3.6|{TEXT}")
    page.get_by_text("Export", exact=True).last.click()
    button = page.get_by_test_id("stDownloadButton").get_by_role("button")
    table = download(page, button.filter(has_text="CSV"), tmp_path)
    rows = list(csv.reader(io.StringIO(table.read_text(encoding="utf-8-sig"))))
    assert tuple(rows[0][1:]) == labels
    np.testing.assert_allclose([[float(cell) for cell in row[1:]] for row in rows[1:]], expected, atol=1e-6)
    arrays = np.load(download(page, button.filter(has_text=".npz"), tmp_path), allow_pickle=False)
    np.testing.assert_allclose(arrays["steps.weights"], expected, atol=1e-6)
    html = download(page, button.filter(has_text="HTML"), tmp_path).read_text(encoding="utf-8")
    assert "http://" not in html.replace("http://www.w3.org", "")
    assert "https://" not in html
    script = download(page, button.filter(has_text="Python"), tmp_path).read_text(encoding="utf-8")
    assert repr(TEXT) in script
    notebook = json.loads(download(page, button.filter(has_text="Notebook"), tmp_path).read_text(encoding="utf-8"))
    assert TEXT in notebook["cells"][0]["source"]
    assert all(cell["source"] in script for cell in notebook["cells"][1:])


@pytest.mark.parametrize(("tool", "ending", "magic"), [("png", ".png", b"\x89PNG"), ("svg", ".svg", b"<svg")])
def test_pictures_are_saved_from_the_figure(
    page: Page, address: str, tmp_path, tool: str, ending: str, magic: bytes
) -> None:
    visit(page, address, "attention", text=TEXT)
    wait_painted(page, f"0.0|{TEXT}")
    path = download(page, large(page).locator(f".vm-tool-{tool}"), tmp_path)
    assert path.suffix == ending
    if ending == ".svg":
        told = " ".join(re.findall(r"<text[^>]*>([^<]*)</text>", path.read_text(encoding="utf-8")))
        assert f"Layer 0, head 0 model sentiment · layer 0 · head 0 “{TEXT}”" in told
    assert magic in path.read_bytes()[:200]


def test_the_exported_page_works_alone(page: Page, address: str, tmp_path) -> None:
    visit(page, address, "attention", text=TEXT)
    wait_painted(page, f"0.0|{TEXT}")
    page.get_by_text("Export", exact=True).last.click()
    path = download(
        page, page.get_by_test_id("stDownloadButton").get_by_role("button").filter(has_text="HTML"), tmp_path
    )
    alone = page.context.new_page()
    alone.goto(path.as_uri())
    expect(alone.locator(".vm-canvas")).to_be_visible()
    alone.locator(".vm-tool-table").click()
    expect(alone.locator(".vm-table")).to_contain_text("loved")
    alone.close()


def test_one_hundred_and_twenty_eight_tokens_stay_readable(page: Page, address: str) -> None:
    text = " ".join(["good", "bad", "film"] * 42)
    visit(page, address, "attention", text=text)
    wait_painted(page, f"0.0|{text}")
    expect(large(page).locator(".vm-canvas")).to_be_visible()


def test_the_same_head_can_be_clicked_again_after_a_control_moved_on(page: Page, address: str) -> None:
    visit(page, address, "attention", text=TEXT)
    wait_painted(page, f"0.0|{TEXT}")
    canvas = grid(page).locator(".vm-canvas")
    box = canvas.bounding_box()
    assert box is not None
    place: Position = {"x": box["width"] * 0.95, "y": box["height"] * 0.15}
    canvas.click(position=place)
    wait_painted(page, f"0.7|{TEXT}")
    page.wait_for_timeout(2_500)
    page.get_by_role("radio", name="0", exact=True).last.click()
    wait_painted(page, f"0.0|{TEXT}")
    page.wait_for_timeout(500)
    canvas.click(position=place)
    wait_painted(page, f"0.7|{TEXT}")


def test_a_dimension_of_the_mixture_is_not_taken_for_a_key(page: Page, address: str) -> None:
    visit(page, address, "attention", text=TEXT, step="mixture")
    wait_painted(page, f"0.0|{TEXT}")
    canvas = large(page).locator(".vm-canvas")
    canvas.focus()
    page.keyboard.press("ArrowRight")
    page.keyboard.press("Enter")
    page.wait_for_timeout(800)
    assert "cell=" not in page.url
