"""Recipes of translation, Bert, Gpt and recurrent models: a tiny run writes a bundle whose cards say what is measured."""

import gzip
import json
import random
from dataclasses import replace

import pytest

from transformer_core.bundle import Bundle, save
from transformer_core.checkpoints import load
from transformer_core.config import ModelConfig
from transformer_core.evaluation.evaluate import evaluate
from transformer_core.measured import Trained, write_measured
from transformer_core.models import Gpt
from transformer_core.models.recurrent import RecurrentLm
from transformer_core.recipes import bert, command, gpt, lm, seq2seq, translation
from transformer_core.recipes.captions import Sentences, sentence_pairs
from transformer_core.recipes.characters import characters_seen
from transformer_core.recipes.gpt import written_together
from transformer_core.recipes.gpt_char import CHARACTERS_SEEN
from transformer_core.recipes.translation import read_objects, simplifier
from transformer_core.text import Tokenizer
from transformer_core.training.config import TrainConfig

ANIMALS, PLACES = ("dog", "cat", "bird", "horse", "fish"), ("river", "house", "tree", "hill", "road", "park")
CAPTIONS = [f"A {animal} is near the {place} ." for animal in ANIMALS for place in PLACES]
FRENCH = [f"Un {animal} est près du {place} ." for animal in ANIMALS for place in PLACES]
GERMAN = [f"Ein {animal} ist nahe bei {place} ." for animal in ANIMALS for place in PLACES]
CHINESE = [f"{animal}在{place}旁邊。" for animal in ANIMALS for place in PLACES]
STORY = "Once there was a dog. It ran to the hill. It saw a bird! The bird flew away."


def write(path, lines) -> None:
    with gzip.open(path, "wt", encoding="utf-8") as file:
        file.write("".join(f"{line}\n" for line in lines))


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    folder = tmp_path_factory.mktemp("data")
    for name in ("train", "val", "test_2016_flickr"):
        for language, lines in (("en", CAPTIONS), ("fr", FRENCH), ("de", GERMAN)):
            write(folder / f"{name}.{language}.gz", lines)
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


def both_cards(folder) -> tuple[str, str]:
    """Return the English and the Chinese card, after checking that both have the same rows, sections and samples."""
    english, chinese = ((folder / name).read_text(encoding="utf-8") for name in ("card.md", "card.zh.md"))
    for part in ("\n| ", "\n## ", "\n- ", " → ", "```text", "\n    python -m "):
        assert english.count(part) == chinese.count(part), part
    code = [[line for line in card.splitlines() if line.startswith("    ")] for card in (english, chinese)]
    assert code[0] == code[1]
    assert chinese.startswith(english.partition(":")[0])
    assert "## 测得的质量" in chinese
    return english, chinese


@pytest.mark.parametrize("pair", translation.PAIRS)
def test_translation(data, tmp_path, pair, monkeypatch) -> None:
    if "zh" in pair:
        pytest.importorskip("opencc")
    monkeypatch.setattr(translation, "PAIRS_FOR_CHOICE", 8)
    assert translation.main(arguments(data, tmp_path, pair)) == 0
    files = [tmp_path / f"held.{side}" for side in pair.split("-")]
    measured = evaluate(tmp_path / "out", *files, device="cpu")
    settings, (card, chinese) = translation.PAIRS[pair], both_cards(tmp_path / "out")
    assert f"BLEU {measured['bleu']:.2f}, chrF {measured['chrf']:.2f}" in card
    assert f"BLEU {measured['bleu']:.2f}，chrF {measured['chrf']:.2f}" in chinese
    assert card.count(" → ") == len(settings.sentences) >= 10
    assert all(limit in card for limit in settings.limits)
    assert ("Settings were chosen by" in card) == bool(settings.choice)
    if pair == "zh-en":
        assert "| data | Tatoeba" in card
        assert "; 22 pairs trained on" in card
        assert "Settings were chosen by the last 8 pairs of the training file" in card
    bundle = load(tmp_path / "out")
    assert (bundle.card, bundle.card_zh, bundle.reads) == (card, chinese, pair[:2])
    assert bundle.config.share_embeddings
    assert bundle.config.positions == "sinusoidal"
    assert bundle.config.norm_order == ("post" if pair == "en-de" else "pre")


