"""A lecture as it is given and as one person takes it: by keys on the projector, with notes, and by the tour's bar."""

import re

import pytest
from playwright.sync_api import Page, ViewportSize, expect

from tests.helpers.browser import PATIENCE, rest, type_text, visit, wait_painted
from tests.helpers.hall import EN, lecture_of, notes_of, project, screen, wait_ready

LARGE: ViewportSize = {"width": 1920, "height": 1080}
SMALLEST_TEXT, SMALLEST_LABEL = 28, 20  # pixels at 1920 x 1080
# The size of each text that is seen, in pixels of the window, of the page itself and, enlarged, of what it frames.
# Words of a framed page's charts that are shortened or reach out of the window.
CUT = """
(page) => {
  const marks = [...page.querySelectorAll("[data-shown] svg.marks text")].filter((one) => one.textContent.trim());
  return marks.filter((one) => {
    const { left, right } = one.getBoundingClientRect();
    return one.textContent.endsWith("…") || left < -1 || right > page.documentElement.clientWidth + 1;
  }).map((one) => one.textContent);
}
"""
SIZES = """
(page) => {
  const all = (root) => [...root.querySelectorAll("*")]
    .flatMap((one) => one.shadowRoot ? [one, ...all(one.shadowRoot)] : [one]);
  const said = (one) => [...one.childNodes].some((node) => node.nodeType === 3 && node.data.trim());
  const seen = (one) => one.checkVisibility({ visibilityProperty: true, opacityProperty: true }) &&
    one.getBoundingClientRect().width > 1;
  const silent = ["STYLE", "SCRIPT", "TITLE", "DESC"];
  const scale = (one) => one.ownerSVGElement?.viewBox.baseVal?.width ? one.getScreenCTM().a : 1;
  return all(page.body).filter((one) => said(one) && seen(one) && !silent.includes(one.tagName))
    .map((one) => [parseFloat(getComputedStyle(one).fontSize) * scale(one), one.textContent.trim().slice(0, 40)]);
}
"""


@pytest.mark.nightly
@pytest.mark.parametrize(
    ("name", "language"), [("twelve_scenes", "en"), ("twelve_scenes", "zh"), ("a_step_of_learning", "en")]
)
def test_the_arrow_keys_go_through_all_scenes(own_page: Page, address: str, name: str, language: str) -> None:
    page, lecture = own_page, lecture_of(language, name)
    project(page, address, language=language, name=name)
    for number, scene in enumerate(lecture.scenes, 1):
        wait_ready(page, number)
        expect(page.locator("h1")).to_have_text(scene.title)
        expect(page.locator(".place")).to_contain_text(str(number))
        expect(page.locator("iframe.shown.ready")).to_have_count(1)
        if scene.each is None:
            expect(screen(page).locator("[data-shown]").first).to_be_visible()
        expect(screen(page).get_by_text("Traceback")).to_have_count(0)
        assert f"scene={number}" in page.url
        page.wait_for_function(f"() => !({CUT})(document.querySelector('iframe.shown').contentDocument).length")
        page.keyboard.press("ArrowRight")
    expect(page.locator("h1")).to_have_text(lecture.scenes[-1].title)


@pytest.mark.nightly
def test_a_clicker_home_end_and_numbers_find_their_scene_whose_question_is_asked_and_then_answered(
    own_page: Page, address: str
) -> None:
    page, scenes = own_page, lecture_of().scenes
    project(page, address)
    for key, number in (("PageDown", 2), ("PageUp", 1), ("End", 12), ("Home", 1), (" ", 2), ("ArrowLeft", 1), ("7", 7)):
        page.keyboard.press(key)
        expect(page.locator("h1")).to_have_text(scenes[number - 1].title)
    page.evaluate("void (performance.now = () => 1e9)")  # long after the digit before, and both digits at once
    page.keyboard.press("1")
    page.keyboard.press("0")
    expect(page.locator("h1")).to_have_text(scenes[9].title)
    page.keyboard.press("b")
    expect(page.locator(".dark")).to_be_visible()
    page.keyboard.press("b")
    expect(page.locator(".dark")).to_be_hidden()
    project(page, address, 8)
    expect(page.locator(".question li")).to_have_count(3)
    expect(page.locator(".question li.right")).to_have_count(0)
    covered = screen(page).locator("i.covered")
    expect(covered.first).to_be_attached()
    page.keyboard.press("Enter")
    expect(page.locator(".measured")).to_contain_text("Measured")
    expect(page.locator(".question li.right")).to_have_count(1)
    expect(covered).to_have_count(0)
    page.keyboard.press("ArrowUp")
    expect(page.locator(".measured")).to_have_count(0)
    notes = notes_of(page)
    expect(notes.locator("h1")).to_contain_text(scenes[7].title)
    notes.locator("h1").click()
    notes.keyboard.press("PageUp")
    expect(page.locator("h1")).to_have_text(scenes[6].title)


