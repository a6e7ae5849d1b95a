"""What the film shows in a browser: a followed point, two runs, a run without points, tables, pictures."""

from collections.abc import Iterator
from dataclasses import replace

import pytest
from playwright.sync_api import Page, expect

from pages.film.figures.page import to_html
from tests.helpers.figures import ATTACK, film_words
from tests.helpers.film_stage import POINTS, Stage, slider, small_stage, staging, told, wait_frame, watch


@pytest.fixture
def stage() -> Stage:
    return small_stage()


@pytest.fixture
def address(stage: Stage) -> Iterator[str]:
    with staging(stage) as address:
        yield address


def test_a_point_is_followed_and_let_go(page: Page, address: str) -> None:
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


def test_buttons_ask_for_the_frame_that_is_shown(page: Page, address: str) -> None:
    watch(page, address, "runone01,runtwo02", frame=5)
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


def test_the_table_holds_the_numbers_of_every_frame(page: Page, address: str, stage: Stage) -> None:
    watch(page, address)
    page.get_by_role("button", name="Numbers as a table").click()
    rows = page.locator(".vf-table tbody tr")
    expect(rows).to_have_count(8)
    frame = stage.films["runone01"].frames[2]
    cells = rows.nth(2).locator("td").all_inner_texts()
    assert cells[:2] == ["2", str(frame.step)]
    assert cells[-1] == f"{frame.measures['held_out_accuracy']:.1%}"


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


@pytest.mark.parametrize(("kind", "magic"), [("png", b"\x89PNG"), ("svg", b"<svg"), ("webm", b"\x1aE\xdf\xa3")])
def test_pictures_and_videos_are_saved(page: Page, address: str, tmp_path, kind: str, magic: bytes) -> None:
    watch(page, address, frame=5)
    page.get_by_label("Speed").select_option("4×")
    with page.expect_download(timeout=30_000) as waiting:
        page.locator(f".vf-tool.vf-{kind}").click()
    path = tmp_path / waiting.value.suggested_filename
    waiting.value.save_as(path)
    content = path.read_bytes()
    assert content.startswith(magic)
    assert path.suffix == f".{kind}"
    if kind == "svg":
        assert content.count(b"<circle") >= POINTS // 2
