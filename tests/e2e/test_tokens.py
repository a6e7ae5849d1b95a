"""The tokens page as a person uses it: chips point back to the text, and the slider makes merges one by one."""

import csv
import io
import re

import pytest
from playwright.sync_api import Locator, Page, expect

from tests.helpers.browser import BUNDLE, download, type_text, visit
from transformer_core.analysis.words.bpe_merges import merge_step
from transformer_core.analysis.words.tokenizer_comparison import cut_sentence

TEXT = "The story was dull, 很无聊 👍"


def line(page: Page, name: str) -> Locator:
    """Return the chips of one tokenizer."""
    return page.locator(".vt-row", has=page.locator(".vt-name", has_text=re.compile(f"^{re.escape(name)}$")))


def wait_chips(page: Page, text: str) -> None:
    """Wait until the first figure of chips shows this text."""
    expect(page.locator(".vt").first).to_have_attribute("data-painted", re.compile(re.escape(f"|{text}|")))


@pytest.mark.parametrize(
    ("name", "place"),
    [("This model's own", 0), ("BPE (bytes)", 1), ("WordPiece", 2), ("Whole words", 3), ("Characters", 4)],
)
def test_chips_are_the_tokens_that_the_library_cuts(page: Page, address: str, name: str, place: int) -> None:
    visit(page, address, "tokens", text=TEXT)
    wait_chips(page, TEXT)
    cut = cut_sentence(bundle=BUNDLE, text=TEXT, corpus="both", vocab_size=2500).cuts[place]
    row = line(page, name)
    assert row.locator(".vt-label").all_inner_texts() == list(cut.labels)
    ids = [re.sub(r"\D", "", text) for text in row.locator(".vt-id").all_inner_texts()]
    assert ids == [str(id_) for id_ in cut.ids]
    assert row.locator(".vt-count").inner_text().startswith(str(cut.n_tokens))


def test_pointing_at_a_chip_marks_its_characters_everywhere(page: Page, address: str) -> None:
    visit(page, address, "tokens", text=TEXT)
    wait_chips(page, TEXT)
    line(page, "WordPiece").locator(".vt-chip", has_text="story").hover()
    expect(page.locator(".vt-source mark")).to_have_text("story")
    expect(page.locator(".vt-readout")).to_contain_text("73 74 6F 72 79")
    expect(line(page, "Characters").locator(".vt-alike")).to_have_count(5)
    expect(line(page, "BPE (bytes)").locator(".vt-alike")).to_have_text(re.compile("story"))


def test_arrow_keys_walk_along_a_line(page: Page, address: str) -> None:
    visit(page, address, "tokens", text=TEXT)
    wait_chips(page, TEXT)
    line(page, "Whole words").locator(".vt-line").focus()
    for _ in range(2):
        page.keyboard.press("ArrowRight")
    expect(page.locator(".vt-source mark")).to_have_text("was")
    expect(page.locator(".vt-here")).to_have_attribute("aria-selected", "true")


def test_typing_cuts_anew(page: Page, address: str) -> None:
    visit(page, address, "tokens", text=TEXT)
    wait_chips(page, TEXT)
    hostile = "<img src=x onerror=alert(1)> good"
    type_text(page, hostile)
    wait_chips(page, hostile)
    assert page.locator(".vt img").count() == 0
    expect(page.locator(".vt-source")).to_have_text(hostile)


def test_the_slider_makes_one_merge_after_the_other(page: Page, address: str) -> None:
    visit(page, address, "tokens", text="the other weather", tokens_part="merges", tokens_step="2")
    slider = page.get_by_role("slider").nth(1)
    for step in (2, 3, 4):
        found = merge_step(
            corpus="en", pasted="", alphabet="characters", merges=400, step=step, text="the other weather"
        )
        expect(page.locator(".vt-name")).to_have_text(f"After {step} merges")
        expect(page.locator(".vt-chip")).to_have_count(len(found.labels))
        assert page.locator(".vt-label").all_inner_texts() == list(found.labels)
        expect(page.locator(".vt-fresh")).to_have_count(sum(found.fresh))
        slider.focus()
        page.keyboard.press("ArrowRight")


def test_files_hold_the_tokens(page: Page, address: str, tmp_path) -> None:
    visit(page, address, "tokens", text=TEXT)
    wait_chips(page, TEXT)
    svg = download(page, page.locator(".vt-tool-svg"), tmp_path).read_text(encoding="utf-8")
    assert svg.startswith("<svg")
    assert "story" in svg
    assert download(page, page.locator(".vt-tool-png"), tmp_path).read_bytes().startswith(b"\x89PNG")
    page.get_by_text("Export", exact=True).first.click()
    button = page.get_by_test_id("stDownloadButton").get_by_role("button")
    table = download(page, button.filter(has_text="CSV"), tmp_path)
    rows = list(csv.reader(io.StringIO(table.read_text(encoding="utf-8-sig"))))
    cuts = cut_sentence(bundle=BUNDLE, text=TEXT, corpus="both", vocab_size=2500).cuts
    assert [row[3] for row in rows[1:]] == [str(id_) for cut in cuts for id_ in cut.ids]
    alone = page.context.new_page()
    alone.goto(download(page, button.filter(has_text="HTML"), tmp_path).as_uri())
    alone.locator(".vt-chip", has_text="story").first.hover()
    expect(alone.locator(".vt-source mark")).to_have_text("story")
    alone.close()
