"""A bundle comes back as it was saved; one with anything wrong is refused; the shipped ones are there and trained."""

import json
import os
import pickle
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from tests.helpers import ROOT, nightly_but
from tests.helpers.bundles import FILES, change_weights, refused, rewrite, seal
from tests.helpers.engine import exactly, first_of, inputs, made, padded_ids, shipped, small_weights_packed
from transformer_core.analysis.bert.masked_words import fill_in
from transformer_core.bundle import CONFIGS, LABELLED, MODELS, Bundle, save
from transformer_core.checkpoints import load
from transformer_core.evaluation.bert import SentencePair, measure_sentence_pairs
from transformer_core.generation import greedy_words, translate
from transformer_core.models import Gpt
from transformer_core.prompt import Prompt
from transformer_core.text import Tokenizer
from transformer_core.untrusted.bundle_files import (
    CARD,
    CARD_ZH,
    CONFIG,
    LANGUAGES,
    LARGEST_HEADER,
    TOKENIZER,
    WEIGHTS,
    BundleError,
)


@pytest.mark.parametrize("kind", MODELS)
@pytest.mark.parametrize("tied", [True, False])
def test_a_bundle_comes_back_as_it_was(kind, tied, tmp_path, word_tokenizer):
    changes = {} if kind in CONFIGS else {"positions": "learned", "n_segments": 2}
    changes |= {} if kind in ("lm", "recurrent_classifier") else {"tied_output": tied}
    model = made(MODELS[kind], **changes)
    labels = ("no", "yes") if kind in LABELLED else ()
    save(Bundle("glass", model, word_tokenizer, labels, "# Glass, 玻璃"), tmp_path / "new" / "glass")
    state = torch.get_rng_state()
    loaded = load(tmp_path / "new" / "glass", device="cpu")
    assert torch.equal(torch.get_rng_state(), state)  # no weight is drawn that is replaced
    assert (loaded.name, loaded.kind, loaded.labels, loaded.card) == ("glass", kind, labels, "# Glass, 玻璃")
    assert loaded.config == model.config
    assert loaded.n_parameters == sum(parameter.numel() for parameter in model.parameters())
    for name, parameter in loaded.model.named_parameters():
        assert torch.equal(parameter, model.get_parameter(name))
        assert not parameter.requires_grad
    assert not loaded.model.training
    with torch.inference_mode(), small_weights_packed():
        given = inputs(MODELS[kind])
        assert torch.equal(first_of(loaded.model(*given)), first_of(model(*given)))
    assert loaded.tokenizer.encode("a glass bell").ids == word_tokenizer.encode("a glass bell").ids
    assert sorted(path.name for path in (tmp_path / "new" / "glass").iterdir()) == sorted(FILES)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_half_width_on_disk_is_near(dtype, tmp_path, word_tokenizer):
    model = made(Gpt)
    bundle = Bundle("glass", model, word_tokenizer)
    save(bundle, tmp_path / "whole")
    save(bundle, tmp_path / "half", dtype=dtype)
    sizes = [(tmp_path / name / WEIGHTS).stat().st_size for name in ("half", "whole")]
    assert sizes[0] < 0.7 * sizes[1]
    for name, parameter in load(tmp_path / "half").model.named_parameters():
        assert parameter.dtype == torch.float32
        expected = model.get_parameter(name).detach()
        torch.testing.assert_close(parameter, expected, rtol=torch.finfo(dtype).eps, atol=1e-6)


def test_a_missing_card_is_no_loss(folder):
    (folder / CARD).unlink()
    assert load(folder).card == ""


def test_a_card_in_chinese_comes_back_and_the_english_one_stands_in_for_it(tmp_path, word_tokenizer):
    bundle = Bundle("glass", made(Gpt), word_tokenizer, card="# Glass", card_zh="# 玻璃")
    save(bundle, tmp_path / "glass")
    loaded = load(tmp_path / "glass")
    assert (loaded.card, loaded.card_zh) == ("# Glass", "# 玻璃")
    assert [loaded.card_in(language) for language in LANGUAGES] == ["# Glass", "# 玻璃"]
    save(replace(bundle, card_zh=""), tmp_path / "glass")
    assert not (tmp_path / "glass" / CARD_ZH).exists()  # it was of the bundle before
    loaded = load(tmp_path / "glass")
    assert [loaded.card_in(language) for language in LANGUAGES] == ["# Glass", "# Glass"]


