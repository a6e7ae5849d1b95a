"""Scenes that give every phone a part: how they are written, what a phone gets and may send, what is shown of all."""

import csv
import io
import json
import sqlite3
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from pages.hall import parts
from pages.hall.each.frame import STAGES, BadPartError, Given, Task
from pages.hall.each.kinds import OF_KIND, OTHERS, alone, part_of, phone_of, set_within, task_of
from pages.hall.lectures import Lecture, LectureError, Scene, lectures, read_lecture
from pages.hall.parts import Sent, parts_in, shown_of
from pages.hall.rooms import RoomError, Rooms
from pages.hall.take_home import scene_at_home
from pages.kit.asking import computing_here
from pages.language import LANGUAGES
from pages.link import Link, reading
from tests.helpers import nightly_but
from tests.pages.kit.test_lectures import HEAD

NAME = "you_are_the_model"
SCENE = """
## Ten words
screen: gpt?gpt_part=next&text=Once upon a time&model=gpt
figure: chart
each: guess words=3

Two sentences. And one.

### Each

Guess.

- Tom had a red | ball and a big dog.

### Notes

For me.
"""
FORGED = (
    None,
    True,
    -1,
    2,
    "a" * 5_000,
    "<img src=x onerror=alert(1)>",
    [],
    ["a"],
    {"a": 1},
    ["\n", 0.5],
    ["a", "b"],
    [[], {}],
)


def ours(language: str = "en") -> Lecture:
    found = lectures(language)[NAME]
    assert isinstance(found, Lecture), found
    return found


def task_for(scene: Scene, stage: str = STAGES[0], **more: Any) -> Task[Any]:
    """Return a scene's task, computed here."""
    assert scene.each is not None
    with reading(Link({**scene.state, "lang": "en"})), computing_here():
        found = task_of(scene.each, scene.state, "en", "nobody test", stage=stage, **more)
    assert found is not None
    return found


def scene_of(kind: str) -> Scene:
    return next(scene for scene in ours().scenes if scene.each is not None and scene.each.kind == kind)


LIGHT = sorted({scene.each.kind for scene in ours().scenes if scene.each} - {"train"})
KINDS = nightly_but([*LIGHT, "train"], set(LIGHT))


def test_a_part_is_read_and_written_again() -> None:
    lecture = read_lecture("mine", HEAD + SCENE)
    (scene,) = lecture.scenes
    assert scene.each is not None
    assert (scene.each.kind, scene.each["words"], scene.each.words) == ("guess", "3", "Guess.")
    assert scene.each.items == ("Tom had a red | ball and a big dog.",)
    assert read_lecture("mine", lecture.written()) == lecture


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("each: guess", "each: gues", "line 10, scene 'Ten words': each: 'gues' must be one of draw, guess, cut,"),
        (
            "words=3",
            "words=11",
            "line 10, scene 'Ten words': each: guess has words='11', must be a whole number from 1",
        ),
        ("words=3", "wards=3", "line 10, scene 'Ten words': each: guess has 'wards', must be one of words, model"),
        (
            "words=3",
            "model=sentiment",
            "line 10, scene 'Ten words': each: guess has model='sentiment', which is a class",
        ),
        ("words=3", "model=nobody", "line 10, scene 'Ten words': each: guess has model='nobody', and there is no such"),
        (
            "- Tom had a red | ball and a big dog.",
            "",
            "line 14, scene 'Ten words': ### Each has 0 lines such as - a text",
        ),
        ("red | ball", "red ball", "line 14, scene 'Ten words': ### Each of guess needs one sign |"),
        ("big dog.", "big dog.\nmore", "line 19, scene 'Ten words': ### Each has its words first"),
        ("big dog.", "x" * 500, "line 18, scene 'Ten words': a line of ### Each has"),
        ("each: guess words=3\n", "", "each: '' must be one of draw"),
        ("each: guess words=3", "each: vector y=a/b", "each: vector needs x=, two words such as bad/good"),
        ("each: guess words=3", "each: vector x=a/b/c y=a/b", "each: vector has x='a/b/c', must be two words"),
        ("each: guess words=3", "each: train vary=depth runs=9", "each: train has 4 settings of depth"),
        ("each: guess words=3", "each: draw temperature=9", "has temperature='9', must be a number from 0.1 to 3"),
        (
            "text=Once upon a time&model=gpt\nfigure: chart\neach: guess words=3",
            "model=gpt\neach: draw",
            "needs text in",
        ),
        ("### Notes", "### Question\nmeasured: verdict\n\nWhy?\n\n### Notes", "has ### Question or each:, not both"),
    ],
)
def test_what_is_wrong_is_told_with_its_line(old: str, new: str, words: str) -> None:
    assert old in SCENE
    with pytest.raises(LectureError) as error:
        read_lecture("mine", HEAD + SCENE.replace(old, new))
    assert words in str(error.value)


