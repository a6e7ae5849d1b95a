"""The pages there are, in the order in which they are best read, how one opens another, and a search over them.

The search goes by the words of pages, parts and glossary; it needs no network.
"""

import re
from collections.abc import Iterator, Mapping
from copy import copy
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

import streamlit as st

from pages.kit.component import registered
from pages.kit.url import current, keep
from pages.language import LANGUAGES, language, plain, prose, t, words
from pages.link import LEAVES

PAGES = Path(__file__).parents[1]
SECTIONS = {
    "start": {"home": ":material/home:", "lectures": ":material/co_present:"},
    "input": {
        "tokens": ":material/content_cut:",
        "embeddings": ":material/scatter_plot:",
        "positions": ":material/waves:",
        "masks": ":material/visibility_off:",
    },
    "inside": {
        "attention": ":material/grid_on:",
        "feed_forward": ":material/show_chart:",
        "norm": ":material/balance:",
        "why": ":material/help:",
    },
    "models": {
        "encoder": ":material/rule:",
        "translation": ":material/translate:",
        "bert": ":material/ink_highlighter:",
        "gpt": ":material/edit_note:",
        "before": ":material/history:",
        "since": ":material/stairs_2:",
    },
    "training": {
        "one_step": ":material/step_over:",
        "train": ":material/model_training:",
        "compare": ":material/compare_arrows:",
        "sweep": ":material/grid_view:",
    },
    "lab": {"lab": ":material/science:", "my_model": ":material/upload_file:"},
}
HIDDEN = {"server": ":material/dns:"}  # reached by its address
CHOICES = {"why": "why"}  # of a page's parts, in the URL, where it is not the page's name with _part
ICONS = {name: icon for pages in SECTIONS.values() for name, icon in pages.items()}
HALL = "hall"  # in the link of a frame
HALL_HEIGHT = 1.3, 360  # of a chart there: as a share of its height on a page, and at most, in pixels
OPEN, QUERY, GOES = "search_open", "search_query", "search_goes"
MOST_FOUND = 8
MOST_CHARACTERS = 60
AROUND = 40  # characters on each side of what was found
NO_WORDS = re.compile(r"[*`$\\]|<[^>]*>")  # marks of Markdown, tags
VALUES = re.compile(r"\{\w+(?::[^{}|]*)?\}")  # places for values
FORMS = re.compile(r"\{\w+:[^{}|]*\|([^{}|]*)\}")  # words chosen by a count, the last for many


def choice_of_part(page: str) -> str:
    """Return the name that the choice of a page's parts has in the URL."""
    return CHOICES.get(page, f"{page}_part")


def page_path(name: str) -> Path:
    """Return the script of a page."""
    return PAGES / name / "page.py"


def open_page(name: str, said: Mapping[str, str] | None = None) -> None:
    """Go to another page, which is a step of the browser's history.

    Args:
        said: by the link of that page; by default everything that is in the URL.
    """
    said = dict(st.query_params.to_dict() if said is None else said)
    if name != (st.session_state.page or next(iter(ICONS))):
        said[LEAVES] = "1"
    st.switch_page(page_path(name), query_params=said)


@lru_cache(maxsize=len(LANGUAGES))
def _pages(language: str) -> dict[str, tuple[st.Page, ...]]:
    """Return all pages by their section; a run takes copies, since it marks the one that it shows."""
    known, front = words(language), next(iter(ICONS))
    pages = {
        known[f"nav.{section}"]: tuple(
            st.Page(page_path(name), title=known[f"nav.{name}"], icon=icon, url_path=name, default=name == front)
            for name, icon in names.items()
        )
        for section, names in SECTIONS.items()
    }
    hidden = (
        st.Page(page_path(name), title=known[f"{name}.heading"], icon=icon, url_path=name, visibility="hidden")
        for name, icon in HIDDEN.items()
    )
    pages[next(iter(pages))] += (*hidden,)
    return pages


def register() -> st.Page:
    """Show the navigation and return the page that was asked for; the first one is the front page."""
    pages = _pages(language()).items()
    return st.navigation({section: [copy(page) for page in named] for section, named in pages}, position="top")


def show_next(name: str) -> None:
    """Show the way to the page that is best read after this one: from all where one starts, to the first other one."""
    names = [other for other in ICONS if other == name or other not in SECTIONS["start"]]
    place = names.index(name) + 1 if name in names else 0
    if place < len(names):
        following = names[place]
        if st.button(t("nav.next", page=t(f"nav.{following}")), icon=ICONS[following], type="tertiary", key="nav_next"):
            open_page(following)


def in_hall() -> bool:
    """Tell whether the page is shown in the projector's frame; keeps it so from page to page."""
    if current(HALL) != "1":
        return False
    keep(HALL, "1", "")
    return True


@dataclass(frozen=True)
class Entry:
    """What can be found.

    Args:
        title: a page, a part of it, or a term.
        page, part: where it leads; the page's first part where `part` is empty.
        text: what it says of itself, without marks.
        also: other names that people search a page by.
    """

    title: str
    page: str
    part: str
    text: str
    also: str = ""


