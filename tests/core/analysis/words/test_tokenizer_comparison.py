"""One sentence by every tokenizer: places lead back to the text, and what is lost is really lost."""

import re

import pytest

from tests.helpers.browser import BUNDLE
from transformer_core.analysis.arrays import arrays_of
from transformer_core.analysis.words.tokenizer_comparison import Cut, Cuts, cut, cut_sentence, learned_tokenizer

TEXTS = {
    "plain": "I expected a Masterpiece, but the story was dull.",
    "chinese": "这部电影很无聊，但结局不错。",
    "emoji": "👨\u200d👩\u200d👧\u200d👦 🇨🇳",
    "hebrew": "שלום עולם",
    "control": "a\x00b\tc\u202ed",
    "blanks": "  two  blanks ",
    "long": "x" * 2_000,
    "special": "[MASK] good [PAD]",
    "marks": "cafe\u0301 ﬁ Ώ",
}


def cuts(text: str) -> Cuts:
    return cut_sentence(bundle=BUNDLE, text=text, corpus="both", vocab_size=2_500)


@pytest.mark.parametrize("text", TEXTS.values(), ids=TEXTS.keys())
def test_whatever_is_no_blank_stands_in_a_token_of_every_tokenizer(text: str) -> None:
    found = cuts(text)
    for one in found.cuts:
        covered = {place for start, end in zip(one.starts, one.ends, strict=True) for place in range(start, end)}
        missing = {character for place, character in enumerate(text) if place not in covered}
        assert all(character.isspace() or not character.isprintable() for character in missing), one.name
        assert one.n_tokens == sum(not special for special in one.special)
    assert found.pairs == tuple(one.n_tokens**2 for one in found.cuts)


@pytest.mark.parametrize("text", TEXTS.values(), ids=TEXTS.keys())
def test_nothing_is_lost_exactly_where_the_text_comes_back(text: str) -> None:
    for one in cuts(text).cuts:
        if "[" not in text:
            assert (one.decoded == text) == (not one.losses), one.name
        assert ("unknown" in one.losses) == any(one.unknown)


def by_name(text: str) -> dict[str, Cut]:
    return {one.name: one for one in cuts(text).cuts}


def test_losses_are_named() -> None:
    assert by_name(TEXTS["plain"])["model"].losses == ("case",)
    assert by_name(TEXTS["plain"])["word"].losses[0] == "unknown"
    assert by_name(TEXTS["blanks"])["wordpiece"].losses == ("blanks",)
    assert by_name(TEXTS["control"])["model"].losses == ("characters",)
    assert all(by_name(text)["bpe"].losses == () for name, text in TEXTS.items() if name != "special")


def test_unknown_tokens_keep_what_they_hide() -> None:
    word = by_name("a masterpiece")["word"]
    assert (word.labels[1], word.unknown[1], word.n_unknown) == ("masterpiece", True, len("masterpiece"))


def test_bytes_of_one_character_are_marked_and_spell_it() -> None:
    bpe = by_name("👨 a")["bpe"]
    shared = [place for place, part in enumerate(bpe.shared) if part]
    assert {(bpe.starts[place], bpe.ends[place]) for place in shared} == {(0, 1)}
    assert bytes.fromhex("".join(bpe.spelled[place] for place in shared)).decode() == "👨"
    assert bytes.fromhex("".join(bpe.spelled)).decode() == "👨 a"
    assert not any(by_name("👨 a")["character"].shared)


def test_special_tokens_do_not_count() -> None:
    model = by_name("good film")["model"]
    assert (model.labels[0], model.special[0], model.spelled[0], model.n_tokens) == ("[CLS]", True, "", 2)


def test_learned_vocabularies_are_bounded_and_the_same_every_time() -> None:
    for kind in ("bpe", "wordpiece", "word", "character"):
        tokenizer = learned_tokenizer(kind, "en", 600)
        assert tokenizer.vocab_size <= 600
        again = learned_tokenizer.__wrapped__(kind, "en", 600)
        assert cut("again", again, TEXTS["plain"]).ids == cut("first", tokenizer, TEXTS["plain"]).ids


def test_all_of_it_can_be_saved() -> None:
    arrays = arrays_of(cuts(TEXTS["emoji"]))
    assert arrays["cuts.1.ids"].shape == arrays["cuts.1.starts"].shape
    assert not any(array.dtype == object for array in arrays.values())


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"corpus": "fr"}, "corpus='fr' is unknown; it must be one of 'both'"),
        ({"vocab_size": 100}, "vocab_size=100 must be from 300 to 8000"),
        ({"text": "a\ud83d"}, "text must be valid Unicode"),
    ],
)
def test_errors_say_what_is_needed(options: dict, message: str) -> None:
    arguments = {"bundle": BUNDLE, "text": "a", "corpus": "en", "vocab_size": 300} | options
    with pytest.raises(ValueError, match=re.escape(message)):
        cut_sentence(**arguments)
