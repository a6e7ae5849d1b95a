"""Recipes as commands: a quick run of each writes a bundle whose cards say what is measured, again and after a stop."""

import io
import json
import math
import runpy
import shutil
import sys
from contextlib import redirect_stdout
from dataclasses import replace
from functools import cache
from itertools import combinations
from pathlib import Path

import pytest
import torch

from tests.helpers import nightly_but
from tests.helpers.ray_nodes import cluster
from tests.helpers.recipe_data import CAPTIONS, CHINESE, GERMAN, SHAKESPEARE, write_data
from tests.helpers.verses import verse
from transformer_core.checkpoints import load
from transformer_core.evaluation.evaluate import evaluate
from transformer_core.evaluation.gpt import measure_poems
from transformer_core.measured import Trained, write_measured
from transformer_core.models.recurrent import RecurrentLm
from transformer_core.recipes import (
    bert,
    command,
    gpt,
    gpt_poem,
    lens,
    lm,
    sentiment,
    seq2seq,
    translation,
)
from transformer_core.recipes.texts import Say, read_opinions
from transformer_core.untrusted.tables.labelled import read_labelled, write_labelled

RECIPES = {
    **{pair: (translation.main, [pair]) for pair in translation.PAIRS},
    "seq2seq": (seq2seq.main, []),
    "plain": (seq2seq.main, ["--plain"]),
    "bert": (bert.main, []),
    **{name: (gpt.main, [name]) for name in ("gpt", "gpt-today")},
    "gpt-char": (lm.main, ["gpt"]),
    "gpt-poem": (gpt_poem.main, []),
    **{f"lm-{unit}": (lm.main, [unit]) for unit in lm.NETWORKS},
    "sentiment": (sentiment.main, []),
    "sentiment-zh": (sentiment.main, ["zh"]),
}
NEEDS = {"gpt-poem": "pypinyin", "zh-en": "opencc", "en-zh": "opencc"}


@pytest.fixture(scope="module")
def data(tmp_path_factory) -> Path:
    """Return a folder with tiny data of every recipe."""
    return write_data(tmp_path_factory.mktemp("data"))


def run(name: str, data: Path, folder: Path, *more: str) -> int:
    """Run a recipe into a folder."""
    if name in NEEDS:
        pytest.importorskip(NEEDS[name])
    main, first = RECIPES[name]
    places = ["--data", str(data), f"--out={folder / 'out'}", f"--work={folder / 'work'}"]
    beside = [f"--beside={data / 'beside' / 'gpt-char'}"] if name.startswith("lm-") else []
    return main([*first, *places, *beside, f"--held-out={folder / 'held'}", "--quick", "--device=cpu", *more])


@pytest.fixture(scope="module")
def ran(data, tmp_path_factory):
    """Return what gives the folder of a recipe's quick run, which is made once."""

    @cache
    def once(name: str) -> Path:
        folder = tmp_path_factory.mktemp(name)
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(translation, "PAIRS_FOR_CHOICE", 8)
            with redirect_stdout(io.StringIO()) as said:
                assert run(name, data, folder) == 0
        (folder / "said").write_text(said.getvalue().replace(str(folder), ""))
        return folder

    return once


@pytest.fixture
def copied(ran, tmp_path):
    """Return what gives a copy of such a folder, which a test may change."""
    return lambda name: Path(shutil.copytree(ran(name), tmp_path / "copy"))


def files_of(folder: Path) -> dict[str, bytes]:
    """Return the contents of a bundle's files."""
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def both_cards(folder: Path) -> tuple[str, str]:
    """Return the English and the Chinese card, after checking that both have the same rows, sections and samples."""
    english, chinese = ((folder / name).read_text(encoding="utf-8") for name in ("card.md", "card.zh.md"))
    for part in ("\n| ", "\n## ", "\n- ", " → ", "```text", "\n    python -m "):
        assert english.count(part) == chinese.count(part), part
    code = [[line for line in card.splitlines() if line.startswith("    ")] for card in (english, chinese)]
    assert code[0] == code[1]
    assert english.split("```")[1::2] == chinese.split("```")[1::2]
    assert chinese.startswith(english.partition(":")[0])
    assert "## 测得的质量" in chinese
    return english, chinese


