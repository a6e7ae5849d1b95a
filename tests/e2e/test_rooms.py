"""One way through each room that reads a sentence: typed, clicked, and read back; it is what the library computes.

The rooms of models that write have theirs in test_writing.py, those with a matrix of heads in test_attention.py.
"""

import re
import zipfile
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from playwright.sync_api import Locator, Page, expect

from pages.kit.header import DEFAULT_TEXT
from pages.kit.number_format import significant
from tests.helpers.browser import BUNDLE, download, large, settle, type_text, visit, wait_painted, weights
from tests.helpers.pages import minus
from tests.helpers.reading import floats, metric, open_part, press, table_row, wait_link
from transformer_core.analysis.encoder.layers import layer_verdicts
from transformer_core.analysis.encoder.two_sentences import sentence_pair
from transformer_core.analysis.feed_forward.activations import own_activations
from transformer_core.analysis.feed_forward.neurons import neurons
from transformer_core.analysis.positions.sinusoids import step_as_rotation
from transformer_core.analysis.stream.normalization import normed_vector
from transformer_core.analysis.stream.score_sum import score_sum
from transformer_core.analysis.why.scaling import WIDTHS, spread_by_width
from transformer_core.analysis.words.bpe_merges import merge_step
from transformer_core.analysis.words.sentence_vectors import sentence_vectors
from transformer_core.analysis.words.tokenizer_comparison import cut_sentence
from transformer_core.analysis.words.vocabulary_map import vocabulary_map
from transformer_core.layers.positions import sinusoidal_table
from transformer_core.prompt import Prompt

TEXT = "The plot was thin but I loved every minute"
ASKED = {"prompt": Prompt(BUNDLE, TEXT, len(BUNDLE.tokenizer.encode(TEXT)))}
CUT = "The story was dull, 很无聊 👍"
CUTTERS = ("This model's own", "BPE (bytes)", "WordPiece", "Whole words", "Characters")


def line(page: Page, name: str) -> Locator:
    """Return the chips of one tokenizer."""
    return page.locator(".vt-row", has=page.locator(".vt-name", has_text=re.compile(f"^{re.escape(name)}$")))


def wait_chips(page: Page, text: str) -> None:
    """Wait until the first figure of chips shows this text."""
    expect(page.locator(".vt").first).to_have_attribute("data-painted", re.compile(re.escape(f"|{text}|")))


@pytest.mark.nightly
def test_chips_are_the_tokens_point_at_their_characters_and_are_cut_anew(
    page: Page, address: str, tmp_path: Path
) -> None:
    visit(page, address, "tokens", text=CUT)
    wait_chips(page, CUT)
    cuts = cut_sentence(bundle=BUNDLE, text=CUT, corpus="both", vocab_size=2500).cuts
    for name, cut in zip(CUTTERS, cuts, strict=True):
        row = line(page, name)
        assert row.locator(".vt-label").all_inner_texts() == list(cut.labels)
        ids = [re.sub(r"\D", "", text) for text in row.locator(".vt-id").all_inner_texts()]
        assert ids == [str(id_) for id_ in cut.ids]
        assert row.locator(".vt-count").inner_text().startswith(str(cut.n_tokens))
    press(page, line(page, "Whole words").locator(".vt-line"), "ArrowRight", "ArrowRight")
    expect(page.locator(".vt-source mark")).to_have_text("was")
    expect(page.locator(".vt-here")).to_have_attribute("aria-selected", "true")
    line(page, "WordPiece").locator(".vt-chip", has_text="story").hover()
    expect(page.locator(".vt-source mark")).to_have_text("story")
    expect(page.locator(".vt-readout")).to_contain_text("73 74 6F 72 79")
    expect(line(page, "Characters").locator(".vt-alike")).to_have_count(5)
    expect(line(page, "BPE (bytes)").locator(".vt-alike")).to_have_text(re.compile("story"))
    svg = download(page, page.locator(".vt-tool-svg"), tmp_path).read_text(encoding="utf-8")
    assert svg.startswith("<svg")
    assert "story" in svg
    assert download(page, page.locator(".vt-tool-png"), tmp_path).read_bytes().startswith(b"\x89PNG")
    hostile = "<img src=x onerror=alert(1)> good"
    type_text(page, hostile)
    wait_chips(page, hostile)
    assert page.locator(".vt img").count() == 0
    expect(page.locator(".vt-source")).to_have_text(hostile)


