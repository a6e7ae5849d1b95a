"""Quality by length: each sentence is in its bin, an interval holds its score, the command writes what it measured."""

from pathlib import Path

import pytest
import sacrebleu

from tests.helpers.engine import exactly, made
from transformer_core.analysis.before.by_length import read_by_length
from transformer_core.bundle import Bundle, save
from transformer_core.evaluation.by_length import main, measure_by_length, places_by_length, resampled_bleu
from transformer_core.evaluation.translation import measure_translation
from transformer_core.models.recurrent import RecurrentLm, Seq2Seq
from transformer_core.text import Tokenizer

SOURCES = ["a cat", "a cat sat", "a cat sat on the mat and a dog sat on it too", "the mat"]
REFERENCES = ["le chat", "le chat dort", "le chat dort sur le tapis", "le tapis"]
PAIRS = list(zip(SOURCES, REFERENCES, strict=True))


@pytest.fixture
def bundle() -> Bundle:
    tokenizer = Tokenizer.train("word", [*SOURCES, *REFERENCES], min_frequency=1, template="bos_eos")
    model = made(Seq2Seq, vocab_size=tokenizer.vocab_size, attention=None)
    return Bundle("old", model.requires_grad_(False), tokenizer)


def test_every_sentence_is_in_the_bin_of_its_length() -> None:
    assert places_by_length(SOURCES, (2, 5)) == [[0, 3], [1], [2]]
    assert places_by_length(SOURCES, (2, 3, 5)) == [[0, 3], [1], [2]]  # a bin without sentences is left out


def test_an_interval_is_about_the_score_of_all() -> None:
    written = [*REFERENCES[:3], "un chien"]
    metric = sacrebleu.BLEU(tokenize="13a")
    score, low, high = resampled_bleu(metric, written * 20, REFERENCES * 20, times=200)
    assert score == pytest.approx(metric.corpus_score(written * 20, [REFERENCES * 20]).score)
    assert 0 < low < score < high <= 100
    assert (score, low, high) == resampled_bleu(metric, written * 20, REFERENCES * 20, times=200)


def test_all_sentences_score_as_evaluate_says(bundle: Bundle) -> None:
    found = measure_by_length([bundle], PAIRS, files=("s", "r"), command="c", times=10)
    assert found.overall[0] == measure_translation(bundle, PAIRS)["bleu"]
    assert found.sentences.tolist() == [3, 1]
    assert (found.fewest.tolist(), found.most.tolist()) == ([2, 13], [3, 13])


def test_the_command_writes_what_it_measured_and_names_no_folder_of_the_data(
    bundle: Bundle, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture
) -> None:
    monkeypatch.chdir(tmp_path)
    save(bundle, tmp_path / "old")
    for name, lines in (("s.en", SOURCES), ("s.fr", REFERENCES)):
        (tmp_path / name).write_text("\n".join(lines) + "\n", encoding="utf-8")
    files = ["--sources", str(tmp_path / "s.en"), "--references", str(tmp_path / "s.fr"), "--out", "out.json"]
    assert main(["old", *files]) == 0
    found = read_by_length(tmp_path / "out.json")
    assert found.models == ("old",)
    assert found.command == (
        "python -m transformer_core.evaluation.by_length old --sources s.en --references s.fr --out out.json"
    )
    capsys.readouterr()
    assert main(["nothing", *files]) == 2
    assert capsys.readouterr().err.startswith("by_length: ")


def test_other_kinds_are_refused() -> None:
    tokenizer = Tokenizer.train("character", SOURCES, min_frequency=1, template="none")
    model = made(RecurrentLm, vocab_size=tokenizer.vocab_size)
    message = "bundle='lm' is a lm; it must be one of translation, seq2seq"
    with pytest.raises(ValueError, match=exactly(message)):
        measure_by_length([Bundle("lm", model, tokenizer)], PAIRS, files=("s", "r"), command="c")
    with pytest.raises(ValueError, match="at least one of each"):
        measure_by_length([], PAIRS, files=("s", "r"), command="c")
