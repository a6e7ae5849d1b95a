"""The recipes of translation, Bert and Gpt: a tiny run of each writes a bundle whose card says what is measured."""

import gzip
import json
import random

import pytest

from transformer_core.checkpoints import load
from transformer_core.evaluation.evaluate import evaluate
from transformer_core.recipes import bert, gpt, seq2seq, translation
from transformer_core.recipes.captions import Sentences, sentence_pairs
from transformer_core.recipes.gpt import written_together
from transformer_core.recipes.translation import read_objects, simplifier

ANIMALS, PLACES = ("dog", "cat", "bird", "horse", "fish"), ("river", "house", "tree", "hill", "road", "park")
CAPTIONS = [f"A {animal} is near the {place} ." for animal in ANIMALS for place in PLACES]
FRENCH = [f"Un {animal} est près du {place} ." for animal in ANIMALS for place in PLACES]
CHINESE = [f"{animal}在{place}旁邊。" for animal in ANIMALS for place in PLACES]
STORY = "Once there was a dog. It ran to the hill. It saw a bird! The bird flew away."


def write(path, lines) -> None:
    with gzip.open(path, "wt", encoding="utf-8") as file:
        file.write("".join(f"{line}\n" for line in lines))


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    folder = tmp_path_factory.mktemp("data")
    for name in ("train", "test_2016_flickr"):
        write(folder / f"{name}.en.gz", CAPTIONS)
        write(folder / f"{name}.fr.gz", FRENCH)
    rows = [json.dumps({"en": en, "zh": zh}) for en, zh in zip(CAPTIONS, CHINESE, strict=True)]
    for name in ("train", "val"):
        write(folder / f"en-zh.{name}.jsonl.gz", rows)
        write(folder / f"tinystories.{name}.jsonl.gz", [json.dumps({"text": STORY})] * 4)
    for number in range(1, 6):
        write(folder / f"captions.{number}.en.gz", [f"{caption[:-2]} {number} ." for caption in CAPTIONS])
    write(folder / "captions.val.en.gz", CAPTIONS)
    return folder


def arguments(data, tmp_path, *more) -> list[str]:
    places = [f"--{name}={tmp_path / name}" for name in ("out", "work")]
    return [*more, "--data", str(data), "--quick", "--device=cpu", *places, f"--held-out={tmp_path / 'held'}"]


@pytest.mark.parametrize("pair", ["en-fr", "en-zh"])
def test_translation(data, tmp_path, pair) -> None:
    if pair == "en-zh":
        pytest.importorskip("opencc")
    assert translation.main(arguments(data, tmp_path, pair)) == 0
    files = [tmp_path / f"held.{side}" for side in pair.split("-")]
    measured = evaluate(tmp_path / "out", *files, device="cpu")
    card = (tmp_path / "out" / "card.md").read_text(encoding="utf-8")
    assert f"BLEU {measured['bleu']:.2f}, chrF {measured['chrf']:.2f}" in card
    assert card.count(" → ") == {"en-fr": 10, "en-zh": 30}[pair]
    bundle = load(tmp_path / "out")
    assert bundle.config.share_embeddings
    assert bundle.config.positions == "sinusoidal"


def test_seq2seq(data, tmp_path) -> None:
    assert seq2seq.main(arguments(data, tmp_path)) == 0
    measured = evaluate(tmp_path / "out", tmp_path / "held.en", tmp_path / "held.fr", device="cpu")
    card = (tmp_path / "out" / "card.md").read_text(encoding="utf-8")
    assert f"BLEU {measured['bleu']:.2f}, chrF {measured['chrf']:.2f}" in card
    assert load(tmp_path / "out").kind == "seq2seq"
    assert all(limit in card for limit in seq2seq.LIMITS)


def test_bert(data, tmp_path) -> None:
    assert bert.main([*arguments(data, tmp_path)[:-1], f"--held-out={tmp_path / 'pairs.jsonl'}"]) == 0
    card = (tmp_path / "out" / "card.md").read_text(encoding="utf-8")
    words = evaluate(tmp_path / "out", data / "captions.val.en.gz", device="cpu")
    pairs = evaluate(tmp_path / "out", tmp_path / "pairs.jsonl", device="cpu")
    assert f"{words['top1']:.1%} are its first guess, {words['top5']:.1%} among" in card
    assert f"{pairs['accuracy']:.1%} of {pairs['pairs']:,} told rightly" in card
    assert card.count(" → ") == 10


def test_gpt(data, tmp_path) -> None:
    assert gpt.main(arguments(data, tmp_path)) == 0
    card = (tmp_path / "out" / "card.md").read_text(encoding="utf-8")
    for name in ("stories", "captions"):
        measured = evaluate(tmp_path / "out", tmp_path / f"held.{name}.txt", device="cpu")
        assert f"{name}: {measured['loss_nats']:.4f} nats a token, {measured['nats_a_byte']:.4f} a byte" in card
    assert card.count("```text") == 10


def test_a_folder_without_the_data_is_told_in_one_line(tmp_path, capsys) -> None:
    for recipe in (lambda a: translation.main(["en-fr", *a]), bert.main, gpt.main):
        assert recipe(["--data", str(tmp_path)]) == 2
        error = capsys.readouterr().err
        assert error.count("\n") == 1
        assert "Error" not in error


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