@pytest.mark.nightly
def test_what_is_typed_on_the_projector_is_run_and_the_window_with_notes_follows_and_leads(
    own_page: Page, address: str
) -> None:
    page, scenes = own_page, lecture_of().scenes
    project(page, address)
    box = screen(page).get_by_role("textbox").first
    verdict = screen(page).locator("[data-verdict]").first
    expect(verdict).to_be_hidden()
    expect(screen(page).locator(".architecture")).to_be_visible()
    page.keyboard.press("Enter")
    expect(verdict).to_be_visible()
    before = verdict.inner_text()
    box.fill("")
    box.press_sequentially("A bad, bad, bad film 12")
    expect(verdict).not_to_have_text(before)
    assert box.input_value() == "A bad, bad, bad film 12"
    assert "scene=1" in page.url
    screen(page).get_by_test_id("stMain").focus()
    notes = notes_of(page)
    expect(notes.locator("h1")).to_contain_text(scenes[0].title)
    expect(notes.locator(".notes")).to_contain_text("Let the class vote")
    expect(notes.locator(".following")).to_contain_text(scenes[1].title)
    expect(notes.locator(".clock")).to_contain_text(re.compile(r"\d\d:\d\d"))
    page.keyboard.press("ArrowRight")
    expect(page.locator("h1")).to_have_text(scenes[1].title)
    expect(notes.locator("h1")).to_contain_text(scenes[1].title)
    notes.get_by_role("button", name=EN["projector.next"]).click()
    expect(page.locator("h1")).to_have_text(scenes[2].title)
    for key, scene in (("ArrowLeft", 1), ("PageUp", 0), ("PageDown", 1), (" ", 2), ("PageUp", 1), ("ArrowRight", 2)):
        notes.locator("h1").click()
        notes.keyboard.press(key)
        expect(page.locator("h1")).to_have_text(scenes[scene].title)
    notes.get_by_role("button", name=EN["projector.reveal"], exact=True).click()
    expect(page.locator(".measured")).to_contain_text("Measured")
    expect(notes.locator(".measured")).to_contain_text("Measured")


@pytest.mark.nightly
@pytest.mark.parametrize("scene", [1, 2, 3, 5, 6, 12])
def test_the_last_row_can_read_it(own_page: Page, address: str, scene: int) -> None:
    page = own_page
    page.set_viewport_size(LARGE)
    project(page, address, scene)
    expect(page.locator(".help")).to_be_hidden()  # it stands there for so long as it takes to read
    for size, text in page.evaluate(f"({SIZES})(document)"):
        assert size >= SMALLEST_TEXT, text
    smallest = f"""() => {{
      const shown = document.querySelector("iframe.shown");
      const sizes = ({SIZES})(shown.contentDocument).map(([size]) => size * shown.contentWindow.devicePixelRatio);
      return Math.min(...sizes) >= {SMALLEST_LABEL - 0.5};
    }}"""
    page.wait_for_function(smallest, timeout=PATIENCE)  # a figure that came late finds its size at the next look