def test_a_running_model_does_not_depend_on_its_files(folder):
    running, ids = load(folder).model, padded_ids(3, 5)
    with torch.inference_mode():
        before = running(ids)
        for name in FILES:
            (folder / name).write_bytes(b"")
        with pytest.raises(BundleError):
            load(folder)
        assert torch.equal(running(ids), before)


def test_saving_again_replaces_the_old_bundle(folder, word_tokenizer):
    save(Bundle("glass", made(Gpt, seed=1), word_tokenizer, card="# New"), folder)
    assert load(folder).card == "# New"
    assert sorted(path.name for path in folder.iterdir()) == sorted(FILES)


class BrokenError(Exception):
    """A disk that is full, a machine that is switched off."""


@pytest.mark.parametrize(
    "step", ["transformer_core.bundle.save_file", "transformer_core.text.Tokenizer.save", "json.dumps"]
)
def test_a_save_that_fails_half_way_leaves_the_old_bundle_whole(folder, word_tokenizer, monkeypatch, step):
    def fail(*_, **__):
        raise BrokenError

    before = {name: (folder / name).read_bytes() for name in FILES}
    monkeypatch.setattr(step, fail)
    with pytest.raises(BrokenError):
        save(Bundle("glass", made(Gpt, seed=1), word_tokenizer), folder)
    monkeypatch.undo()
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == before
    assert load(folder).card == "# Glass"


@pytest.mark.parametrize("moved", [0, 1, 2, 3])
def test_a_save_that_stops_between_two_files_is_never_mistaken_for_a_bundle(folder, word_tokenizer, monkeypatch, moved):
    left, replace = [moved], os.replace

    def stop(*paths):
        if not left[0]:
            raise BrokenError
        left[0] -= 1
        replace(*paths)

    monkeypatch.setattr(os, "replace", stop)
    with pytest.raises(BrokenError):
        save(Bundle("glass", made(Gpt, seed=1), word_tokenizer, card="# Glass"), folder)
    monkeypatch.undo()
    if moved:
        with pytest.raises(BundleError, match=f"glass/{WEIGHTS} is not the file that was written"):
            load(folder)
    else:
        load(folder)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16])
def test_weights_that_could_not_be_read_again_are_not_written(tmp_path, word_tokenizer, dtype):
    model = made(Gpt)
    with torch.no_grad():
        model.output.proj.weight[0, 0] = 1e6 if dtype == torch.float16 else torch.nan
    message = f"decoder.embedding.token.weight is not finite in {dtype} (1 tensors in all)"
    with pytest.raises(BundleError, match=exactly(message)):
        save(Bundle("glass", model, word_tokenizer), tmp_path / "glass", dtype=dtype)
    assert not (tmp_path / "glass").exists()


@pytest.mark.parametrize("name", [WEIGHTS, TOKENIZER, CONFIG])
def test_a_missing_file_is_named(folder, name):
    (folder / name).unlink()
    refused(folder, f"glass/{name} is missing")


def test_a_missing_folder_is_named(tmp_path):
    refused(tmp_path / "glass", "glass: there is no such folder; a bundle is a folder with config.json in it")
    refused(tmp_path / ("x" * 5000), "cannot be read")


def test_a_list_of_more_tensors_than_are_read_is_refused_before_it_is_read(folder, monkeypatch):
    monkeypatch.setattr("transformer_core.untrusted.bundle_files.LARGEST_HEADER", 10_000)
    monkeypatch.setattr("transformer_core.bundle.safe_open", None)
    length = write_tensors(folder, 400)
    refused(folder, f"glass/{WEIGHTS} begins with a list of tensors of {length:,} bytes; at most 10,000 are read")


def test_as_many_tensors_as_are_read_are_compared(folder):
    assert 1_500_000 < write_tensors(folder, 36_000) < LARGEST_HEADER == 1 << 21
    refused(folder, f"glass/{WEIGHTS} lacks")


