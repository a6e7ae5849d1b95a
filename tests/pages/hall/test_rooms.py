"""Rooms as the server keeps them: one answer a phone, bounds, and what is left after a restart."""

import csv
import io
import json
import shutil
import sqlite3
import subprocess
import time
from pathlib import Path

import pytest

from pages.hall import rooms as module
from pages.hall.lectures import Lecture, lectures
from pages.hall.rooms import LETTERS, LONGEST_TEXT, RoomError, Rooms
from tests.helpers import PATIENCE, ROOT
from transformer_core.untrusted.tables import read_table


def lecture_of(name: str = "twelve_scenes") -> Lecture:
    found = lectures("en")[name]
    assert isinstance(found, Lecture)
    return found


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "rooms.sqlite3"


@pytest.fixture
def rooms(path: Path) -> Rooms:
    return Rooms(path, most=3)


def opened(rooms: Rooms, owner: str = "teacher", name: str = "twelve_scenes", scene: int = 1) -> tuple[str, str]:
    return rooms.open(owner, lecture_of(name), "en", scene)


def test_a_code_is_four_letters_that_make_no_word(rooms: Rooms) -> None:
    code, secret = opened(rooms)
    assert len(code) == 4
    assert set(code) <= set(LETTERS)
    assert not set("AEIOUY") & set(LETTERS)
    assert rooms.is_lecturer(code, secret)
    assert not rooms.is_lecturer(code, secret[1:] + "+")  # a sign that no secret has
    assert not rooms.is_lecturer("XXXX", secret)


def test_a_phone_has_one_answer_which_it_may_change_until_the_answers_are_shown(rooms: Rooms) -> None:
    code, _ = opened(rooms)
    rooms.answer(code, "phone 1", 1, "negative")
    rooms.answer(code, "phone 2", 1, "negative")
    rooms.answer(code, "phone 1", 1, "positive")
    state = rooms.state(code)
    assert state is not None
    assert state.counts == {"negative": 1, "positive": 1}
    rooms.step(code, 1, "shown")
    with pytest.raises(RoomError, match=r"room\.late"):
        rooms.answer(code, "phone 3", 1, "positive")


@pytest.mark.parametrize(
    ("scene", "said", "why"), [(2, "positive", "late"), (1, "both", "bad"), (1, "", "bad"), (9_999, "positive", "late")]
)
def test_what_cannot_be_answered_is_refused(rooms: Rooms, scene: int, said: str, why: str) -> None:
    code, _ = opened(rooms)
    with pytest.raises(RoomError, match=f"room.{why}"):
        rooms.answer(code, "phone", scene, said)


def test_sentences_are_kept_as_they_are_and_one_is_picked(rooms: Rooms) -> None:
    code, _ = opened(rooms, name="how_an_encoder_learns", scene=12)
    for said in ("", " ", "a" * (LONGEST_TEXT + 1), "two\nlines"):
        with pytest.raises(RoomError, match=r"room\.long"):
            rooms.answer(code, "phone", 12, said)
    rooms.answer(code, "phone", 12, "<b>Not</b> a good film.")
    state = rooms.state(code)
    assert state is not None
    [(number, text)] = state.texts.items()
    assert text == "<b>Not</b> a good film."
    rooms.pick(code, number)
    picked = rooms.state(code)
    assert picked is not None
    assert picked.picked == number
    rooms.step(code, 11, "asked")
    left = rooms.state(code)
    assert left is not None
    assert left.picked is None


def test_a_server_that_starts_again_goes_on(rooms: Rooms, path: Path) -> None:
    code, secret = opened(rooms)
    rooms.step(code, 3, "asked")
    rooms.answer(code, "phone", 3, "great")
    rooms.step(code, 3, "measured", {"option": "great", "said": ["Measured."]})
    again = Rooms(path, most=3)
    state = again.state(code)
    assert state is not None
    assert (state.scene, state.stage, state.counts["great"]) == (3, "measured", 1)
    assert state.findings[3]["option"] == "great"
    assert again.is_lecturer(code, secret)


def test_rooms_are_bounded_for_a_person_and_for_all(rooms: Rooms) -> None:
    codes = [opened(rooms, "one")[0] for _ in range(3)]
    assert [rooms.has(code) for code in codes] == [False, True, True]
    other, _ = opened(rooms, "another")
    for code in (*codes[1:], other):
        rooms.note_phones(code, 1)
    with pytest.raises(RoomError, match=r"room\.full"):
        opened(rooms, "third")
    rooms.note_phones(codes[1], 0)
    opened(rooms, "third")  # the one without phones that was used least recently gives way
    assert [rooms.has(code) for code in (*codes, other)] == [False, False, True, True]


