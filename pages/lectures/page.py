"""Lectures: those that come with the app and one's own, to take as a tour, to download, to put in order and to edit."""

from typing import Any

import streamlit as st

from pages.hall.lectures import OWN, Lecture, lectures, projected
from pages.hall.take_home import take_home
from pages.hall.tour import begin_tour
from pages.kit.glossary import show_prose
from pages.kit.runs import refuse_read_only
from pages.kit.waiting import awaited_or_why
from pages.language import language, plain, section, t
from pages.lectures.checks import offer_to_verify, show_two_rooms
from pages.lectures.own import keep_lecture, show_own, take_file
from pages.room import heading
from pages.serving.limits import limits
from pages.serving.owners import is_home


def _offer_to_take_home(lecture: Lecture) -> None:
    """Offer the lecture as one file, which is made once somebody asks for it."""
    box = st.expander(
        t("lectures.take_home"), icon=":material/home_storage:", key=f"home {lecture.name}", on_change="rerun"
    )
    if not box.open:
        return
    with box:
        show_prose(section("lectures", "home"))
        asked: dict[str, Any] = {"lecture": lecture.written(), "name": lecture.name, "language": language()}
        asked["public"] = not is_home()
        answer = awaited_or_why(take_home, t("lectures.making"), key=f"home_{lecture.name}", height=150, **asked)
        if answer is not None:
            file = f"{lecture.name.removeprefix(OWN)}.html"
            st.download_button(
                t("lectures.save_file"),
                answer.value.html,
                file,
                "text/html",
                icon=":material/download:",
                key=f"save {lecture.name}",
                on_click="ignore",
            )


def show_lecture(name: str, lecture: Lecture | str) -> None:
    """Show what a lecture is about, and what can be done with it."""
    with st.container(border=True, key=f"lecture_{name}"):
        if isinstance(lecture, str):
            st.warning(plain(f"{name}: {lecture}"), icon=":material/warning:")
            return
        words_place, buttons_place = st.columns([5, 2], vertical_alignment="center")
        with words_place:
            st.subheader(plain(lecture.title), anchor=False)
            st.markdown(plain(lecture.about))
            st.caption(t("lectures.size", count=len(lecture.scenes), minutes=lecture.minutes))
        with buttons_place:
            begins = st.button(
                t("lectures.take"), type="primary", icon=":material/tour:", key=f"take {name}", width="stretch"
            )
            st.link_button(
                t("projector.open"),
                f"./{projected(name, 1, language())}",
                icon=":material/cast:",
                key=f"project {name}",
                width="stretch",
            )
            if not name.startswith(OWN) and not limits().read_only:
                st.button(
                    t("lectures.copy"),
                    icon=":material/content_copy:",
                    key=f"copy {name}",
                    width="stretch",
                    on_click=keep_lecture,
                    args=(None, lecture.written()),
                )
            st.download_button(
                t("lectures.download"),
                lecture.written(),
                f"{name}.md",
                "text/markdown",
                icon=":material/download:",
                key=f"download {name}",
                width="stretch",
                on_click="ignore",
            )
        _offer_to_take_home(lecture)
        offer_to_verify(lecture)
        with st.expander(t("lectures.scenes"), icon=":material/list:"):
            st.markdown("\n".join(f"{number}. {plain(one.title)}" for number, one in enumerate(lecture.scenes, 1)))
    if begins:
        begin_tour(name)


heading(t("lectures.heading"))
show_prose(section("lectures", "look"))
for name, lecture in lectures(language()).items():
    show_lecture(name, lecture)
st.subheader(t("lectures.own"), anchor=False)
if not refuse_read_only():
    show_own(show_lecture)
    take_file()
show_two_rooms()
with st.expander(t("lectures.format"), icon=":material/description:"):
    show_prose(section("lectures", "format"))
