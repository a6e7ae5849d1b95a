"""What a lecturer checks: a lecture on another model, and two rooms of it side by side."""

import math
from typing import Any

import streamlit as st

from pages.hall.lectures import Lecture
from pages.hall.two_rooms import (
    COLUMNS,
    LARGEST,
    LARGEST_MB,
    MOST_ROWS,
    Compared,
    OfRoom,
    RoomTableError,
    read_room,
    side_by_side,
)
from pages.hall.verify import counted, verify_lecture
from pages.kit.experiment import lazy_box
from pages.kit.glossary import show_prose
from pages.kit.models import READERS, model_names
from pages.kit.number_format import minus
from pages.kit.uploads import upload
from pages.kit.waiting import awaited_or_why
from pages.language import language, plain, section, t
from pages.serving.owners import is_home, visitor

MOST_HARD = 3
KINDS = (*READERS, "translation", "lm", "seq2seq")


def offer_to_verify(lecture: Lecture) -> None:
    """Offer to measure all questions of a lecture on another model, and mark those that do not hold there."""
    box = lazy_box(t("lectures.verify"), icon=":material/rule:", key=f"verify_{lecture.name}")
    if box is None:
        return
    with box:
        show_prose(section("lectures", "verify"))
        names = model_names(None, KINDS)
        model = st.selectbox(
            t("lectures.verify_on"), list(names), None, lambda name: plain(names[name]), key=f"verify on {lecture.name}"
        )
        if model is None:
            return
        asked: dict[str, Any] = {"lecture": lecture.written(), "name": lecture.name, "language": language()}
        asked |= {"model": model, "owner": visitor(), "public": not is_home()}
        answer = awaited_or_why(
            verify_lecture, t("lectures.verifying"), key=f"verified_{lecture.name}", height=150, **asked
        )
        if answer is None:
            return
        numbers = dict(counted(answer.value))
        st.markdown(t("lectures.verified", n=len(answer.value), **numbers))
        columns = ("scene", "outcome", "own", "other")
        rows = [
            (f"{one.number}. {one.title}", t(f"lectures.outcome_{one.outcome}"), one.before, one.after)
            for one in answer.value
        ]
        table = {t(f"lectures.verify_{name}"): [plain(row[k]) for row in rows] for k, name in enumerate(columns)}
        st.table(table)


def show_two_rooms() -> None:
    """Lay two rooms of the same lecture side by side, from the files that their windows with notes saved."""
    box = lazy_box(t("lectures.two_rooms"), icon=":material/compare:", key="two_rooms")
    if box is None:
        return
    with box:
        show_prose(section("lectures", "two_rooms"))
        places = st.columns(2)
        given = []
        for number, place in enumerate(places, 1):
            with place:
                label, key = t(f"lectures.room_{number}"), f"room_{number}"
                given.append(upload(label, ["csv", "html"], most_mb=LARGEST_MB, key=key))
        if given[0] is None or given[1] is None:
            return
        try:
            found = side_by_side(read_room(given[0].getvalue()), read_room(given[1].getvalue()))
        except RoomTableError as error:
            needed = {"columns": ", ".join(COLUMNS), "rows": f"{MOST_ROWS:,}", "mb": LARGEST / 1e6}
            st.error(t(f"lectures.no_room_{error}", **needed), icon=":material/error:")
            return
        _show_compared(found)


def _show_compared(found: list[Compared]) -> None:
    hard = [one for one in found if not one.what and all(room.high < 0.5 for room in one.rooms)]
    if hard:
        st.markdown(
            t("lectures.both_hard", titles="; ".join(plain(one.title) for one in hard[:MOST_HARD]), n=len(hard))
        )
    elif any(not one.what for one in found):
        st.markdown(t("lectures.none_hard"))
    heads = [t(f"lectures.compared_{name}") for name in ("scene", "first", "second", "exact")]
    rows = [(_what(one), *(_told(room, one) for room in one.rooms), _value(one.exact, one.unit)) for one in found]
    st.table({head: [row[place] for row in rows] for place, head in enumerate(heads)})


def _what(one: Compared) -> str:
    return plain(one.title if not one.what else f"{one.title}: {one.what}")


def _told(room: OfRoom, one: Compared) -> str:
    told = _value(room.value, one.unit)
    if not math.isnan(room.low):
        told += f" ({_value(room.low, one.unit)} – {_value(room.high, one.unit)})"
    return f"{told}, n = {room.n}"


def _value(value: float, unit: str) -> str:
    """Return a number in its unit; of a unit that a file made up, the number alone."""
    if math.isnan(value):
        return "–"
    if unit == "bits":
        return t("lectures.bits", value=f"{value:.2f}")
    return {"share": f"{value:.0%}", "points": minus(f"{value:+.1f}")}.get(unit, f"{value:.2f}")