def test_phones_are_counted_over_all_processes_and_not_those_of_one_that_ended(rooms: Rooms, path: Path) -> None:
    code, _ = opened(rooms)
    other = Rooms(path, most=3)
    seen = other.changed_elsewhere()
    assert other.changed_elsewhere() == seen
    assert (rooms.note_phones(code, 2), other.note_phones(code, 3)) == (2, 5)
    assert other.changed_elsewhere() != seen
    seen = rooms.changed_elsewhere()
    assert (other.note_phones(code, 3), rooms.changed_elsewhere()) == (5, seen), "what was noted is not written again"
    assert other._there is not None
    other._there.release()  # as the system does when a process ends
    assert rooms.note_phones(code, 2) == 2
    Rooms(path, most=3)
    assert len(list(path.parent.glob("*.lock"))) == 1


def test_a_room_that_nobody_used_for_a_day_goes(rooms: Rooms, monkeypatch: pytest.MonkeyPatch) -> None:
    code, _ = opened(rooms)
    now = time.time()
    monkeypatch.setattr(module.time, "time", lambda: now + module.SECONDS_UNUSED + 1)
    opened(rooms, "another")
    assert rooms.state(code) is None


def test_a_room_whose_lecture_cannot_be_read_any_more_is_as_one_that_is_closed(rooms: Rooms, path: Path) -> None:
    code, _ = opened(rooms)
    with sqlite3.connect(path) as file:
        file.execute("UPDATE room SET lecture = replace(lecture, 'screen:', 'scream:')")
    assert rooms.state(code) is None


def test_closing_deletes_the_answers(rooms: Rooms, path: Path) -> None:
    code, _ = opened(rooms)
    rooms.answer(code, "phone", 1, "negative")
    rooms.close(code)
    assert rooms.state(code) is None
    assert rooms.counted(code) == {}


def test_the_table_holds_no_formula_and_nobody(rooms: Rooms) -> None:
    code, _ = opened(rooms, name="how_an_encoder_learns", scene=12)
    rooms.answer(code, "phone", 12, "=HYPERLINK(1)")
    table = rooms.to_csv(code)
    assert table.splitlines()[0] == "scene,title,answer,count,measured"
    assert table.splitlines()[1].endswith(",'=HYPERLINK(1),1,")
    assert "phone" not in table


def test_the_table_says_the_words_that_were_shown_and_comes_back_by_our_own_import(rooms: Rooms) -> None:
    code, _ = opened(rooms)
    scene = lecture_of().scenes[0]
    assert scene.question is not None
    for phone, option in enumerate(scene.question.options):
        rooms.answer(code, str(phone), 1, option)
    for delimiter in ",;":
        text = io.StringIO()
        csv.writer(text, delimiter=delimiter).writerows(csv.reader(io.StringIO(rooms.to_csv(code))))
        table = read_table(text.getvalue().encode("utf-8-sig"), "title", "answer")
        assert set(table.examples) == {(scene.title, words) for words in scene.question.options.values()}


def test_nothing_that_is_kept_tells_who_answered(rooms: Rooms, path: Path) -> None:
    code, secret = opened(rooms)
    rooms.answer(code, "the hash of a browser's key", 1, "negative")
    kept = b"".join(part.read_bytes() for part in path.parent.iterdir())
    assert b"the hash of a browser's key" not in kept
    assert secret.encode() not in kept


@pytest.mark.skipif(shutil.which("node") is None, reason="node is not installed")
def test_what_the_server_tells_becomes_nodes_and_is_never_read_as_markup(tmp_path: Path) -> None:
    shutil.copy(ROOT / "assets" / "hall" / "nodes.js", tmp_path / "nodes.mjs")
    (tmp_path / "check.mjs").write_text("""
    globalThis.document = {
      createTextNode: (text) => text,
      createElement: (name) => ({ name, inside: [], append(...nodes) { this.inside.push(...nodes); } }),
    };
    const { build } = await import("./nodes.mjs");
    const told = ["<img src=x>", ["script", {}, "a"], ["em", { onclick: "a()" }, ["p", {}, "<b>"]]];
    console.log(JSON.stringify(build(told)));
    """)
    run = subprocess.run(["node", tmp_path / "check.mjs"], capture_output=True, text=True, check=True, timeout=PATIENCE)
    assert json.loads(run.stdout) == [
        "<img src=x>",
        {"name": "span", "inside": ["a"]},
        {"name": "em", "inside": [{"name": "p", "inside": ["<b>"]}]},
    ]
