"""Rooms of the app: a page, its parts, and what each part declares once for its script and its live pictures."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from pages.glass.box import under_the_glass
from pages.hall.scene import part_of_scene, question_open, under_question
from pages.kit.controls import Choice, Control, Values
from pages.kit.experiment import while_asked
from pages.kit.glossary import begin_page, offer_glossary, show_prose
from pages.kit.header import View, language_and_share, whole_page_asked
from pages.kit.live import Live, follow
from pages.kit.navigation import choice_of_part
from pages.kit.url import current, keep, widget_key
from pages.language import language, prose, section, t

EVERYTHING = ("*",)


def values_of(controls: Iterable[Control[Any]], view: View) -> Values:
    """Return what controls hold, without showing them.

    Raises:
        ValueError: a text among them cannot be read.
    """
    return Values({control.name: control.read(view) for control in controls})


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
    with while_asked(question_open()):
        view = look()
    explore(view)
    with st.expander(t(story), icon=":material/school:"):
        show_prose(section(name, "why"))


@dataclass(frozen=True)
class Part:
    """One part of a page.

    Args:
        page, name: in the URL and in the keys of words.
        show: its layout; what it returns, if that is a view, is under the glass.
        picture: makes what follows a hand that types or slides, of the view and of what the controls hold.
        controls: those that the picture depends on.
        sites: that the glass lists first, by default those of the page; None where the part has a glass of its own.
        group: of parts, where a page has many: their question stands above them (``PAGE.group_GROUP``).
    """

    page: str
    name: str
    show: Callable[[View], Any]
    picture: Callable[[View, Values], Live] | None = None
    controls: tuple[Control[Any], ...] = ()
    sites: tuple[str, ...] | None = ()
    group: str = ""

    def values(self, view: View) -> Values:
        """Return what its controls hold, without showing them.

        Raises:
            ValueError: a text among them cannot be read.
        """
        return values_of(self.controls, view)

    def live(self, view: View) -> Live:
        """Return the picture of what its controls hold.

        Raises:
            ValueError: as of values, and as the picture does.
        """
        assert self.picture is not None
        return self.picture(view, self.values(view))

    def follow(self, view: View) -> None:
        """Let the picture follow the hand from here on; only after its controls are shown."""
        follow(self.page, self.name, view, self.controls)


@dataclass(frozen=True)
class Page:
    """A page whose parts are chosen above the picture; only the chosen one is computed.

    Where the page's prose has a section ``look_PART``, its first paragraph stands above the part and the others below
    it, so that the picture is on the first screen.

    Args:
        name: of the page's words and prose.
        look: shows the header and returns what it chose.
        parts: the first one by default.
        sites: those that the glass lists first of parts that name none of their own.
        glass: shows the box under the part; called with a view and ``sites``.
        story: key of the words on the box with the section ``why`` of the page's prose.
    """

    name: str
    look: Callable[[], View]
    parts: tuple[Part, ...]
    sites: tuple[str, ...] = EVERYTHING
    glass: Callable[..., None] = under_the_glass
    story: str = "story.why"

    def show(self) -> None:
        """Show the page: its header, the chosen part, the glass and the story."""
        name, shown = self.name, {part.name: part for part in self.parts}
        key, first = choice_of_part(name), self.parts[0].name

        def look_at_part() -> View:
            asked = current(key)
            st.session_state.part = asked if asked in shown else first
            return self.look()

        @st.fragment
        def explore(view: View) -> None:
            if whole_page_asked():
                st.rerun(scope="app")
            begin_page()
            part = shown[self._choose(key)]
            above, _, below = prose(language(), name).get(f"look_{part.name}", "").partition("\n\n")
            with st.container(key="picture"):
                if above:
                    show_prose(above)
                of_scene = part.name == part_of_scene(key, first)
                with under_question("part", here=of_scene):
                    found = part.show(view)
                if below:
                    show_prose(below)
                if part.sites is not None:
                    with under_question("glass", here=of_scene):
                        self.glass(found if isinstance(found, View) else view, sites=part.sites or self.sites)

        model_page(name, look_at_part, explore, story=self.story)

    def _choose(self, key: str) -> str:
        """Show the page's title with the choice of its parts, and return which is chosen."""
        name, first = self.name, self.parts[0].name
        names = {part.name: t(f"{name}.part_{part.name}") for part in self.parts}
        groups = dict.fromkeys(part.group for part in self.parts)
        with title(name):
            if len(groups) == 1:
                part = Choice(key, names, label=f"{name}.part", collapsed=True).show()
                offer_glossary(name)
                return part
            offer_glossary(name)
            asked = {
                t(f"{name}.group_{group}"): {part.name: names[part.name] for part in self.parts if part.group == group}
                for group in groups
            }
            with st.container(horizontal=True, key="parts"):
                return choose_in_groups(asked, name=key, default=first)


def choose_in_groups(groups: Mapping[str, Mapping[str, str]], *, name: str, default: str) -> str:
    """Show buttons for each group, its label above them; one option of all groups is chosen.

    Args:
        groups: labels by option, by the group's label; no option is in two groups.
        name: in the URL; default: the option that the URL leaves out.
    """
    options = [option for labels in groups.values() for option in labels]
    value = Choice(name, options, label=name, default=default).read()
    st.session_state.pop(widget_key(name), None)  # what set_choice made, which no widget here takes over
    for place, (label, labels) in enumerate(groups.items()):
        key, mine = f"{widget_key(name)}.{place}", value if value in labels else None
        st.session_state[key] = mine

        def take(key: str = key) -> None:
            keep(name, st.session_state[key], default)

        st.segmented_control(
            label,
            list(labels),
            default=mine,
            format_func=labels.__getitem__,
            required=mine is not None,
            key=key,
            on_change=take,
            wrap=True,
        )
    keep(name, value, default)
    return value


def live_parts(pages: Iterable[Page]) -> dict[tuple[str, str], Callable[[View], Live]]:
    """Return what makes the pictures of all parts that have any, by page and part."""
    return {(part.page, part.name): part.live for page in pages for part in page.parts if part.picture is not None}
