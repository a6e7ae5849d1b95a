"""Lectures: what is written is read, what cannot be is told with its line, and every scene of ours is there."""

import json
import re
from pathlib import Path

import pytest

from pages.hall.lectures import (
    FOLDER,
    MORE_LECTURES,
    READ_FIRST,
    Lecture,
    LectureError,
    find_lecture,
    finding_in_words,
    lectures,
    read_lecture,
)
from pages.hall.scene_words import markdown_nodes as nodes
from pages.hall.tour import FIRST_TOUR, NEWEST, measured
from pages.language import LANGUAGES, words
from tests.helpers import nightly_but
from tests.helpers.made_runs import made_run
from tests.helpers.pages import asks, first_screen, told, uncovered
from transformer_core.analysis.finding import Finding
from transformer_core.analysis.questions import QUESTIONS

OURS = [(path.parent.name, path.stem) for path in sorted(FOLDER.glob("*/*.md"))]
DO_NOT_ANSWER = {  # figures that may stay open while a question of this kind is
    "verdict": {"architecture"},
    "nearest_word": {"embeddings_vectors", "embeddings_cosine"},
    "without_positions": {"chart"},
    "under_a_causal_mask": {"masks_painter"},
    "a_head_off": {"heads", "head_large"},
    "half_of_the_gradient": {"before_gates"},
    "worth_of_a_change": {"since_diagram"},
}
OF_A_POINTER = re.compile(
    r"\b(click|drag|hover|point at|press|mouse|tap|swipe|box above)\b|点击|拖[动回]|鼠标|指针|按下", re.I
)
IN_THE_GATE = {("how_an_encoder_learns", "zh")}
HEAD = "---\ntitle: A lecture\nabout: On one thing.\nminutes: 5\n---\n"
SCENE = """
## A scene
screen: attention?attention_part=heads&layer=0&head=1&text=a 100 % good film, & more&model=sentiment

Two sentences. And one.

### Question
measured: a_head_off

What happens?

- little: Little: it stays.
- flips: It flips.

### Notes

For me.
"""


def ours(name: str, language: str) -> Lecture:
    found = lectures(language)[name]
    assert isinstance(found, Lecture), found
    return found


def test_what_is_written_is_read_again() -> None:
    lecture = read_lecture("mine", HEAD + SCENE.replace("% good", "%25 good").replace("& more", "%26 more"))
    (scene,) = lecture.scenes
    assert scene.state["text"] == "a 100 % good film, & more"
    assert scene.question is not None
    assert scene.question.options == {"little": "Little: it stays.", "flips": "It flips."}
    assert scene.asked() == {"layer": 0, "head": 1}
    assert (scene.notes, scene.text) == ("For me.", "Two sentences. And one.")
    assert read_lecture("mine", lecture.written()) == lecture
    assert measured(scene).option in ("little", "much", "flips")


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("---\ntitle", "title", "line 1: a lecture begins with a line ---"),
        ("minutes: 5\n", "", "minutes is missing"),
        ("minutes: 5", "minutes: five", "minutes='five' must be a whole number"),
        ("title: A lecture", "title", "line 2: 'title' must be a name, a colon and a value"),
        ("## A scene", "# A scene", "before the first scene"),
        (
            "screen: attention",
            "screen: atention",
            "line 7, scene 'A scene': screen has the page 'atention', must be one",
        ),
        ("screen: attention", "attention", "its first line must be screen: and a value"),
        ("\nTwo sentences.", "open: Heads!\nTwo sentences.", "open has 'Heads!', must be names of figures"),
        ("_part=heads", "_part=hats", "screen has attention_part='hats', must be one of heads, arcs"),
        ("attention?attention_part=heads", "why?why=hats", "screen has why='hats', must be one of "),
        ("model=sentiment", "model=nobody", "screen has model='nobody', and there is no such model"),
        ("layer=0", "layer=one", "screen has layer='one', must be a whole number"),
        ("Two sentences. And one.\n", "", "it has no words"),
        ("### Notes", "### Remarks", "### Remarks must be ### Question, ### Each or ### Notes"),
        ("a_head_off", "a_hat_off", "measured: 'a_hat_off' must be one of verdict, "),
        ("&head=1", "", "a_head_off needs head, a whole number"),
        ("- flips: It flips.\n", "", "a question has its words, then 2 to 6 lines"),
        ("What happens?\n", "", "a question has its words"),
        ("text=a 100 % good film, & more&", "", "a_head_off needs text and model in the screen"),
        ("For me.", "x" * 200_000, "the lecture has 200,"),
    ],
)
def test_what_is_wrong_is_told_with_its_place(old: str, new: str, words: str) -> None:
    whole = HEAD + SCENE
    assert old in whole
    with pytest.raises(LectureError) as error:
        read_lecture("mine", whole.replace(old, new, 1))
    assert words in str(error.value)


