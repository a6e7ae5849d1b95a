"""The layout of pages: heading, header, parts to choose from, the glass and the story; reruns at a key on its own."""

from collections.abc import Callable, Mapping
from typing import Any

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from pages.glass.box import under_the_glass
from pages.ui.glossary import begin_page, offer_glossary, tell
from pages.ui.header import View, language_and_share
from pages.ui.language import language, prose, section, t
from pages.ui.navigation import choice_of_part
from pages.ui.scene import part_of_scene, under_question
from pages.ui.url import choose, choose_in_groups, current

EVERYTHING = ("*",)
Part = Callable[[View], Any]


def title(name: str) -> DeltaGenerator:
    """Show a page's heading and return the place beside it."""
    row = st.container(horizontal=True, vertical_alignment="center", key="title")
    row.header(t(f"{name}.heading"), anchor=False, width="content")
    return row


def heading(title: str, *, small: bool = False) -> DeltaGenerator:
    """Show a page's heading and the choice of language, and return the place between them.

    Args:
        title: Markdown.
        small: for what a page shows rather than for the page.
    """
    title_place, place, language_place = st.columns([3.4, 3.6, 2], vertical_alignment="center")
    with language_place:
        language_and_share()
    with title_place, st.container(horizontal=True, vertical_alignment="center"):
        (st.subheader if small else st.header)(title, anchor=False, width="content")
        offer_glossary(st.session_state.page)
    return place


@st.fragment
def model_page(
    name: str, look: Callable[[], View], explore: Callable[[View], None], *, story: str = "story.why"
) -> None:
    """Show a page's header, what it explores, and why the thing is there.

    Args:
        name: of the page's words and prose.
        look: shows the header and returns what it chose.
        explore: shows the title, and the picture in a container of the key ``picture``, which a text that cannot be
            read turns pale.
        story: key of the words on the box with the section ``why`` of the page's prose.
    """
    begin_page()
    view = look()
    explore(view)
    with st.expander(t(story), icon=":material/school:"):
        tell(section(name, "why"))


def parts_page(
    name: str,
    look: Callable[[], View],
    parts: Mapping[str, Part] | Mapping[str, Mapping[str, Part]],
    *,
    sites: tuple[str, ...] | Mapping[str, tuple[str, ...] | None] = EVERYTHING,
    glass: Callable[..., None] = under_the_glass,
    story: str = "story.why",
) -> None:
    """Show a page whose parts are chosen above the picture; only the chosen one is computed.

    Where the page's prose has a section ``look_PART``, its first paragraph stands above the part and the others below
    it, so that the picture is on the first screen.

    Args:
        name: of the page's words and prose.
        look: as of model_page.
        parts: what shows each part, the first one by default; one may return the view that the glass shall show. Many
            parts are grouped: those of each group by its name, whose question stands above them (``NAME.group_GROUP``).
        sites: the sites that the glass lists first, for all parts or for each; None where a part has a glass of its
            own.
        glass: shows the box under the part; called with a view and ``sites``.
        story: as of model_page.
    """

    groups = {group: among for group, among in parts.items() if isinstance(among, Mapping)}
    shows: dict[str, Part] = {part: show for among in groups.values() for part, show in among.items()}
    shows |= {part: show for part, show in parts.items() if not isinstance(show, Mapping)}
    key, first = choice_of_part(name), next(iter(shows))

    def look_at_part() -> View:
        asked = current(key)
        st.session_state.part = asked if asked in shows else first
        return look()

    @st.fragment
    def explore(view: View) -> None:
        begin_page()
        names = {part: t(f"{name}.part_{part}") for part in shows}
        with title(name):
            if not groups:
                part = choose(t(f"{name}.part"), names, name=key, default=first, collapsed=True)
            offer_glossary(name)
            if groups:
                asked = {t(f"{name}.group_{group}"): {part: names[part] for part in groups[group]} for group in groups}
                with st.container(horizontal=True, key="parts"):
                    part = choose_in_groups(asked, name=key, default=first)
        above, _, below = prose(language(), name).get(f"look_{part}", "").partition("\n\n")
        with st.container(key="picture"):
            if above:
                tell(above)
            with under_question("part", here=part == part_of_scene(key, first)):
                found = shows[part](view)
            if below:
                tell(below)
            seen = sites.get(part, EVERYTHING) if isinstance(sites, Mapping) else sites
            if seen is not None:
                glass(found if isinstance(found, View) else view, sites=seen)

    model_page(name, look_at_part, explore, story=story)
