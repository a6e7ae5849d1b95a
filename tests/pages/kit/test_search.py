"""The search finds pages, parts and terms by what they say, and leads to the page and the part."""

import re

import pytest
from streamlit.util import calc_hash

from pages.kit.navigation import ICONS, MOST_FOUND, entries, find
from pages.language import LANGUAGES, words
from tests.helpers.pages import ALL_SCREENS, first_screen, told


@pytest.mark.parametrize("language", LANGUAGES)
def test_every_page_every_part_and_every_term_can_be_found(language: str) -> None:
    found, said = entries(language), words(language)
    places = {(entry.page, entry.part) for entry in found}
    parts = {(page, part) for page, part in ALL_SCREENS if page in ICONS and part}
    assert {place for place in places if place[1]} == parts
    assert {page for page, _ in places} == set(ICONS)
    for key, written in said.items():
        if key.startswith("term."):
            assert written.split("|")[0] in {entry.title for entry in found}
    for entry in found:
        assert not re.search(r"\{[a-z_]+[:}]", entry.text)  # places for values
        assert entry in find(entry.title, language) or len(find(entry.title, language)) == MOST_FOUND


@pytest.mark.parametrize(
    ("language", "query", "page", "part"),
    [
        ("en", "gradient", "before", "reach"),
        ("en", "dropout", "train", ""),
        ("en", "bleu", "before", "length"),
        ("zh", "梯度", "before", "reach"),
        ("zh", "dropout", "train", ""),
        ("zh", "BLEU", "before", "length"),
        ("zh", "束搜索", "translation", "beam"),
        ("en", "self-attention", "attention", ""),
        ("en", "positional encoding", "positions", ""),
        ("zh", "学习率", "train", ""),
    ],
)
def test_a_word_is_found_where_it_is_said(language: str, query: str, page: str, part: str) -> None:
    assert (page, part) in [(entry.page, entry.part) for entry in find(query, language)]


def test_what_is_nowhere_is_not_found_and_a_title_comes_first() -> None:
    assert find("   ", "en") == []
    assert find("zebra crossing", "en") == []
    first, *_ = find("beam search", "en")
    assert (first.page, first.part) == ("translation", "beam")
    assert not [entry for entry in find("rank", "en") if "frank" in entry.text.lower() and "rank" not in entry.text]


@pytest.mark.parametrize("language", LANGUAGES)
def test_what_was_found_opens_its_page_and_part(language: str) -> None:
    app = first_screen("tokens", lang=language, search_open="on")
    app.session_state["search_open"] = True
    app.run()
    app.text_input(key="search_query").set_value("beam" if language == "en" else "束搜索").run()
    app.button(key="found_0").click().run()
    assert not app.exception
    assert app.button_group(key="translation_part@translation").value == "beam"
    app.session_state["search_open"] = True
    app.run()
    app.text_input(key="search_query").set_value("zebra").run()
    assert words(language)["search.nothing"].format(query="zebra") in told(app)


def test_a_part_that_was_found_gives_way_to_the_one_that_is_chosen_next() -> None:
    app = first_screen("tokens", lang="en")
    app.session_state["search_open"] = True
    app.run()
    app.text_input(key="search_query").set_value("masking recipe").run()
    app.button(key="found_0").click().run()
    assert app.query_params["bert_part"] == "recipe"
    app._page_hash = calc_hash("bert")  # the test's browser would ask for the page before again
    app.button_group(key="bert_part@bert.1").set_value("segments").run()
    assert app.query_params["bert_part"] == "segments"
