"""A link rebuilds the screen, and a choice follows the person."""

import re
from urllib.parse import quote_plus

import pytest
from playwright.sync_api import Browser, Page, expect

from pages.kit.url import LONGEST_LINK
from tests.helpers.browser import grid, large, settle, type_text, visit, wait_painted

TEXT = "A slow film, but not a bad one"


def test_a_shared_link_opens_the_same_screen_for_another_person_and_a_reload_loses_nothing(
    page: Page, browser: Browser, address: str
) -> None:
    page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    visit(page, address, "attention", text=TEXT, head="2")
    wait_painted(page, f"0.2|{TEXT}")
    page.get_by_role("radio", name="1", exact=True).first.click()
    wait_painted(page, f"1.2|{TEXT}")
    page.get_by_text("2 ÷ √d_head").click()
    expect(large(page)).to_have_attribute("data-painted", f"scores|1.2|{TEXT}")
    page.wait_for_url("**step=scores**")  # a live figure is there before the page has run
    settle(page)
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
    said = [board(page).locator(".vm-readout").inner_text() for board in (grid, large)]
    assert all(any(letter.isdigit() for letter in one) for one in said)
    other = browser.new_context(locale="zh-CN").new_page()
    other.goto(link)
    page.reload()
    for one in (other, page):
        wait_painted(one, f"1.2|{TEXT}")
        expect(large(one)).to_have_attribute("data-painted", f"scores|1.2|{TEXT}")
        expect(one.get_by_role("heading", name="Attention")).to_be_visible()
        for board, readout in zip((grid, large), said, strict=True):
            expect(board(one).locator(".vm-readout")).to_have_text(readout, use_inner_text=True)
    other.context.close()


@pytest.mark.nightly
def test_a_word_is_searched_for_by_keyboard_and_its_part_opens_with_the_same_text(page: Page, address: str) -> None:
    visit(page, address, "tokens", text=TEXT, lang="en")
    page.get_by_role("button", name="Search").press("Enter")
    expect(page.get_by_role("textbox", name="Search pages")).to_be_focused()
    page.keyboard.type("logit")
    found = page.get_by_role("button", name="GPT › Logit lens")
    expect(found).to_be_visible()
    found.press("Enter")
    page.wait_for_url(re.compile("/gpt.*gpt_part=lens"))
    expect(page.get_by_role("heading", name="GPT")).to_be_visible()
    expect(page.get_by_role("textbox").first).to_have_value(TEXT)
    expect(page.get_by_role("textbox", name="Search pages")).to_have_count(0)


@pytest.mark.nightly
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


@pytest.mark.nightly
def test_back_returns_to_the_page_before_as_it_was_left_and_a_change_is_no_step(own_page: Page, address: str) -> None:
    page = own_page
    visit(page, address, "tokens")
    expect(page).to_have_url(re.compile("lang=en"))
    for text in ("a first text", TEXT):
        type_text(page, text)
        page.wait_for_url(f"**text={quote_plus(text)}**")
    page.get_by_text("中文", exact=True).click()
    page.wait_for_url("**lang=zh**")
    assert page.evaluate("history.length") == 2  # the blank page, and this one
    settle(page)
    page.locator(".st-key-nav_next button").click()
    page.wait_for_url("**/embeddings?**")
    settle(page)
    type_text(page, "another text")
    page.wait_for_url("**text=another+text**")
    for go, path, text in ((page.go_back, "tokens", TEXT), (page.go_forward, "embeddings", "another text")):
        settle(page)
        go()
        expect(page.get_by_role("heading", name={"tokens": "词元", "embeddings": "嵌入"}[path])).to_be_visible()
        expect(page.get_by_role("textbox").first).to_have_value(text)
        page.wait_for_url(f"**/{path}?**text={quote_plus(text)}**")
    assert page.evaluate("history.length") == 3
    visit(page, address, "attention", tour="twelve_scenes", scene="1", lang="en")
    page.locator(".st-key-tour_next button").click()
    expect(page.locator(".st-key-tour")).to_contain_text("scene 2 of 12")
    settle(page)
    page.go_back()
    expect(page.locator(".st-key-tour")).to_contain_text("scene 1 of 12")
    assert page.url.startswith(f"{address}/attention?")


@pytest.mark.nightly
def test_english_chosen_in_a_chinese_browser_stays(browser: Browser, address: str) -> None:
    page = browser.new_context(locale="zh-CN").new_page()
    visit(page, address, "attention", text=TEXT)
    expect(page.get_by_role("heading", name="注意力")).to_be_visible()
    page.get_by_text("English", exact=True).click()
    expect(page.get_by_role("heading", name="Attention")).to_be_visible()
    page.reload()
    expect(page.get_by_role("heading", name="Attention")).to_be_visible()
    page.context.close()


@pytest.mark.nightly
def test_where_the_clipboard_is_missing_the_link_is_offered_as_text(own_page: Page, address: str) -> None:
    own_page.add_init_script("Object.defineProperty(navigator, 'clipboard', { value: undefined })")
    visit(own_page, address, "tokens", text=TEXT, tokens_part="merges", tokens_text="own")
    own_page.get_by_role("textbox").nth(1).fill("一两个词，" * 200)
    own_page.get_by_role("button", name="Share").click()  # while the cursor is in the text area
    own_page.wait_for_url("**without=**")
    expect(own_page.get_by_label("Copy the link of this screen")).to_have_value(own_page.url)
    assert len(own_page.url) <= LONGEST_LINK
    expect(own_page.get_by_text("Not in it, as links have a bound: Paste a text to learn from")).to_be_visible()
    own_page.keyboard.press("Escape")
    expect(own_page.get_by_label("Copy the link of this screen")).to_have_count(0)