@pytest.mark.nightly
def test_the_slider_makes_one_merge_after_the_other(page: Page, address: str) -> None:
    text = "the other weather"
    visit(page, address, "tokens", text=text, tokens_part="merges", tokens_step="2")
    for step in (2, 3):
        found = merge_step(corpus="en", pasted="", alphabet="characters", merges=400, step=step, text=text)
        expect(page.locator(".vt-name")).to_have_text(f"After {step} merges")
        expect(page.locator(".vt-label")).to_have_text(list(found.labels))
        expect(page.locator(".vt-fresh")).to_have_count(sum(found.fresh))
        page.get_by_role("slider").nth(1).press("ArrowRight")


@pytest.mark.nightly
def test_the_table_of_cosines_is_the_librarys_at_every_stage(page: Page, address: str) -> None:
    text = "The film was dull and the film was long"
    asked = {"prompt": Prompt(BUNDLE, text, len(BUNDLE.tokenizer.encode(text)))}
    visit(page, address, "embeddings", text=text)
    wait_painted(page, f"looked_up|{text}")
    large(page).locator(".vm-tool-table").click()
    np.testing.assert_allclose(table_row(large(page), 2), sentence_vectors(**asked).cosine[2], atol=6e-4)
    page.get_by_text("after the last layer", exact=True).click()
    wait_painted(page, f"after_layers|{text}")
    expect(page.get_by_text("Each vector has taken in what it attends to")).to_be_visible()
    found = sentence_vectors(**asked, stage="after_layers")
    assert found.closest is not None
    expect(page.get_by_text(f"cosine {found.cosine[found.closest]:.3f}")).to_be_visible()
    wait_link(page, embeddings_stage="after_layers")


@pytest.mark.nightly
def test_the_map_is_searched_and_its_files_hold_its_points(page: Page, address: str, tmp_path: Path) -> None:
    visit(page, address, "embeddings", embeddings_part="map", embeddings_method="space", embeddings_count="250")
    expect(page.locator(".js-plotly-plot")).to_be_visible()
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


@pytest.mark.nightly
def test_a_cell_reached_by_keyboard_is_taken_apart_and_stays_at_another_length(page: Page, address: str) -> None:
    visit(page, address, "positions", positions_length="20", positions_d="16", positions_pos="3", positions_pair="1")
    wait_painted(page, f"20x16|3.1|{DEFAULT_TEXT}")
    press(page, page.locator(".vm-canvas").first, *["ArrowDown"] * 2, *["ArrowRight"] * 2, "Enter")
    wait_painted(page, f"20x16|5.2|{DEFAULT_TEXT}")
    wait_link(page, positions_pos="5")
    step = step_as_rotation(length=20, d_model=16, pos=5, shift=5, pair=2)
    expect(page.locator(".katex annotation").filter(has_text=f"{step.after[0]:.4f}").first).to_be_attached()
    page.locator(".vm-tool-table").first.click()
    shown = table_row(page.locator(".vm").first, 5)
    np.testing.assert_allclose(shown, sinusoidal_table(20, 16)[5], atol=6e-4)
    page.get_by_role("slider").first.press("ArrowRight")
    wait_painted(page, f"21x16|5.2|{DEFAULT_TEXT}")


