"""The config.json of a bundle is believed in nothing: not its form, not its words, not its sizes."""

import json
import time

import pytest

from tests.helpers.bundles import change_model, refused, rewrite
from transformer_core.bundle_files import CONFIG
from transformer_core.checkpoints import load

DEEP = json.loads("[" * 900 + "]" * 900)
NOT_JSON = {
    "empty": b"",
    "cut": b'{"format": 1, "kind"',
    "not utf-8": b"\xff\xfe\x00",
    "a number too long": b'{"format": ' + b"9" * 5000 + b"}",
}


@pytest.mark.parametrize("content", NOT_JSON.values(), ids=NOT_JSON)
def test_what_is_not_json_is_refused(folder, content):
    (folder / CONFIG).write_bytes(content)
    refused(folder, f"glass/{CONFIG} is not JSON: ")


@pytest.mark.parametrize("content", [b"[" * 100_000, b'{"model":' * 50_000])
def test_what_is_nested_too_deeply_is_refused(folder, content):
    (folder / CONFIG).write_bytes(content)
    refused(folder, f"glass/{CONFIG} is nested too deeply")


@pytest.mark.parametrize("place", ["format", "kind", "labels", "model", "files"])
def test_a_deep_value_anywhere_is_refused(folder, place):
    rewrite(folder, **{place: DEEP})
    refused(folder, f"glass/{CONFIG}")


@pytest.mark.parametrize("place", ["d_model", "positions", "norm_eps", "pad_id", "bias"])
def test_a_deep_value_in_the_model_is_refused(folder, place):
    change_model(folder, **{place: DEEP})
    refused(folder, f"glass/{CONFIG}")


@pytest.mark.parametrize("content", [b"[]", b"1", b"null", b'"text"', b"{}", b'{"format": 2}', b'{"format": [1]}'])
def test_another_format_is_refused(folder, content):
    (folder / CONFIG).write_bytes(content)
    refused(folder, f"glass/{CONFIG} is not a bundle's: it must hold an object with format=1")


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"kind": "rnn"}, "kind='rnn' is unknown; it must be one of classifier, translation, bert, gpt"),
        ({"kind": "x" * 10_000}, "is unknown; it must be one of classifier, translation, bert, gpt"),
        ({"kind": ["gpt"]}, "kind is a list; it must be a str"),
        ({"kind": None}, "kind is a NoneType; it must be a str"),
        ({"model": []}, "model is a list; it must be a dict"),
        ({"files": "model.safetensors"}, "files is a str; it must be a dict"),
        ({"labels": "yes"}, "labels is a str; it must be a list"),
        ({"labels": ["no", 1]}, "labels must all be strings"),
        ({"files": {}}, "does not list model.safetensors among its files"),
        ({"files": {"model.safetensors": "sound"}}, "does not list model.safetensors among its files"),
    ],
)
def test_parts_of_the_wrong_form_are_named(folder, changes, reason):
    rewrite(folder, **changes)
    refused(folder, f"glass/{CONFIG}", reason)


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"colour": "blue"}, "unexpected keyword argument 'colour'"),
        ({"__class__": "os.system"}, "unexpected keyword argument '__class__'"),
        ({"positions": "cosine"}, "positions='cosine' is unknown"),
        ({"positions": "x" * 10_000}, "positions='xxx"),
        ({"d_model": 1 << 60}, f"d_model={1 << 60} must be a whole number from 1 to 65536"),
        ({"n_layers": 1e300}, "n_layers=1e+300 must be a whole number from 1 to 256"),
        ({"norm_eps": 10**400}, "norm_eps=1000"),
        ({"dropout": None}, "dropout=None must be a number"),
        ({"causal": "no"}, "causal='no' must be True or False"),
        ({"vocab_size": True}, "vocab_size=True must be a whole number"),
    ],
)
def test_a_model_that_cannot_be_is_named(folder, changes, reason):
    change_model(folder, **changes)
    refused(folder, f"glass/{CONFIG}: model: ", reason)


def test_a_model_without_a_vocabulary_is_named(folder):
    rewrite(folder, model={})
    refused(folder, f"glass/{CONFIG}: model: ", "missing 1 required keyword-only argument: 'vocab_size'")


def test_sizes_that_no_machine_holds_cost_nothing(folder):
    huge = {"vocab_size": 1_000_000, "d_model": 65_536, "n_heads": 1_024, "d_head": 8_192, "d_ff": 262_144}
    change_model(folder, **huge, max_len=131_072, positions="learned")
    start = time.process_time()
    refused(folder, "glass/model.safetensors: the model has vocab_size=1,000,000; at most 262,144 are opened")
    change_model(folder, vocab_size=262_144)
    refused(
        folder, "glass/model.safetensors: the model has 4,492,587,565,056 parameters; at most 400,000,000 are opened"
    )
    change_model(folder, vocab_size=13, d_model=64, d_head=64, d_ff=64, n_heads=4)
    refused(folder, "glass/model.safetensors lacks decoder.embedding.position.weight")
    assert time.process_time() - start < 5


def test_heads_that_cost_nothing_on_disk_and_much_in_a_pass_are_bounded(folder):
    change_model(folder, n_layers=256, n_heads=1_024, d_head=1)
    refused(folder, "the model has n_layers x n_heads=262,144; at most 2,048 are opened")


def test_another_kind_does_not_fit_the_weights(folder):
    rewrite(folder, kind="bert")
    refused(folder, "glass/model.safetensors lacks encoder.embedding.token.weight")


def test_labels_must_be_as_many_as_classes(folder):
    rewrite(folder, kind="classifier", labels=["one", "two", "three"])
    refused(folder, f"glass/{CONFIG} has 3 labels for n_classes=2")


def test_other_keys_do_no_harm(folder):
    rewrite(folder, note="written by hand", files_of_others={"../../etc/passwd": {}})
    assert load(folder).name == "glass"
