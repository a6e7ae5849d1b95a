"""The positions page in the browser: a cell picked, a slip foretold, a link followed, order measured."""

import csv
import io

import numpy as np
from playwright.sync_api import Page, expect

from pages.ui.header import DEFAULT_TEXT
from tests.helpers import ROOT
from tests.helpers.browser import BUNDLE, download, settle, visit
from transformer_core.analysis.positions.order_worth import what_order_is_worth_here
from transformer_core.analysis.positions.schemes import score_schemes
from transformer_core.analysis.positions.sinusoids import compare_exponents, step_as_rotation
from transformer_core.checkpoints import load
from transformer_core.layers.positions import sinusoidal_table

TEXT = "not a dull film"


def painted(page: Page, version: str) -> None:
    """Wait until a matrix shows this state."""
    page.wait_for_function(
        "(version) => [...document.querySelectorAll('*')].some((host) => host.shadowRoot?.querySelector('.vm')"
        "?.dataset.painted === version)",
        arg=version,
        timeout=30_000,
    )


def test_a_cell_reached_by_keyboard_is_taken_apart(page: Page, address: str) -> None:
    visit(page, address, "positions", positions_length="20", positions_d="16", positions_pos="3", positions_pair="1")
    painted(page, f"20x16|3.1|{DEFAULT_TEXT}")
    page.locator(".vm-canvas").first.focus()
    for key in ("ArrowDown", "ArrowDown", "ArrowRight", "ArrowRight", "Enter"):
        page.keyboard.press(key)
    painted(page, f"20x16|5.2|{DEFAULT_TEXT}")
    assert "positions_pos=5" in page.url
    step = step_as_rotation(length=20, d_model=16, pos=5, shift=5, pair=2)
    formulas = page.locator(".katex annotation")
    expect(formulas.filter(has_text=f"{step.after[0]:.4f}").first).to_be_attached()
    page.locator(".vm-tool-table").first.click()
    cells = page.locator(".vm-table tbody tr:nth-child(6) td").all_inner_texts()
    shown = [float(cell.replace("−", "-")) for cell in cells]
    np.testing.assert_allclose(shown, sinusoidal_table(20, 16)[5], atol=6e-4)


def test_another_length_keeps_the_picked_position(page: Page, address: str) -> None:
    visit(page, address, "positions", positions_length="20", positions_d="16", positions_pos="7", positions_pair="2")
    painted(page, f"20x16|7.2|{DEFAULT_TEXT}")
    page.get_by_role("slider").first.focus()
    page.keyboard.press("ArrowRight")
    painted(page, f"21x16|7.2|{DEFAULT_TEXT}")


def test_the_slip_is_foretold_and_then_counted(page: Page, address: str) -> None:
    visit(page, address, "positions", positions_part="exponent", positions_xlength="30", positions_xd="64")
    painted(page, "30x64")
    found = compare_exponents(length=30, d_model=64)
    cell = page.get_by_role("cell", name=f"{found.still[1]} / 64", exact=True)
    expect(cell).to_have_count(0)
    page.get_by_text("more than twice as many").click()
    settle(page)
    expect(cell).to_have_count(1)
    expect(page.get_by_role("cell", name=f"{found.longest[1]:,.0f}")).to_be_visible()


def test_a_link_to_the_schemes_exports_their_numbers(page: Page, address: str, tmp_path) -> None:
    query = {"positions_part": "schemes", "positions_shown": "weights", "positions_word": "3", "positions_places": "6"}
    visit(page, address, "positions", text=TEXT, head="2", **query)
    page.locator(".vm-canvas").first.wait_for()
    page.get_by_text("Export", exact=True).first.click()
    button = page.get_by_test_id("stDownloadButton").get_by_role("button")
    n_tokens = len(BUNDLE.tokenizer.encode(TEXT))
    asked = {"bundle": BUNDLE, "text": TEXT, "n_tokens": n_tokens, "place": 3, "head": 2, "length": 6}
    learned = load(ROOT / "assets" / "checkpoints" / "bert", device="cpu")  # the shipped model of this width
    found = score_schemes(**asked, learned=learned)
    with np.load(download(page, button.filter(has_text=".npz"), tmp_path), allow_pickle=False) as arrays:
        np.testing.assert_allclose(arrays["weights"], found.weights, atol=1e-5)
    table = download(page, button.filter(has_text="CSV"), tmp_path).read_text(encoding="utf-8-sig")
    values = {cell for row in csv.reader(io.StringIO(table)) for cell in row}
    assert any(abs(float(cell) - found.weights[1, 0, 0]) < 1e-5 for cell in values if cell.startswith("0."))


def test_order_is_measured_on_the_typed_sentence(page: Page, address: str) -> None:
    visit(page, address, "positions", text=TEXT, positions_part="order", positions_all="off")
    page.get_by_text("more than 10 points").click()
    n_tokens = len(BUNDLE.tokenizer.encode(TEXT))
    found = what_order_is_worth_here(bundle=BUNDLE, text=TEXT, n_tokens=n_tokens, seeds=20)
    assert found.probabilities is not None
    flips = int((found.probabilities[1].argmax(-1) != found.probabilities[0, 0].argmax()).sum())
    told = page.get_by_text(f"In {flips} of 20 shuffles the verdict is another.")
    expect(told).to_be_visible(timeout=30_000)


def test_a_list_of_words_has_the_words_of_the_text_in_the_box(page: Page, address: str) -> None:
    visit(page, address, "positions", positions_part="schemes", text="The film", lang="en")
    word = page.locator("[class*='st-key-positions_word-'] input")
    expect(word).to_have_value("1 the")
    word.click()
    page.get_by_role("option", name="2 film").click()
    for text, held in (("Dogs bark", "2 bark"), ("A tree grows", "2 tree"), ("Cats sleep", "2 sleep")):
        page.get_by_role("textbox").first.fill(text)
        expect(word).to_have_value(held)
        settle(page)
        assert "positions_word=2" in page.url
