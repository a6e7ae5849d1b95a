"""What stands on the attention page is what the model computes: read back from the screen and from the downloads."""

import csv
import io
import json
import re
from pathlib import Path

import numpy as np
import pytest
from playwright.sync_api import Locator, Page, Position, expect

from tests.helpers.browser import (
    BUNDLE,
    download,
    grid,
    large,
    rest,
    type_text,
    visit,
    wait_painted,
    weights,
)
from tests.helpers.pages import minus
from tests.helpers.reading import open_part, press, table_row, wait_link
from transformer_core.analysis.attention.head_ablation import head_effects
from transformer_core.analysis.corpus.head_measures import MEASURES, heads_over_corpus
from transformer_core.analysis.lab.text_sets import answered_by
from transformer_core.prompt import Prompt

TEXT = "The plot was thin but I loved every minute"
PASTED = ("A dull film, but a lovely end.", "I loved it, and then I loved it again.", "Not my thing at all.")


def test_every_head_is_repainted_chosen_and_its_numbers_are_the_models(page: Page, address: str) -> None:
    labels, expected = weights(TEXT, 2, 3)
    visit(page, address, "attention", text=TEXT, layer="2", head="3", cell="5.0")
    wait_painted(page, f"2.3|{TEXT}")
    rest(page)
    large(page).locator(".vm-tool-table").click()
    for row in (0, 5):
        np.testing.assert_allclose(table_row(large(page), row), expected[row], atol=6e-4)
    readout = large(page).locator(".vm-readout").inner_text()
    assert labels[5] in readout
    shown = re.findall(r"\d\.\d+(?:e-?\d+)?", readout)
    assert any(abs(float(number) - expected[5, 0]) < 1e-3 for number in shown)
    badge = large(page).locator(".vm-badge").inner_text()  # the browser recomputes the weights from query and key
    powers = re.findall(r"\d\.?\d*×10⁻([⁰¹²³⁴⁵⁶⁷⁸⁹]+)", badge)
    assert len(powers) == 2, badge
    assert all(int(power.translate(str.maketrans("⁰¹²³⁴⁵⁶⁷⁸⁹", "0123456789"))) >= 6 for power in powers)

    with page.expect_response("**/live/attention/heads?*layer=0*"):
        page.get_by_role("radiogroup", name="Layer").get_by_role("radio", name="0", exact=True).click()
    wait_painted(page, f"0.3|{TEXT}")
    with page.expect_response("**/live/attention/heads?*head=1&*layer=1*"):
        press(page, grid(page).locator(".vm-canvas"), *["PageDown"] * 6, "Enter")
    wait_painted(page, f"1.1|{TEXT}")
    wait_link(page, layer="1", head="1")
    other = TEXT.replace("loved", "hated")
    type_text(page, other)
    wait_painted(page, f"1.1|{other}")


@pytest.mark.nightly
def test_downloads_hold_the_numbers_on_the_screen_and_the_exported_page_works_alone(
    page: Page, address: str, tmp_path: Path
) -> None:
    labels, expected = weights(TEXT, 3, 6)
    visit(page, address, "attention", text=TEXT, layer="3", head="6")
    wait_painted(page, f"3.6|{TEXT}")
    svg = download(page, large(page).locator(".vm-tool-svg"), tmp_path).read_text(encoding="utf-8")
    told = " ".join(re.findall(r"<text[^>]*>([^<]*)</text>", svg))
    assert f"Layer 3, head 6 model sentiment · layer 3 · head 6 “{TEXT}”" in told
    assert svg.startswith("<svg")
    png = download(page, large(page).locator(".vm-tool-png"), tmp_path)
    assert png.suffix == ".png"
    assert png.read_bytes().startswith(b"\x89PNG")

    page.get_by_text("Export", exact=True).last.click()
    button = page.get_by_test_id("stDownloadButton").get_by_role("button")
    table = download(page, button.filter(has_text="CSV"), tmp_path)
    rows = list(csv.reader(io.StringIO(table.read_text(encoding="utf-8-sig"))))
    assert tuple(rows[0][1:]) == labels
    np.testing.assert_allclose([[float(cell) for cell in row[1:]] for row in rows[1:]], expected, atol=1e-6)
    arrays = np.load(download(page, button.filter(has_text=".npz"), tmp_path), allow_pickle=False)
    np.testing.assert_allclose(arrays["steps.weights"], expected, atol=1e-6)
    script = download(page, button.filter(has_text="Python"), tmp_path).read_text(encoding="utf-8")
    assert repr(TEXT) in script
    notebook = json.loads(download(page, button.filter(has_text="Notebook"), tmp_path).read_text(encoding="utf-8"))
    assert TEXT in notebook["cells"][0]["source"]
    assert all(cell["source"] in script for cell in notebook["cells"][1:])
    saved = download(page, button.filter(has_text="HTML"), tmp_path)
    assert not re.search("https?://", saved.read_text(encoding="utf-8").replace("http://www.w3.org", ""))
    alone = page.context.new_page()
    alone.goto(saved.as_uri())
    expect(alone.locator(".vm-canvas")).to_be_visible()
    alone.locator(".vm-tool-table").click()
    expect(alone.locator(".vm-table")).to_contain_text("loved")
    alone.close()


