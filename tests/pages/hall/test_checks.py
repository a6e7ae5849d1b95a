"""What a lecturer checks: two rooms of a lecture side by side, and a lecture on another model."""

import base64
import csv
import io
import math
from pathlib import Path

import pytest

from pages.hall.lectures import Lecture, lectures, read_lecture
from pages.hall.rooms import Rooms
from pages.hall.take_home import file_of
from pages.hall.tour import measured
from pages.hall.two_rooms import LARGEST, MOST_ROWS, RoomTableError, read_room, side_by_side
from pages.hall.verify import counted, verify_lecture
from pages.language import LANGUAGES, words
from pages.link import Link, reading
from tests.helpers.pages import first_screen, told
from tests.pages.kit.test_lectures import HEAD
from transformer_core.shares import interval

QUESTION = """
## {title}
screen: home?text={text}&model={model}

Two sentences. And one.

### Question
measured: verdict

What does it say?

- negative: Bad.
- positive: Good.
"""
PART = [
    {"answer": "a", "count": 3, "class": 0.5, "exact": 0.25, "unit": "share"},
    {"answer": "b", "count": 1, "class": 2.5, "exact": 1.0, "unit": "bits"},
]


HEADS = b"scene,title,answer,count,measured\n"


def page_with(table: bytes) -> bytes:
    """Return what stands around the table in a lecture's file."""
    return b'<!doctype html>\n<main id="figure" data-table="' + table + b'" data-payload="e30="></main>'


def room_with(folder: Path, name: str, right: int, wrong: int) -> bytes:
    """Return the table of a room whose first question was measured, and answered so often rightly and wrongly."""
    lecture = lectures("en")["twelve_scenes"]
    assert isinstance(lecture, Lecture)
    rooms = Rooms(folder / f"{name}.sqlite3", most=3)
    code, _ = rooms.open("teacher", lecture, "en", 1)
    for phone in range(right + wrong):
        rooms.answer(code, str(phone), 1, "positive" if phone < right else "negative")
    rooms.step(code, 1, "measured", {"option": "positive", "said": []})
    return rooms.to_csv(code, {11: PART}).encode("utf-8-sig")


def test_two_rooms_have_their_shares_with_intervals_and_their_parts_beside_the_exact_value(tmp_path: Path) -> None:
    files = [room_with(tmp_path, name, *counts) for name, counts in (("last", (2, 18)), ("this", (5, 25)))]
    question, *parts = side_by_side(*map(read_room, files))
    assert [(room.n, room.value) for room in question.rooms] == [(20, 0.1), (30, pytest.approx(1 / 6))]
    assert (question.rooms[0].low, question.rooms[0].high) == interval(0.1, 20)
    assert question.title == "A sentence goes in, a verdict comes out"
    assert [(part.what, part.exact, part.unit) for part in parts] == [("a", 0.25, "share"), ("b", 1.0, "bits")]
    assert [room.value for room in parts[1].rooms] == [2.5, 2.5]
    asked = {"title": 'A "title" <b>', "about": "", "language": "en", "scenes": ()}
    pages = [file_of(**asked, table=file.decode("utf-8-sig")).html.encode() for file in files]
    for given in ((pages[0], files[1]), pages):
        assert side_by_side(*map(read_room, given)) == [question, *parts]


@pytest.mark.parametrize(
    ("data", "why"),
    [
        (b"", "columns"),
        (b"a,b\n1,2\n", "columns"),
        (b"\xff\xfe\x00", "text"),
        (b"x" * (LARGEST + 1), "large"),
        (HEADS + b"1,t,a,1,a\n" * (MOST_ROWS + 1), "rows"),
        (b"\xef\xbb\xbf \n<!doctype html><p>scene,title,answer,count,measured", "page"),
        (b"<" * 10_000_000, "page"),
        (page_with(b""), "page"),
        (page_with(base64.b64encode(HEADS)[:-3]), "damaged"),
        (page_with(base64.b64encode(HEADS)).partition(b'" data-payload')[0], "damaged"),
        (page_with(b"<script>"), "damaged"),
        (page_with(base64.b64encode(b"\xff\xfe\x00")), "text"),
        (page_with(base64.b64encode(page_with(b""))), "columns"),
        (page_with(base64.b64encode(b"x" * (LARGEST + 1))), "large"),
    ],
)
def test_a_file_that_is_no_rooms_table_is_refused_in_words(data: bytes, why: str) -> None:
    with pytest.raises(RoomTableError, match=f"^{why}$"):
        read_room(data)
    for language in LANGUAGES:
        assert f"lectures.no_room_{why}" in words(language)


def test_odd_cells_are_no_numbers_and_rooms_of_other_lectures_have_nothing_in_common() -> None:
    def table(*rows: tuple[str, ...]) -> list[dict[str, str]]:
        text = io.StringIO()
        csv.writer(text).writerows([("scene", "title", "answer", "count", "measured", "class", "exact", "unit"), *rows])
        return read_room(text.getvalue().encode())

    odd = table(("1", "<b>", "a", "1e999", "", "nan", "=1+1", "cats"), ("2", "t", "a", "3", "a", "", "", ""))
    question, part = side_by_side(odd, odd)
    assert question.rooms[0].n == 3
    assert part.rooms[0].n == 0
    assert math.isnan(part.exact)
    assert math.isnan(part.rooms[0].value)
    with pytest.raises(RoomTableError, match="common"):
        side_by_side(odd, table(("2", "other", "a", "3", "a", "", "", "")))


def test_a_lecture_on_another_model_says_which_answers_hold_there_and_which_cannot_be_asked() -> None:
    told_ = "".join(
        QUESTION.format(title=title, text=text, model=model)
        for title, text, model in (("One", "The film was good.", "sentiment"), ("Two", "bad bad bad", "sentiment"))
    )
    written = HEAD + told_ + QUESTION.format(title="Three", text="Once upon a time", model="gpt")
    asked = {"name": "mine", "language": "en", "model": "sentiment-zh", "owner": "", "public": False}
    found = verify_lecture(lecture=written, **asked)
    assert [one.title for one in found] == ["One", "Two", "Three"]
    for scene, one in zip(read_lecture("mine", written).scenes[:2], found, strict=False):
        with reading(Link({"lang": "en"})):
            own = measured(scene)
            other = measured(type(scene)(**{**vars(scene), "state": {**scene.state, "model": "sentiment-zh"}}))
        assert one.outcome == ("holds" if own.option == other.option else "fails")
        assert f"{own.value:.1%}" in one.before
        assert f"{other.value:.1%}" in one.after
    assert (found[2].outcome, found[2].before) == ("cannot", "")
    assert sum(n for _, n in counted(found)) == 3


def test_the_page_offers_both() -> None:
    app = first_screen("lectures", lang="en")
    labels = [box.label for box in app.expander]
    assert words("en")["lectures.two_rooms"] in labels
    assert labels.count(words("en")["lectures.verify"]) == len(lectures("en"))
    assert words("en")["lectures.two_rooms"] in told(app) or not app.exception