@pytest.mark.filterwarnings("ignore:.*found in sys.modules:RuntimeWarning")
@pytest.mark.parametrize(
    "command_line",
    ["translation en-fr", "seq2seq", "bert", "gpt", "lm gpt", "lm gru --beside=.", "sentiment", "sentiment zh", "lens"],
)
def test_a_command_without_its_data_says_so_in_one_line_with_code_2(
    command_line, tmp_path, monkeypatch, capsys
) -> None:
    name, *first = command_line.split()
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "argv", [name, *first, "--data", str(tmp_path / "nowhere")])
    with pytest.raises(SystemExit) as ended:
        runpy.run_module(f"transformer_core.recipes.{name}", run_name="__main__")
    error = capsys.readouterr().err
    assert (ended.value.code, error.count("\n")) == (2, 1)
    assert error.startswith(f"{name}: ")
    assert "Error" not in error


@pytest.mark.parametrize("name", nightly_but(["seq2seq", "en-fr", "gpt", "bert", "gpt-char", "sentiment"], ["seq2seq"]))
def test_again_measures_the_same_and_trains_nothing(data, copied, name, monkeypatch, capsys) -> None:
    folder = copied(name)
    before = files_of(folder / "out")
    (folder / "out" / "card.zh.md").unlink()
    monkeypatch.setattr(command, "take_steps", None)
    assert run(name, data, folder, "--again") == 0
    assert files_of(folder / "out") == before
    assert capsys.readouterr().out.replace(str(folder), "") == (folder / "said").read_text()


@pytest.mark.parametrize(
    ("name", "steps"), nightly_but([("seq2seq", 2), ("gpt-char", 15), ("sentiment", 30)], [("seq2seq", 2)])
)
def test_an_interrupted_recipe_ends_in_the_same_weights(data, ran, name, steps, tmp_path, monkeypatch) -> None:
    class InterruptionError(Exception):
        pass

    def save_and_stop(run, folder, save=command.save_run):
        save(run, folder)
        raise InterruptionError

    monkeypatch.setattr(command, "STEPS_BETWEEN_SAVES", steps)
    with monkeypatch.context() as patch:
        patch.setattr(command, "save_run", save_and_stop)
        with pytest.raises(InterruptionError):
            run(name, data, tmp_path)
    saved = [json.loads(path.read_text())["step"] for path in (tmp_path / "work").rglob("run.json")]
    assert saved == [steps]
    assert run(name, data, tmp_path, "--resume") == 0
    whole, parts = (load(folder / "out", device="cpu").model.state_dict() for folder in (ran(name), tmp_path))
    assert whole.keys() == parts.keys()
    assert all(torch.equal(whole[name], parts[name]) for name in whole)


@pytest.mark.parametrize(
    ("name", "model"),
    nightly_but(
        [("gpt", "gpt"), ("gpt-char", "gpt-char"), ("gpt-poem", "gpt-poem"), ("bert", "bert")], [("gpt", "gpt")]
    ),
)
def test_a_lens_is_added_to_a_bundle_and_measured_again_to_the_same_files(data, copied, name, model, capsys) -> None:
    folder, command_line = copied(name), [model, "--data", str(data), "--quick", "--device=cpu"]
    command_line += [f"--out={folder / 'out'}", f"--work={folder / 'lens'}"]
    old, weights = load(folder / "out"), (folder / "out" / "model.safetensors").read_bytes()
    assert lens.main(command_line) == 0
    files = files_of(folder / "out")
    assert files["model.safetensors"] == weights
    new = load(folder / "out")
    assert [row.stage for row in new.measured.lens] == list(range(new.config.n_layers))
    assert all(row.tuned < row.logit for row in new.measured.lens), "a few steps bring it nearer"
    assert new.card.startswith(old.card.rstrip())
    english, _ = both_cards(folder / "out")
    assert english.count("## Tuned lens") == 1
    assert f"| file | `lens.safetensors`, {sum(p.numel() for p in new.lens.parameters()):,} parameters" in english
    assert (new.measured.usual, new.measured.trained[:-1]) == (old.measured.usual, old.measured.trained)
    capsys.readouterr()
    assert lens.main([*command_line, "--again"]) == 0
    assert files_of(folder / "out") == files