@pytest.mark.parametrize("language", LANGUAGES)
def test_our_lecture_has_eight_scenes_of_all_kinds(language: str) -> None:
    scenes = ours(language).scenes
    assert len(scenes) == 8
    assert {scene.each.kind for scene in scenes if scene.each} == OF_KIND.keys()
    for lecture in lectures(language).values():
        assert isinstance(lecture, Lecture)
        assert any(scene.each for scene in lecture.scenes), lecture.name


@pytest.mark.parametrize("kind", KINDS)
def test_a_phone_has_the_same_part_whenever_it_asks_and_its_neighbour_another(kind: str) -> None:
    task = task_for(scene_of(kind))
    one, again, other = (phone_of("BCDF 1", seat) for seat in (3, 3, 4))
    assert part_of(task, one, ()) == part_of(task, again, ())
    assert one.seed != other.seed
    part = part_of(task, one, ())
    assert part["lines"]
    assert part["round"] == 0
    if kind in ("draw", "cut", "vector", "train"):
        assert part != part_of(task, other, ())


@pytest.mark.parametrize("kind", KINDS)
def test_what_no_part_takes_is_refused_and_what_is_taken_is_small(kind: str) -> None:
    task, phone = task_for(scene_of(kind)), phone_of("BCDF 1", 0)
    for said in FORGED:
        if kind == "draw":  # it takes nothing that is sent
            assert OF_KIND[kind].take(task, phone, 0, said) == OF_KIND[kind].take(task, phone, 0, None)
            continue
        if kind == "guess" and said == ["a", "b"]:
            said = ["a" * 25, 0.5]
        if kind in ("cut", "train") and said is None:
            said = "0.5"
        with pytest.raises(BadPartError):
            OF_KIND[kind].take(task, phone, 0, said)
    mine = OF_KIND[kind].other(task, phone)
    assert len(mine) == OF_KIND[kind].rounds(task.each)
    assert len(json.dumps(mine)) < 1_000
    done = part_of(task, phone, mine)
    assert done["ask"] is None


@pytest.mark.parametrize("kind", KINDS)
def test_the_exact_value_is_not_told_before_it_is_measured(kind: str) -> None:
    scene = scene_of(kind)
    phone = phone_of("BCDF 1", 0)
    whole = {stage: task_for(scene, stage) for stage in STAGES}
    given = [Given(phone, place, said) for place, said in enumerate(OF_KIND[kind].other(whole["asked"], phone))]
    shown = {stage: OF_KIND[kind].picture(task, given) for stage, task in whole.items()}
    assert all(picture.count == len(given) and picture.people == 1 for picture in shown.values())
    assert json.dumps(shown["measured"].sent())
    if kind != "draw":
        assert shown["asked"].figures != shown["measured"].figures
    exact = [row.exact for row in shown["measured"].rows if row.exact is not None]
    assert exact
    if kind in ("label", "vector", "train"):
        told = json.dumps(shown["shown"].figures)
        assert not any(str(value) in told for value in exact if abs(value) not in (0.0, 0.5, 1.0))
    if kind == "guess":
        assert scene.each is not None
        assert "under" not in json.dumps(shown["asked"].sent()) + json.dumps(part_of(whole["asked"], phone, ()))