@pytest.mark.nightly
def test_the_same_head_can_be_clicked_again_and_a_dimension_of_the_mixture_is_no_key(
    own_page: Page, address: str
) -> None:
    page = own_page
    page.clock.install()
    visit(page, address, "attention", text=TEXT, step="mixture")
    wait_painted(page, f"0.0|{TEXT}")
    press(page, large(page).locator(".vm-canvas"), "ArrowRight", "Enter")
    canvas = grid(page).locator(".vm-canvas")
    box = canvas.bounding_box()
    assert box is not None
    place: Position = {"x": box["width"] * 0.95, "y": box["height"] * 0.15}
    canvas.click(position=place)
    wait_painted(page, f"0.7|{TEXT}")
    wait_link(page, head="7", cell=None)  # what was chosen before has had its run, too
    page.clock.fast_forward(2_500)  # a click is no longer newer than what the page says
    page.get_by_role("radio", name="0", exact=True).last.click()
    wait_painted(page, f"0.0|{TEXT}")
    rest(page)
    canvas.click(position=place)
    wait_painted(page, f"0.7|{TEXT}")
    long = " ".join(["good", "bad", "film"] * 42)
    type_text(page, long)
    wait_painted(page, f"0.7|{long}")
    expect(large(page).locator(".vm-canvas")).to_be_visible()


def words_of(page: Page) -> Locator:
    """Return the words of the text with arcs."""
    return page.locator(".arcs [role=radio]")


@pytest.mark.nightly
def test_a_click_and_the_keyboard_choose_whose_arcs_are_drawn(page: Page, address: str, tmp_path: Path) -> None:
    labels, expected = weights(TEXT, 0, 7)
    visit(page, address, "attention", attention_part="arcs", text=TEXT, layer="0", head="7")
    said = page.locator(".arcs-said")
    loved = labels.index("loved")
    words_of(page).nth(loved).click()
    top = int(expected[loved].argmax())
    expect(said).to_contain_text(f"“loved” looks most at: {labels[top]} {expected[loved, top]:.3f}")
    expect(said).to_contain_text("sum to 1.000")
    wait_link(page, attention_token=str(loved))
    page.keyboard.press("ArrowLeft")
    expect(said).to_contain_text(f"“{labels[loved - 1]}” looks most at")
    expect(words_of(page).nth(loved - 1)).to_be_focused()
    named = words_of(page).nth(top).get_attribute("aria-label") or ""
    assert f"{expected[loved - 1, top]:.3f}" in named
    for kind, magic in (("svg", b"<svg"), ("png", b"\x89PNG")):
        path = download(page, page.locator(f".arcs-{kind}"), tmp_path)
        assert path.read_bytes().startswith(magic)
    long = "这部电影不好看，但是我喜欢结尾。" * 4 + " good film" * 20
    type_text(page, long)
    wait_link(page, text=long)
    rest(page)
    frame, *boxes = words_of(page).evaluate_all(
        """(words) => [words[0].closest("svg"), ...words].map((one) => {
          const { left, right, y } = one.getBoundingClientRect();
          return [left, right, Math.round(y)];
        })"""
    )
    assert len(boxes) > 60
    assert all(left >= frame[0] and right <= frame[1] for left, right, _ in boxes)
    assert len({y for _, _, y in boxes}) > 2


@pytest.mark.nightly
def test_who_looks_at_a_word_is_its_column(page: Page, address: str) -> None:
    labels, expected = weights(TEXT, 1, 2)
    query = {"attention_direction": "to", "attention_token": "4", "layer": "1", "head": "2"}
    visit(page, address, "attention", attention_part="arcs", text=TEXT, **query)
    said = page.locator(".arcs-said")
    expect(said).to_contain_text(f"“{labels[4]}” is looked at most by: {labels[int(expected[:, 4].argmax())]}")
    expect(said).to_contain_text(f"sum to {expected[:, 4].sum():.3f}")


