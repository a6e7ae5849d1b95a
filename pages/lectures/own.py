"""One's own lectures: begun from a copy or a file, put in order, edited as text, deleted."""

from collections.abc import Callable
from dataclasses import replace

import streamlit as st

from pages.hall.lectures import LARGEST, OWN, Lecture, LectureError, own_folder, own_lectures
from pages.hall.own_lectures import remove_lecture, save_lecture
from pages.kit.experiment import lazy_box
from pages.kit.uploads import let_go, upload
from pages.language import plain, section, t

STEPS = ((-1, ":material/arrow_upward:", "up"), (1, ":material/arrow_downward:", "down"))


def _say(error: LectureError) -> None:
    st.session_state.lecture_error = str(error)


def keep_lecture(name: str | None, text: str) -> None:
    """Keep a lecture, or say why it cannot be; in a callback."""
    try:
        save_lecture(name, text)
    except LectureError as error:
        _say(error)


def _move(lecture: Lecture, place: int, by: int) -> None:
    scenes = list(lecture.scenes)
    scenes.insert(place + by, scenes.pop(place))
    keep_lecture(lecture.name, replace(lecture, scenes=tuple(scenes)).written())
    st.session_state.pop(f"text {lecture.name}", None)


def _leave_out(lecture: Lecture, place: int) -> None:
    scenes = lecture.scenes[:place] + lecture.scenes[place + 1 :]
    keep_lecture(lecture.name, replace(lecture, scenes=scenes).written())
    st.session_state.pop(f"text {lecture.name}", None)


def show_own(show_lecture: Callable[[str, Lecture | str], None]) -> None:
    """Show this visitor's own lectures, each with its editor."""
    if error := st.session_state.pop("lecture_error", None):
        st.error(plain(error), icon=":material/error:")
    found = own_lectures()
    if not found:
        st.caption(t("lectures.none"))
    for name, lecture in found.items():
        show_lecture(name, lecture)
        _edit(name, lecture)


def _edit(name: str, lecture: Lecture | str) -> None:
    box = lazy_box(t("lectures.edit"), icon=":material/edit:", key=f"edit_{name.removeprefix(OWN)}")
    if box is None:
        return
    with box:
        if isinstance(lecture, Lecture):
            for place, scene in enumerate(lecture.scenes):
                _row(lecture, place, scene.title)
        text = lecture.written() if isinstance(lecture, Lecture) else _raw(name)
        key = f"text {name}"
        written = st.text_area(t("lectures.text"), text, max_chars=LARGEST, height=420, key=key)
        sure = st.checkbox(t("lectures.sure"), key=f"sure {name}")
        with st.container(horizontal=True):
            st.button(
                t("lectures.save"),
                type="primary",
                icon=":material/save:",
                key=f"save {name}",
                on_click=keep_lecture,
                args=(name, written),
            )
            st.button(
                t("lectures.delete"),
                icon=":material/delete:",
                key=f"delete {name}",
                disabled=not sure,
                on_click=remove_lecture,
                args=(name,),
            )


def _raw(name: str) -> str:
    try:
        return (own_folder() / f"{name.removeprefix(OWN)}.md").read_text(encoding="utf-8", errors="replace")[:LARGEST]
    except OSError:
        return ""


def _row(lecture: Lecture, place: int, title: str) -> None:
    """Show one scene with the ways to move it and to leave it out."""
    with st.container(horizontal=True, vertical_alignment="center", gap="small"):
        st.markdown(f"{place + 1}. {plain(title)}", width="stretch")
        for by, icon, way in STEPS:
            st.button(
                "",
                icon=icon,
                type="tertiary",
                help=t(f"lectures.{way}"),
                key=f"{way} {place} {lecture.name}",
                disabled=not 0 <= place + by < len(lecture.scenes),
                on_click=_move,
                args=(lecture, place, by),
            )
        st.button(
            "",
            icon=":material/close:",
            type="tertiary",
            help=t("lectures.leave_out"),
            key=f"out {place} {lecture.name}",
            disabled=len(lecture.scenes) == 1,
            on_click=_leave_out,
            args=(lecture, place),
        )


def take_file() -> None:
    """Take in a lecture that was downloaded, here or elsewhere, and edited."""
    given = upload(
        t("lectures.upload"), ["md", "txt"], most_mb=1, key="lecture_file", help=section("lectures", "upload")
    )
    if given is None:
        return
    let_go("lecture_file")
    try:
        save_lecture(None, given.getvalue().decode("utf-8-sig"))
    except UnicodeDecodeError:
        _say(LectureError(t("lectures.not_text")))
    except LectureError as error:
        _say(error)
    st.rerun()
