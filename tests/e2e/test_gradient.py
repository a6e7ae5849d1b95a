"""The other half under the glass, by hand: a cell's gradient, the sum that it is, and the nudge that checks it."""

import re

import pytest
import torch
from playwright.sync_api import Page, expect
from torch import Tensor

from pages.language import words
from tests.helpers.browser import BUNDLE, rest, type_text, visit
from tests.helpers.reading import metric, press, wait_link
from transformer_core.analysis.outcome import one_text
from transformer_core.probe import Probe

TEXT, ATTENTION = "A dull film, but a lovely end.", "encoder.layer0.self_attention"
QUERY, KEY, SCORES = (f"{ATTENTION}.{leaf}" for leaf in ("query", "key", "scores"))
HEAD, ROW, COL, STEP = 0, 3, 7, 0.1
FORMULA = ".st-key-formula_glass_cell annotation"


def passed(name: str, by: Tensor | None = None) -> tuple[Tensor, Tensor, float]:
    """Return a tensor, the gradient of the likeliest class's -ln p with respect to it, and the loss, by plain autograd.

    Args:
        by: what is added to the tensor, by default nothing.
    """
    kept: list[Tensor] = []

    def add(tensor: Tensor) -> Tensor:
        added = (torch.zeros_like(tensor) if by is None else by.clone()).requires_grad_(True)
        kept.extend((tensor.detach().clone(), added))
        return tensor + added

    ids = one_text(BUNDLE, BUNDLE.tokenizer.encode(TEXT)).clone()
    with torch.inference_mode(False), torch.enable_grad():
        likeliest = BUNDLE.model(ids).argmax(-1)
        loss = torch.nn.functional.cross_entropy(BUNDLE.model(ids, probe=Probe((), edits={name: add})), likeliest)
        return kept[0], torch.autograd.grad(loss, kept[1])[0], float(loss.detach())


def read(written: str) -> float:
    """Return a number as the page writes it."""
    power = str.maketrans("⁻⁰¹²³⁴⁵⁶⁷⁸⁹", "-0123456789")
    mantissa, _, exponent = written.replace("−", "-").partition("×10")
    return float(mantissa) * 10.0 ** int(exponent.translate(power) or 0)


def value_of(latex: str) -> float:
    """Return what a sum of products in LaTeX comes to."""
    bare = re.sub(r"\\underbrace\{(.*?)\}_\{\\Sigma\\,\d+\}", r"\1", latex)
    bare = re.sub(r"10\^\{(-?\d+)\}", r"10.0**(\1)", bare.replace(r"\times", "*").replace(r"\cdot", "*"))
    assert re.fullmatch(r"[-+*().0-9 ]+", bare), latex
    return eval(bare)


def test_a_cells_gradient_is_autograds_its_sum_too_and_the_nudge_is_what_the_loss_does(
    page: Page, address: str
) -> None:
    visit(page, address, "attention", lang="en", model="sentiment", text="A film.")
    type_text(page, TEXT)
    wait_link(page, text=TEXT)
    said = words("en")
    page.get_by_text(said["glass.heading"]).click()
    page.get_by_role("radio", name=said["glass.shows_gradient"], exact=True).click()
    wait_link(page, glass_shows="gradient")
    rest(page)
    canvas = page.locator(".st-key-glass_matrix .vm-canvas")
    press(page, canvas, "Home", *["ArrowUp"] * 20, *["ArrowDown"] * ROW, *["ArrowRight"] * COL, "Enter")
    wait_link(page, glass_cell=f"{ROW}.{COL}")
    rest(page)

    _, slopes, loss = passed(QUERY)
    slope = float(slopes[0, HEAD, ROW, COL])
    told = page.locator("[data-lines=glass_cell]").inner_text()
    recorded, summed = re.findall(r"gradient (\S+); the products add up to (\S+)\.", told)[0]
    assert read(recorded) == pytest.approx(slope, rel=1e-3)
    assert read(summed) == pytest.approx(slope, rel=1e-3)
    formula = page.locator(FORMULA).first.text_content() or ""
    symbols, numbers, result = re.findall(r"&= (.+?) \\\\\[", formula)
    assert r"\frac{\partial L}{\partial S" in symbols
    key, of_scores = passed(KEY)[0][0, HEAD, :, COL], passed(SCORES)[1][0, HEAD, ROW]  # (key_pos,)
    terms = of_scores * key / slopes.shape[-1] ** 0.5
    assert float(terms.sum()) == pytest.approx(slope, rel=1e-3)
    for place in terms.abs().topk(3).indices.tolist():  # those that are written
        assert any(
            abs(value_of(term) - float(terms[place])) <= 2e-3 * abs(float(terms[place]))
            for term in re.split(r"(?<=\S)\+|(?<=[\d)}])(?=-)", numbers)
            if "underbrace" not in term and r"\cdot" in term
        ), (terms[place], numbers)
    assert value_of(numbers) == pytest.approx(slope, abs=2e-3 * float(terms.abs().sum()))
    assert value_of(result) == pytest.approx(slope, rel=1e-3)
    expect(page.get_by_text(said["glass.slope_agrees"])).to_be_visible()

    page.get_by_role("radio", name=f"+{STEP}", exact=True).click()
    wait_link(page, glass_step=str(STEP))
    by = torch.zeros_like(slopes)
    by[0, HEAD, ROW, COL] = STEP
    after = passed(QUERY, by)[2]
    for label, expected in (("before", loss), ("after", after)):
        expect(metric(page, said[f"glass.nudge_{label}"])).to_be_visible()
        assert read(metric(page, said[f"glass.nudge_{label}"]).inner_text()) == pytest.approx(expected, abs=2e-6)
    assert read(metric(page, said["glass.nudge_expected"]).inner_text()) == pytest.approx(slope * STEP, rel=1e-2)
    change = read(metric(page, said["glass.nudge_change"]).inner_text())
    assert change == pytest.approx(after - loss, abs=1e-6)
