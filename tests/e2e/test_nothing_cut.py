"""No word on a page is cut off: whatever tells a number, names an axis or a legend, is there as a whole."""

import pytest
from playwright.sync_api import Page

from tests.helpers.browser import visit

PLACES = (  # where numbers stand large in narrow columns, and where names are longest
    ("feed_forward", {"feed_forward_part": "curves"}),
    ("norm", {"norm_part": "vector"}),
    ("gpt", {"gpt_part": "next"}),
    ("encoder", {"encoder_part": "layers"}),
    ("positions", {"positions_part": "matrix"}),
    ("bert", {"bert_part": "tied"}),
)
CUT = """() => {
  const metrics = document.querySelectorAll('[data-testid^="stMetric"], [data-testid^="stMetric"] *');
  const css = [...metrics].filter((node) => {
    const { textOverflow, overflowX } = getComputedStyle(node);
    return textOverflow === "ellipsis" && overflowX !== "visible" && node.scrollWidth > node.clientWidth + 1;
  });
  const drawn = [...document.querySelectorAll("svg.marks text")].filter((node) => {
    const kind = node.closest("[class*=role-]")?.getAttribute("class") ?? "";
    return /legend|title/.test(kind) && node.textContent.endsWith("…");
  });
  return [...css, ...drawn].map((node) => node.textContent.trim());
}"""


@pytest.mark.parametrize("language", ["en", "zh"])
def test_no_metric_legend_or_title_is_cut_off(page: Page, address: str, language: str) -> None:
    cut = {}
    for name, part in PLACES:
        visit(page, address, name, lang=language, **part)
        page.locator("svg.marks, .vm").first.wait_for(timeout=40_000)
        cut |= {(name, word): part for word in page.evaluate(CUT)}
    assert not cut