def write_tensors(folder, count: int) -> int:
    """Write weights that are a list of empty tensors; return how long it is."""
    entry = '"%d":{"dtype":"F32","shape":[0],"data_offsets":[0,0]}'
    header = ("{" + ",".join(entry % number for number in range(count)) + "}").encode()
    (folder / WEIGHTS).write_bytes(len(header).to_bytes(8, "little") + header)
    seal(folder)
    return len(header)


@pytest.mark.parametrize("name", [WEIGHTS, TOKENIZER])
def test_a_truncated_file_is_named(folder, name):
    whole = (folder / name).read_bytes()
    (folder / name).write_bytes(whole[:-1])
    refused(folder, f"glass/{name} has {len(whole) - 1} bytes; {len(whole)} were written: it is truncated or changed")


@pytest.mark.parametrize("name", [WEIGHTS, TOKENIZER])
@pytest.mark.parametrize("place", [0, 100, -1])
def test_a_flipped_byte_is_noticed(folder, name, place):
    changed = bytearray((folder / name).read_bytes())
    changed[place] ^= 1
    (folder / name).write_bytes(changed)
    refused(folder, f"glass/{name} is not the file that was written: its SHA-256 differs from config.json's")


def test_a_file_over_the_bound_is_not_read(folder):
    size = (folder / WEIGHTS).stat().st_size
    refused(folder, f"glass/{WEIGHTS} has {size} bytes; at most 1000 are read", max_bytes=1000)
    assert load(folder, max_bytes=size).name == "glass"


@pytest.mark.parametrize("name", [CONFIG, TOKENIZER, CARD, CARD_ZH])
def test_a_text_file_over_its_bound_is_not_read(folder, name, monkeypatch):
    for module in ("untrusted.bundle_files", "bundle"):
        monkeypatch.setattr(f"transformer_core.{module}.LARGEST_TEXT_FILE", 100_000)
    with (folder / name).open("ab") as file:
        file.write(b" " * 100_001)
    refused(folder, f"glass/{name} has", "bytes; at most 100000 are read")


@pytest.mark.parametrize("name", [*FILES, CARD_ZH])
def test_links_are_not_followed(folder, name, tmp_path):
    (folder / CARD_ZH).write_text("# 玻璃", encoding="utf-8")
    (folder / name).rename(tmp_path / "outside")
    (folder / name).symlink_to(tmp_path / "outside")
    refused(folder, f"glass/{name} is a link; a bundle's files lie in its folder")


def test_names_that_point_outside_are_not_followed(folder, tmp_path):
    config = json.loads((folder / CONFIG).read_text())
    (folder / WEIGHTS).rename(tmp_path / WEIGHTS)
    rewrite(folder, files={f"../{WEIGHTS}": config["files"][WEIGHTS], TOKENIZER: config["files"][TOKENIZER]})
    refused(folder, f"glass/{WEIGHTS} is missing")


def drop(tensors: dict) -> None:
    del tensors["decoder.stack.final_norm.weight"]


def add(tensors: dict) -> None:
    tensors["decoder.stack.spare"] = torch.zeros(2)


def reshape(tensors: dict) -> None:
    tensors["decoder.stack.final_norm.weight"] = torch.zeros(17)


def put(value: float, dtype: torch.dtype):
    def change(tensors: dict) -> None:
        tensors["decoder.stack.final_norm.bias"] = torch.full((16,), value, dtype=dtype)

    return change


FINITE = "decoder.stack.final_norm.bias must hold finite floating-point numbers"
SPOILT = {
    "missing": (drop, "lacks decoder.stack.final_norm.weight (1 tensors in all)"),
    "extra": (add, "has decoder.stack.spare, which this model lacks (1 in all)"),
    "shape": (reshape, "decoder.stack.final_norm.weight has shape (17,); config.json calls for (16,)"),
    "nan": (put(float("nan"), torch.float32), FINITE),
    "infinite": (put(float("inf"), torch.float16), FINITE),
    "too large for float32": (put(1e300, torch.float64), FINITE),
    "whole numbers": (put(1, torch.int64), FINITE),
    "truth values": (put(1, torch.bool), FINITE),
    "eight bits": (put(1.0, torch.float8_e4m3fn), FINITE),
}


@pytest.mark.parametrize(("change", "reason"), SPOILT.values(), ids=SPOILT)
def test_weights_that_do_not_fit_are_named(folder, change, reason):
    change_weights(folder, change)
    refused(folder, f"glass/{WEIGHTS}", reason)


