"""Whatever is typed or pasted: a clear message, no stack trace, nothing lost, nothing executed."""

import pytest
from playwright.sync_api import Page, expect

from pages.ui.header import DEFAULT_TEXT
from tests.helpers.browser import rest, type_text, visit, wait_painted

TEXT = "still alive"
SCRIPTS = "<img src=x onerror='window.hacked=1'><script>window.hacked=1</script>"


@pytest.mark.parametrize(
    "text",
    [
        SCRIPTS,
        "مرحبا بالعالم שלום",
        "😀 好電影 👩‍👩‍👧‍👦",
        "$x$ **b** [a](javascript:alert(1)) :red[x]",
        "\u202eevil \u200b \ufeff",
    ],
)
def test_strange_text_is_shown_and_never_executed(page: Page, address: str, text: str) -> None:
    visit(page, address, "attention", text=text)
    wait_painted(page, f"0.0|{text}")
    assert page.evaluate("() => window.hacked === undefined")
    visit(page, address, text=text)
    expect(page.locator("[data-part=attention]")).to_be_visible()
    assert page.evaluate("() => window.hacked === undefined")


def test_an_emptied_box_leaves_the_last_picture_pale_and_says_so(page: Page, address: str) -> None:
    visit(page, address, "attention", text=TEXT)
    wait_painted(page, f"0.0|{TEXT}")
    picture = page.locator(".st-key-picture")
    expect(picture).to_have_css("opacity", "1")
    type_text(page, "")
    expect(page.get_by_text(f"The box is empty. This is still “{TEXT}”.")).to_be_visible()
    expect(picture).to_have_css("opacity", "0.4")
    wait_painted(page, f"0.0|{TEXT}")
    assert "text=" in page.url
    type_text(page, "alive")
    wait_painted(page, "0.0|alive")
    expect(picture).to_have_css("opacity", "1")


def test_a_link_with_an_empty_text_shows_the_example(page: Page, address: str) -> None:
    visit(page, address, "attention", text=" ")
    wait_painted(page, f"0.0|{DEFAULT_TEXT}")
    expect(page.get_by_text("Shown instead")).to_be_visible()
    expect(page.get_by_role("textbox").first).to_have_value(" ")


def test_a_text_that_leaves_no_token_is_answered_in_words_beside_the_last_picture(page: Page, address: str) -> None:
    visit(page, address, "attention", text=TEXT)
    wait_painted(page, f"0.0|{TEXT}")
    for text in ("\ufffd", "\u2061", "\U000e0041"):
        type_text(page, text)
        expect(page.get_by_text("no token for any of this text")).to_be_visible()
        expect(page.locator(".st-key-picture")).to_have_css("opacity", "0.4")
        expect(page.get_by_text("failed")).to_have_count(0)
        type_text(page, TEXT)
        expect(page.locator(".st-key-picture")).to_have_css("opacity", "1")


@pytest.mark.parametrize("part", ["beam", "steps"])
def test_a_word_without_end_makes_no_page_wider(page: Page, address: str, part: str) -> None:
    visit(page, address, "translation", translation_part=part)
    type_text(page, "\U0001f000" * 2_000)
    expect(page.get_by_role("textbox").first).to_have_value("\U0001f000" * 2_000)
    expect(page.get_by_text("tokens are read")).to_be_visible(timeout=60_000)
    rest(page)
    wide = "() => { const main = document.querySelector('.stMain'); return main.scrollWidth - main.clientWidth; }"
    assert page.evaluate(wide) <= 0


def test_ten_megabytes_pasted_are_refused_in_words_and_the_page_lives_on(page: Page, address: str) -> None:
    visit(page, address, "attention", text=TEXT)
    wait_painted(page, f"0.0|{TEXT}")
    page.get_by_role("textbox").first.evaluate(
        """(box) => {
          const set = Object.getOwnPropertyDescriptor(HTMLInputElement.prototype, "value").set;
          set.call(box, "word ".repeat(2 * 1024 * 1024));
          box.dispatchEvent(new Event("input", { bubbles: true }));
        }"""
    )
    expect(page.get_by_text("10,485,760 characters")).to_be_visible(timeout=60_000)
    type_text(page, TEXT)
    wait_painted(page, f"0.0|{TEXT}")


def test_no_stack_trace_reaches_the_reader(page: Page, address: str) -> None:
    visit(page, address, "attention", text=TEXT, cell="999.999", step="nonsense", head="-1", start="x", glass="nothing")
    wait_painted(page, f"0.0|{TEXT}")
    expect(page.get_by_text("Traceback")).to_have_count(0)
    expect(page.get_by_test_id("stException")).to_have_count(0)


def test_an_address_that_was_typed_is_no_link(page: Page, address: str) -> None:
    addresses = "see http://e.vil/a www.e.vil me@e.vil [l](http://e.vil)"
    visit(page, address, "gpt", text=f"{addresses} {addresses}", gpt_guess_open="true")
    expect(page.get_by_test_id("stMain").get_by_text("e.vil").first).to_be_visible()
    assert page.locator("[data-testid=stMain] a[href*=vil]").count() == 0
