"""Painting on the canvas: cells change at once, one message is on its way at a time, no late answer undoes a stroke."""

import numpy as np
import pytest
from playwright.sync_api import Page, expect

from tests.helpers.painting import SIZE, cell, on_screen, show, told
from transformer_core.analysis.masks.codes import painted_mask

OPEN = np.ones((SIZE, SIZE), bool)


def drag(page: Page, *cells: tuple[int, int]) -> None:
    """Press at the first cell and move over the others, without letting go."""
    page.mouse.move(*cell(page, *cells[0]))
    page.mouse.down()
    for row, col in cells[1:]:
        page.mouse.move(*cell(page, row, col))


def test_a_click_hides_a_cell_and_another_opens_it(page: Page) -> None:
    show(page, OPEN)
    page.mouse.click(*cell(page, 2, 5))
    expected = OPEN.copy()
    expected[2, 5] = False
    np.testing.assert_array_equal(on_screen(page), expected)
    message = told(page)[-1]
    np.testing.assert_array_equal(painted_mask(message["mask"]).numpy(), expected)
    assert message == {"mask": message["mask"], "stamp": 1, "done": False}
    show(page, expected, stamp=1)
    page.wait_for_function("told.at(-1)[1].done")
    page.mouse.click(*cell(page, 2, 5))
    assert on_screen(page).all()
    expect(page.locator(".vm-live")).to_contain_text("w2")
    expect(page.locator(".vm-live")).to_contain_text("may attend")


def test_a_drag_paints_the_opposite_of_its_first_cell_and_skips_none(page: Page) -> None:
    mask = OPEN.copy()
    mask[3, 3] = False
    show(page, mask)
    drag(page, (0, 0), (7, 7))
    page.mouse.up()
    np.testing.assert_array_equal(on_screen(page), OPEN & ~np.eye(SIZE, dtype=bool))


def test_one_message_is_on_its_way_and_the_last_one_says_that_the_stroke_has_ended(page: Page) -> None:
    show(page, OPEN)
    drag(page, (1, 0), (1, 1), (1, 2), (1, 3))
    assert len(told(page)) == 1
    first = painted_mask(told(page)[0]["mask"]).numpy()
    show(page, first, stamp=told(page)[0]["stamp"], version="answer")
    expected = OPEN.copy()
    expected[1, :4] = False
    np.testing.assert_array_equal(on_screen(page), expected)  # the answer did not know of all of it
    page.wait_for_function("told.length === 2")
    page.mouse.up()
    show(page, expected, stamp=told(page)[-1]["stamp"], version="second")
    page.wait_for_function("told.at(-1)[1].done")
    np.testing.assert_array_equal(painted_mask(told(page)[-1]["mask"]).numpy(), expected)


def test_an_answer_that_knows_every_stroke_may_bring_another_mask(page: Page) -> None:
    show(page, OPEN)
    page.mouse.click(*cell(page, 0, 0))
    show(page, np.eye(SIZE, dtype=bool), stamp=1, version="a preset")
    np.testing.assert_array_equal(on_screen(page), np.eye(SIZE, dtype=bool))


def test_a_lost_message_is_sent_again(page: Page) -> None:
    show(page, OPEN)
    page.mouse.click(*cell(page, 0, 0))
    page.mouse.click(*cell(page, 0, 1))
    page.wait_for_function("told.length >= 2")
    assert not painted_mask(told(page)[-1]["mask"])[0, :2].any()


@pytest.mark.parametrize("key", ["Space", "Enter"])
def test_the_keyboard_moves_and_toggles_and_a_screen_reader_hears_it(page: Page, key: str) -> None:
    show(page, OPEN)
    canvas = page.locator(".vm-canvas")
    assert "opens or hides the cell" in str(canvas.get_attribute("aria-label"))
    canvas.focus()
    for step in ("ArrowRight", "ArrowRight", "ArrowDown", key):
        page.keyboard.press(step)
    assert np.argwhere(~on_screen(page)).tolist() == [[1, 2]]
    expect(page.locator(".vm-live")).to_contain_text("hidden")
    assert told(page)[-1]["done"]
    expect(page.locator(".vm-table")).to_contain_text("hidden")


def test_other_panels_are_read_and_pinned_but_not_painted(page: Page) -> None:
    show(page, OPEN)
    page.mouse.click(*cell(page, 3, 2, panel=2))
    assert on_screen(page).all()
    assert told(page) == []
    assert page.evaluate("told.at(-1)[1].cell") == [3, 2]


def test_a_figure_on_a_page_of_its_own_has_no_model_and_cannot_be_painted(page: Page) -> None:
    show(page, OPEN, alone=True)
    page.mouse.click(*cell(page, 2, 2))
    assert on_screen(page).all()
    assert "opens or hides" not in str(page.locator(".vm-canvas").get_attribute("aria-label"))


def test_a_finger_paints_and_the_page_does_not_scroll(page: Page) -> None:
    show(page, OPEN)
    x, y = cell(page, 4, 4)
    prevented = page.evaluate(
        """([x, y]) => {
          const touch = new Touch({ identifier: 1, target: matrix.canvas, clientX: x, clientY: y });
          const begin = new TouchEvent("touchstart", { touches: [touch], cancelable: true, bubbles: true });
          matrix.canvas.dispatchEvent(begin);
          const finger = { pointerId: 1, pointerType: "touch", clientX: x, clientY: y };
          const pointer = (type) => new PointerEvent(type, finger);
          matrix.canvas.setPointerCapture = () => {};
          for (const type of ["pointerdown", "pointerup"]) matrix.canvas.dispatchEvent(pointer(type));
          return begin.defaultPrevented;
        }""",
        [x, y],
    )
    assert prevented
    assert not on_screen(page)[4, 4]


@pytest.mark.parametrize(("width", "fingers"), [(660, False), (390, True)])
def test_no_title_is_cut_and_a_finger_hits_each_cell_of_a_drawing_that_says_where_it_goes_on(
    page: Page, width: int, fingers: bool
) -> None:
    page.set_viewport_size({"width": width, "height": 700})
    session = page.context.new_cdp_session(page)
    session.send("Emulation.setTouchEmulationEnabled", {"enabled": fingers, "maxTouchPoints": 5})
    show(page, np.ones((20, 20), bool))
    assert not [label["text"] for label in page.evaluate("matrix.scene.labels") if label["text"].endswith("…")]
    assert (page.evaluate("matrix.scene.boxes[0].w") >= 20 * 24) == fingers
    sign = page.locator(".vm-frame[data-more]")
    expect(sign).to_have_count(int(fingers))
    if fingers:
        assert "Tap" in page.locator(".vm-hint").first.inner_text()
        page.locator(".vm-stage").evaluate("(one) => one.scrollTo(one.scrollWidth, 0)")
        expect(sign).to_have_count(0)
    session.detach()
