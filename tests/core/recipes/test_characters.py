"""Recipes of GPTs of characters: poems in form, cards that say what is measured, and going on where it was stopped."""

import gzip
import itertools
import math
import random

import pytest
import torch

from transformer_core.bundle import Bundle
from transformer_core.checkpoints import load
from transformer_core.config import ModelConfig
from transformer_core.evaluation.evaluate import evaluate
from transformer_core.evaluation.gpt import measure_poems, measure_text, read_text
from transformer_core.models import Gpt
from transformer_core.recipes import command, gpt_char, gpt_poem
from transformer_core.recipes.gpt_poem import (
    GROUPS,
    even_ends,
    in_form,
    lines_of,
    measure_written,
    read_poems,
    rhyme_groups,
    rhymes,
    shuffled_ends,
)
from transformer_core.text import Tokenizer

TEXT = "to be, or not to be: that is the question\n" * 120


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    folder = tmp_path_factory.mktemp("gpt_char")
    with gzip.open(folder / "shakespeare.txt.gz", "wt", encoding="utf-8") as file:
        file.write(TEXT)
    places = [f"--{name}={folder / name}" for name in ("out", "work")]
    held_out = folder / "held_out.txt"
    assert gpt_char.main(["--data", str(folder), *places, f"--held-out={held_out}", "--quick", "--device=cpu"]) == 0
    return folder


def test_the_card_says_what_evaluate_measures(made) -> None:
    measured = evaluate(made / "out", made / "held_out.txt", device="cpu")
    card, chinese = ((made / "out" / name).read_text(encoding="utf-8") for name in ("card.md", "card.zh.md"))
    assert f"{measured['loss_nats']:.4f} nats a character" in card
    assert f"每个字符 {measured['loss_nats']:.4f} 奈特" in chinese
    assert card.split("```")[1::2] == chinese.split("```")[1::2]
    assert measured["loss_nats"] < math.log(load(made / "out").tokenizer.vocab_size)
    assert card.count("```text") == 10
    assert (made / "held_out.txt").read_text(encoding="utf-8") == TEXT[round(len(TEXT) * 0.9) :]


def test_an_interrupted_recipe_ends_in_the_same_weights(made, monkeypatch) -> None:
    class InterruptionError(Exception):
        pass

    def save_and_stop(run, folder, save=command.save_run):
        save(run, folder)
        raise InterruptionError

    arguments = ["--data", str(made), "--out", str(made / "parts"), "--work", str(made / "work2"), "--quick"]
    monkeypatch.setattr(command, "STEPS_BETWEEN_SAVES", 15)
    with monkeypatch.context() as patch:
        patch.setattr(command, "save_run", save_and_stop)
        with pytest.raises(InterruptionError):
            gpt_char.main([*arguments, "--device=cpu"])
    assert gpt_char.main([*arguments, "--device=cpu", "--resume"]) == 0
    whole, parts = load(made / "out").model.state_dict(), load(made / "parts").model.state_dict()
    assert all(torch.equal(whole[name], parts[name]) for name in whole)


def test_again_measures_the_same_and_trains_nothing(made, monkeypatch) -> None:
    before = {path.name: path.read_bytes() for path in (made / "out").iterdir()}
    monkeypatch.setattr(command, "take_steps", None)
    places = [f"--{name}={made / name}" for name in ("out", "work")]
    assert gpt_char.main(["--data", str(made), *places, "--quick", "--device=cpu", "--again"]) == 0
    assert {path.name: path.read_bytes() for path in (made / "out").iterdir()} == before


def test_a_folder_without_the_text_is_named(tmp_path, capsys) -> None:
    assert gpt_char.main(["--data", str(tmp_path)]) == 2
    assert "hold no shakespeare.txt.gz" in capsys.readouterr().err


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
CHARACTERS = "春风吹落日秋月照空山客路三千里人家一水白云飞"


