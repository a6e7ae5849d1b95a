"""The film in a browser, fed by a small server with made-up runs: it follows, plays, tells, recovers, never blinks."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from pages.film.figures.page import to_html
from tests.helpers.browser import download
from tests.helpers.figures import ATTACK, film_words
from tests.helpers.film_stage import POINTS, Stage, slider, small_stage, staging, told, wait_frame, watch
from transformer_core.analysis.coming_apart import Apart

MAGIC = {"png": b"\x89PNG", "svg": b"<svg", "webm": b"\x1aE\xdf\xa3"}


@pytest.fixture
def stage() -> Stage:
    return small_stage()


@pytest.fixture
def address(stage: Stage) -> Iterator[str]:
    with staging(stage) as address:
        yield address


def test_it_stands_at_the_newest_frame_or_at_the_one_asked_for_and_tells_the_page_no_news(
    own_page: Page, address: str
) -> None:
    own_page.clock.install()
    watch(own_page, address)
    expect(slider(own_page)).to_have_attribute("aria-valuenow", "7")
    watch(own_page, address, frame=3)
    expect(slider(own_page)).to_have_attribute("aria-valuetext", "step 103 · epoch 2.6 · frame 3 of 0 to 7")
    own_page.clock.run_for(5_000)  # more than the rest after which a moved film is reported
    assert told(own_page, "view") == []


def test_it_says_from_which_step_on_held_out_points_are_apart_and_goes_there(
    page: Page, address: str, stage: Stage
) -> None:
    run, film = next(iter(stage.films.items()))
    frame = film.frames[5]
    stage.films[run] = replace(film, apart=Apart("apart", frame.number, frame.step, 0.9, 0.84, 0.94, 0.75, 150))
    watch(page, address)
    line = page.locator(".vf-apart").first
    expect(line).to_contain_text(f"From step {frame.step} on")
    expect(line).to_contain_text("90% of the 150 held-out points correctly (95% interval 84% to 94%")
    line.get_by_role("button").click()
    wait_frame(page, 5)


def test_another_text_leaves_the_last_ones_heads_pale_until_it_is_read(page: Page, address: str) -> None:
    watch(page, address)
    heads = page.locator(".vf-text-followed-body").first
    expect(heads.locator("canvas").first).to_be_visible()
    height = page.locator(".vf").evaluate("(film) => film.offsetHeight")
    page.route("**/followed_text*", lambda route: None)  # the server takes its time
    page.evaluate("show({ ...window.data, followed_text: 'Not a good film at all.' })")
    expect(page.locator(".vf-text-followed-title").first).to_contain_text("Not a good film at all. …")
    assert page.locator(".vf").evaluate("(film) => film.offsetHeight") == height
    expect(heads.locator("[style*='opacity: 0.4']").first).to_be_visible()


@pytest.mark.nightly
def test_the_keyboard_moves_everything_and_the_page_is_told_once_it_rests(page: Page, address: str) -> None:
    watch(page, address, frame=3)
    slider(page).focus()
    past_both_ends = (("PageDown", 7), ("ArrowRight", 7), ("Home", 0), ("ArrowLeft", 0))
    for key, frame in (("ArrowRight", 4), ("ArrowRight", 5), *past_both_ends, ("PageDown", 5), ("ArrowLeft", 4)):
        page.keyboard.press(key)
        wait_frame(page, frame)
    page.wait_for_function("window.told.view.at(-1)?.frame === 4")
    assert told(page, "view")[-1] == {"frame": 4, "step": None, "method": "tsne"}
    expect(page.locator(".vf [aria-live]")).to_contain_text("step 137: held-out accuracy")
    page.keyboard.press("End")
    page.wait_for_function("window.told.view.at(-1).frame === null")  # the newest, whichever that will be
    page.keyboard.press("l")
    expect(page.get_by_role("button", name="Loop")).to_have_attribute("aria-pressed", "true")


@pytest.mark.nightly
def test_a_late_answer_of_the_page_does_not_turn_the_hand_back(page: Page, address: str) -> None:
    watch(page, address, frame=2)
    page.evaluate("void (performance.now = () => 0)")  # however late the answer comes here, it comes soon
    slider(page).focus()
    for frame in (3, 4):
        page.keyboard.press("ArrowRight")
        page.wait_for_function(f"window.told.view.at(-1)?.frame === {frame}")
    page.evaluate("void show({ ...data, frame: 3 })")
    page.keyboard.press("ArrowRight")
    wait_frame(page, 5)  # one on from 4: it was not turned back to 3
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
    expect(page.locator(".vf-ridges .vf-note")).to_contain_text("recorded before Vitrine kept histograms")
    expect(page.get_by_role("button", name="live")).to_be_hidden()


@pytest.mark.nightly
def test_only_what_is_new_is_asked_for_and_an_ended_run_is_left_alone(
    own_page: Page, address: str, stage: Stage
) -> None:
    page = own_page
    page.clock.install()
    stage.shown["runone01"] = 4
    page.goto(f"{address}/?runs=runone01&followed_text=")
    wait_frame(page, 3)
    stage.shown["runone01"] = 8
    wait_frame(page, 7)
    for _ in range(5):  # each of these minutes begins after an answer was read; an ended run is asked for twice more
        page.clock.run_for(60_000)
        page.evaluate("fetch('./favicon.ico').then((answer) => answer.text())")
    asked = [path for path in stage.requests if path.startswith("/film/runone01?")]
    assert "after=-1&after_step=0" in asked[0]
    assert all("after=3" in path or "after=7" in path for path in asked[1:])
    assert sum("after=7" in path for path in asked) == 2
    with page.expect_response("**/film/runone01?*"):
        page.evaluate("void show({ ...data })")  # the page ran again: somebody may have resumed the run


@pytest.mark.nightly
def test_a_lost_connection_is_said_and_mended_and_nothing_is_lost(page: Page, address: str, stage: Stage) -> None:
    stage.shown["runone01"] = 4
    page.goto(f"{address}/?runs=runone01")
    wait_frame(page, 3)
    page.route("**/film/**", lambda route: route.abort())
    expect(page.locator(".vf-state")).to_have_text("Connection lost, trying again …")
    expect(slider(page)).to_have_attribute("aria-valuemax", "3")
    stage.shown["runone01"] = 8
    page.unroute("**/film/**")
    wait_frame(page, 7)


def test_what_the_server_says_is_shown(page: Page, address: str, stage: Stage) -> None:
    page.goto(f"{address}/?runs=nosuchrun")
    expect(page.locator(".vf-state")).to_have_text("There is no run nosuchrun.")
    stage.broken = True
    page.goto(f"{address}/?runs=runone01")
    expect(page.locator(".vf-state")).to_have_text("The run cannot be read.")
    stage.broken = False
    wait_frame(page, 7)


def test_a_point_is_followed_in_both_runs_and_buttons_ask_for_the_frame_that_is_shown(page: Page, address: str) -> None:
    watch(page, address, "runone01,runtwo02", frame=5)
    canvas = page.locator(".vf-map-canvas").first
    box = canvas.bounding_box()
    assert box
    tip = page.locator(".vf-map .vf-tip.vf-on")
    for share in (0.3, 0.4, 0.5, 0.6, 0.7):
        for across in range(40):
            page.mouse.move(box["x"] + box["width"] * (0.2 + across / 66), box["y"] + box["height"] * share)
            if tip.count():
                break
        if tip.count():
            break
    text = tip.locator(".vf-text").inner_text()
    page.mouse.down()
    page.mouse.up()
    expect(page.locator(".vf-followed .vf-text")).to_have_text([text, text])  # the same text in the other run
    expect(page.locator(".vf-followed").first.locator(".vf-strip-bar")).to_have_count(8)
    slider(page).focus()
    page.keyboard.press("Escape")
    expect(page.locator(".vf-followed:visible")).to_have_count(0)
    page.get_by_role("button", name="Open this moment's model").first.click()
    page.get_by_role("button", name="Branch from here").nth(1).click()
    assert told(page, "ask") == [
        {"run": "runone01", "frame": 5, "action": "open"},
        {"run": "runtwo02", "frame": 5, "action": "branch"},
    ]
    expect(page.locator(".vf-difference").first).to_contain_text("held-out accuracy")


def test_a_run_without_points_shows_attention_and_samples(page: Page, address: str, stage: Stage) -> None:
    watch(page, address, "runthree", frame=4)
    sample = stage.followed_texts["runthree"].frames[4].sample
    expect(page.locator(".vf-samples-list li")).to_have_count(8)
    expect(page.locator(".vf-samples-list [aria-current]")).to_contain_text(sample)
    expect(page.locator(".vf-map")).to_be_hidden()
    large = page.get_by_role("img", name="Attention of Layer 1 · Head 3 at step 229")
    expect(large).to_be_visible()
    page.keyboard.press("Tab")
    slider(page).focus()
    page.keyboard.press("[")
    expect(page.get_by_role("img", name="Attention of Layer 1 · Head 2 at step 229")).to_be_visible()


def test_texts_and_names_are_never_markup(page: Page, address: str, stage: Stage) -> None:
    film = stage.films["runone01"]
    status = replace(film.status, message=ATTACK, state="failed")
    points = replace(film.points, texts=[ATTACK] * POINTS)
    stage.films["runone01"] = replace(film, name=ATTACK, labels=(ATTACK, "positive"), status=status, points=points)
    stage.followed_texts["runone01"] = replace(
        stage.followed_texts["runone01"], text=ATTACK, tokens=[ATTACK] * 7, key_tokens=[ATTACK] * 7
    )
    watch(page, address, frame=5)
    expect(page.locator(".vf-name")).to_have_text(f"A · {ATTACK}")
    expect(page.locator(".vf-state")).to_have_text(f"failed: {ATTACK}")
    assert page.locator(".vf img:not(canvas)").count() == 0


def test_a_finished_run_lives_on_in_a_page_of_its_own(page: Page, address: str, stage: Stage) -> None:
    film = replace(stage.films["runone01"], name=ATTACK)
    stage.own = to_html([film], film_words(), title="A run", followed_texts=[stage.followed_texts["runone01"]])
    page.goto(f"{address}/own")
    wait_frame(page, 7)
    expect(page.locator(".vf-name")).to_have_text(f"A · {ATTACK}")
    expect(page.get_by_role("button", name="Branch from here")).to_be_hidden()
    slider(page).focus()
    page.keyboard.press("ArrowLeft")
    wait_frame(page, 6)
    expect(page.locator(".vf-bars .vf-amount").nth(1)).to_have_text("88.6%")


@pytest.mark.nightly
def test_numbers_pictures_and_videos_of_every_frame_are_shown_and_saved(
    page: Page, address: str, stage: Stage, tmp_path: Path
) -> None:
    watch(page, address, frame=5)
    page.get_by_role("button", name="Numbers as a table").click()
    rows = page.locator(".vf-table tbody tr")
    expect(rows).to_have_count(8)
    frame = stage.films["runone01"].frames[2]
    cells = rows.nth(2).locator("td").all_inner_texts()
    assert cells[:2] == ["2", str(frame.step)]
    assert cells[-1] == f"{frame.measures['held_out_accuracy']:.1%}"
    page.get_by_label("Speed").select_option("4×")
    for kind, magic in MAGIC.items():
        path = download(page, page.locator(f".vf-tool.vf-{kind}"), tmp_path)
        assert path.suffix == f".{kind}"
        assert path.read_bytes().startswith(magic)
        if kind == "svg":
            assert path.read_bytes().count(b"<circle") >= POINTS // 2
