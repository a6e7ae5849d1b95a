"""A link rebuilds the screen, on a fresh server too, in both spellings, and a choice follows the person."""

import pytest
from playwright.sync_api import Browser, Page, expect

from tests.helpers.browser import grid, large, serving, settle, type_text, visit, wait_painted

TEXT = "A slow film, but not a bad one"


@pytest.mark.parametrize("path", ["attention", "Attention", ""])
def test_the_first_deep_link_to_a_fresh_server_shows_the_whole_page(browser: Browser, tmp_path, path: str) -> None:
    with serving(tmp_path / "log") as address:
        page = browser.new_page(locale="en-GB")
        visit(page, address, path, text=TEXT)
        expect(page.get_by_role("textbox").first).to_have_value(TEXT)
        expect(page.get_by_role("button", name="Inside")).to_be_visible()
        expect(page.get_by_text("Traceback")).to_have_count(0)
        page.close()


def test_a_link_gives_the_same_screen_to_another_person(page: Page, browser: Browser, address: str) -> None:
    visit(page, address, "attention", text=TEXT)
    wait_painted(page, f"0.0|{TEXT}")
    page.get_by_role("radio", name="2", exact=True).first.click()
    wait_painted(page, f"2.0|{TEXT}")
    page.get_by_text("2 ÷ √d_head").click()
    expect(large(page)).to_have_attribute("data-painted", f"scores|2.0|{TEXT}")
    page.wait_for_url("**step=scores**")  # a live figure is there before the page has run
    link = page.url
    other = browser.new_context(locale="zh-CN").new_page()
    other.goto(link)
    wait_painted(other, f"2.0|{TEXT}")
    expect(large(other)).to_have_attribute("data-painted", f"scores|2.0|{TEXT}")
    expect(other.get_by_role("heading", name="Attention")).to_be_visible()
    other.close()


def test_text_and_language_follow_from_page_to_page(page: Page, address: str) -> None:
    visit(page, address, text=TEXT)
    page.get_by_text("中文", exact=True).click()
    expect(page.get_by_role("heading", name="Vitrine")).to_contain_text("玻璃橱窗")
    page.locator("[data-part=attention]").click()
    wait_painted(page, f"0.0|{TEXT}")
    expect(page.get_by_role("heading", name="注意力")).to_be_visible()
    assert "lang=zh" in page.url
    type_text(page, "another text")
    wait_painted(page, "0.0|another text")
    page.get_by_role("button", name="开始").click()
    page.get_by_role("menuitem", name="首页").click()
    expect(page.locator("[data-part=attention]")).to_be_visible()
    expect(page.get_by_role("textbox").first).to_have_value("another text")


def test_reload_loses_nothing(page: Page, address: str) -> None:
    visit(page, address, "attention", layer="3", head="5", text=TEXT)
    wait_painted(page, f"3.5|{TEXT}")
    page.reload()
    wait_painted(page, f"3.5|{TEXT}")
    expect(grid(page)).to_be_visible()


def test_an_unknown_layer_and_model_are_named_and_the_page_lives_on(page: Page, address: str) -> None:
    visit(page, address, "attention", layer="77", model="nonsense", text=TEXT)
    wait_painted(page, f"0.0|{TEXT}")
    expect(page.get_by_text("layer = 77")).to_be_visible()
    expect(page.get_by_text("model = nonsense")).to_be_visible()


def test_english_chosen_in_a_chinese_browser_stays(browser: Browser, address: str) -> None:
    page = browser.new_context(locale="zh-CN").new_page()
    visit(page, address, "attention", text=TEXT)
    expect(page.get_by_role("heading", name="注意力")).to_be_visible()
    page.get_by_text("English", exact=True).click()
    expect(page.get_by_role("heading", name="Attention")).to_be_visible()
    page.reload()
    expect(page.get_by_role("heading", name="Attention")).to_be_visible()
    page.close()


def test_a_shared_link_opens_the_same_screen_with_its_pinned_cells(page: Page, browser: Browser, address: str) -> None:
    page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    visit(page, address, "attention", text=TEXT, layer="1", head="2")
    wait_painted(page, f"1.2|{TEXT}")
    for board, keys, pinned in (
        (grid(page), "ArrowRight ArrowDown ArrowDown Enter", "pin_heads=10.2.1"),
        (large(page), "ArrowDown ArrowRight Enter", "&cell=3.2"),
    ):
        board.locator(".vm-canvas").focus()
        for key in keys.split():
            page.keyboard.press(key)
        page.wait_for_url(f"**{pinned}**")
        settle(page)
    assert "pin_heads=10.2.1" in page.url
    page.get_by_role("button", name="Share").click()
    expect(page.get_by_text("Link copied.")).to_be_visible()
    link = page.evaluate("navigator.clipboard.readText()")
    assert link == page.url
    other = browser.new_context(locale="zh-CN").new_page()
    other.goto(link)
    wait_painted(other, f"1.2|{TEXT}")
    for board in (grid, large):
        said = board(page).locator(".vm-readout").inner_text()
        assert any(letter.isdigit() for letter in said)
        expect(board(other).locator(".vm-readout")).to_have_text(said, use_inner_text=True)
    other.context.close()


def test_where_the_clipboard_is_missing_the_link_is_offered_as_text(own_page: Page, address: str) -> None:
    own_page.add_init_script("Object.defineProperty(navigator, 'clipboard', { value: undefined })")
    visit(own_page, address, "tokens", text=TEXT, tokens_part="merges", tokens_text="own")
    own_page.get_by_role("textbox").nth(1).fill("a word or two " * 200)
    own_page.get_by_role("button", name="Share").click()
    expect(own_page.get_by_label("Copy the link of this screen")).to_have_value(own_page.url)
    expect(own_page.get_by_text("Not in it: the text over 2,000 characters.")).to_be_visible()
    own_page.keyboard.press("Escape")
    expect(own_page.get_by_label("Copy the link of this screen")).to_have_count(0)
