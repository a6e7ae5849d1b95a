"""English and Chinese say the same things, terms are explained, and numbers are written as a person reads them."""

import math
import re
from pathlib import Path

import polib
import pytest
import torch

from pages.kit.glossary import explained, terms_of
from pages.kit.number_format import significant, significant_in_tex
from pages.language import ASSETS, LANGUAGES, Word, prose, words
from transformer_core.layers.feed_forward import ACTIVATIONS
from transformer_core.sites import SITES

PAGES = sorted(path.parent.name for path in (ASSETS / "words").glob("*/en.md"))
SOURCES = [path for path in (ASSETS.parent / "pages").glob("**/*.py") if "figures" not in str(path)]


def places(text: str) -> set[str]:
    """Return the names in curly brackets."""
    return set(re.findall(r"{(\w+)(?::[^{}|]*)?}", text))


def counted(text: str) -> set[str]:
    """Return the names whose value chooses between two forms of a word."""
    return set(re.findall(r"{(\w+):[^|}]*\|", text))


def test_both_languages_have_the_same_keys_with_the_same_places() -> None:
    english, chinese = words("en"), words("zh")
    assert english.keys() == chinese.keys()
    for key, word in english.items():
        assert word.strip(), f"{key} is empty in English"
        assert chinese[key].strip(), f"{key} is empty in Chinese"
        assert places(word) == places(chinese[key]), f"{key} has other places in Chinese"
        assert counted(word) <= places(word), f"{key} counts what it does not say"
        assert not counted(chinese[key]), f"{key}: Chinese has one form for all counts"


def test_no_word_is_defined_twice() -> None:
    for path in (ASSETS / "words").glob("*/*.po"):
        polib.pofile(str(path), check_for_duplicates=True)


@pytest.mark.parametrize("page", PAGES)
def test_both_languages_have_the_same_sections(page: str) -> None:
    english, chinese = prose("en", page), prose("zh", page)
    assert english.keys() == chinese.keys()
    for name in english:
        assert english[name], f"{page}: {name} is empty in English"
        assert chinese[name], f"{page}: {name} is empty in Chinese"
        assert places(english[name]) == places(chinese[name])
        assert counted(english[name]) <= places(english[name])
        assert not counted(chinese[name])


@pytest.mark.parametrize(
    ("count", "said"),
    [(1, "1 row is"), ("1", "1 row is"), (0, "0 rows are"), (2, "2 rows are"), ("1.0", "1.0 rows are")],
)
def test_a_word_has_the_form_of_its_count(count: object, said: str) -> None:
    assert Word("{count} {count:row is|rows are}").format(count=count) == said
    assert Word("{count:the row|all {count} rows}, {width:.0f} {width:row|rows}").format(count=1, width=1.0) == (
        "the row, 1 row"
    )


@pytest.mark.parametrize(
    ("value", "written"),
    [
        ("-0.5", "−0.5"),
        (f"{-0.123:.1%}", "−12.3%"),
        ("-3 %", "−3 %"),
        ("**-0.5**", "**−0.5**"),
        ("0.5", "0.5"),
        ("-5", "-5"),
        ("-a", "-a"),
    ],
)
def test_a_number_below_zero_has_a_minus_and_a_token_its_own_sign(value: str, written: str) -> None:
    assert Word("{value}").format(value=value) == written
    assert Word("{value:+.2f}").format(value=-0.5) == "−0.50"


def test_every_language_has_every_page() -> None:
    for language in LANGUAGES:
        assert sorted(path.parent.name for path in (ASSETS / "words").glob(f"*/{language}.md")) == PAGES


def test_meanings_of_sites_are_those_of_the_table() -> None:
    for leaf, site in SITES.items():
        assert words("en")[f"site.{leaf}"] == site.meaning


@pytest.mark.parametrize("path", SOURCES, ids=lambda path: path.name)
def test_every_key_that_a_page_asks_for_is_there(path: Path) -> None:
    asked = set(re.findall(r"""\bt\(\s*"([\w.]+)["]""", path.read_text(encoding="utf-8")))
    assert asked <= words("en").keys()


def test_every_key_is_asked_for_somewhere() -> None:
    text = "\n".join(path.read_text(encoding="utf-8") for path in SOURCES)
    built = tuple(re.findall(r"""["']((?:[a-z_]+\.)+[a-z_]*){""", text))
    built += tuple(f"{prefix}." for prefix in re.findall(r'strings\("(\w+)"[,)]', text))
    for name in re.findall(r'(?:model_page|Page)\(\s*"(\w+)"', text):
        built += (f"{name}.heading", f"{name}.part")
    quoted = set(re.findall(r"""["']([\w.]+)["']""", text))
    unused = {key for key in words("en").keys() - quoted if not key.startswith(built)}
    assert not unused


