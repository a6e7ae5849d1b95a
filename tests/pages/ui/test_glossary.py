"""Terms are explained in both languages, in one sentence each, at their first use on a page."""

import re

import pytest

from pages.ui.glossary import explained, terms_of
from pages.ui.language import ASSETS, LANGUAGES, prose, words

PAGES = sorted(path.parent.name for path in (ASSETS / "words").glob("*/en.md"))
MUST_BE_THERE = {"pre_activation", "logits", "rollout", "rho", "trustworthiness", "nats"}


def marked(markdown: str) -> list[str]:
    """Return the words that are explained in a text."""
    return re.findall(r'<dfn tabindex="0" aria-description="[^"<>]+">([^<>]+)</dfn>', markdown)


def terms(language: str) -> dict[str, str]:
    """Return the meaning of each term by its name."""
    return {key[8:]: word for key, word in words(language).items() if key.startswith("meaning.")}


@pytest.mark.parametrize(("language", "end"), [("en", "."), ("zh", "。")])
def test_a_meaning_is_one_sentence(language: str, end: str) -> None:
    assert terms(language).keys() >= MUST_BE_THERE
    assert {name for name, said in terms(language).items() if not said.endswith(end) or f"{end} " in said} == set()
    assert {name for name, said in terms(language).items() if said.count("。") > 1} == set()


@pytest.mark.parametrize("language", LANGUAGES)
def test_every_term_is_used_on_a_page(language: str) -> None:
    used = {name for page in PAGES for name in terms_of(page, language)}
    assert terms(language).keys() == used


@pytest.mark.parametrize("language", LANGUAGES)
@pytest.mark.parametrize("page", PAGES)
def test_prose_explains_each_of_its_terms_once(page: str, language: str) -> None:
    done: set[str] = set()
    text = "\n\n".join(explained(part, done, language) for part in prose(language, page).values())
    assert len(marked(text)) == len(done)
    assert done <= set(terms_of(page, language))
    assert not marked(explained(text, done, language).replace(text, ""))


def test_only_the_first_use_is_marked_and_the_longest_term_wins() -> None:
    done: set[str] = set()
    assert marked(explained("Cosine similarity, a cosine and two logits; logits.", done, "en")) == [
        "Cosine similarity",
        "logits",
    ]
    assert done == {"cosine", "logits"}
    assert explained("余弦相似度与 logit", set(), "zh").count("<dfn") == 2


def test_bold_words_stay_bold_where_chinese_letters_stand_beside_them() -> None:
    found = explained("是**词**和**交叉注意力**，而**梯度**不同 **词**", set(), "zh")
    assert found.count("<strong><dfn") == found.count("</dfn></strong>") == 2
    assert found.count("**词**") == 2
    assert "**<" not in found


@pytest.mark.parametrize("text", ["`softmax`", r"$\mathrm{softmax}$", "[softmax](#x)", "softmax-like", "presoftmax"])
def test_code_formulas_links_and_parts_of_words_are_left_alone(text: str) -> None:
    assert explained(text, set(), "en") == text