def _said(*texts: str) -> str:
    many = (FORMS.sub(r"\1", VALUES.sub("…", text)) for text in texts)
    return " ".join(" ".join(NO_WORDS.sub(" ", text).split()) for text in many)


def parts_in_words(page: str, language: str) -> list[str]:
    """Return the parts of a page, in the order of its words: those that have a name and prose of their own."""
    start, sections = f"{page}.part_", prose(language, page)
    names = (key.removeprefix(start) for key in words(language) if key.startswith(start))
    return [name for name in names if {f"look_{name}", name} & sections.keys()]


def _of_part(name: str, part: str) -> bool:
    """Tell whether a section or a word is of a part by its name, which has the part's between underscores or dots."""
    return re.search(rf"(?:^|[_.]){part}(?:[_.]|$)", name) is not None


def _of_page(page: str, language: str) -> Iterator[Entry]:
    """Yield a page, with all that no part of it says, and its parts."""
    said, parts = words(language), parts_in_words(page, language)
    own = {key.removeprefix(page): word for key, word in said.items() if re.match(rf"{page}[_.]", key)} | prose(
        language, page
    )
    title, shared = said[f"nav.{page}"], [name for name in own if not any(_of_part(name, part) for part in parts)]
    yield Entry(title, page, "", _said(*(own[name] for name in shared)), said.get(f"also.{page}", ""))
    for part in parts:
        named = [text for name, text in own.items() if _of_part(name, part)]
        yield Entry(f"{title} › {own[f'.part_{part}']}", page, part, _said(*named))


@lru_cache(maxsize=2)
def entries(language: str) -> tuple[Entry, ...]:
    """Return all that can be found in a language: pages and parts in the order of reading, then terms.

    A term leads to the first part that has it in its title or, where none has, that uses it.
    """
    places = tuple(entry for page in ICONS for entry in _of_page(page, language))
    said = words(language)
    terms = []
    for key, written in said.items():
        if key.startswith("term."):
            forms = written.split("|")
            using = [entry for form in forms for entry in _saying(places, form)] or list(places)
            meaning = said[f"meaning.{key.removeprefix('term.')}"]
            terms.append(Entry(forms[0], using[0].page, using[0].part, _said(meaning)))
    return (*places, *terms)


def _place(text: str, query: str) -> int | None:
    """Return where a query begins in a text: at the start of a word, where its letters are Latin."""
    start = r"\b" if query[:1].isascii() and query[:1].isalnum() else ""
    found = re.search(start + re.escape(query), text, re.IGNORECASE)
    return None if found is None else found.start()


def _saying(among: tuple[Entry, ...], query: str) -> list[Entry]:
    """Return the entries that say a query, those that have it in their title or another name first."""
    titled = [entry for entry in among if _place(f"{entry.title}, {entry.also}", query) is not None]
    return titled + [entry for entry in among if entry not in titled and _place(entry.text, query) is not None]


def find(query: str, language: str) -> list[Entry]:
    """Return what says a query, at most MOST_FOUND: those that have it in their title first, in the order of reading.

    Args:
        query: as typed; nothing is found for a blank one.
    """
    query = " ".join(query.split())
    return _saying(entries(language), query)[:MOST_FOUND] if query else []


def _around(entry: Entry, query: str) -> str:
    """Return what stands around a query in what an entry says, else its other names or the beginning."""
    found = _place(entry.text, " ".join(query.split()))
    text, place = (entry.also or entry.text, 0) if found is None else (entry.text, found)
    start, end = max(0, place - AROUND), place + 2 * AROUND
    return f"{'…' if start else ''}{text[start:end].strip()}{'…' if end < len(text) else ''}"


def show_search() -> None:
    """Show the search in the bar on top; its box and what it finds are there once it is open."""
    entry = st.session_state.pop(GOES, None)
    if entry is not None:
        _go(entry)
    with st.container(key="search"):
        box = st.popover(
            t("search.open"), icon=":material/search:", type="tertiary", key=OPEN, on_change="rerun", width="content"
        )
        if not box.open:
            return
        with box:
            registered("focus")(key="search_focus", data={"key": QUERY})
            query = st.text_input(
                t("search.label"), key=QUERY, live="250ms", max_chars=MOST_CHARACTERS, placeholder=t("search.example")
            )
            found = find(query, language())
            if query.strip() and not found:
                st.caption(t("search.nothing", query=plain(query)))
            with st.container(gap=None):
                for number, entry in enumerate(found):
                    icon, key = ICONS[entry.page], f"found_{number}"
                    st.button(entry.title, icon=icon, type="tertiary", key=key, on_click=_choose, args=(entry,))
                    st.caption(plain(_around(entry, query)))


def _choose(entry: Entry) -> None:
    st.session_state[OPEN], st.session_state[GOES] = False, entry


def _go(entry: Entry) -> None:
    said = st.query_params.to_dict()
    if entry.part:
        choice = choice_of_part(entry.page)
        st.session_state[f"{choice}@{entry.page}"] = entry.part
        said[choice] = entry.part
    open_page(entry.page, said)