@pytest.mark.parametrize("text", ["", "\0" * 50, "---\n---", HEAD, "🙂\n" * 9, HEAD + "\n## \nscreen: \n"])
def test_what_is_no_lecture_is_told(text: str) -> None:
    with pytest.raises(LectureError):
        read_lecture("mine", text)


WIDE = "|" * 2_000 + "\n" + "|-" * 2_000 + "\n" + "|\n" * 1_000  # 7 kB, of which Markdown makes two million cells


@pytest.mark.parametrize("hostile", [WIDE, "*a " * 3_000, "> " * 3_000 + "a", "`" * 3_000, "a" * 20_001])
@pytest.mark.parametrize("place", ["Two sentences. And one.", "What happens?", "For me."])
def test_words_that_would_take_seconds_to_parse_or_lie_too_deep_are_refused(hostile: str, place: str) -> None:
    with pytest.raises(LectureError, match=r"scene 'A scene': its (words|question|notes) have .* at most"):
        read_lecture("mine", HEAD + SCENE.replace(place, hostile))


def test_the_most_that_a_lectures_words_may_be_are_parsed_in_few_steps() -> None:
    wide = "|" * 40 + "\n" + "|-" * 40 + "\n" + "|\n" * 45
    for words_ in (wide, "*a " * 400, "> " * 200 + "a", "a" * 20_000):
        read_lecture("mine", HEAD + SCENE.replace("For me.", words_))
        assert len(json.dumps(nodes(words_))) < 100_000


def test_lectures_of_a_folder_are_listed_beside_ours_and_a_broken_one_hides_no_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, text in (("theirs", HEAD + SCENE.replace("%", "%25").replace("& more", "")), ("broken", "none")):
        (tmp_path / name).mkdir()
        (tmp_path / name / "en.md").write_text(text, encoding="utf-8")
    monkeypatch.setenv(MORE_LECTURES, str(tmp_path))
    found = lectures("zh")
    assert list(found) == [*READ_FIRST, "broken", "theirs"]
    assert set(READ_FIRST) == {name for name, _ in OURS}
    assert isinstance(found["theirs"], Lecture)
    assert "en.md: line 1" in str(found["broken"])
    assert find_lecture("broken", "en") is None
    assert find_lecture("../x", "en") is None


def test_our_lectures_are_there_in_both_languages_with_the_same_scenes() -> None:
    for name in {name for name, _ in OURS}:
        english, chinese = (ours(name, language) for language in LANGUAGES)
        assert (FIRST_TOUR, "en") in OURS
        for one, other in zip(english.scenes, chinese.scenes, strict=True):
            assert one.page == other.page
            assert (one.question is None) == (other.question is None)
            if one.question is not None and other.question is not None:
                assert one.question.measured == other.question.measured


@pytest.mark.parametrize(("name", "language"), OURS)
def test_a_scene_of_ours_names_its_figures_leaves_open_what_does_not_answer_and_speaks_of_no_pointer(
    name: str, language: str
) -> None:
    for scene in ours(name, language).scenes:
        asked = "" if scene.question is None else scene.question.words + " ".join(scene.question.options.values())
        assert not OF_A_POINTER.search(scene.title + scene.text + asked), scene.title
        assert scene.figure or scene.page == "train", scene.title
        if scene.question is not None:
            assert set(scene.left_open.split()) <= DO_NOT_ANSWER.get(scene.question.measured, set()), scene.title


@pytest.mark.parametrize(("name", "language"), nightly_but(OURS, IN_THE_GATE))
def test_every_question_of_ours_has_the_measured_answer_among_its_options(name: str, language: str) -> None:
    for scene in ours(name, language).scenes:
        assert len(scene.title + scene.text) >= 12
        assert scene.notes
        if scene.question is not None and scene.question.options:
            found = measured(scene)
            assert found.option in scene.question.options, (scene.title, found)


