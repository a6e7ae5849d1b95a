"""Painting on the real page: by mouse, by drag, by key, from a link; what stands there is what the model computes."""

import re
from collections.abc import Callable

import numpy as np
import torch
from playwright.sync_api import Locator, Page, expect

from tests.helpers.browser import BUNDLE, visit
from transformer_core.analysis.masks.codes import painted_code, painted_mask
from transformer_core.analysis.masks.masked_head import MaskedHead, masked_head

TEXT = "The plot was thin but I loved every minute"
SIZE = len(BUNDLE.tokenizer.encode(TEXT))
OPEN = np.ones((SIZE, SIZE), bool)


def without(*cells: tuple[int, int]) -> np.ndarray:
    mask = OPEN.copy()
    for cell in cells:
        mask[cell] = False
    return mask


def computed(mask: np.ndarray) -> MaskedHead:
    """Return what the model computes here, outside the app."""
    code = painted_code(mask)
    place = {"layer": 0, "head": 0, "everywhere": True}
    return masked_head(bundle=BUNDLE, text=TEXT, n_tokens=SIZE, pads=0, mask=code, **place)


def wait_mask(page: Page, mask: str) -> None:
    """Wait until the figure for this mask is painted."""
    page.wait_for_function(
        "(code) => [...document.querySelectorAll('*')].some((host) => host.shadowRoot?.querySelector('.vm')"
        "?.dataset.painted.startsWith(`${code}|`))",
        arg=mask,
        timeout=30_000,
    )


def wait_link(page: Page, mask: np.ndarray) -> None:
    """Wait until the link carries this mask and the figure shows it."""
    code = painted_code(mask)
    page.wait_for_function("(code) => location.search.includes(`masks_rows=${code}`)", arg=code, timeout=30_000)
    wait_mask(page, code)


def open_painter(page: Page, address: str, **query: str) -> Locator:
    visit(page, address, "masks", lang="en", text=TEXT, **({"masks_preset": "everything"} | query))
    canvas = page.locator(".vm-canvas").first
    canvas.wait_for()
    canvas.scroll_into_view_if_needed()
    return canvas


def pointed(page: Page, x: float, y: float) -> tuple[str, int, int]:
    """Point there and return the panel, the row and the column that the readout names."""
    page.mouse.move(x, y)
    page.evaluate("() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))")
    words = page.locator(".vm-readout").first
    indices = [int(text) for text in words.locator(".vm-places .vm-index").all_inner_texts()]
    panel = words.locator(".vm-where").first
    return (panel.inner_text() if panel.count() else "", *indices) if len(indices) == 2 else ("", -1, -1)


def edge(low: float, high: float, beyond: Callable[[float], bool]) -> float:
    """Return where `beyond` begins to hold, to half a pixel."""
    while high - low > 0.5:
        middle = (low + high) / 2
        low, high = (low, middle) if beyond(middle) else (middle, high)
    return high


def places(page: Page, canvas: Locator, *cells: tuple[int, int]) -> list[tuple[float, float]]:
    """Return where cells of the mask lie on the screen, found by pointing and reading as a person would."""
    frame = canvas.bounding_box()
    assert frame is not None
    y = frame["y"] + frame["height"] / 2
    swept = [(pointed(page, x, y), x) for x in np.linspace(frame["x"] + 60, frame["x"] + 320, 12).tolist()]
    inside = [(found, x) for found, x in swept if found[0] == "Mask (paint here)"]
    (_, row, col), x = inside[0]
    far = inside[-1][0][2]
    last = next(place for found, place in inside if found[2] == far)
    left = edge(x, last, lambda at: pointed(page, at, y)[2] > col)
    right = edge(x, last, lambda at: pointed(page, at, y)[2] >= far)
    side = (right - left) / (far - col - 1)
    top = edge(y - side, y, lambda at: pointed(page, x, at)[1] >= row)
    return [(left + (c - col - 0.5) * side, top + (r - row + 0.5) * side) for r, c in cells]


PLAIN = str.maketrans("⁻⁰¹²³⁴⁵⁶⁷⁸⁹−", "-0123456789-")


