"""Terms that a first-year student does not know, explained where they stand: under the pointer, at a tap, by keyboard.

One file a language has them all: assets/words/glossary/LANGUAGE.po.
"""

import re
from functools import lru_cache
from html import escape

import streamlit as st

from pages.kit.experiment import covered, say
from pages.kit.navigation import in_hall
from pages.language import language, prose, strings, t, words

NO_TEXT = r"`[^`]*`|\$[^$]*\$|\[[^\]]*\]\([^)]*\)|<[^>]*>"  # code, formulas, links and tags are left alone
BOLD = re.compile(r"\*\*([^*\n]+)\*\*")  # beside a letter of Chinese, asterisks before a tag mean nothing


@lru_cache(maxsize=4)
def _terms(language: str) -> tuple[dict[str, str], re.Pattern[str]]:
    """Return the terms by each of their forms, and what finds the forms in Markdown, the longest first."""
    forms = {
        form.casefold(): key.removeprefix("term.")
        for key, written in words(language).items()
        if key.startswith("term.")
        for form in written.split("|")
    }
    longest_first = sorted(forms, key=len, reverse=True)
    found = "|".join(re.escape(form).replace(r"\[", r"\\?\[").replace(r"\]", r"\\?\]") for form in longest_first)
    return forms, re.compile(rf"{NO_TEXT}|(?<![A-Za-z-])({found})(?![A-Za-z-])", re.IGNORECASE)


def begin_page() -> None:
    """Let every term be explained again at its first use; a script run or a run of a part begins so."""
    st.session_state["explained"] = set()


def explained(markdown: str, done: set[str], language: str) -> str:
    """Return Markdown with HTML in which the first use of each term says what it means.

    Args:
        markdown: of our own, without anything that a person typed.
        done: the terms that were explained before on the page; those found are added.
    """
    forms, pattern = _terms(language)

    def mark(found: re.Match[str]) -> str:
        name = forms.get((found[1] or "").replace("\\", "").casefold())
        if name is None or name in done:
            return found[0]
        done.add(name)
        meaning = escape(words(language)[f"meaning.{name}"])
        return f'<dfn tabindex="0" aria-description="{meaning}">{found[0]}</dfn>'

    def strong(found: re.Match[str]) -> str:
        return f"<strong>{found[1]}</strong>" if "<dfn" in found[1] else found[0]

    return BOLD.sub(strong, pattern.sub(mark, markdown))


def show_prose(markdown: str, *, small: bool = False) -> None:
    """Write prose of our own, in which terms are explained; under a cover, what stands for it; in the hall, nothing.

    Args:
        markdown: without anything that a person typed.
        small: as a caption.
    """
    if in_hall():
        return
    if covered():
        say(markdown, small=small)
        return
    done = st.session_state.setdefault("explained", set())
    (st.caption if small else st.markdown)(explained(markdown, done, language()), unsafe_allow_html=True)


def terms_of(page: str, language: str) -> list[str]:
    """Return the terms that a page's prose and words use, in the glossary's order."""
    forms, pattern = _terms(language)
    own = (word for key, word in words(language).items() if key.partition(".")[0].startswith(page))
    found = (form for text in (*prose(language, page).values(), *own) for form in pattern.finditer(text) if form[1])
    used = {forms[form[1].replace("\\", "").casefold()] for form in found}
    return [name for name in dict.fromkeys(forms.values()) if name in used]


def offer_glossary(page: str) -> None:
    """Offer what the terms of a page mean, for those that stand in charts and on controls."""
    box = st.popover(
        t("glossary.heading"), icon=":material/menu_book:", type="tertiary", key=f"glossary {page}", on_change="rerun"
    )
    if box.open:
        with box:
            st.caption(t("glossary.note"))
            meanings, forms = strings("meaning"), strings("term")
            rows = (f"- **{forms[name].split('|')[0]}**: {meanings[name]}" for name in terms_of(page, language()))
            st.markdown("\n".join(rows))