class Trap:
    """Marks its being unpickled."""

    sprung = False

    def __reduce__(self):
        return setattr, (Trap, "sprung", True)


@pytest.mark.parametrize("content", [b"", b"\0", b"\xff" * 64, pickle.dumps(Trap()), b"PK\x03\x04" + b"\0" * 60])
def test_what_is_not_safetensors_is_never_opened(folder, content):
    (folder / WEIGHTS).write_bytes(content)
    seal(folder)
    refused(folder, f"glass/{WEIGHTS} is not a safetensors file")
    assert not Trap.sprung


NO_TOKENIZERS = [b"", b"{}", b"[]", b"\xff\xfe", b"[" * 100_000, b'{"model": {}}', pickle.dumps(Trap())]


@pytest.mark.parametrize("content", NO_TOKENIZERS)
def test_what_is_no_tokenizer_is_refused(folder, content):
    (folder / TOKENIZER).write_bytes(content)
    seal(folder)
    refused(folder, f"glass/{TOKENIZER}")


def test_a_label_that_no_page_can_write_is_refused_with_words(folder):
    config = json.loads((folder / CONFIG).read_text())
    (folder / CONFIG).write_text(json.dumps(config | {"labels": ["good", "b\ud800d"]}))
    refused(folder, r"labels[1] must be valid Unicode: character 1 is the lone surrogate '\ud800'")


def test_a_tokenizer_of_more_words_than_the_model_is_refused(folder):
    Tokenizer.train("word", ["and many more words than there were"] * 2, vocab_size=40).save(folder / TOKENIZER)
    seal(folder)
    refused(folder, f"glass/{TOKENIZER} has", "tokens; the model reads 13")


FOLDER = ROOT / "assets" / "checkpoints"
KINDS = {
    "sentiment": "classifier",
    "translation-en-fr": "translation",
    "translation-en-zh": "translation",
    "seq2seq-en-fr": "seq2seq",
    "bert": "bert",
    "gpt": "gpt",
    "gpt-today": "gpt",
    "gpt-draft": "gpt",
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
MOST_MB, MOST_MB_TOGETHER = 10, 100


def megabytes(folder: Path) -> float:
    """Return the size of all files of a folder."""
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file()) / MB


def test_all_are_there_and_small_enough() -> None:
    assert {path.name for path in FOLDER.iterdir()} == KINDS.keys()
    assert megabytes(FOLDER) <= MOST_MB_TOGETHER
    for name in KINDS:
        assert megabytes(FOLDER / name) <= MOST_MB, name


@pytest.mark.parametrize("name", KINDS)
def test_each_card_says_what_it_was_trained_on_how_good_it_is_and_what_it_cannot_do(name: str) -> None:
    card, card_zh = ((FOLDER / name / file).read_text(encoding="utf-8") for file in (CARD, CARD_ZH))
    for needed in (
        *(f"# {name}: ", "| data |", "| licence |", "| recipe | `python -m transformer_core.recipes."),
        *("| cost |", "minutes of processor time", "## Measured quality", "## What it cannot do"),
        f"python -m transformer_core.evaluation assets/checkpoints/{name} ",
    ):
        assert needed in card, needed
    for needed in (f"# {name}: ", "| 数据 |", "| 许可 |", "| 用时 |", "处理器时间", "## 测得的质量", "## 它做不到的事"):
        assert needed in card_zh, needed
    assert code_of(card) == code_of(card_zh)


ONE_OF_EACH = [
    (name, kind) for place, (name, kind) in enumerate(KINDS.items()) if kind not in [*KINDS.values()][:place]
]


@pytest.mark.parametrize(("name", "kind"), nightly_but(KINDS.items(), ONE_OF_EACH))
def test_each_opens_in_evaluation_mode_with_its_cards(name: str, kind: str) -> None:
    bundle = shipped(name)
    assert bundle.kind == kind
    assert not bundle.model.training
    assert bundle.card == (FOLDER / name / CARD).read_text(encoding="utf-8")
    assert bundle.card_zh == (FOLDER / name / CARD_ZH).read_text(encoding="utf-8")


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
    found = fill_in(prompt=Prompt(bundle, text, len(encoding)), hidden=(place,))
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