@pytest.mark.nightly
def test_a_list_of_words_has_the_words_of_the_text_in_the_box(page: Page, address: str) -> None:
    visit(page, address, "positions", positions_part="schemes", text="The film", lang="en")
    word = page.locator("[class*='st-key-positions_word-'] input")
    expect(word).to_have_value("1 the")
    word.click()
    page.get_by_role("option", name="2 film").click()
    for text, held in (("Dogs bark", "2 bark"), ("A tree grows", "2 tree")):
        type_text(page, text)
        expect(word).to_have_value(held)
        wait_link(page, text=text, positions_word="2")


@pytest.mark.nightly
def test_another_norm_has_its_own_numbers_and_the_rows_of_the_stream_add_up(page: Page, address: str) -> None:
    visit(page, address, "norm", text=TEXT, layer="1", norm_token="2")
    page.get_by_role("radio", name="before feed-forward").click()
    found = normed_vector(**ASKED, layer=1, sublayer="feed_forward", token=2, scale=1.0)
    expect(page.get_by_text(f"{found.factor:.7f}")).to_be_visible()
    expect(page.locator(".katex-mathml").filter(has_text=f"{found.variance:.4f}").first).to_be_attached()
    open_part(page, "norm", "residual")
    wait_painted(page, f"sum 2|{TEXT}")
    page.locator(".vm-tool-table").first.click()
    rows = page.locator(".vm-table tbody tr")
    parts = 2 + 2 * BUNDLE.config.n_layers
    expect(rows).to_have_count(parts + 2)
    shown = np.stack([floats(rows.nth(row).locator("td"))[:16] for row in range(parts + 2)])
    np.testing.assert_allclose(shown[:parts].sum(0), shown[parts], atol=0.02)
    np.testing.assert_allclose(shown[parts], shown[parts + 1], atol=0.01)


@pytest.mark.nightly
def test_another_layer_has_its_own_curves_and_files_and_a_cell_chooses_its_neuron(
    page: Page, address: str, tmp_path: Path
) -> None:
    visit(page, address, "feed_forward", text=TEXT)
    chart = page.get_by_test_id("stVegaLiteChart").first
    expect(chart.locator("svg.marks")).to_be_visible()
    page.get_by_role("radio", name="2", exact=True).first.click()
    found = own_activations(**ASKED, layer=2, token=0)
    expect(metric(page, "Below 0, layer 2")).to_have_text(f"{found.below_zero:.1%}")
    chart.hover()
    expect(page.get_by_role("button", name="Fullscreen").first).to_be_attached()
    expect(page.get_by_role("button", name="Show data")).to_have_count(0)
    page.get_by_text("Export", exact=True).first.click()
    button = page.get_by_test_id("stDownloadButton").filter(has_text="CSV")
    with zipfile.ZipFile(download(page, button, tmp_path)) as archive:
        tables = [pd.read_csv(archive.open(name)) for name in archive.namelist()]
    assert not any(table.isna().any(axis=None) for table in tables), "a file holds one table"
    own = next(table for table in tables if "neuron" in table)
    np.testing.assert_allclose(own["x"], found.token_values, atol=1e-4)
    shares = next(table for table in tables if "share" in table)
    assert shares["count"].head(len(found.counts)).tolist() == found.counts.tolist()
    curves = next(table for table in tables if "activation" in table and "neuron" not in table)
    assert (curves.loc[curves["activation"] == "ReLU"].groupby("part")["y"].min() == 0).all()

    first, second = (int(neuron) for neuron in neurons(**ASKED, layer=2, top=24).columns[:2])
    open_part(page, "feed_forward", "neurons")
    wait_painted(page, f"2.{first}|{TEXT}")
    press(page, page.locator(".vm-canvas").first, "ArrowRight", "Enter")
    wait_painted(page, f"2.{second}|{TEXT}")
    expect(page.get_by_role("heading", name=f"What excites neuron {second} of layer 2")).to_be_visible()
    wait_link(page, feed_forward_neuron=str(second))


