"""What stands on the page on norm and residual is what the model computes: read back from the screen."""

import numpy as np
from playwright.sync_api import Page, expect

from pages.ui.number_format import significant
from tests.helpers.browser import BUNDLE, visit, wait_painted
from transformer_core.analysis.stream.depth import gradients_by_depth
from transformer_core.analysis.stream.normalization import normed_vector

TEXT = "The plot was thin but I loved every minute"


def test_the_rows_on_the_screen_add_up(page: Page, address: str) -> None:
    visit(page, address, "norm", text=TEXT, norm_part="residual", norm_token="3")
    wait_painted(page, f"sum 3|{TEXT}")
    page.locator(".vm-tool-table").first.click()
    rows = page.locator(".vm-table tbody tr")
    parts = 2 + 2 * BUNDLE.config.n_layers
    expect(rows).to_have_count(parts + 2)
    shown = np.array(
        [
            [float(cell.replace("−", "-")) for cell in rows.nth(row).locator("td").all_inner_texts()[:16]]
            for row in range(parts + 2)
        ]
    )
    np.testing.assert_allclose(shown[:parts].sum(0), shown[parts], atol=0.02)
    np.testing.assert_allclose(shown[parts], shown[parts + 1], atol=0.01)


def test_another_norm_has_its_own_numbers(page: Page, address: str) -> None:
    visit(page, address, "norm", text=TEXT, layer="1", norm_token="2")
    page.get_by_role("radio", name="before feed-forward").click()
    found = normed_vector(bundle=BUNDLE, text=TEXT, n_tokens=20, layer=1, sublayer="feed_forward", token=2, scale=1.0)
    expect(page.get_by_text(f"{found.factor:.7f}")).to_be_visible()
    expect(page.locator(".katex-mathml").filter(has_text=f"{found.variance:.4f}").first).to_be_attached()


def test_the_gradient_is_measured_after_the_prediction(page: Page, address: str) -> None:
    visit(page, address, "norm", norm_part="depth", norm_depth="8")
    expect(page.locator(".st-key-cover_norm_depth")).to_have_css("opacity", "0.6")
    page.get_by_text("it all but vanishes").click()
    for profile in gradients_by_depth(n_layers=8, d_model=32, seed=0).profiles:
        expect(page.get_by_role("cell", name=significant(profile.first_over_last, 3), exact=True).first).to_be_visible()
    expect(page.get_by_test_id("stVegaLiteChart").first).to_be_visible()