def test_again_needs_a_record_of_the_training(data, copied, capsys) -> None:
    folder = copied("seq2seq")
    (folder / "out" / "measured.json").unlink()
    assert run("seq2seq", data, folder, "--again") == 2
    assert "--again: out/measured.json does not say what training took" in capsys.readouterr().err


def test_what_is_not_on_record_is_not_said(data, copied) -> None:
    """Bundles that are older than measured.json have no minutes of wall-clock time, gpt-char no precision either."""
    folder = copied("seq2seq")
    old = replace(load(folder / "out").measured, trained=(Trained("", 7, 19.0, 0.0, "cpu", ""),))
    write_measured(folder / "out", old)
    assert run("seq2seq", data, folder, "--again") == 0
    card, chinese = both_cards(folder / "out")
    assert "| cost | 19 minutes of processor time on cpu |" in card
    assert "| 用时 | 在 cpu 上，处理器时间 19 分钟 |" in chinese
    assert "| training | 7 steps of 96 pairs, adamw," in card
    assert "dropout 0.2, seed 0 |" in card
    assert load(folder / "out").measured.trained == old.trained


@pytest.mark.parametrize("name", nightly_but(["seq2seq", "plain"], ["seq2seq"]))
def test_a_recurrent_translators_card(ran, name: str) -> None:
    folder, plain = ran(name), name == "plain"
    measured = evaluate(folder / "out", folder / "held.en", folder / "held.fr", device="cpu")
    card, _ = both_cards(folder / "out")
    assert f"BLEU {measured['bleu']:.2f}, chrF {measured['chrf']:.2f}" in card
    bundle = load(folder / "out")
    assert (bundle.kind, bundle.config.attention) == ("seq2seq", None if plain else "additive")
    assert f"attention: {'none' if plain else 'additive'}" in card
    limits = Say("en").all_of((seq2seq.PLAIN_PAIR if plain else seq2seq.PAIR).kinds, "limits")
    assert len(limits) == 3
    assert card.endswith("\n".join(["", *limits, ""]))


@pytest.mark.nightly
def test_the_plain_network_has_a_bundle_of_its_own(data, tmp_path) -> None:
    places = [f"--out={tmp_path / seq2seq.OUT}", f"--work={tmp_path / 'work'}"]
    assert seq2seq.main(["--plain", "--data", str(data), "--quick", "--device=cpu", *places]) == 0
    assert (tmp_path / seq2seq.PLAIN / "card.md").is_file()
    assert not (tmp_path / seq2seq.OUT).exists()


@pytest.mark.nightly
@pytest.mark.parametrize("pair", translation.PAIRS)
def test_a_translators_card(ran, pair: str) -> None:
    folder = ran(pair)
    measured = evaluate(folder / "out", *(folder / f"held.{side}" for side in pair.split("-")), device="cpu")
    settings, (card, chinese) = translation.PAIRS[pair], both_cards(folder / "out")
    assert f"BLEU {measured['bleu']:.2f}, chrF {measured['chrf']:.2f}" in card
    assert f"BLEU {measured['bleu']:.2f}，chrF {measured['chrf']:.2f}" in chinese
    assert card.count(" → ") == len(settings.sentences) >= 10
    assert all(limit in card for limit in Say("en").all_of(settings.kinds, "limits"))
    assert ("Settings were chosen by" in card) == settings.has_choice
    if pair == "zh-en":
        assert "| data | Tatoeba" in card
        assert "; 22 pairs trained on" in card
        assert "Settings were chosen by the last 8 pairs of the training file" in card
    bundle = load(folder / "out")
    assert (bundle.card, bundle.card_zh, bundle.reads) == (card, chinese, pair[:2])
    assert bundle.config.share_embeddings
    assert bundle.config.positions == "sinusoidal"
    assert bundle.config.norm_order == ("post" if pair == "en-de" else "pre")


