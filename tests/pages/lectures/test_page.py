"""The page Lectures: ours are listed, one's own are made from copies, files and screens, kept in order and bounded."""

import json
import re
from pathlib import Path

import pytest
from streamlit.testing.v1 import AppTest

from pages.hall import lectures as shelf
from pages.hall import own_lectures as own
from pages.hall.lectures import Lecture, LectureError
from pages.hall.take_home import LARGEST_MB, MOST_TOO_SLOW, scene_at_home, take_home
from pages.language import LANGUAGES, words
from pages.link import Link, reading
from tests.helpers.pages import first_screen, run, told
from transformer_core.warm_process import ProcessDiedError

EVIL = """---
title: <img src=x onerror=alert(1)> ![a](http://evil.example/p.png)
about: [sign in](http://evil.example)
minutes: 1
---

## ![b](http://evil.example/b.png)
screen: attention?text=a good film&model=sentiment

[Sign in again](http://evil.example) <script>alert(1)</script> ![c](http://evil.example/c.png)

### Question
measured: verdict

![d](http://evil.example/d.png)

- positive: ![e](http://evil.example/e.png)
- negative: <b>no</b>
"""


@pytest.fixture(autouse=True)
def folder(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """Return the folder of own lectures of a person at home."""
    monkeypatch.setenv(shelf.OWN_LECTURES, str(tmp_path))
    return tmp_path / "home"


def pressed(app: AppTest, key: str) -> AppTest:
    return app.button(key=key).click().run()


def own_one(name: str) -> Lecture:
    found = shelf.own_lectures()[name]
    assert isinstance(found, Lecture), found
    return found


@pytest.mark.parametrize("language", LANGUAGES)
def test_ours_are_listed_with_what_they_are_about_and_one_is_taken(language: str) -> None:
    app = first_screen("lectures", lang=language)
    assert not app.exception
    for lecture in shelf.lectures(language).values():
        assert isinstance(lecture, Lecture)
        assert lecture.title in told(app)
        assert words(language)["lectures.size"].format(count=len(lecture.scenes), minutes=lecture.minutes) in told(app)
    app = pressed(app, "take twelve_scenes")
    assert app.query_params["tour"] == "twelve_scenes"
    assert not app.exception


def test_a_copy_is_put_in_order_edited_taken_and_deleted(folder: Path) -> None:
    app = pressed(first_screen("lectures", lang="en", edit_the_transformer_in_twelve_scenes="on"), "copy twelve_scenes")
    (name,) = shelf.own_lectures()
    before = own_one(name)
    app = pressed(app, f"down 0 {name}")
    assert [scene.title for scene in own_one(name).scenes[:2]] == [scene.title for scene in before.scenes[1::-1]]
    app = pressed(app, f"up 1 {name}")
    assert own_one(name).scenes == before.scenes
    app = pressed(app, f"out 11 {name}")
    assert own_one(name).scenes == before.scenes[:11]
    app.text_area(key=f"text {name}").set_value(own_one(name).written().replace("minutes: 40", "minutes: 9")).run()
    app = pressed(app, f"save {name}")
    assert own_one(name).minutes == 9
    app.text_area(key=f"text {name}").set_value("nothing").run()
    app = pressed(app, f"save {name}")
    assert any("a lecture begins" in error.value for error in app.error)
    assert own_one(name).minutes == 9
    app.text_area(key=f"text {name}").set_value(own_one(name).written()).run()
    app.checkbox(key=f"sure {name}").check().run()
    app = pressed(app, f"delete {name}")
    assert not app.exception
    assert shelf.own_lectures() == {}


def test_a_screen_is_added_from_any_page_and_opens_as_it_was(folder: Path) -> None:
    app = run("attention", text="A slow film.", layer="2", head="3", attention_part="heads")
    app.session_state["add_screen"] = True
    app.run()
    app = pressed(app, "add_now")
    assert any("title and a few words" in error.value for error in app.error)
    app.text_input(key="add_title").set_value("Look here")
    app.text_area(key="add_words").set_value("# Two\nsentences.")
    app = pressed(app, "add_now")
    assert not app.exception
    (name,) = shelf.own_lectures()
    (scene,) = own_one(name).scenes
    assert (scene.page, scene.title, scene.text) == ("attention", "Look here", "\\# Two\nsentences.")
    assert {**scene.state} == {"text": "A slow film.", "layer": "2", "head": "3", "model": "sentiment"}
    assert words("en")["lectures.added"].format(title="My lecture", count=1) in [one.value for one in app.success]
    app.text_input(key="add_title").set_value("Again")
    app.text_area(key="add_words").set_value("More.")
    app = pressed(app, "add_now")
    assert len(own_one(name).scenes) == 2
    again = first_screen("attention", lang="en", tour=name, scene="1", **scene.state)
    assert "Look here" in told(again)
    assert again.text_input[0].value == "A slow film."


def test_nothing_in_a_strangers_lecture_becomes_a_picture_or_a_link() -> None:
    lecture = own.save_lecture(None, EVIL)
    app = first_screen("attention", lang="en", tour=lecture.name, scene="1", text="a good film")
    shown = first_screen("lectures", lang="en")
    for page in (app, shown):
        assert not page.exception
        for element in (*page.markdown, *page.subheader, *page.caption):
            assert not re.search(r"(?<!\\)(\]\(http|<script|<img|<b>)", str(element.value))
    pills = next(one for one in app.pills if "tour_1" in str(one.key))
    assert not any(re.search(r"(?<!\\)(\]\(http|<b>)", label) for label in pills.options)


def test_own_lectures_are_bounded_and_another_person_has_others(
    monkeypatch: pytest.MonkeyPatch, on_a_network: None, tmp_path: Path
) -> None:
    text = EVIL.replace("![a](http://evil.example/p.png)", "")
    with reading(Link({}, "ann")):
        for _ in range(own.MOST_OWN):
            own.save_lecture(None, text)
        with pytest.raises(LectureError, match="you keep 20 lectures"):
            own.save_lecture(None, text)
        name = next(iter(shelf.own_lectures()))
    with reading(Link({}, "bob")):
        assert shelf.own_lectures() == {}
        assert shelf.find_lecture(name, "en") is None
        own.remove_lecture(name)
    with reading(Link({}, "ann")):
        assert name in shelf.own_lectures()
        for odd in ("own.../../x", "own.", "x", "own.A/b"):
            with pytest.raises(LectureError, match="there is no lecture"):
                own.save_lecture(odd, text)
        monkeypatch.setenv("VITRINE_READ_ONLY", "1")
        with pytest.raises(LectureError, match="read-only"):
            own.save_lecture(None, text)
        own.remove_lecture(name)
        assert name in shelf.own_lectures()


def test_a_read_only_server_lists_ours_and_offers_no_editing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("VITRINE_READ_ONLY", "1")
    app = first_screen("lectures", lang="en")
    assert not app.exception
    assert not [button for button in app.button if str(button.key).startswith("copy ")]
    assert words("en")["read_only.said"] in told(app)


def test_a_lecture_is_taken_home_scene_by_scene_and_slow_scenes_go_without_figures() -> None:
    lecture = shelf.lectures("en")["twelve_scenes"]
    assert isinstance(lecture, Lecture)

    def begun():
        work = take_home.work(lecture=lecture.written(), name=lecture.name, language="en", table="a,b")
        return work, next(work)

    work, part = begun()
    for number in range(1, len(lecture.scenes) + 1):
        assert (part.arguments["number"], part.done, part.total) == (number, number - 1, len(lecture.scenes) + 1)
        part = work.send(f"scene {number}")
    assert part.arguments["scenes"] == tuple(f"scene {number}" for number in range(1, len(lecture.scenes) + 1))
    assert part.arguments["table"] == "a,b"
    work, part = begun()
    for _ in range(MOST_TOO_SLOW):
        part = work.throw(ProcessDiedError())
        assert part.arguments["figures"] is False
        part = work.send("its words")
        assert "figures" not in part.arguments
    with pytest.raises(ValueError, match=f"{MOST_TOO_SLOW + 1} scenes take too long, lastly '.+'; leave"):
        work.throw(ProcessDiedError())
    work, _ = begun()
    with pytest.raises(ValueError, match=f"1 scenes take .* MB, and all may take {LARGEST_MB}; leave scenes out"):
        work.send("x" * (LARGEST_MB * 1_000_000 + 1))


@pytest.mark.usefixtures("on_a_network")  # its process sets the address
def test_at_home_a_scene_has_its_sentence_and_covers_the_figures_that_answer_it() -> None:
    lecture = shelf.lectures("en")["twelve_scenes"]
    assert isinstance(lecture, Lecture)
    about = {"name": lecture.name, "language": "en", "public": True, "answers": "{}"}
    at_home = json.loads(scene_at_home(lecture=lecture.written(), number=1, figures=True, **about))
    assert at_home["sentences"] == [lecture.scenes[0].state["text"]]
    assert {one["component"]: one["covered"] for one in at_home["figures"]} == {"verdict": True, "architecture": False}