def test_the_class_comes_near_to_the_softmax_and_another_temperature_is_the_same_numbers_on_other_pieces() -> None:
    scene = scene_of("draw")
    cool, hot = (task_for(scene, setting=setting) for setting in (1.0, 3.0))
    given = [
        Given(phone := phone_of("BCDF 1", seat), number, OF_KIND["draw"].take(cool, phone, number, "forged"))
        for seat in range(400)
        for number in range(5)
    ]
    assert given[0].said == np.random.default_rng(given[0].phone.seed).random(5)[0]
    assert len({one.said for one in given}) == 2_000
    rows = OF_KIND["draw"].picture(cool, given).rows
    assert all(abs((row.of_class or 0) - (row.exact or 0)) < 0.04 for row in rows)
    assert sum(row.count for row in rows) == 2_000
    assert OF_KIND["draw"].picture(hot, given).rows[0].exact < rows[0].exact  # type: ignore[operator]
    assert set_within(cool.each, 1.4) == 1.4
    assert [set_within(cool.each, value) for value in (0, 99, "1", True, None, float("nan"))] == [None] * 6


def test_all_cuts_have_a_phone_before_any_has_two() -> None:
    task = task_for(scene_of("cut"))
    count = len(task.exact.names)
    lines = [part_of(task, phone_of("BCDF 4", seat), ())["lines"][0] for seat in range(2 * count)]
    assert len(set(lines[:count])) == len(set(lines)) == count


def test_one_person_alone_has_a_class_of_draws_and_sees_what_is_exact_once_the_part_is_done() -> None:
    scene = scene_of("cut")
    part, picture = alone(task_for(scene), 5, [])
    assert (part["ask"] is None, picture.people) == (False, OTHERS)
    part, picture = alone(task_for(scene, STAGES[-1]), 5, [0.4])
    assert (part["ask"], picture.people) == (None, OTHERS + 1)
    assert len(picture.figures) == 2
    with pytest.raises(BadPartError):
        alone(task_for(scene), 5, ["forged"])


