"""A run in the browser: started, followed, stopped, found again, replayed, and opened as a model elsewhere."""

import re
from urllib.parse import parse_qs, urlsplit

from playwright.sync_api import Page, expect

from tests.helpers.browser import settle

SMALL = "examples=256&held_out=64&epochs=2&frames=4&points=40&d_model=16&n_heads=2&d_ff=16&threads=1"
LONG = "examples=2000&held_out=64&epochs=200&frames=4&points=40&d_model=16&n_heads=2&d_ff=16&threads=1"
A_MINUTE = 60_000


def start(page: Page, address: str, settings: str) -> str:
    """Start a run from a link and return its id, which is in the URL from then on."""
    page.goto(f"{address}/train?{settings}")
    page.get_by_role("button", name="Start training").click()
    page.wait_for_url(re.compile(r"[?&]run="), timeout=A_MINUTE)
    return parse_qs(urlsplit(page.url).query)["run"][0]


def wait_finished(page: Page) -> None:
    """Wait until the page tells what the run came to and the film stands at its last frame."""
    expect(page.get_by_text("Held-out accuracy").first).to_be_visible(timeout=A_MINUTE)
    expect(page.get_by_role("slider")).to_have_attribute(
        "aria-valuetext", re.compile("frame 3 of 0 to 3"), timeout=A_MINUTE
    )


def test_a_run_is_started_watched_to_its_end_and_found_again_by_its_link(page: Page, address: str) -> None:
    run = start(page, address, SMALL)
    wait_finished(page)
    expect(page.get_by_role("slider")).to_have_attribute("aria-valuetext", re.compile("^step 16 "))
    page.get_by_role("slider").press("ArrowLeft")
    page.wait_for_url(re.compile("[?&]frame=2(&|$)"), timeout=A_MINUTE)
    other = page.context.new_page()
    other.goto(page.url)
    expect(other.get_by_role("slider")).to_have_attribute(
        "aria-valuetext", re.compile("frame 2 of 0"), timeout=A_MINUTE
    )
    assert f"run={run}" in page.url


def test_compare_opens_while_the_list_of_runs_is_open_and_its_link_has_the_moment(page: Page, address: str) -> None:
    start(page, address, SMALL + "&seed=2")
    wait_finished(page)
    second = start(page, address, SMALL.replace("epochs=2", "epochs=3") + "&seed=2")
    wait_finished(page)
    page.get_by_text("Runs on this server").click()
    page.wait_for_url(re.compile("runs_open=on"), timeout=A_MINUTE)
    page.get_by_role("button", name="Compare", exact=True).click()
    page.wait_for_url(re.compile("/compare"), timeout=A_MINUTE)
    slider = page.get_by_role("slider")
    expect(slider).to_have_attribute("aria-valuetext", re.compile("frame 3 of A, 3 of B"), timeout=A_MINUTE)
    assert parse_qs(urlsplit(page.url).query)["run"] == [second]
    slider.press("ArrowLeft")  # the longer run's last frame, then the shorter one's last, and one of the longer one
    slider.press("ArrowLeft")
    page.wait_for_url(re.compile("[?&]frame="), timeout=A_MINUTE)
    said = slider.get_attribute("aria-valuetext")
    other = page.context.new_page()
    other.goto(page.url)
    expect(other.get_by_role("slider")).to_have_attribute("aria-valuetext", said or "", timeout=A_MINUTE)


def test_the_model_of_a_moment_opens_on_the_attention_page(page: Page, address: str) -> None:
    run = start(page, address, SMALL + "&seed=1")
    wait_finished(page)
    page.get_by_role("button", name="Open this moment's model").click()
    page.wait_for_url(re.compile("/attention"), timeout=A_MINUTE)
    settle(page)
    page.locator(".vm[data-painted]").first.wait_for(timeout=A_MINUTE)
    model = parse_qs(urlsplit(page.url).query)["model"][0]
    assert model.startswith(f"run:{run}@")
    expect(page.get_by_role("combobox", name="Model")).to_have_value(re.compile("^run: .*frame 3"))


def test_a_run_is_told_on_every_page_stopped_and_taken_up_again_after_the_tab_was_closed(
    page: Page, address: str
) -> None:
    run = start(page, address, LONG)
    expect(page.get_by_role("button", name="Stop")).to_be_visible(timeout=A_MINUTE)
    expect(page.get_by_text("running").first).to_be_visible(timeout=A_MINUTE)
    other = page.context.new_page()
    page.get_by_role("button", name="Input").click()
    page.get_by_role("menuitem", name="Tokens").click()
    sign = page.locator(".uw")
    expect(sign).to_contain_text(re.compile(r"quick · 2000 examples.*step .* of 12,600"), timeout=A_MINUTE)
    page.locator(".uw-open").click()
    page.wait_for_url(re.compile(f"/train.*run={run}"), timeout=A_MINUTE)
    expect(page.get_by_role("button", name="Stop")).to_be_visible(timeout=A_MINUTE)
    expect(sign).to_be_hidden()
    page.get_by_role("button", name="Input").click()
    page.get_by_role("menuitem", name="Tokens").click()
    expect(sign).to_be_visible(timeout=A_MINUTE)
    other.goto(f"{address}/train?run={run}")
    other.get_by_role("button", name="Stop").click(timeout=A_MINUTE)
    expect(sign).to_contain_text("stopped", timeout=A_MINUTE)
    page.goto("about:blank")
    again = other.get_by_role("button", name="Resume")
    again.click(timeout=A_MINUTE)
    other.get_by_role("button", name="Stop").click(timeout=A_MINUTE)
    expect(again).to_be_visible(timeout=A_MINUTE)


def test_a_run_that_is_not_there_is_told_in_words(page: Page, address: str) -> None:
    page.goto(f"{address}/train?run=nosuchrun1")
    expect(page.get_by_text("nosuchrun1")).to_be_visible(timeout=A_MINUTE)
    expect(page.get_by_role("button", name="Start training")).to_be_visible(timeout=A_MINUTE)
