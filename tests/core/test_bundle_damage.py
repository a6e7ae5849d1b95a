"""A bundle with anything wrong is refused with BundleError, which names the file and the reason."""

import json
import pickle
import time

import pytest
import torch

from tests.helpers.bundles import FILES, change_weights, refused, rewrite, seal
from transformer_core.bundle_files import CARD, CARD_ZH, CONFIG, TOKENIZER, WEIGHTS
from transformer_core.checkpoints import load
from transformer_core.text import Tokenizer


@pytest.mark.parametrize("name", [WEIGHTS, TOKENIZER, CONFIG])
def test_a_missing_file_is_named(folder, name):
    (folder / name).unlink()
    refused(folder, f"glass/{name} is missing")


def test_a_missing_folder_is_named(tmp_path):
    refused(tmp_path / "glass", "glass: there is no such folder; a bundle is a folder with config.json in it")
    refused(tmp_path / ("x" * 5000), "cannot be read")


def test_a_million_tensors_are_refused_before_their_list_is_read(folder):
    entry = '"%d":{"dtype":"F32","shape":[0],"data_offsets":[0,0]}'
    header = ("{" + ",".join(entry % number for number in range(1_200_000)) + "}").encode()
    (folder / WEIGHTS).write_bytes(len(header).to_bytes(8, "little") + header)
    seal(folder)
    start = time.process_time()
    refused(
        folder, f"glass/{WEIGHTS} begins with a list of tensors of {len(header):,} bytes; at most 2,097,152 are read"
    )
    assert time.process_time() - start < 2


def test_as_many_tensors_as_are_read_take_no_time_either(folder):
    entry = '"%d":{"dtype":"F32","shape":[0],"data_offsets":[0,0]}'
    header = ("{" + ",".join(entry % number for number in range(36_000)) + "}").encode()
    (folder / WEIGHTS).write_bytes(len(header).to_bytes(8, "little") + header)
    seal(folder)
    start = time.process_time()
    refused(folder, f"glass/{WEIGHTS} lacks")
    assert time.process_time() - start < 2


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
    for module in ("bundle_files", "bundle"):
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


def test_a_tokenizer_of_more_words_than_the_model_is_refused(folder):
    Tokenizer.train("word", ["and many more words than there were"] * 2, vocab_size=40).save(folder / TOKENIZER)
    seal(folder)
    refused(folder, f"glass/{TOKENIZER} has", "tokens; the model reads 13")