@pytest.mark.nightly
def test_the_page_of_lectures_leads_to_the_projector_and_a_lecture_that_is_not_there_is_named(
    own_page: Page, address: str
) -> None:
    own_page.goto(f"{address}/lectures?lang=en")
    rest(own_page)
    link = own_page.locator("[class*='st-key-project-twelve_scenes'] a")
    assert link.get_attribute("href") == "./?lecture=twelve_scenes&scene=1&lang=en"
    with own_page.context.expect_page() as opened:
        link.click()
    expect(opened.value.locator("h1")).to_have_text(lecture_of().scenes[0].title)
    answer = own_page.goto(f"{address}/?lecture=<b>none</b>&lang=en")
    assert answer is not None
    assert answer.status == 404
    assert "there is no lecture <b>none</b>" in own_page.locator("body").inner_text()


@pytest.mark.nightly
@pytest.mark.parametrize(("language", "n_scenes"), [("en", 12), ("zh", 12)])
def test_the_tour_goes_from_home_through_all_scenes_and_is_left(
    own_page: Page, address: str, language: str, n_scenes: int
) -> None:
    page, lecture = own_page, lecture_of(language)
    visit(page, address, "", lang=language)
    page.locator(".st-key-tour_begin button").click()
    bar = page.locator(".st-key-tour")
    following = bar.locator(".st-key-tour_next button")
    for number, scene in enumerate(lecture.scenes[:n_scenes], 1):
        expect(bar).to_contain_text(scene.title)
        expect(page.get_by_role("textbox").first).to_have_value(scene.state["text"])
        page.wait_for_url(re.compile(rf"/{'' if scene.page == 'home' else scene.page}\?.*scene={number}\b"))
        rest(page)
        expect(page.get_by_text("Traceback")).to_have_count(0)
        if scene.question is not None:
            bar.locator(f".st-key-show_tour_{number} button").click()
            expect(bar).to_contain_text("Measured" if language == "en" else "测得")
        if number < n_scenes:
            following.click()
    expect(following).to_be_enabled(enabled=n_scenes < len(lecture.scenes))
    bar.locator(".st-key-tour_leave button").click()
    expect(bar).to_have_count(0)
    assert "tour=" not in page.url


@pytest.mark.nightly
def test_a_person_steps_off_plays_and_steps_back_on(own_page: Page, address: str) -> None:
    page, scene = own_page, lecture_of().scenes[5]
    visit(page, address, "attention", lang="en", tour="twelve_scenes", scene="6", text=scene.state["text"])
    wait_painted(page, f"0.0|{scene.state['text']}")
    type_text(page, "A text of my own")
    wait_painted(page, "0.0|A text of my own")
    page.get_by_role("radio", name="2", exact=True).first.click()
    wait_painted(page, "2.0|A text of my own")
    page.get_by_role("button", name=EN["nav.input"]).click()
    page.get_by_role("menuitem", name=EN["nav.masks"]).click()
    expect(page.locator(".st-key-tour")).to_contain_text(scene.title)
    page.locator(".st-key-tour_again button").click()
    wait_painted(page, f"0.0|{scene.state['text']}")
    expect(page.get_by_role("textbox").first).to_have_value(scene.state["text"])
    page.go_back()
    expect(page.locator(".st-key-tour")).to_contain_text(scene.title)


@pytest.mark.nightly
def test_a_lecture_begins_a_run_and_comes_back_to_it(own_page: Page, address: str) -> None:
    page, name = own_page, "how_an_encoder_learns"
    lecture = lecture_of(name=name)
    small = "preset=quick&examples=200&held_out=100&epochs=1&frames=4"
    page.goto(f"{address}/train?{small}&lang=en&tour={name}&scene=2")
    page.get_by_role("button", name="Start training").click()
    page.wait_for_url(re.compile(r"[?&]run="))
    run = re.search(r"[?&]run=([a-z0-9]+)", page.url)
    assert run is not None
    bar = page.locator(".st-key-tour")
    for scene in lecture.scenes[2:7]:
        bar.locator(".st-key-tour_next button").click()
        expect(bar).to_contain_text(scene.title)
    assert lecture.scenes[6].state["run"] == "newest"
    page.wait_for_url(re.compile(rf"/train\?.*run={run[1]}"))
    expect(page.get_by_role("button", name="Export")).to_be_visible()
