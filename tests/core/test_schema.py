"""What does not fit a schema is refused by the field's name, what came and what is needed, whatever a record says."""

import json
import math
from dataclasses import dataclass
from typing import Annotated, Any, Literal, TypedDict

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import Meta, Struct

from tests.helpers.engine import exactly
from transformer_core.untrusted.schema import Finite, Share, check_fields, checked, one_of


@dataclass(frozen=True)
class Row:
    unit: Annotated[str, one_of("line", "a+b")]
    texts: Annotated[int, Meta(ge=1, le=9)]
    share: Share = 0.5
    ends: tuple[Share, Share] = (0.0, 1.0)
    side: Literal["left", "right"] | None = None
    on: bool = False

    def __post_init__(self) -> None:
        if self.texts == 7:
            raise ValueError("texts=7 is no good number")


class Strict(Struct, forbid_unknown_fields=True):
    name: Annotated[str, Meta(max_length=3)]
    measures: Annotated[dict[Annotated[str, Meta(max_length=3)], Finite], Meta(description="an object of numbers")]
    side: Literal["left", "right"] = "left"


class File(TypedDict):
    rows: Annotated[list[Row], Meta(max_length=2, description="a list of at most 2 objects")]


def words_of(value: Any, form: Any) -> str:
    """Return why a value is refused, in words; "" where it is taken."""
    try:
        checked(value, form)
    except ValueError as error:
        return str(error)
    return ""


GOOD = {"unit": "line", "texts": 2}
HOSTILE = (
    "x` - at `$.foo",
    "x` - at `$.name[3].y",
    "x` - at `$[0]",
    "`$[...]`",
    "x` - at `key` in `$.measures.a",
)


@pytest.mark.parametrize(
    ("row", "message"),
    [
        ({"unit": "poem"}, "unit='poem' must be one of line, a+b"),
        ({"unit": "line\n"}, "unit='line\\n' must be one of line, a+b"),
        ({"unit": None}, "unit=None must be one of line, a+b"),
        ({"texts": 10}, "texts=10 must be a whole number from 1 to 9"),
        ({"texts": 1.0}, "texts=1.0 must be a whole number from 1 to 9"),
        ({"texts": True}, "texts=True must be a whole number from 1 to 9"),
        ({"texts": "2"}, "texts='2' must be a whole number from 1 to 9"),
        ({"texts": 10**400}, f"texts={str(10**400)[:80]} must be a whole number from 1 to 9"),
        ({"texts": 7}, "texts=7 is no good number"),
        ({"share": math.nan}, "share=nan must be a number from 0 to 1"),
        ({"share": -1}, "share=-1 must be a number from 0 to 1"),
        ({"ends": [0, 2]}, "ends=2 must be a number from 0 to 1"),
        ({"ends": [0]}, "ends=[0] must be a list"),
        ({"side": "up"}, "side='up' is unknown; it must be one of 'left', 'right'"),
        ({"on": 1}, "on=1 must be True or False"),
    ],
)
def test_what_does_not_fit_is_named_with_what_came_and_what_is_needed(row: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=exactly(message)):
        checked({"rows": [GOOD, GOOD | row]}, File)


def test_what_is_missing_or_too_much_is_named() -> None:
    for value, message in (
        ({"rows": [GOOD] * 3}, f"rows={[GOOD] * 3!r:.80} must be a list of at most 2 objects"),
        ({"rows": [{"unit": "line"}]}, "texts=None must be a whole number from 1 to 9"),
        ({"rows": [3]}, "rows=3 must be an object"),
        ([], "it must be an object"),
    ):
        with pytest.raises(ValueError, match=exactly(message)):
            checked(value, File)
    with pytest.raises(ValueError, match=exactly("more is unknown; it must be one of name, measures, side")):
        checked({"name": "a", "measures": {}, "more": 1}, Strict)
    for measures in ([1], {"a": math.inf}, {"a": "1"}, {"long": 1}):
        with pytest.raises(ValueError, match=exactly(f"measures={measures!r} must be an object of numbers")):
            checked({"name": "a", "measures": measures}, Strict)


@pytest.mark.parametrize("text", HOSTILE)
def test_a_name_or_text_that_reads_like_a_place_is_refused_as_any_other(text: str) -> None:
    good: dict[str, Any] = {"name": "a", "measures": {}}
    for value in (good | {text: 1}, good | {"side": text}, good | {"measures": {text: 1}}, {text: text}, text, [text]):
        with pytest.raises(ValueError, match="must"):
            checked(value, Strict)
    with pytest.raises(ValueError, match="must"):
        checked({"rows": [GOOD | {"side": text}]}, File)


def test_half_a_character_is_refused_as_what_it_stands_for() -> None:
    good: dict[str, Any] = {"name": "a", "measures": {}}
    for more, message in (
        ({"\ud800": 1}, "? is unknown; it must be one of name, measures, side"),
        ({"side": "\ud800"}, "side='\\ud800' is unknown; it must be one of 'left', 'right'"),
        ({"name": ["\ud800"]}, "name=['\\ud800'] must be a text of at most 3 characters"),
    ):
        assert words_of(good | more, Strict) == message


JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text(max_size=5)
    | st.sampled_from((*HOSTILE, "\ud800")),
    lambda part: st.lists(part, max_size=3) | st.dictionaries(st.sampled_from(["rows", "unit", "texts"]), part),
    max_leaves=8,
)


@given(JSON)
def test_whatever_comes_is_taken_or_refused_in_words(value: Any) -> None:
    assert all(len(words_of(value, form)) < 500 for form in (File, Row, Strict))


def test_a_record_that_fits_is_made_and_its_fields_are_checked_when_it_is_made_by_hand() -> None:
    row = checked(json.loads('{"unit": "a+b", "texts": 3, "ends": [0, 1], "note": "is passed over"}'), Row)
    assert row == Row("a+b", 3)
    check_fields(row)
    with pytest.raises(ValueError, match=exactly("texts=0 must be a whole number from 1 to 9")):
        check_fields(Row("line", 0))
    check_fields(Row("line", 0), "texts")