def test_a_guess_is_judged_the_slider_reveals_and_the_chart_is_saved(page: Page, address: str, tmp_path: Path) -> None:
    found = spread_by_width(seed=0)
    visit(page, address, "why", text=TEXT, why="scaling")
    expect(page.get_by_test_id("stVegaLiteChart")).to_have_count(4)
    page.get_by_text("more than 90%", exact=True).click()
    judged = page.locator("[class*='_judged']")
    expect(judged).to_contain_text("As you predicted")
    slider = page.get_by_role("slider").first
    for _ in range(2):
        slider.press("ArrowRight")
    index = WIDTHS.index(16)
    expect(judged).to_contain_text(f"At d_k = 16 it is {significant(found.variance[index], 3)}")
    expect(judged).to_contain_text(f"{found.greatest[index]:.0%}")
    wait_link(page, why_scaling_width="16")
    page.get_by_text("Export", exact=True).first.click()
    button = page.get_by_test_id("stDownloadButton").get_by_role("button")
    arrays = np.load(download(page, button.filter(has_text=".npz"), tmp_path), allow_pickle=False)
    np.testing.assert_allclose(arrays["variance"], found.variance, rtol=1e-4)
    script = download(page, button.filter(has_text="Python"), tmp_path).read_text(encoding="utf-8")
    assert re.search(r"spread_by_width\(\s+seed=0,\s+\)", script)
    with page.expect_download() as coming:
        button.filter(has_text="SVG").click()
    for width in ("8", "16", "8"):  # three runs end while the file is on its way
        slider.press("ArrowLeft" if width == "8" else "ArrowRight")
        wait_link(page, why_scaling_width=width)
        settle(page)
    svg = page.request.get(coming.value.url)
    assert svg.ok
    assert svg.body()[:200].count(b"<svg") == 1


@pytest.mark.nightly
def test_a_question_opens_with_the_models_own_heads(page: Page, address: str) -> None:
    labels, expected = weights(TEXT, 1, 2)
    visit(page, address, "why", text=TEXT, layer="1", why="heads", shown="why_heads")
    matrix = page.locator(".vm").first
    press(page, matrix.locator(".vm-canvas"), "PageDown", "PageDown", "Enter")
    matrix.locator(".vm-tool-table").click()
    np.testing.assert_allclose(table_row(matrix, 0)[: len(labels)], expected[0], atol=2.5e-3)  # one byte a value


@pytest.mark.nightly
def test_layers_a_class_and_a_second_sentence_have_the_librarys_numbers(page: Page, address: str) -> None:
    visit(page, address, "encoder", text=TEXT)
    found = layer_verdicts(**ASKED)
    expect(page.get_by_test_id("stVegaLiteChart").locator("canvas, svg").first).to_be_visible()
    last = f"{found.probabilities[1, -1, found.winner]:.1%}"
    expect(metric(page, "if read from the tokens' mean")).to_have_text(last)
    wait_painted(page, f"moves|{TEXT}")

    open_part(page, "encoder", "sum")
    total = f"{abs(score_sum(**ASKED).total):.4f}"
    expect(page.locator(".katex-html").filter(has_text=total).first).to_be_visible()

    open_part(page, "encoder", "edit")
    other = TEXT.replace("loved", "hated")
    with page.expect_response("**/live/encoder/edit?*hated*"):
        page.get_by_role("textbox", name="The second sentence").fill(other)
    pair = sentence_pair(prompt=Prompt(BUNDLE, TEXT, 64), other=Prompt(BUNDLE, other, 64))
    wait_painted(page, f"spread|{'|'.join(pair.labels)}")
    wait_link(page, encoder_other=other)
    page.get_by_text("layer 3", exact=True).first.click()
    expect(page.get_by_text(minus(f"moves by {100 * pair.moved:+.1f} points"))).to_be_visible()
    settle(page)
