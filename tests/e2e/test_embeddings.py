"""What a person reads on the embeddings page is what the library computes, and its files hold it."""

import numpy as np
from playwright.sync_api import Page, expect

from tests.helpers.browser import BUNDLE, download, large, visit, wait_painted
from transformer_core.analysis.words.nearest_words import nearest_words
from transformer_core.analysis.words.sentence_vectors import sentence_vectors
from transformer_core.analysis.words.vocabulary import find
from transformer_core.analysis.words.vocabulary_map import vocabulary_map

TEXT = "The film was dull and the film was long"
N_TOKENS = len(BUNDLE.tokenizer.encode(TEXT))


def numbers(page: Page, row: int) -> np.ndarray:
    """Return one row of the second matrix, read from its table."""
    cells = large(page).locator(f".vm-table tbody tr:nth-child({row + 1}) td").all_inner_texts()
    return np.array([float(cell.replace("−", "-")) for cell in cells])


def test_the_table_of_cosines_is_the_librarys_at_every_stage(page: Page, address: str) -> None:
    visit(page, address, "embeddings", text=TEXT)
    wait_painted(page, f"looked_up|{TEXT}")
    large(page).locator(".vm-tool-table").click()
    found = sentence_vectors(bundle=BUNDLE, text=TEXT, n_tokens=N_TOKENS)
    np.testing.assert_allclose(numbers(page, 2), found.cosine[2], atol=6e-4)
    page.get_by_text("after the last layer", exact=True).click()
    wait_painted(page, f"after_layers|{TEXT}")
    expect(page.get_by_text("Each vector has taken in what it attends to")).to_be_visible()
    found = sentence_vectors(bundle=BUNDLE, text=TEXT, n_tokens=N_TOKENS, stage="after_layers")
    assert found.closest is not None
    expect(page.get_by_text(f"cosine {found.cosine[found.closest]:.3f}")).to_be_visible()
    assert "embeddings_stage=after_layers" in page.url


def test_a_typed_word_has_its_neighbours_and_the_link_keeps_it(page: Page, address: str) -> None:
    visit(page, address, "embeddings", embeddings_part="neighbours")
    box = page.get_by_role("textbox", name="Word")
    box.fill("unwatchability")
    expect(page.get_by_text("has no row of its own")).to_be_visible()
    box.fill("superb")
    found = nearest_words(bundle=BUNDLE, token_id=find(BUNDLE.tokenizer, "superb").ids[0])
    average = f"{found.average:.3f} on average"
    expect(page.get_by_text(average)).to_be_visible()
    expect(page.get_by_text("length").first).to_be_visible()
    page.wait_for_url("**embeddings_word=superb**")
    page.goto(page.url)
    expect(page.get_by_role("textbox", name="Word")).to_have_value("superb")
    expect(page.get_by_text(average)).to_be_visible()


def test_the_map_is_searched_and_its_files_hold_its_points(page: Page, address: str, tmp_path) -> None:
    visit(page, address, "embeddings", embeddings_part="map", embeddings_method="space", embeddings_count="250")
    expect(page.locator(".js-plotly-plot")).to_be_visible(timeout=30_000)
    page.get_by_role("textbox", name="Find words on the map").fill("nosuchword")
    expect(page.get_by_text("Not on this map: nosuchword")).to_be_visible()
    page.get_by_text("Export", exact=True).click()
    button = page.get_by_test_id("stDownloadButton").get_by_role("button")
    path = download(page, button.filter(has_text=".npz"), tmp_path)
    found = vocabulary_map(bundle=BUNDLE, count=250, method="space")
    np.testing.assert_allclose(np.load(path, allow_pickle=False)["xy"], found.xy, atol=1e-4)
    html = download(page, button.filter(has_text="HTML"), tmp_path).read_text(encoding="utf-8")
    assert "<script src" not in html
    assert "Plotly.newPlot" in html
