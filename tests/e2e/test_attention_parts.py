"""What a person does in the parts of the attention page, and the numbers read back from the screen."""

import re
from urllib.parse import parse_qs, urlparse

import numpy as np
from playwright.sync_api import Browser, Locator, Page, expect

from tests.helpers.browser import BUNDLE, download, settle, visit, weights
from transformer_core.analysis.attention.head_ablation import head_effects

TEXT = "The plot was thin but I loved every minute"


def words_of(page: Page) -> Locator:
    """Return the words of the text with arcs."""
    return page.locator(".arcs [role=radio]")


def said(page: Page) -> Locator:
    """Return the sentence below the arcs."""
    return page.locator(".arcs-said")


def asked(page: Page) -> dict[str, list[str]]:
    """Return what the address asks for."""
    return parse_qs(urlparse(page.url).query)


def test_a_click_and_the_keyboard_choose_whose_arcs_are_drawn(page: Page, address: str) -> None:
    labels, expected = weights(TEXT, 0, 7)
    visit(page, address, "attention", attention_part="arcs", text=TEXT, layer="0", head="7")
    loved = labels.index("loved")
    words_of(page).nth(loved).click()
    top = int(expected[loved].argmax())
    expect(said(page)).to_contain_text(f"“loved” looks most at: {labels[top]} {expected[loved, top]:.3f}")
    expect(said(page)).to_contain_text("sum to 1.000")
    page.wait_for_url(lambda url: parse_qs(urlparse(url).query).get("attention_token") == [str(loved)])
    page.keyboard.press("ArrowLeft")
    expect(said(page)).to_contain_text(f"“{labels[loved - 1]}” looks most at")
    expect(words_of(page).nth(loved - 1)).to_be_focused()
    named = words_of(page).nth(top).get_attribute("aria-label") or ""
    assert f"{expected[loved - 1, top]:.3f}" in named


def test_who_looks_at_a_word_is_its_column(page: Page, address: str) -> None:
    labels, expected = weights(TEXT, 1, 2)
    query = {"attention_direction": "to", "attention_token": "4", "layer": "1", "head": "2"}
    visit(page, address, "attention", attention_part="arcs", text=TEXT, **query)
    expect(said(page)).to_contain_text(f"“{labels[4]}” is looked at most by: {labels[int(expected[:, 4].argmax())]}")
    expect(said(page)).to_contain_text(f"sum to {expected[:, 4].sum():.3f}")


def test_arcs_are_saved_as_pictures(page: Page, address: str, tmp_path) -> None:
    visit(page, address, "attention", attention_part="arcs", text=TEXT)
    for kind, magic in (("svg", b"<svg"), ("png", b"\x89PNG")):
        path = download(page, page.locator(f".arcs-{kind}"), tmp_path)
        assert magic in path.read_bytes()[:200]


def test_a_long_text_breaks_into_lines_that_stay_inside(page: Page, address: str) -> None:
    visit(
        page,
        address,
        "attention",
        attention_part="arcs",
        text="这部电影不好看，但是我喜欢结尾。" * 4 + " good film" * 20,
    )
    expect(words_of(page).last).to_be_visible()
    frame = page.locator(".arcs > svg").bounding_box()
    boxes = [word.bounding_box() for word in words_of(page).all()]
    assert frame is not None
    assert all(
        box and box["x"] >= frame["x"] and box["x"] + box["width"] <= frame["x"] + frame["width"] for box in boxes
    )
    assert len({round(box["y"]) for box in boxes if box}) > 2


def test_a_head_is_switched_off_from_the_board_and_the_link_brings_it_back(
    page: Page, browser: Browser, address: str
) -> None:
    found = head_effects(bundle=BUNDLE, text=TEXT, n_tokens=len(BUNDLE.tokenizer.encode(TEXT)))
    visit(page, address, "attention", attention_part="effect", text=TEXT)
    page.get_by_role("button", name="Show me").click()
    settle(page)
    board = page.locator(".vm").first
    expect(board).to_have_attribute("data-painted", f"zero|0.0|{TEXT}")
    page.wait_for_timeout(500)
    canvas = board.locator(".vm-canvas")
    canvas.focus()
    for key in ("Home", "ArrowUp", "ArrowUp", "ArrowUp", "ArrowDown", "ArrowDown", "ArrowRight", "Enter"):
        page.keyboard.press(key)
    expect(board).to_have_attribute("data-painted", f"zero|2.1|{TEXT}")
    moved = f"{100 * found.change[2, 1]:+.2f}"
    expect(page.get_by_text(re.compile(rf"Without head 1 of layer 2.*{re.escape(moved)}"))).to_be_visible()
    assert asked(page)["layer"] == ["2"]
    other = browser.new_context(locale="en-GB").new_page()
    other.goto(page.url)
    expect(other.get_by_text("Switch a head off by")).to_be_visible(timeout=30_000)
    expect(other.get_by_role("heading", name="Attention")).to_be_visible()
    expect(other.get_by_role("radio", name="1", exact=True).last).to_be_checked()
    other.close()


def test_a_row_of_the_tendencies_chooses_its_head(page: Page, address: str) -> None:
    visit(page, address, "attention", attention_part="tendencies", text=TEXT)
    board = page.locator(".vm").first
    expect(board).to_have_attribute("data-painted", f"0.0|{TEXT}")
    page.wait_for_timeout(500)
    board.locator(".vm-canvas").focus()
    for key in ("Home", *["ArrowDown"] * 9, "Enter"):
        page.keyboard.press(key)
    expect(board).to_have_attribute("data-painted", f"1.1|{TEXT}")
    assert np.all([asked(page)["layer"] == ["1"], asked(page)["head"] == ["1"]])