@pytest.fixture
def rooms(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Rooms:
    """Rooms, whose scenes are computed at once."""
    monkeypatch.setattr(parts, "_ahead", SimpleNamespace(submit=lambda act, *about: act(*about)))
    return Rooms(tmp_path / "rooms.sqlite3", most=3)


def test_a_room_keeps_a_phones_seat_and_what_it_gave_once_over_a_restart(rooms: Rooms, tmp_path: Path) -> None:
    code, _ = rooms.open("teacher", ours(), "en", 1)
    assert rooms.seats(code, ("b", "a")) == {"b": 0, "a": 1}
    assert rooms.seats(code, ("a", "c", "b")) == {"a": 1, "c": 2, "b": 0}
    rooms.give(code, 1, [(0, 0, 0.25), (0, 0, 0.75), (0, 1, 0.5), (1, 0, 0.9)])
    rooms.slide(code, 1, 2.0)
    again = Rooms(tmp_path / "rooms.sqlite3", most=3)
    state = again.state(code)
    assert state is not None
    assert state.parts == ((0, 0, 0.25), (0, 1, 0.5), (1, 0, 0.9))
    assert (state.slider, state.owner) == (2.0, "teacher")
    assert again.seats(code, ("c",)) == {"c": 2}
    assert again.parts_of(code, 1, (0, 2)) == {0: [0.25, 0.5], 2: []}
    told = shown_of(state)
    assert (told["given"], told["people"], told["setting"]) == (3, 2, 2.0)
    assert "temperature 2.0" in told["picture"]["figures"][0]["title"]
    again.step(code, 1, "shown")
    with pytest.raises(RoomError, match=r"room\.late"):
        again.give(code, 1, [(2, 0, 0.1)])
    with pytest.raises(RoomError, match=r"room\.late"):
        again.give(code, 2, [(2, 0, 0.1)])
    again.close(code)
    with sqlite3.connect(tmp_path / "rooms.sqlite3") as file:
        assert [file.execute(f"SELECT COUNT(*) FROM {name}").fetchone() for name in ("part", "seat", "slider")] == [
            (0,)
        ] * 3


def test_a_room_of_an_older_version_is_gone_on_with(tmp_path: Path) -> None:
    Rooms(tmp_path / "rooms.sqlite3", most=3)
    with sqlite3.connect(tmp_path / "rooms.sqlite3") as file:
        for name in ("part", "seat", "slider"):
            file.execute(f"DROP TABLE {name}")
    rooms = Rooms(tmp_path / "rooms.sqlite3", most=3)
    code, _ = rooms.open("teacher", ours(), "en", 1)
    assert rooms.seats(code, ("a",)) == {"a": 0}


def test_what_phones_send_at_once_is_kept_together_each_has_its_own_part_and_a_bad_one_harms_no_other(
    rooms: Rooms,
) -> None:
    code, _ = rooms.open("teacher", ours(), "en", 3)
    phones = [Sent(f"phone {number}", 3, "zh" if number % 2 else "en", True, 0, ["They", 0.9]) for number in range(60)]
    odd = [Sent("phone 0", 3, "en", True, 0, ["He", 0.1]), Sent("bad", 3, "en", True, 0, "x"), Sent("new", 3, "en")]
    odd += [Sent("far", 3, "en", True, 2, ["They", 0.9]), Sent("late", 2, "en", True, 0, ["They", 0.9])]
    found = parts_in(rooms, code, phones + odd)
    assert found is not None
    assert found[:60] == [part for one in phones for part in parts_in(rooms, code, [replace(one, gives=False)]) or []]
    again, bad, new, far, late = found[60:]
    assert (again, [type(one) for one in (bad, far, late)]) == (found[0], [BadPartError, BadPartError, RoomError])
    assert isinstance(new, dict)
    assert new["round"] == 0
    state = rooms.state(code)
    assert state is not None
    assert [number for _, number, _ in state.parts] == [0] * 60
    assert all(sure == 0.9 for _, _, (_, sure) in state.parts), "what was given first stays"
    rooms.step(code, 3, "shown")
    after = parts_in(rooms, code, [replace(phones[0], round=1), phones[1]])
    assert after is not None
    assert isinstance(after[0], RoomError)
    assert after[1] == found[1]
    rooms.close(code)
    assert parts_in(rooms, code, phones) is None


def test_a_guess_is_kept_as_a_token_and_no_word_of_a_phone_is_kept_or_told(rooms: Rooms, tmp_path: Path) -> None:
    code, _ = rooms.open("teacher", ours(), "en", 3)
    [part] = parts_in(rooms, code, [Sent("a", 3, "zh", True, 0, ["<script>alert(1)", 0.9])]) or []
    state = rooms.state(code)
    assert state is not None
    assert isinstance(part, dict)
    told = json.dumps([part, shown_of(state)], ensure_ascii=False)
    assert "script>" not in told
    assert part["round"] == 1
    kept = b"".join(path.read_bytes() for path in tmp_path.iterdir())
    assert b"<script" not in kept


def test_the_table_has_the_classs_value_beside_the_exact_one(rooms: Rooms) -> None:
    code, _ = rooms.open("teacher", ours(), "en", 1)
    for number in range(5):
        parts_in(rooms, code, [Sent("a", 1, "en", True, number)])
    state = rooms.state(code, 1)
    assert state is not None
    rows = OF_KIND["draw"].picture(
        task_for(ours().scenes[0], STAGES[-1]),
        [Given(phone_of(f"{code} 1", 0), number, said) for _, number, said in state.parts],
    )
    table = list(csv.DictReader(io.StringIO(rooms.to_csv(code, {1: rows.table()}))))
    assert sum(int(row["count"]) for row in table) == 5
    assert sum(float(row["exact"]) for row in table) == pytest.approx(1, abs=1e-4)
    assert {(row["scene"], row["unit"]) for row in table} == {("1", "share")}


def test_a_file_to_take_home_has_what_the_class_came_to_or_says_that_draws_stand_for_it() -> None:
    asked = {"lecture": ours().written(), "name": NAME, "language": "en", "public": False, "number": 1, "answers": "{}"}
    drawn = json.loads(scene_at_home(**asked, figures=False))
    assert (drawn["alone"], drawn["picture"]["people"], drawn["picture"]["count"]) == (True, OTHERS, 5 * OTHERS)
    of_class = json.loads(scene_at_home(**asked, picture=json.dumps(drawn["picture"] | {"people": 3}), figures=False))
    assert (of_class.get("alone"), of_class["picture"]["people"]) == (None, 3)