def weights_shown(page: Page) -> np.ndarray:
    """Return the weights from the figure's table, made to show the third panel."""
    canvas = page.locator(".vm-canvas").first
    canvas.focus()
    for _ in range(3):
        page.keyboard.press("PageDown")
        if "Weights" in page.locator(".vm-live").first.inner_text():
            break
    page.wait_for_timeout(500)
    rows = page.locator(".vm-table tbody").first.evaluate(
        "(body) => [...body.rows].map((row) => [...row.querySelectorAll('td')].map((cell) => cell.textContent))"
    )
    return np.array([[float(cell.replace("×10", "e").translate(PLAIN)) for cell in row] for row in rows])


def test_a_click_hides_a_pair_and_the_row_renormalises(page: Page, address: str) -> None:
    canvas = open_painter(page, address)
    ((x, y),) = places(page, canvas, (3, 2))
    page.mouse.click(x, y)
    mask = without((3, 2))
    wait_link(page, mask)
    shown, expected = weights_shown(page), computed(mask).steps.weights
    assert shown[3, 2] == 0
    assert shown[3].sum() == 1 or abs(shown[3].sum() - 1) < 5e-3
    np.testing.assert_allclose(shown, expected, atol=6e-4)


def test_a_drag_paints_while_it_goes_and_the_verdict_follows(page: Page, address: str) -> None:
    canvas = open_painter(page, address)
    cells = [(0, col) for col in range(1, SIZE)]
    first, *others = places(page, canvas, *cells)
    page.mouse.move(*first)
    page.mouse.down()
    for place in others:
        page.mouse.move(*place)
    wait_mask(page, painted_code(without(*cells)))  # before the button is let go
    page.mouse.up()
    mask = without(*cells)
    wait_link(page, mask)
    found = computed(mask)
    first_class = found.before.index(max(found.before))
    moved = f"{100 * (found.after[first_class] - found.before[first_class]):+.1f}"
    expect(page.locator("[data-number=masks_change]")).to_contain_text(moved.replace("-", ""))


def test_the_keyboard_paints_and_the_change_is_heard(page: Page, address: str) -> None:
    canvas = open_painter(page, address)
    canvas.focus()
    page.keyboard.press("Tab")
    page.keyboard.press("Shift+Tab")
    for key in ("Home", "ArrowDown", "ArrowRight", "Space"):
        page.keyboard.press(key)
    expect(page.locator(".vm-live").first).to_contain_text("hidden")
    page.wait_for_function("() => location.search.includes('masks_rows=')")
    code = re.search(r"masks_rows=([^&]+)", page.url)
    assert code is not None
    hidden = np.argwhere(~painted_mask(code[1]).numpy()).tolist()
    assert hidden == [[1, 1]]
    wait_link(page, without((1, 1)))
    assert weights_shown(page)[1, 1] == 0


def test_a_link_brings_the_mask_and_a_wholly_masked_row_says_why(page: Page, address: str) -> None:
    mask = torch.ones(SIZE, SIZE, dtype=torch.bool)
    mask[4] = False
    code = painted_code(mask)
    open_painter(page, address, masks_preset="painted", masks_rows=code)
    wait_mask(page, code)
    assert weights_shown(page)[4].tolist() == [0] * SIZE
    reason = page.locator(".st-key-masks_wholly_masked")
    expect(reason).to_contain_text("No key is left there")
    for cell in ("0.0000", "nan", f"{1 / SIZE:.4f}"):
        expect(reason).to_contain_text(cell)


def test_a_preset_after_painting_is_taken_and_the_painted_one_comes_back(page: Page, address: str) -> None:
    canvas = open_painter(page, address)
    ((x, y),) = places(page, canvas, (2, 5))
    page.mouse.click(x, y)
    wait_link(page, without((2, 5)))
    page.get_by_role("radio", name="causal").click()
    wait_mask(page, "causal")
    page.get_by_role("radio", name="painted").click()
    wait_mask(page, painted_code(without((2, 5))))