@pytest.mark.parametrize("plain", [False, True])
def test_seq2seq(data, tmp_path, plain: bool) -> None:
    assert seq2seq.main(arguments(data, tmp_path, *["--plain"] * plain)) == 0
    measured = evaluate(tmp_path / "out", tmp_path / "held.en", tmp_path / "held.fr", device="cpu")
    card, _ = both_cards(tmp_path / "out")
    assert f"BLEU {measured['bleu']:.2f}, chrF {measured['chrf']:.2f}" in card
    bundle = load(tmp_path / "out")
    assert (bundle.kind, bundle.config.attention) == ("seq2seq", None if plain else "additive")
    assert f"attention: {'none' if plain else 'additive'}" in card
    assert all(limit in card for limit in (seq2seq.PLAIN_PAIR if plain else seq2seq.PAIR).limits)


def test_the_plain_network_has_a_bundle_of_its_own(data, tmp_path) -> None:
    places = [f"--out={tmp_path / seq2seq.OUT}", f"--work={tmp_path / 'work'}"]
    assert seq2seq.main(["--plain", "--data", str(data), "--quick", "--device=cpu", *places]) == 0
    assert (tmp_path / seq2seq.PLAIN / "card.md").is_file()
    assert not (tmp_path / seq2seq.OUT).exists()


def test_by_the_part_for_choices_settings_are_chosen_and_cards_report_on_the_other(data, monkeypatch) -> None:
    monkeypatch.setattr(translation, "PAIRS_FOR_CHOICE", 8)
    monkeypatch.setattr(translation, "simplifier", lambda: str)
    parts = {part: translation.everyday_turned(data, part) for part in ("train", "choice", "test")}
    assert parts["train"] + parts["choice"] == list(zip(CHINESE, CAPTIONS, strict=True)) == parts["test"]
    assert len(parts["choice"]) == 8
    assert translation.captions(data, "choice", language="de") == list(zip(CAPTIONS, GERMAN, strict=True))


def files_of(folder) -> dict[str, bytes]:
    """Return the contents of a bundle's files."""
    return {path.name: path.read_bytes() for path in folder.iterdir()}


@pytest.mark.parametrize("name", ["translation", "seq2seq", "gpt", "bert"])
def test_again_measures_the_same_and_trains_nothing(data, tmp_path, name, monkeypatch, capsys) -> None:
    recipes = {"translation": lambda a: translation.main(["en-fr", *a]), "gpt": gpt.main, "bert": bert.main}
    recipe = recipes.get(name, seq2seq.main)
    assert recipe(arguments(data, tmp_path)) == 0
    before, said = files_of(tmp_path / "out"), capsys.readouterr().out
    (tmp_path / "out" / "card.zh.md").unlink()
    monkeypatch.setattr(command, "take_steps", None)
    assert recipe([*arguments(data, tmp_path), "--again"]) == 0
    assert files_of(tmp_path / "out") == before
    assert capsys.readouterr().out == said


def test_again_needs_a_record_of_the_training(data, tmp_path, capsys) -> None:
    assert seq2seq.main(arguments(data, tmp_path)) == 0
    (tmp_path / "out" / "measured.json").unlink()
    assert seq2seq.main([*arguments(data, tmp_path), "--again"]) == 2
    assert "--again: out/measured.json does not say what training took" in capsys.readouterr().err


def test_what_is_not_on_record_is_not_said(data, tmp_path) -> None:
    """Bundles that are older than measured.json have no minutes of wall-clock time, gpt-char no precision either."""
    assert seq2seq.main(arguments(data, tmp_path)) == 0
    old = replace(load(tmp_path / "out").measured, trained=(Trained("", 7, 19.0, 0.0, "cpu", ""),))
    write_measured(tmp_path / "out", old)
    assert seq2seq.main([*arguments(data, tmp_path), "--again"]) == 0
    card, chinese = both_cards(tmp_path / "out")
    assert "| cost | 19 minutes of processor time on cpu |" in card
    assert "| 用时 | 在 cpu 上，处理器时间 19 分钟 |" in chinese
    assert "| training | 7 steps of 96 pairs, adamw," in card
    assert "dropout 0.2, seed 0 |" in card
    assert load(tmp_path / "out").measured.trained == old.trained


