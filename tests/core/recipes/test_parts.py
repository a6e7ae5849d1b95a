"""What recipes are made of: their texts, cards in two languages, poems in form, measures of characters."""

import gzip
import hashlib
import itertools
import json
import math
import random
import re
from string import Formatter

import pytest
import torch

from tests.helpers import ROOT
from transformer_core.bundle import Bundle
from transformer_core.config import ModelConfig
from transformer_core.evaluation.gpt import measure_text, read_text
from transformer_core.models import Gpt
from transformer_core.recipes import gpt_poem, lm, sentiment, seq2seq, translation
from transformer_core.recipes.captions import MARKS, Sentences, mended, sentence_pairs
from transformer_core.recipes.gpt import written_together
from transformer_core.recipes.gpt_poem import (
    GROUPS,
    even_ends,
    in_form,
    lines_of,
    read_poems,
    rhyme_groups,
    rhymes,
    shuffled_ends,
)
from transformer_core.recipes.texts import (
    CORPORA,
    Say,
    card_sentences,
    card_texts,
    data_name,
    read_opinions,
    read_sections,
    signed,
)
from transformer_core.recipes.translation import read_objects, simplifier
from transformer_core.text import Tokenizer

ANIMALS, PLACES = ("dog", "cat", "bird", "horse", "fish"), ("river", "house", "tree", "hill", "road", "park")
CAPTIONS = [f"A {animal} is near the {place} ." for animal in ANIMALS for place in PLACES]
STORY = "Once there was a dog. It ran to the hill. It saw a bird! The bird flew away."


def test_half_of_the_pairs_belong_together_and_the_rest_are_of_other_groups() -> None:
    groups = tuple(tuple(f"{group} {number}" for number in range(5)) for group in range(200))
    pairs = sentence_pairs(Sentences(groups, groups), random.Random(0))
    assert len(pairs) == 200 + 4 * 200
    assert all((first.split()[0] == second.split()[0]) == together for first, second, together in pairs)
    assert 0.45 < sum(together for _, _, together in pairs) / len(pairs) < 0.55
    following = [(first, second) for first, second, together in pairs[200:] if together]
    assert all(int(second.split()[1]) == int(first.split()[1]) + 1 for first, second in following)


def test_every_story_is_told_four_times_and_every_caption_once() -> None:
    text = written_together([STORY], CAPTIONS, seed=0)
    assert text.count(STORY) == 4
    assert all(text.count(caption) == 1 for caption in CAPTIONS)


def test_chinese_becomes_simplified_and_broken_lines_are_named(tmp_path) -> None:
    pytest.importorskip("opencc")
    assert simplifier()("請讓別人去做。") == "请让别人去做。"
    (tmp_path / "a.jsonl").write_text('{"en": "a", "zh": "b"}\n{"en": 1, "zh": "b"}\n')
    with pytest.raises(ValueError, match=r"a.jsonl, line 2: en and zh must be texts"):
        read_objects(tmp_path / "a.jsonl", "en", "zh")


TEXT = "to be, or not to be: that is the question\n" * 120


def test_gpt_char_learned_from_half_as_many_characters() -> None:
    own = lm.recurrent("gru", n_parameters=1_800_000, quick=False)
    assert own.seen == 3_125 * 64 * 128
    assert lm.gpt_of_characters(quick=False).seen == 3_124 * 32 * 128


def a_bundle(text: str, max_len: int = 8) -> Bundle:
    tokenizer = Tokenizer.train("character", [text], vocab_size=100, min_frequency=1, template="none")
    torch.manual_seed(0)
    config = ModelConfig(vocab_size=tokenizer.vocab_size, d_model=16, n_heads=2, d_ff=16, n_layers=1, max_len=max_len)
    return Bundle("tiny", Gpt(config).eval(), tokenizer)


@pytest.mark.parametrize("length", [2, 8, 9, 10, 17, 30])
def test_every_token_but_the_first_is_foreseen_once_whatever_the_batch(length: int) -> None:
    bundle, text = a_bundle(TEXT), TEXT[:length]
    one, many = measure_text(bundle, text, batch_size=1), measure_text(bundle, text, batch_size=7)
    assert one == many
    assert one["tokens"] == length - 1
    assert one["perplexity"] == pytest.approx(math.exp(one["loss_nats"]), rel=1e-3)


