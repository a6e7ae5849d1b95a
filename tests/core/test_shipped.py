"""The models that lie in assets/checkpoints: all there, small enough, described, and trained."""

from functools import cache
from pathlib import Path

import pytest
import torch

from transformer_core.analysis.bert.masked_words import fill_in
from transformer_core.bundle import Bundle
from transformer_core.checkpoints import load
from transformer_core.evaluation.bert import SentencePair, measure_sentence_pairs
from transformer_core.generation import greedy_words, translate

FOLDER = Path(__file__).parents[2] / "assets" / "checkpoints"
KINDS = {
    "sentiment": "classifier",
    "translation-en-fr": "translation",
    "translation-en-zh": "translation",
    "seq2seq-en-fr": "seq2seq",
    "bert": "bert",
    "gpt": "gpt",
    "gpt-char": "gpt",
    "gpt-poem": "gpt",
    "lm-gru": "lm",
    "lm-lstm": "lm",
    "lm-rnn": "lm",
    "sentiment-zh": "classifier",
    "seq2seq-en-fr-plain": "seq2seq",
    "translation-en-de": "translation",
    "translation-zh-en": "translation",
}
MB = 1_000_000
MOST_MB, MOST_MB_TOGETHER = 10, 90


@cache
def shipped(name: str) -> Bundle:
    """Return a shipped bundle."""
    return load(FOLDER / name, device="cpu")


def megabytes(folder: Path) -> float:
    """Return the size of all files of a folder."""
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file()) / MB


def test_all_are_there_and_small_enough() -> None:
    assert {path.name for path in FOLDER.iterdir()} == KINDS.keys()
    assert megabytes(FOLDER) <= MOST_MB_TOGETHER
    for name in KINDS:
        assert megabytes(FOLDER / name) <= MOST_MB, name


@pytest.mark.parametrize(("name", "kind"), KINDS.items())
def test_each_opens_and_says_what_it_was_trained_on_how_good_it_is_and_what_it_cannot_do(name: str, kind: str) -> None:
    bundle = shipped(name)
    assert bundle.kind == kind
    assert not bundle.model.training
    for needed in (
        f"# {name}: ",
        "| data |",
        "| licence |",
        "| recipe | `python -m transformer_core.recipes.",
        "| cost |",
        "minutes of processor time",
        "## Measured quality",
        f"python -m transformer_core.evaluation assets/checkpoints/{name} ",
        "## What it cannot do",
    ):
        assert needed in bundle.card, needed
    for needed in (f"# {name}: ", "| 数据 |", "| 许可 |", "| 用时 |", "处理器时间", "## 测得的质量", "## 它做不到的事"):
        assert needed in bundle.card_zh, needed
    assert code_of(bundle.card) == code_of(bundle.card_zh)


def code_of(card: str) -> list[str]:
    """Return the commands and samples of a card, which are the same in every language."""
    return [line for line in card.splitlines() if line.startswith("    ")] + card.split("```")[1::2]


@pytest.mark.parametrize(
    ("name", "source", "words"),
    [
        ("translation-en-fr", "A man is riding a horse.", {"homme", "cheval"}),
        ("seq2seq-en-fr", "A man is riding a horse.", {"homme", "cheval"}),
        ("translation-en-zh", "Thank you very much.", {"谢"}),
    ],
)
def test_an_everyday_sentence_is_translated(name: str, source: str, words: set[str]) -> None:
    (translation,) = translate(shipped(name), [source])
    assert all(word in translation for word in words), translation


def test_bert_guesses_what_is_ridden_and_tells_one_picture_from_two() -> None:
    text = "A cowboy is riding a brown horse."
    bundle = shipped("bert")
    encoding = bundle.tokenizer.encode(text)
    place = encoding.labels.index("horse")
    found = fill_in(bundle=bundle, text=text, n_tokens=len(encoding), hidden=(place,))
    assert "horse" in found.labels[0][:3]
    pairs = [
        SentencePair("Two dogs run on the beach.", "Dogs are playing in the sand near the ocean.", True),
        SentencePair("Two dogs run on the beach.", "A chef is cooking in a kitchen.", False),
        SentencePair("A boy kicks a soccer ball.", "Children are playing soccer on a field.", True),
        SentencePair("A boy kicks a soccer ball.", "A woman is reading a book in the library.", False),
    ]
    assert measure_sentence_pairs(bundle, pairs)["accuracy"] == 1.0


def test_gpt_writes_on_in_words() -> None:
    bundle = shipped("gpt")
    ids = torch.tensor([bundle.tokenizer.encode("Once upon a").ids])
    written = [step.token_id for step in greedy_words(bundle.model, ids, most=3)]
    assert bundle.tokenizer.decode(written).strip().startswith("time")
