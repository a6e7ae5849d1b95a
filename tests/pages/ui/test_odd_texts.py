"""A text that leaves nothing but special tokens is answered in words on every part of every page; no page fails."""

import pytest

from pages.ui.language import words
from tests.helpers.pages import SCREENS, named, note, run
from tests.pages.ui.test_second_boxes import BOXES

DROPPED = ("\ufffd", "\u2061", "\u202e", "\0", "\U000e0041", "\u200b\ufeff")  # by the tokenizer of BERT and the like
BLANK = " \t\u3000\u2028\xa0"
SPECIAL = ("[MASK]", "[PAD]", "[UNK]", "[SEP]")
BOXES_OPEN = dict.fromkeys(("bert_hardest_open", "bert_each_layer_open", "glass_open", "gpt_guess_open"), "true")
DROPPING = {"translation": "translation-zh-en"}  # of pages whose usual model knows each byte
KNOWING_BYTES = ("gpt", "before")


@pytest.mark.parametrize(("page", "part"), SCREENS)
def test_a_text_without_a_token_of_its_own_is_answered_in_words(page: str, part: str) -> None:
    model = {"model": DROPPING[page]} if page in DROPPING else {}
    for text in DROPPED:
        app = run(page, text=text, **named(page, part), **model)
        assert not app.exception, ascii(text)
        if page not in KNOWING_BYTES:
            assert words("en")["text.nothing_known"] in note(app), ascii(text)
        assert app.text_input[0].value == text  # what was typed is not lost
    blank = run(page, text=BLANK, **named(page, part), **model)
    assert not blank.exception
    assert words("en")["text.empty"] in note(blank)


@pytest.mark.parametrize(("page", "part"), SCREENS)
def test_a_text_of_special_tokens_alone_is_read(page: str, part: str) -> None:
    for text in SPECIAL:
        assert not run(page, text=text, **named(page, part), **BOXES_OPEN).exception, text


@pytest.mark.parametrize(("page", "query", "box", "_"), BOXES)
def test_a_second_box_says_what_it_cannot_read(page: str, query: dict[str, str], box: str, _: str) -> None:
    for text in (*DROPPED, BLANK, *SPECIAL):
        twice = f"{text}\n{text}" if box == "masks_lines" else text
        assert not run(page, **query, **{box: twice}).exception, ascii(text)


@pytest.mark.parametrize("language", ["en", "zh"])
def test_a_bert_whose_text_has_no_word_to_hide_says_so(language: str) -> None:
    for part, box in (("fill", "bert_hardest_open"), ("layers", "bert_each_layer_open")):
        app = run("bert", lang=language, bert_part=part, text="[MASK]", **{box: "true"})
        assert not app.exception
        assert words(language)["bert.no_word"] in [one.value for one in app.info]