def test_bytes_are_counted_in_utf_8() -> None:
    measured = measure_text(a_bundle("好的，好的。"), "好的，好的。")
    assert measured["nats_a_byte"] == pytest.approx(measured["loss_nats"] * 5 / 18, abs=1e-3)


def test_texts_that_cannot_be_measured_are_refused(tmp_path) -> None:
    with pytest.raises(ValueError, match="text has 1 tokens; at least 2"):
        measure_text(a_bundle(TEXT), "t")
    (tmp_path / "a.txt").write_bytes(b"ok \xff")
    with pytest.raises(ValueError, match=r"a.txt is not UTF-8: invalid start byte at byte 3"):
        read_text(tmp_path / "a.txt")
    (tmp_path / "b.txt.gz").write_bytes(b"no gzip")
    with pytest.raises(ValueError, match=r"b.txt.gz: the gzip data is broken"):
        read_text(tmp_path / "b.txt.gz")


POEM = "春风吹落日，秋月照空山。客路三千里，人家一水间。"
LONG = "白日依山尽，黄河入海流。欲穷千里目，更上一层楼。" * 2


@pytest.mark.parametrize("poem", [POEM, LONG, POEM.replace("，", "。"), LONG.replace("黄河", "江河")])
def test_four_or_eight_equal_lines_are_in_form(poem: str) -> None:
    assert in_form(poem)
    assert {len(line) for line in lines_of(poem)} == {5}


@pytest.mark.parametrize(
    "poem",
    [
        POEM[:-1],  # the last line is not closed
        POEM[:12],  # two lines
        POEM + POEM[:12],  # six lines
        POEM.replace("吹", ""),  # a line of four
        POEM.replace("吹", "吹吹"),
        "",
        "……",
    ],
)
def test_what_is_cut_off_or_of_other_lines_is_not(poem: str) -> None:
    assert not in_form(poem)


def test_a_line_of_six_characters_is_not_read(tmp_path) -> None:
    with gzip.open(tmp_path / "a.txt.gz", "wt", encoding="utf-8") as file:
        file.write(f"{POEM}\n\n{LONG}\n{POEM[:-1]}\n")
    with pytest.raises(ValueError, match=r"a\.txt\.gz, line 3: four or eight lines of equal length are needed"):
        read_poems(tmp_path, "a.txt.gz")


def test_characters_rhyme_that_are_read_with_one_group_of_finals() -> None:
    pytest.importorskip("pypinyin")
    assert even_ends(POEM) == ["山", "间"]
    assert rhymes(["山", "间"])
    assert rhymes(["流", "楼"])
    assert rhymes(["东", "情", "风"])  # ong, ing and eng are one group
    assert not rhymes(["山", "楼"])
    assert not rhymes(["山", "。"])
    assert not rhymes(["。", "。"])
    assert not rhymes([])
    an = next(number for number, finals in enumerate(GROUPS) if "uan" in finals.split())
    assert rhyme_groups(["山", "远", "，"]) == [an, an, None]


def test_every_final_is_in_one_group() -> None:
    finals = [final for group in GROUPS for final in group.split()]
    assert len(GROUPS) == 13
    assert len(finals) == len(set(finals)) == len(gpt_poem.GROUP_OF)


def test_shuffling_deals_the_same_ends_to_poems_of_the_same_lengths() -> None:
    poems = [["山", "间"], ["流", "楼", "秋", "舟"], ["风", "中"]]
    dealt = shuffled_ends(poems, seed=0)
    assert [len(poem) for poem in dealt] == [2, 4, 2]
    assert sorted(itertools.chain(*dealt)) == sorted(itertools.chain(*poems))
    assert dealt == shuffled_ends(poems, seed=0)
    assert any(shuffled_ends(poems, seed) != dealt for seed in range(1, 5))