@pytest.mark.nightly
def test_a_head_is_switched_off_and_a_row_of_the_tendencies_chooses_its_head(page: Page, address: str) -> None:
    visit(page, address, "attention", attention_part="effect", text="The plot was thin", lang="en")
    covered = page.locator(".st-key-cover_attention_effects i.covered")
    type_text(page, TEXT)
    wait_painted(page, f"zero|0.0|{TEXT}")
    wait_link(page, text=TEXT)
    expect(covered).to_have_count(1)  # it follows the text and stays covered
    found = head_effects(prompt=Prompt(BUNDLE, TEXT, len(BUNDLE.tokenizer.encode(TEXT))))
    page.get_by_role("button", name="Show me").click()
    expect(covered).to_have_count(0)
    rest(page)
    canvas = page.locator(".vm-canvas").first
    press(page, canvas, "Home", *["ArrowUp"] * 3, *["ArrowDown"] * 2, "ArrowRight", "Enter")
    wait_painted(page, f"zero|2.1|{TEXT}")
    moved = minus(f"{100 * found.change[2, 1]:+.2f}")
    expect(page.get_by_text(re.compile(rf"Without head 1 of layer 2.*{re.escape(moved)}"))).to_be_visible()
    wait_link(page, layer="2", head="1")
    open_part(page, "attention", "tendencies")
    wait_painted(page, f"2.1|{TEXT}")
    rest(page)
    press(page, canvas, "Home", *["ArrowUp"] * 40, *["ArrowDown"] * 9, "Enter")
    wait_painted(page, f"1.1|{TEXT}")
    wait_link(page, layer="1", head="1")


@pytest.mark.nightly
def test_a_head_over_a_corpus_is_tapped_and_its_row_is_the_same_on_the_text_alone(page: Page, address: str) -> None:
    visit(page, address, "attention", attention_part="corpus", corpus_texts="12", lang="en")
    row = page.locator(".looked").first
    expect(row).to_be_visible()
    rest(page)
    before = page.get_by_role("heading", name="looks most sharply").inner_text()
    page.get_by_role("combobox", name="Up").click()
    page.get_by_role("option", name="Entropy", exact=True).click()
    wait_link(page, corpus_up="entropy")
    rest(page)
    dots = page.locator(".role-mark path[aria-roledescription=point]")
    dots.nth(dots.count() - 6).click(force=True)  # the last one is the ring around the chosen head
    expect(page.get_by_role("heading", name="looks most sharply")).not_to_have_text(before)
    rest(page)
    layer, head = re.findall(r"\d+", page.get_by_role("heading", name="looks most sharply").inner_text())
    said = page.get_by_text("with a weight of").first.inner_text()
    found = re.search(r"position (\d+)\) looks at .*position (\d+)\) with a weight of (\d\.\d+)", said)
    assert found is not None, said
    query, key, weight = int(found[1]), int(found[2]), float(found[3])
    page.get_by_role("button", name="Open in All heads").first.click()
    wait_link(page, attention_part=None, cell=f"{query}.{key}", layer=layer, head=head)
    rest(page)
    wait_painted(page, f"{layer}.{head}|{page.get_by_label('Type a sentence').input_value()}")
    large(page).locator(".vm-tool-table").click()
    assert abs(table_row(large(page), query)[key] - weight) < 1e-3


def points_of(page: Page) -> dict[str, tuple[float, float]]:
    """Return both measures of each head's point, by the head, as the chart tells them to a screen reader."""
    said = page.locator(".role-mark path[aria-roledescription=point]").evaluate_all(
        "(all) => all.map((one) => one.ariaLabel)"
    )
    found = [re.findall(r": (−?[\d.e-]+)", one) for one in said if "layer: " in one]
    return {numbers[3]: (number(numbers[0]), number(numbers[1])) for numbers in found}


def number(written: str) -> float:
    return float(written.replace("−", "-"))


@pytest.mark.nightly
def test_heads_over_other_texts_are_other_points(page: Page, address: str) -> None:
    chosen = {"corpus_across": "previous", "corpus_up": "entropy", "corpus_texts": "12"}
    visit(page, address, "attention", attention_part="corpus", lang="en", **chosen)
    expect(page.locator(".looked").first).to_be_visible()
    rest(page)
    before = points_of(page)
    page.get_by_text("pasted", exact=True).click()
    wait_link(page, lab_set="pasted")
    box = page.get_by_label(re.compile("A text a line"))
    box.fill("\n".join(PASTED))
    box.press("Control+Enter")
    expect(page.get_by_text(f"Read: {len(PASTED)} texts")).to_be_visible()
    rest(page)
    after = points_of(page)
    assert before.keys() == after.keys()
    assert len(after) == BUNDLE.config.n_layers * BUNDLE.config.n_heads
    assert all(before[head] != after[head] for head in after)
    among = answered_by(BUNDLE, tuple((text, "") for text in PASTED))
    found = heads_over_corpus(bundle=BUNDLE, among=among, texts=12)
    at = [MEASURES.index(name) for name in ("previous", "entropy")]
    for place, (_, layer, head) in enumerate(found.heads):
        assert after[f"{layer}.{head}"] == pytest.approx(found.values[at, place].tolist(), abs=1e-5)
