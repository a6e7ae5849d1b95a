"""What stands on the feed-forward page is what the model computes: read back from the screen."""

import re
import zipfile
from pathlib import Path

import numpy as np
import pandas as pd
from playwright.sync_api import Page, expect

from tests.helpers.browser import BUNDLE, download, visit, wait_painted
from transformer_core.analysis.feed_forward.activations import own_activations
from transformer_core.analysis.feed_forward.bernoulli import coin_tosses
from transformer_core.analysis.feed_forward.neurons import neurons

TEXT = "The plot was thin but I loved every minute"
N_TOKENS = len(BUNDLE.tokenizer.encode(TEXT))


def test_another_layer_has_its_own_share_below_zero(page: Page, address: str) -> None:
    visit(page, address, "feed_forward", text=TEXT)
    for layer in (0, 2):
        page.get_by_role("radio", name=str(layer), exact=True).first.click()
        found = own_activations(bundle=BUNDLE, text=TEXT, n_tokens=N_TOKENS, layer=layer, token=0)
        metric = page.get_by_test_id("stMetric").filter(has_text=f"Below 0, layer {layer}")
        expect(metric.get_by_test_id("stMetricValue")).to_have_text(f"{found.below_zero:.1%}")
    expect(page.get_by_test_id("stVegaLiteChart").locator("canvas, svg").first).to_be_visible()


def test_the_table_of_several_axes_has_numbers_and_nothing_else_passes_for_it(
    page: Page, address: str, tmp_path: Path
) -> None:
    visit(page, address, "feed_forward", text=TEXT)
    chart = page.get_by_test_id("stVegaLiteChart").first
    expect(chart.locator("svg.marks")).to_be_visible(timeout=20_000)
    chart.hover()
    expect(page.get_by_role("button", name="Fullscreen").first).to_be_attached()
    expect(page.get_by_role("button", name="Show data")).to_have_count(0)
    page.get_by_text("Export", exact=True).first.click()
    button = page.get_by_test_id("stDownloadButton").filter(has_text="CSV")
    with zipfile.ZipFile(download(page, button, tmp_path)) as archive:
        tables = [pd.read_csv(archive.open(name)) for name in archive.namelist()]
    assert not any(table.isna().any(axis=None) for table in tables), "a file holds one table"
    found = own_activations(bundle=BUNDLE, text=TEXT, n_tokens=N_TOKENS, layer=0, token=0)
    own = next(table for table in tables if "neuron" in table)
    np.testing.assert_allclose(own["x"], found.token_values, atol=1e-4)
    assert own["x"].min() < 0
    shares = next(table for table in tables if "share" in table)
    assert shares["count"].head(len(found.counts)).tolist() == found.counts.tolist()
    curves = next(table for table in tables if "activation" in table and "neuron" not in table)
    assert (curves.loc[curves["activation"] == "ReLU"].groupby("part")["y"].min() == 0).all()


def test_the_coin_is_tossed_again_and_its_link_is_followed(page: Page, address: str) -> None:
    visit(page, address, "feed_forward", feed_forward_part="bernoulli", feed_forward_x="0.5")
    page.get_by_role("button", name="Toss again").click()
    found = coin_tosses(x=0.5, draws=500, seed=1)
    mean = page.get_by_test_id("stMetric").filter(has_text="mean of the draws").get_by_test_id("stMetricValue")
    expect(mean).to_have_text(f"{found.mean:+.5f}")
    page.wait_for_url(re.compile("feed_forward_seed=1"))
    page.goto(page.url)
    expect(mean).to_have_text(f"{found.mean:+.5f}", timeout=20_000)


def test_a_clicked_cell_chooses_its_neuron(page: Page, address: str) -> None:
    found = neurons(bundle=BUNDLE, text=TEXT, n_tokens=N_TOKENS, layer=3, top=24)
    visit(page, address, "feed_forward", text=TEXT, layer="3", feed_forward_part="neurons")
    wait_painted(page, f"3.{found.columns[0]}|{TEXT}")
    canvas = page.locator(".vm-canvas").first
    canvas.focus()
    page.keyboard.press("ArrowRight")
    page.keyboard.press("Enter")
    neuron = int(found.columns[1])
    wait_painted(page, f"3.{neuron}|{TEXT}")
    expect(page.get_by_role("heading", name=f"What excites neuron {neuron} of layer 3")).to_be_visible(timeout=20_000)
    assert f"feed_forward_neuron={neuron}" in page.url