SOURCE = "".join(path.read_text(encoding="utf-8") for path in (ROOT / "transformer_core" / "recipes").glob("*.py"))
KINDS = {
    **{f"translation-{pair}": settings.kinds for pair, settings in translation.PAIRS.items()},
    "seq2seq-en-fr": seq2seq.PAIR.kinds,
    "seq2seq-en-fr-plain": seq2seq.PLAIN_PAIR.kinds,
    "bert": ("bert",),
    "gpt": ("gpt",),
    **{name: ("gpt", name) for name in ("gpt-today", "gpt-draft")},
    "gpt-poem": ("gpt-poem",),
    "gpt-char": ("characters", "gpt-char"),
    **{f"lm-{unit}": ("characters", "recurrent", unit) for unit in lm.NETWORKS},
    **{name: ("classifier", name) for name in sentiment.NAMES.values()},
}


def places(text: str) -> list[tuple[str, str]]:
    """Return the places for values in a text, with how each value is written."""
    return sorted((name, spec or "") for _, name, spec, _ in Formatter().parse(text) if name is not None)


def pattern(text: str) -> str:
    """Return the regular expression of a text with any values put in."""
    return ".*".join(re.escape(plain) for plain, *_ in Formatter().parse(f"{text}{{}}"))


def test_both_languages_have_the_same_texts_and_write_the_same_values_in_the_same_way() -> None:
    english, own = (card_texts(language) for language in ("en", "zh"))
    assert english.keys() == own.keys()
    assert len(english) > 100
    assert [name for name in english if places(english[name]) != places(own[name])] == []


def test_every_text_of_the_cards_is_asked_for_and_every_one_that_is_asked_for_is_there() -> None:
    asked = set(re.findall(r"\bsay\(\s*[\"']([^\"']+)[\"']", SOURCE))
    families = set(re.findall(r"\bf[\"'](\w+)\.\{", SOURCE))
    literals = set(re.findall(r"[\"']([\w.-]+)[\"']", SOURCE))
    kinds = {kind for kinds in KINDS.values() for kind in kinds}
    assert asked <= card_texts("en").keys()
    for name in card_texts("en"):
        kind, _, part = name.partition(".")
        assert name in literals or kind in families or (kind in kinds and part in literals), name


@pytest.mark.parametrize("name", KINDS)
@pytest.mark.parametrize(("language", "file"), [("en", "card.md"), ("zh", "card.zh.md")])
def test_the_shipped_cards_say_what_recipes_write(name: str, language: str, file: str) -> None:
    card, texts = (ROOT / "assets" / "checkpoints" / name / file).read_text(encoding="utf-8"), card_texts(language)
    assert re.fullmatch(pattern(texts["card"]) + "\n", card, re.DOTALL)
    for part in ("title", "introduction", "data", "licence", "quality", "shown"):
        own = next(text for kind in reversed(KINDS[name]) if (text := texts.get(f"{kind}.{part}")))
        assert re.search(pattern(own), card, re.DOTALL), part
    limits = [pattern(text) for kind in KINDS[name] if (text := texts.get(f"{kind}.limits"))]
    own, heading, _ = card.partition(f"\n\n{texts['lens.heading']}\n")
    assert re.search("\n\n" + "\n".join(limits) + "\n$", f"{own}\n" if heading else card)
    assert not heading or re.search("\n\n" + pattern(texts["lens"]) + "\n$", card, re.DOTALL)


def test_a_text_is_said_in_the_language_of_the_card() -> None:
    assert Say("en")("cost.cores", count=96) == "96 cores"
    assert Say("zh")("cost.cores", count=96) == "96 个处理器核心"
    assert (data_name("online reviews", "zh"), data_name("my own", "zh")) == ("网上评论", "my own")
    with pytest.raises(ValueError, match=r"cards.zh.md has no \[cost.of_nothing\]"):
        Say("zh")("cost.of_nothing", count=1)
    with pytest.raises(ValueError, match=r"cards.en.md has no \[bert.choice\]"):
        Say("en").all_of(["bert"], "choice")


def test_a_model_has_the_limits_of_all_its_kinds_and_of_other_parts_its_own() -> None:
    limits = Say("en").all_of(translation.PAIRS["zh-en"].kinds, "limits")
    assert [text.count("\n") + 1 for text in limits] == [1, 2]
    introductions = Say("en").all_of(translation.PAIRS["en-de"].kinds, "introduction")
    assert ["the learning rate of section 5.3" in text for text in introductions] == [False, True]