def test_bert(data, tmp_path) -> None:
    assert bert.main([*arguments(data, tmp_path)[:-1], f"--held-out={tmp_path / 'pairs.jsonl'}"]) == 0
    card, chinese = both_cards(tmp_path / "out")
    words = evaluate(tmp_path / "out", data / "captions.val.en.gz", device="cpu")
    pairs = evaluate(tmp_path / "out", tmp_path / "pairs.jsonl", device="cpu")
    assert f"{words['top1']:.1%} are its first guess, {words['top5']:.1%} among" in card
    assert f"{pairs['accuracy']:.1%} of {pairs['pairs']:,} told rightly" in card
    assert f"{pairs['pairs']:,} 对中判断正确 {pairs['accuracy']:.1%}" in chinese
    assert card.count(" → ") == 10
    assert [row.stage for row in load(tmp_path / "out").measured.trained] == ["words", "pairs", "stories"]


def test_gpt(data, tmp_path) -> None:
    assert gpt.main(arguments(data, tmp_path)) == 0
    card, _ = both_cards(tmp_path / "out")
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


TEXT = "to be, or not to be: that is the question\n" * 120


@pytest.fixture(scope="module")
def shakespeare(tmp_path_factory):
    """A folder with a text and a bundle to be compared with."""
    folder = tmp_path_factory.mktemp("lm")
    (folder / "shakespeare.txt").write_text(TEXT)
    tokenizer = Tokenizer.train("character", [TEXT], vocab_size=100, min_frequency=1, template="none")
    config = ModelConfig(vocab_size=tokenizer.vocab_size, d_model=16, n_heads=2, d_ff=16, n_layers=1, max_len=32)
    save(Bundle("gpt-char", Gpt(config), tokenizer), folder / "gpt-char")
    return folder


@pytest.mark.parametrize("unit", lm.NETWORKS)
def test_a_recipe_writes_a_bundle_whose_card_compares_it(shakespeare, tmp_path, unit) -> None:
    places = [f"--{name}={tmp_path / f'{name}-UNIT'}" for name in ("out", "work")]
    held_out = tmp_path / "held_out.txt"
    options = ["--quick", "--device=cpu", f"--beside={shakespeare / 'gpt-char'}", f"--held-out={held_out}"]
    assert lm.main([unit, "--data", str(shakespeare), *places, *options]) == 0
    out = tmp_path / f"out-{unit}"
    measured, other = (evaluate(folder, held_out, device="cpu") for folder in (out, shakespeare / "gpt-char"))
    bundle = load(out)
    card = bundle.card
    assert bundle.kind == "lm"
    assert isinstance(bundle.model, RecurrentLm)
    assert (bundle.model.config.unit, bundle.reads) == (lm.NETWORKS[unit].unit, "en")
    assert bundle.n_parameters == pytest.approx(lm.QUICK.n_parameters, rel=0.2)
    assert f"{measured['loss_nats']:.4f} nats a character" in card
    own_seen = bundle.measured.trained[0].steps * lm.QUICK.batch_size * lm.QUICK.max_len
    for name, seen, of in ((f"out-{unit}", own_seen, measured), ("gpt-char", CHARACTERS_SEEN, other)):
        n_parameters = load(out if name != "gpt-char" else shakespeare / name).n_parameters
        row = f"| {name} | {n_parameters:,} | {seen:,} | {of['loss_nats']:.4f} |"
        assert row in card
        assert row in bundle.card_zh
    assert f"transformer_core.recipes.lm {unit} --data DIR --quick" in card
    assert card.count("```text") == 10
    assert measured["loss_nats"] < other["loss_nats"]
    assert bundle.measured.usual[0].measure == "nats_a_token"


def test_gpt_char_learned_from_half_as_many_characters() -> None:
    training = TrainConfig(batch_size=lm.FULL.batch_size, epochs=lm.FULL.epochs)
    own = characters_seen(training, windows=lm.FULL.windows, width=lm.FULL.max_len)
    assert own == 3_125 * 64 * 128
    assert CHARACTERS_SEEN == 3_124 * 32 * 128


def test_without_the_bundle_to_compare_with_nothing_is_trained(shakespeare, tmp_path, capsys) -> None:
    options = ["--quick", "--device=cpu", f"--beside={tmp_path / 'nowhere'}", f"--out={tmp_path / 'out'}"]
    assert lm.main(["gru", "--data", str(shakespeare), *options]) == 2
    assert "nowhere: there is no such folder" in capsys.readouterr().err
    assert not (tmp_path / "out").exists()