def test_by_the_part_for_choices_settings_are_chosen_and_cards_report_on_the_other(data, monkeypatch) -> None:
    monkeypatch.setattr(translation, "PAIRS_FOR_CHOICE", 8)
    monkeypatch.setattr(translation, "simplifier", lambda: str)
    parts = {part: translation.everyday_turned(data, part) for part in ("train", "choice", "test")}
    assert parts["train"] + parts["choice"] == list(zip(CHINESE, CAPTIONS, strict=True)) == parts["test"]
    assert len(parts["choice"]) == 8
    assert translation.captions(data, "choice", language="de") == list(zip(CAPTIONS, GERMAN, strict=True))


@pytest.mark.nightly
def test_the_card_of_bert(data, ran) -> None:
    folder = ran("bert")
    shutil.copy(folder / "held", folder / "pairs.jsonl")
    card, chinese = both_cards(folder / "out")
    words = evaluate(folder / "out", data / "captions.val.en.gz", device="cpu")
    pairs = evaluate(folder / "out", folder / "pairs.jsonl", device="cpu")
    assert f"{words['top1']:.1%} are its first guess, {words['top5']:.1%} among" in card
    assert f"{pairs['accuracy']:.1%} of {pairs['pairs']:,} told rightly" in card
    assert f"{pairs['pairs']:,} 对中判断正确 {pairs['accuracy']:.1%}" in chinese
    assert card.count(" → ") == 10
    assert [row.stage for row in load(folder / "out").measured.trained] == ["words", "pairs", "stories"]


@pytest.mark.nightly
def test_the_card_of_the_gpt(ran) -> None:
    card, _ = both_cards(ran("gpt") / "out")
    for name in ("stories", "captions"):
        measured = evaluate(ran("gpt") / "out", ran("gpt") / f"held.{name}.txt", device="cpu")
        assert f"{name}: {measured['loss_nats']:.4f} nats a token, {measured['nats_a_byte']:.4f} a byte" in card
    assert card.count("```text") == 10


@pytest.mark.nightly
def test_the_card_of_the_gpt_of_characters(ran) -> None:
    folder = ran("gpt-char")
    shutil.copy(folder / "held", folder / "held.txt")
    measured = evaluate(folder / "out", folder / "held.txt", device="cpu")
    card, chinese = both_cards(folder / "out")
    assert f"{measured['loss_nats']:.4f} nats a character" in card
    assert f"每个字符 {measured['loss_nats']:.4f} 奈特" in chinese
    assert measured["loss_nats"] < math.log(load(folder / "out").tokenizer.vocab_size)
    assert card.count("```text") == 10
    assert (folder / "held.txt").read_text(encoding="utf-8") == SHAKESPEARE[round(len(SHAKESPEARE) * 0.9) :]


@pytest.mark.nightly
@pytest.mark.parametrize("unit", lm.NETWORKS)
def test_the_card_of_a_recurrent_language_model_compares_it(data, ran, unit: str) -> None:
    folder = ran(f"lm-{unit}")
    shutil.copy(folder / "held", folder / "held.txt")
    bundles = {"out": folder / "out", "gpt-char": data / "beside" / "gpt-char"}
    measured = {name: evaluate(path, folder / "held.txt", device="cpu") for name, path in bundles.items()}
    bundle = load(folder / "out")
    assert bundle.kind == "lm"
    assert isinstance(bundle.model, RecurrentLm)
    assert (bundle.model.config.unit, bundle.reads) == (lm.NETWORKS[unit].unit, "en")
    assert bundle.n_parameters == pytest.approx(lm.QUICK_PARAMETERS, rel=0.2)
    assert f"{measured['out']['loss_nats']:.4f} nats a character" in bundle.card
    own = lm.recurrent(unit, n_parameters=lm.QUICK_PARAMETERS, quick=True)
    assert own.seen == bundle.measured.trained[0].steps * own.training.batch_size * own.width
    for name, seen in (("out", own.seen), ("gpt-char", lm.gpt_of_characters(quick=False).seen)):
        n_parameters = load(bundles[name]).n_parameters
        row = f"| {name} | {n_parameters:,} | {seen:,} | {measured[name]['loss_nats']:.4f} |"
        assert row in bundle.card
        assert row in bundle.card_zh
    assert f"transformer_core.recipes.lm {unit} --data DIR --quick" in bundle.card
    assert bundle.card.count("```text") == 10
    assert measured["out"]["loss_nats"] < measured["gpt-char"]["loss_nats"]
    assert bundle.measured.usual[0].measure == "nats_a_token"