@pytest.mark.parametrize(("name", "language"), nightly_but(OURS, IN_THE_GATE))
def test_every_scene_of_ours_opens_as_it_is_written(name: str, language: str) -> None:
    lecture = ours(name, language)
    for number, scene in enumerate(lecture.scenes, 1):
        app = first_screen(scene.page, **scene.state, lang=language, tour=name, scene=str(number))
        assert not app.exception, scene.title
        assert not app.toast, (scene.title, [toast.value for toast in app.toast])
        assert scene.title in told(app).replace("\\", "")
        assert app.session_state["kept"].get("text", scene.state.get("text")) == scene.state.get("text")
        if scene.question is not None and not scene.question.options:
            assert scene.question.words in told(app)
        elif scene.question is not None:
            question = next(one for one in asks(app) if f"tour_{number} " in str(one.key))
            assert list(question.options) == list(scene.question.options.values())
            found = measured(scene)
            said = finding_in_words(found, scene.question.measured, language)
            assert said not in told(app)
            assert uncovered(app) == set(scene.left_open.split()), scene.title
            app = question.set_value(found.option).run()
            assert uncovered(app) > set(scene.left_open.split())
            assert said in told(app)
            assert words(language)["try.right"] in told(app)


def test_the_tour_goes_on_and_back_and_each_scene_begins_as_it_is_written() -> None:
    app = first_screen("home", lang="en", text="something else", layer="3")
    app.button(key="tour_begin").click().run()
    scenes = ours(FIRST_TOUR, "en").scenes
    assert (app.query_params["tour"], app.query_params["scene"]) == (FIRST_TOUR, "1")
    assert app.text_input[0].value == scenes[0].state["text"]
    app.text_input[0].set_value("My own words.").run()
    app.button(key="tour_next").click().run()
    assert app.query_params["scene"] == "2"
    assert app.text_input[0].value == scenes[1].state["text"]
    app.button(key="tour_back").click().run()
    assert app.text_input[0].value == scenes[0].state["text"]
    assert app.button(key="tour_back").disabled
    app.button(key="tour_leave").click().run()
    assert "tour" not in app.query_params
    assert not [button for button in app.button if button.key == "tour_next"]


def test_odd_places_of_a_tour_lead_to_its_beginning_or_to_none() -> None:
    for scene in ("0", "99", "x", "-1", "9" * 400):
        app = first_screen("attention", lang="en", tour=FIRST_TOUR, scene=scene)
        assert not app.exception
        assert ours(FIRST_TOUR, "en").scenes[0].title in told(app)
    app = first_screen("attention", lang="en", tour="../../etc", scene="1")
    assert not app.exception
    assert not [button for button in app.button if button.key == "tour_next"]


@pytest.mark.parametrize("language", LANGUAGES)
def test_every_question_has_words_for_what_is_measured(language: str) -> None:
    for measured_by in QUESTIONS:
        said = finding_in_words(Finding("x", 3.25), measured_by, language)
        assert re.search("3.25|3.2|325|3", said) or measured_by == "how_many_tokens"
        assert "x" in said or measured_by == "strongest_head"


def test_a_scene_comes_back_to_the_run_that_this_visitor_began_last(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("VITRINE_RUNS", str(tmp_path))
    name = "how_an_encoder_learns"
    number, scene = next((k, one) for k, one in enumerate(ours(name, "en").scenes) if one.state.get("run") == NEWEST)
    before = ours(name, "en").scenes[number - 1]
    for runs in (0, 1):
        store = made_run(tmp_path) if runs else None
        app = first_screen(before.page, **before.state, lang="en", tour=name, scene=str(number))
        app.button(key="tour_next").click().run()
        assert not app.exception
        assert scene.title in told(app)
        assert app.query_params.get("run") == (store.id if store else None)


def test_an_option_that_is_none_is_told_with_its_scene() -> None:
    with pytest.raises(
        LectureError, match=r"line 7, scene 'A scene': 'It flips\.' must be a name, a colon and a value"
    ):
        read_lecture("mine", HEAD + SCENE.replace("- flips: It flips.", "- It flips."))