def test_a_key_stands_in_one_file() -> None:
    for language in LANGUAGES:
        files = sorted((ASSETS / "words").glob(f"*/{language}.po"))
        keys = [entry.msgid for path in files for entry in polib.pofile(str(path))]
        assert len(keys) == len(set(keys))
        assert {path.parent for path in files} == {path.parent for path in (ASSETS / "words").glob("*/en.po")}


@pytest.mark.parametrize("language", LANGUAGES)
def test_nothing_is_counted_from_1(language: str) -> None:
    said = [text for page in PAGES for text in prose(language, page).values()] + list(words(language).values())
    numbered = r"\b(?:layers?|heads?|positions?|dimensions?) (?:one|1)\b(?!\.\d)|(?:层|头|位置|维度) ?1(?=[的，。、）])"
    from_1 = re.compile(numbered + "|counted from 1|从 1 数起|第 {layer} 层", re.IGNORECASE)
    assert not [text for text in said if from_1.search(text)]
    assert "encoder.layer0" in prose(language, "home")["why"]


def not_bold(text: str) -> list[str]:
    """Return what stands between two pairs of stars that Markdown would not make bold.

    Beside a letter, the stars must not have a sign on their inner side: CommonMark reads them as stars then.
    """
    pieces = re.sub(r"{[^}]*}|`[^`]*`", "x", text).split("**")
    inner = zip(pieces, pieces[1:], pieces[2:], strict=False)
    return [
        bold
        for number, (left, bold, right) in enumerate(inner)
        if number % 2 == 0
        and ((left[-1:].isalnum() and not bold[0].isalnum()) or (right[:1].isalnum() and not bold[-1].isalnum()))
    ]


@pytest.mark.parametrize("language", LANGUAGES)
def test_stars_make_words_bold(language: str) -> None:
    assert not_bold("是**词。**的") == ["词。"]
    assert not_bold("是**（词**的") == ["（词"]
    assert not_bold("是**词**。**词。** 的") == []
    said = [*words(language).values(), *(text for page in PAGES for text in prose(language, page).values())]
    said += [path.read_text(encoding="utf-8") for path in ASSETS.glob("checkpoints/*/card*.md")]
    assert [bold for text in said for paragraph in text.split("\n\n") for bold in not_bold(paragraph)] == []


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


@pytest.mark.parametrize(
    ("number", "written"),
    [
        (0.0, "0"),
        (-0.0, "0"),
        (0.61, "0.61"),
        (0.0979, "0.098"),
        (0.00141, "0.0014"),
        (3.1e-7, "3.1×10⁻⁷"),
        (-3.1e-17, "−3.1×10⁻¹⁷"),
        (16.3, "16"),
        (99.6, "100"),
        (-163.2, "−163"),
        (12_340.4, "12,340"),
        (4.2e9, "4.2×10⁹"),
        (math.inf, "∞"),
        (-math.inf, "−∞"),
        (math.nan, "–"),
    ],
)
def test_a_number_is_written_with_two_digits_that_count(number: float, written: str) -> None:
    assert significant(number) == written


def test_digits_and_sign_are_chosen() -> None:
    assert significant(1234.56, 9) == "1234.56"
    assert significant(2.0) == "2"
    assert [significant(number, 1, sign=True) for number in (0.04, 0.0, -4e-9)] == ["+0.04", "0", "−4×10⁻⁹"]


def test_the_same_in_a_formula() -> None:
    assert significant_in_tex(1e-5, 7) == r"1\cdot 10^{-5}"
    assert significant_in_tex(-3.14e-7) == r"-3.1\cdot 10^{-7}"
    assert significant_in_tex(12_340.0) == "12{,}340"
    assert significant_in_tex(0.25, sign=True) == "+0.25"


def nats_a_character(name: str) -> float:
    """Return the loss of a shipped model of characters as its card has it."""
    card = (ASSETS / "checkpoints" / name / "card.md").read_text(encoding="utf-8")
    return float(re.search(r"([0-9.]+) nats a character", card)[1])


def test_figures_in_prose_are_what_is_computed() -> None:
    x = torch.linspace(-5, 5, 100_001, dtype=torch.double)
    relu, gelu = ACTIVATIONS["relu"](x), ACTIVATIONS["gelu"](x)
    twice = torch.tensor([1.0, 0.0]).double()  # the surest softmax of two classes, read as scores
    figures = {
        ("words/since", "po", "−0.17"): (gelu.min(), 0.005),
        ("lectures/twelve_scenes", "md", " 0.17"): ((relu - gelu).abs().max(), 0.005),
        ("words/train", "po", " 0.31"): (-twice.log_softmax(0)[0], 0.005),
    }
    for (folder, kind, said), (value, apart) in figures.items():
        assert float(value) == pytest.approx(float(said.replace("−", "-")), abs=apart)
        for language in LANGUAGES:
            assert said in (ASSETS / folder / f"{language}.{kind}").read_text(encoding="utf-8"), (folder, language)
    assert abs(nats_a_character("lm-gru") - nats_a_character("lm-lstm")) < 0.04