def test_without_the_bundle_to_compare_with_nothing_is_trained(data, tmp_path, capsys) -> None:
    options = ["--quick", "--device=cpu", f"--beside={tmp_path / 'nowhere'}", f"--out={tmp_path / 'out'}"]
    assert lm.main(["gru", "--data", str(data), *options]) == 2
    assert "nowhere: there is no such folder" in capsys.readouterr().err
    assert not (tmp_path / "out").exists()


@pytest.mark.nightly
def test_the_cards_of_the_gpt_of_poems(ran) -> None:
    bundle = load(ran("gpt-poem") / "out", device="cpu")
    held_out = (ran("gpt-poem") / "held").read_text(encoding="utf-8").split()
    assert held_out == verse(30, 1)[: gpt_poem.QUICK_MEASURED]
    measured, written = measure_poems(bundle, held_out), gpt_poem.measure_written(bundle, held_out)
    assert f"{measured['loss_nats']:.4f} nats a character ({measured['characters']:,} characters" in bundle.card
    assert f"每个字 {measured['loss_nats']:.4f} 奈特（共 {measured['characters']:,} 个字" in bundle.card_zh
    assert (written.poems, written.real) == (len(held_out), 1.0)
    assert f"{written.in_form / written.poems:.1%} keep the form" in bundle.card
    assert f"{written.in_form / written.poems:.1%} 合乎格式" in bundle.card_zh
    for first_line in gpt_poem.FIRST_LINES:
        shown = [line for line in bundle.card.splitlines() if line.startswith(f"- {first_line}")]
        assert len(shown) == 1
        assert shown[0] in bundle.card_zh
    assert (bundle.kind, bundle.reads, bundle.measured.trained[0].steps) == ("gpt", "zh", 100 // 16 + 1)
    assert bundle.measured.verse
    poem = gpt_poem.write_poem(bundle, "春风吹落日，", seed=0)
    assert poem.startswith("春风吹落日，")
    assert poem == gpt_poem.write_poem(bundle, "春风吹落日，", seed=0)
    assert len(poem) <= bundle.config.max_len + 1 + len("…")


@pytest.mark.nightly
def test_poems_by_the_part_for_choices_it_is_said(data, copied) -> None:
    folder = copied("gpt-poem")
    before = files_of(folder / "out")
    assert run("gpt-poem", data, folder, "--again") == 0
    assert files_of(folder / "out") == before
    assert run("gpt-poem", data, folder, "--again", "--choice") == 0
    assert "- On the poems by which settings are chosen: " in load(folder / "out", device="cpu").card
    chosen_by = (folder / "held").read_text(encoding="utf-8").split()
    assert chosen_by == verse(gpt_poem.POEMS_FOR_CHOICE + 100, 0)[100 : 100 + gpt_poem.QUICK_MEASURED]


@pytest.mark.nightly
def test_the_cards_of_the_classifier_say_what_evaluate_measures(ran) -> None:
    """The three parts are measured each on its own; the file holds them one after the other, 40 texts each."""
    folder = ran("sentiment")
    bundle = load(folder / "out")
    shutil.copy(folder / "held", folder / "aside.csv")
    aside = list(read_labelled(folder / "aside.csv", bundle.labels))
    assert len(aside) == 120
    for number, name in enumerate(("IMDB", "SST", "Hu and Liu 2004")):
        write_labelled(folder / "part.csv", aside[40 * number : 40 * number + 40])
        measured = evaluate(folder / "out", folder / "part.csv")
        assert measured["accuracy"] >= 0.9
        said = f"- {name}: accuracy {measured['accuracy']:.1%} on 40 texts set aside, cross entropy"
        assert f"{said} {measured['loss_nats']:.4f} nats a text; 0 of them were longer than 64 tokens" in bundle.card
        rows = [row for row in bundle.measured.slices if (row.data, row.features) == (name, ())]
        assert [(row.texts, row.accuracy) for row in rows] == [(40, measured["accuracy"])]
    for words in ("Maas et al. 2011", "research", "recipes.sentiment --data DIR --quick --seed 0", "What it cannot do"):
        assert words in bundle.card
    words_zh = ("Maas 等 2011", "研究", "recipes.sentiment --data DIR --quick --seed 0", "它做不到的事")
    for words in (*words_zh, "- IMDB：在留出的 40 条文本上准确率 "):
        assert words in bundle.card_zh
    for card in (bundle.card, bundle.card_zh):
        assert all(f"| {text} |" in card for text, _ in read_opinions("en"))
    right = bundle.card.count("| yes |")
    assert bundle.card_zh.count("| 是 |") == right
    assert f"{right} of 100 are right." in bundle.card
    assert bundle.labels == ("negative", "positive")
    assert [row.stage for row in bundle.measured.trained] == ["pretraining", "training", "training-2", "training-3"]
    assert bundle.measured.sureness


@pytest.mark.nightly
def test_by_subject_both_models_are_measured_on_the_part_for_choices(data, copied) -> None:
    """The Chinese classifier: a second one, which never saw two subjects, is measured beside it and not kept."""
    folder = copied("sentiment-zh")
    bundle = load(folder / "out")
    own = [row for row in bundle.measured.slices if row.data != "online reviews"]
    assert [row.data.removesuffix(sentiment.UNSEEN_MARK) for row in own] == ["takeaway", "hotels"] * 2
    assert [row.texts for row in own[:2]] == [row.texts for row in own[2:]]
    assert sum(row.texts for row in own[:2]) < 40  # the part for choices has 40 texts, and other subjects, too
    for seen, unseen in zip(own[:2], own[2:], strict=True):
        said = (
            f"- {seen.data}: {seen.accuracy:.1%} of {seen.texts:,}, and {unseen.accuracy:.1%} by a model that did not"
        )
        assert said in bundle.card
    assert "没有学过这一主题的模型为" in bundle.card_zh
    assert run("sentiment-zh", data, folder, "--again") == 0
    assert [row for row in load(folder / "out").measured.slices if row.data != "online reviews"] == own


def test_nothing_that_is_set_aside_is_learned_from(data) -> None:
    kinds = sentiment.english_kinds(data, quick=True, seed=0)
    assert [kind.name for kind in kinds] == ["IMDB", "SST", "Hu and Liu 2004", "own"]
    for kind in kinds[:3]:
        texts = [{example.text.casefold() for example in part} for part in (kind.learned, kind.choice, kind.test)]
        assert not any(first & second for first, second in combinations(texts, 2))
        assert (len(kind.choice), len(kind.test)) == (20, 40)
        assert not {example.text.casefold() for example in kind.read} & (texts[1] | texts[2])
    assert not kinds[3].test


@pytest.mark.nightly
def test_a_recipe_on_a_cluster_writes_the_bundle_that_it_writes_here(data, ran, tmp_path, monkeypatch, capfd) -> None:
    pytest.importorskip("ray", reason="ray is not installed (requirements-ray.txt)")
    with cluster(1) as address:
        monkeypatch.setenv("RAY_ADDRESS", address)
        assert run("lm-gru", data, tmp_path, "--on", "ray") == 0
    assert "nats a character" in capfd.readouterr().out
    here, there = load(ran("lm-gru") / "out", device="cpu"), load(tmp_path / "out", device="cpu")
    for name, weight in here.model.named_parameters():
        assert torch.equal(weight, there.model.get_parameter(name)), name
    assert (tmp_path / "held").exists() == (ran("lm-gru") / "held").exists()
    assert list((tmp_path / "work").rglob("*"))