def verse(count: int, seed: int) -> list[str]:
    """Return poems of four lines of five random characters, whose even lines end alike."""
    rng = random.Random(seed)
    lines = (["".join(rng.sample(CHARACTERS, 5)) for _ in range(4)] for _ in itertools.count())
    return [f"{a}，{b[:4]}山。{c}，{d[:4]}间。" for a, b, c, d in itertools.islice(lines, count)]


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


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    """A folder with poems to learn from and poems to measure on."""
    pytest.importorskip("pypinyin")
    folder = tmp_path_factory.mktemp("poems")
    for name, count, seed in ((gpt_poem.TRAIN, gpt_poem.POEMS_FOR_CHOICE + 100, 0), (gpt_poem.TEST, 30, 1)):
        with gzip.open(folder / name, "wt", encoding="utf-8") as file:
            file.write("".join(f"{poem}\n" for poem in verse(count, seed)))
    return folder


def arguments(data, folder, *more: str) -> list[str]:
    """Return the arguments of a quick run into a folder."""
    places = [f"--{name}={folder / name}" for name in ("out", "work")]
    return ["--data", str(data), *places, "--quick", "--device=cpu", *more]


@pytest.fixture(scope="module")
def made_poet(data, tmp_path_factory):
    """The folder of a bundle that the recipe wrote in seconds."""
    folder = tmp_path_factory.mktemp("gpt_poem")
    assert gpt_poem.main(arguments(data, folder, f"--held-out={folder / 'held.txt'}")) == 0
    return folder


def test_the_cards_say_what_is_measured(data, made_poet) -> None:
    bundle = load(made_poet / "out", device="cpu")
    held_out = (made_poet / "held.txt").read_text(encoding="utf-8").split()
    assert held_out == verse(30, 1)[: gpt_poem.QUICK_MEASURED]
    measured, written = measure_poems(bundle, held_out), measure_written(bundle, held_out)
    assert f"{measured['loss_nats']:.4f} nats a character ({measured['characters']:,} characters" in bundle.card
    assert f"每个字 {measured['loss_nats']:.4f} 奈特（共 {measured['characters']:,} 个字" in bundle.card_zh
    assert (written.poems, written.real) == (len(held_out), 1.0)
    assert f"{written.in_form / written.poems:.1%} keep the form" in bundle.card
    assert f"{written.in_form / written.poems:.1%} 合乎格式" in bundle.card_zh
    for first_line in gpt_poem.FIRST_LINES:
        shown = [line for line in bundle.card.splitlines() if line.startswith(f"- {first_line}")]
        assert len(shown) == 1
        assert shown[0] in bundle.card_zh
    assert isinstance(bundle.model, Gpt)
    assert (bundle.reads, bundle.measured.trained[0].steps) == ("zh", 100 // 16 + 1)
    assert bundle.measured.verse


def test_poems_again_measure_the_same_and_train_nothing(data, made_poet) -> None:
    before = {path.name: path.read_bytes() for path in (made_poet / "out").iterdir()}
    assert gpt_poem.main(arguments(data, made_poet, "--again")) == 0
    assert {path.name: path.read_bytes() for path in (made_poet / "out").iterdir()} == before


def test_by_the_part_for_choices_it_is_said(data, made_poet) -> None:
    assert (
        gpt_poem.main(arguments(data, made_poet, "--again", "--choice", f"--held-out={made_poet / 'choice.txt'}")) == 0
    )
    card = load(made_poet / "out", device="cpu").card
    assert "- On the poems by which settings are chosen: " in card
    chosen_by = (made_poet / "choice.txt").read_text(encoding="utf-8").split()
    assert chosen_by == verse(gpt_poem.POEMS_FOR_CHOICE + 100, 0)[100 : 100 + gpt_poem.QUICK_MEASURED]


def test_a_poem_ends_at_its_end_or_is_marked_as_cut(made_poet) -> None:
    bundle: Bundle = load(made_poet / "out", device="cpu")
    poem = gpt_poem.write_poem(bundle, POEM[:6], seed=0)
    assert poem.startswith(POEM[:6])
    assert poem == gpt_poem.write_poem(bundle, POEM[:6], seed=0)
    assert len(poem) <= bundle.config.max_len + 1 + len("…")
