"""The film in a browser, fed by a small server with made-up runs: it follows, plays, tells, recovers, never blinks."""

from collections.abc import Iterator

import pytest
from playwright.sync_api import Page, expect

from tests.helpers.film_stage import POINTS, Stage, slider, small_stage, staging, told, wait_frame, watch


@pytest.fixture
def stage() -> Stage:
    return small_stage()


@pytest.fixture
def address(stage: Stage) -> Iterator[str]:
    with staging(stage) as address:
        yield address


def test_it_stands_at_the_newest_frame_or_at_the_one_asked_for(page: Page, address: str) -> None:
    watch(page, address)
    expect(slider(page)).to_have_attribute("aria-valuenow", "7")
    watch(page, address, frame=3)
    expect(slider(page)).to_have_attribute("aria-valuetext", "step 103 · epoch 2.6 · frame 3 of 0 to 7")
    page.wait_for_timeout(700)
    assert told(page, "view") == []  # what the page asked for itself is no news to it


def test_the_keyboard_moves_everything_and_the_page_is_told_once_it_rests(page: Page, address: str) -> None:
    watch(page, address, frame=3)
    slider(page).focus()
    for key, frame in (("ArrowRight", 4), ("ArrowRight", 5), ("Home", 0), ("PageDown", 5), ("ArrowLeft", 4)):
        page.keyboard.press(key)
        wait_frame(page, frame)
    page.wait_for_function("window.told.view.at(-1)?.frame === 4")
    assert told(page, "view")[-1] == {"frame": 4, "step": None, "method": "tsne"}
    expect(page.locator(".vf [aria-live]")).to_contain_text("step 137: held-out accuracy")
    page.keyboard.press("End")
    page.wait_for_function("window.told.view.at(-1).frame === null")  # the newest, whichever that will be
    page.keyboard.press("l")
    expect(page.get_by_role("button", name="Loop")).to_have_attribute("aria-pressed", "true")


def test_a_late_answer_of_the_page_does_not_turn_the_hand_back(page: Page, address: str) -> None:
    watch(page, address, frame=2)
    slider(page).focus()
    for frame in (3, 4):
        page.keyboard.press("ArrowRight")
        page.wait_for_function(f"window.told.view.at(-1)?.frame === {frame}")
    page.evaluate("void show({ ...data, frame: 3 })")
    page.wait_for_timeout(500)
    wait_frame(page, 4)
    page.evaluate("void show({ ...data, frame: 6 })")  # asked for by the page, not an echo
    wait_frame(page, 6)


def test_it_plays_to_the_end_and_no_picture_is_blank(page: Page, address: str) -> None:
    watch(page, address, frame=0)
    page.get_by_label("Speed").select_option("4×")
    page.get_by_role("button", name="Play").click()
    least = page.evaluate(
        """() => new Promise((done) => {
          const root = document.getElementById("host").shadowRoot;
          const canvas = root.querySelector(".vf-map-canvas");
          const ink = () => {
            const { data } = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height);
            let count = 0;
            for (let i = 0; i < data.length; i += 4) count += Math.abs(data[i] - data[i + 2]) > 60;
            return count;
          };
          let least = Infinity;
          const look = () => {
            least = Math.min(least, ink());
            if (root.querySelector(".vf").dataset.playing === "false") done(least);
            else requestAnimationFrame(look);
          };
          requestAnimationFrame(look);
        })"""
    )
    assert least > 20 * POINTS
    wait_frame(page, 7)


def test_a_live_run_is_followed_until_a_hand_moves_and_again_when_asked(page: Page, address: str, stage: Stage) -> None:
    stage.shown["runone01"] = 2
    page.goto(f"{address}/?runs=runone01")
    wait_frame(page, 1)
    expect(page.locator(".vf-state")).to_have_text("training, step 34 of 240, 9 s left")
    stage.shown["runone01"] = 4
    wait_frame(page, 3)
    slider(page).focus()
    page.keyboard.press("Home")
    wait_frame(page, 0)
    stage.shown["runone01"] = 6
    expect(page.locator(".vf-place")).to_contain_text("of 0 to 5")
    wait_frame(page, 0)
    page.get_by_role("button", name="live").click()
    wait_frame(page, 5)
    stage.shown["runone01"] = 8
    wait_frame(page, 7)
    expect(page.locator(".vf-state")).to_have_text("finished, 240 steps in 48 s")
    expect(page.get_by_role("button", name="live")).to_be_hidden()


def test_only_what_is_new_is_asked_for_and_an_ended_run_is_left_alone(page: Page, address: str, stage: Stage) -> None:
    stage.shown["runone01"] = 4
    page.goto(f"{address}/?runs=runone01&followed_text=")
    wait_frame(page, 3)
    stage.shown["runone01"] = 8
    wait_frame(page, 7)
    page.wait_for_timeout(3500)
    asked = [path for path in stage.requests if path.startswith("/film/runone01?")]
    assert "after=-1&after_step=0" in asked[0]
    assert all("after=3" in path or "after=7" in path for path in asked[1:])
    count = len(asked)
    page.wait_for_timeout(2500)
    assert len([path for path in stage.requests if path.startswith("/film/runone01?")]) == count
    page.evaluate("void show({ ...data })")  # the page ran again: somebody may have resumed the run
    page.wait_for_timeout(500)
    assert len([path for path in stage.requests if path.startswith("/film/runone01?")]) > count


def test_a_lost_connection_is_said_and_mended_and_nothing_is_lost(page: Page, address: str, stage: Stage) -> None:
    stage.shown["runone01"] = 4
    page.goto(f"{address}/?runs=runone01")
    wait_frame(page, 3)
    page.route("**/film/**", lambda route: route.abort())
    expect(page.locator(".vf-state")).to_have_text("Connection lost, trying again …", timeout=10_000)
    expect(slider(page)).to_have_attribute("aria-valuemax", "3")
    stage.shown["runone01"] = 8
    page.unroute("**/film/**")
    wait_frame(page, 7)
    stage.broken = True


def test_what_the_server_says_is_shown(page: Page, address: str, stage: Stage) -> None:
    page.goto(f"{address}/?runs=nosuchrun")
    expect(page.locator(".vf-state")).to_have_text("There is no run nosuchrun.")
    stage.broken = True
    page.goto(f"{address}/?runs=runone01")
    expect(page.locator(".vf-state")).to_have_text("The run cannot be read.")
    stage.broken = False
    wait_frame(page, 7)
