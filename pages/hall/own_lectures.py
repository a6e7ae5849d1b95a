"""The lectures that a person makes: a file each in a folder of theirs, and the way to add a screen from any page."""

import re
import unicodedata
from dataclasses import replace
from pathlib import Path

import streamlit as st

from pages.hall.lectures import (
    LONGEST_TITLE,
    MOST_SCENES,
    NAME,
    OWN,
    Lecture,
    LectureError,
    Scene,
    own_folder,
    own_lectures,
    read_lecture,
)
from pages.kit.navigation import ICONS
from pages.kit.url import LEFT_OUT, current
from pages.language import plain, t
from pages.serving.limits import limits
from transformer_core.training.runs.store.folder import write_whole

MOST_OWN = 20
LONGEST_WORDS = 2_000
MINUTES_A_SCENE = 3
NOT_IN_A_SCREEN = ("lang", "tour", "scene", "lecture", LEFT_OUT)
NEW = ""
SCREENS = [name for name in ICONS if name != "lectures"]  # the pages that a scene may show


def name_from(title: str) -> str:
    """Return a name for the file of a lecture of this title."""
    plain_letters = unicodedata.normalize("NFKD", title).encode("ascii", "ignore").decode().lower()
    return re.sub("[^a-z0-9]+", "_", plain_letters).strip("_")[:40] or "lecture"


def save_lecture(name: str | None, text: str) -> Lecture:
    """Check a lecture and keep it.

    Args:
        name: of an own lecture that it replaces, with OWN; None for a new one, which is named after its title.
        text: of the file.

    Raises:
        LectureError: what is wrong with it, there is no room, or it cannot be written.
    """
    if limits().read_only:
        raise LectureError(t("lectures.read_only"))
    lecture, there = read_lecture(name or "", text), own_lectures()
    if name is None:
        if len(there) >= MOST_OWN:
            raise LectureError(t("lectures.full", most=MOST_OWN))
        stem = name_from(lecture.title)
        name = OWN + next(one for one in (stem, *(f"{stem}_{k}" for k in range(2, 99))) if OWN + one not in there)
    _write(_path_of(name), text)
    return replace(lecture, name=name)


def _write(path: Path, text: str) -> None:
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        write_whole(path, text)
    except OSError as error:
        raise LectureError(t("lectures.not_written", error=error.strerror or type(error).__name__)) from None


def remove_lecture(name: str) -> None:
    """Delete an own lecture."""
    if not limits().read_only:
        _path_of(name).unlink(missing_ok=True)


def _path_of(name: str) -> Path:
    stem = name.removeprefix(OWN)
    if not name.startswith(OWN) or not NAME.fullmatch(stem):
        raise LectureError(t("lectures.gone", name=plain(name[:60])))
    return own_folder() / f"{stem}.md"


def screen_now() -> dict[str, str]:
    """Return the state of the screen that is shown: what its link says, and the text and the model in any case."""
    state = {name: value for name, value in st.query_params.items() if name not in NOT_IN_A_SCREEN}
    for name in ("text", "model"):
        value = current(name)
        if isinstance(value, str) and value.strip() and len(value) <= LONGEST_WORDS:
            state[name] = value
    return state


def offer_to_add(page: str) -> None:
    """Show the way to add this screen to a lecture of one's own."""
    box = st.popover(
        t("lectures.add"), icon=":material/playlist_add:", type="tertiary", key="add_screen", on_change="rerun"
    )
    if not box.open:
        return
    own = {name: one for name, one in own_lectures().items() if isinstance(one, Lecture)}
    with box:
        if said := st.session_state.pop("screen_added", None):
            st.success(said, icon=":material/check:")
        if error := st.session_state.pop("screen_refused", None):
            st.error(error, icon=":material/error:")
        st.selectbox(
            t("lectures.into"),
            [*own, NEW],
            format_func=lambda name: plain(own[name].title) if name else t("lectures.new"),
            key="add_into",
        )
        st.text_input(t("lectures.scene_title"), max_chars=LONGEST_TITLE, key="add_title")
        st.text_area(t("lectures.scene_words"), max_chars=LONGEST_WORDS, key="add_words", height=110)
        st.button(
            t("lectures.add_now"),
            type="primary",
            icon=":material/add:",
            key="add_now",
            on_click=_add,
            args=(page, own),
        )


def _add(page: str, own: dict[str, Lecture]) -> None:
    """Add the screen with the words that were typed, or say why it cannot be; in a callback."""
    state = st.session_state
    try:
        scene = Scene(state.add_title.strip(), page, screen_now(), state.add_words.strip())
        lecture = _with_scene(own.get(state.add_into or NEW), scene)
    except LectureError as error:
        state.screen_refused = plain(str(error))
        return
    state.screen_added = t("lectures.added", title=plain(lecture.title), count=len(lecture.scenes))
    state.add_into, state.add_title, state.add_words = lecture.name, "", ""


def _with_scene(lecture: Lecture | None, scene: Scene) -> Lecture:
    """Add a scene at the end of a lecture, or begin one with it, and keep that.

    Raises:
        LectureError: why it cannot be.
    """
    if not scene.title or not scene.text:
        raise LectureError(t("lectures.words_missing"))
    scene = replace(scene, text=re.sub("(?m)^#", r"\\#", scene.text))
    if lecture is None:
        lecture = Lecture("", t("lectures.own_title"), t("lectures.own_about"), 0, ())
    if len(lecture.scenes) >= MOST_SCENES:
        raise LectureError(t("lectures.long", most=MOST_SCENES))
    longer = replace(lecture, minutes=lecture.minutes + MINUTES_A_SCENE, scenes=(*lecture.scenes, scene))
    return save_lecture(lecture.name or None, longer.written())