@pytest.mark.parametrize(
    ("written", "why"),
    [
        ("good\n[bad]\nbad", "'good' needs a heading such as [good] above it"),
        ("[good]\ngood\n\n[good]\ngreat", "[good] is there twice"),
        ("[good]\n\n[bad]\nbad", "[good] has no text below it"),
    ],
)
def test_a_broken_file_of_sections_is_named(tmp_path, written: str, why: str) -> None:
    (tmp_path / "words.txt").write_text(written, encoding="utf-8")
    with pytest.raises(ValueError, match=re.escape(f"words.txt: {why}")):
        read_sections(tmp_path / "words.txt")


def test_sections_keep_lines_and_blanks_and_what_stands_in_brackets_within_a_line(tmp_path) -> None:
    (tmp_path / "a.txt").write_text("\n[one.two]\n\n    [MASK] is\n\nit\n\n[b c]\nd\n", encoding="utf-8")
    assert read_sections(tmp_path / "a.txt") == {"one.two": "    [MASK] is\n\nit", "b c": "d"}


def test_a_sentence_that_is_blank_or_has_no_label_is_named(tmp_path) -> None:
    (tmp_path / "a.txt").write_text("One.\n\nTwo.\n", encoding="utf-8")
    with pytest.raises(ValueError, match=r"a\.txt, line 2: '' must be a sentence without blanks around it"):
        card_sentences("a.txt", tmp_path)
    with pytest.raises(ValueError, match=r"a\.txt: 'One\.' must begin with one of '- ', '\+ '"):
        signed("One.", "a.txt")


@pytest.mark.parametrize(
    ("name", "count", "digest"),
    [
        ("opinions.en.txt", 100, "ae345d07637670d0"),
        ("opinions.zh.txt", 100, "1d42154e76776dc4"),
        ("everyday.zh.txt", 30, "e4680922762370ac"),
        ("everyday.en.txt", 30, "13ff11a2734450e8"),
        ("captions.en.txt", 10, "16e9ff01edadb078"),
        ("first_lines.zh.txt", 10, "6a48d32812356137"),
        ("hidden.en.txt", 10, "ae1c7512d46b95d3"),
        ("beginnings.en.txt", 10, "6f5b3d592ccf9211"),
    ],
)
def test_cards_report_on_the_sentences_that_were_written_before_the_training(name, count, digest) -> None:
    found = read_opinions(name[9:11]) if name.startswith("opinions") else card_sentences(name)
    assert len(found) == count
    assert hashlib.sha256(json.dumps(found, ensure_ascii=False).encode()).hexdigest()[:16] == digest
    assert {path.name for path in CORPORA.glob("*.txt")} > {name}


@pytest.mark.parametrize(
    ("spoilt", "whole"),
    [
        ("â€œRun!â€ said Tom.", '"Run!" said Tom.'),
        ("Itâ€™s a bird.", "It's a bird."),
        ("â€˜Yesâ€™, she said.", "'Yes', she said."),
        ("a well-knownâ€“old dog", "a well-known-old dog"),
        ("They ranâ€”and fell.", "They ran - and fell."),
        ("And thenâ€¦", "And then..."),
        ("“It’s mine,” he said.", '"It\'s mine," he said.'),
    ],
)
def test_signs_that_were_decoded_in_the_wrong_alphabet_are_put_right(spoilt: str, whole: str) -> None:
    assert mended(spoilt) == whole


def test_every_sign_that_was_misread_is_known() -> None:
    """All quotation marks and dashes of which UTF-8 begins with the same two bytes, as Windows-1252 shows them."""
    for sign, whole in {"“": '"', "‘": "'", "’": "'", "–": "-", "—": " - ", "…": "..."}.items():
        spoilt = sign.encode().decode("windows-1252")
        assert mended(f"a{spoilt}b") == f"a{whole}b"
    assert set(MARKS.values()) == {'"', "'", "-", " - ", "..."}


def test_a_sound_text_stays_as_it_is() -> None:
    for text in ('"It is," said Ann - and left...', "à la carte, 20 € a day", "naïve café â la mode", ""):
        assert mended(text) == text
