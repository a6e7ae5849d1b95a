"""A config is checked once, when it is made; a bundle's config.json is believed in nothing."""

import dataclasses
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.helpers.bundles import change_model, refused, rewrite
from tests.helpers.engine import exactly
from transformer_core.checkpoints import load
from transformer_core.config import ModelConfig
from transformer_core.untrusted.bundle_files import CONFIG

LARGEST = {
    "vocab_size": 1_000_000,
    "target_vocab_size": 1_000_000,
    "d_model": 65_536,
    "n_heads": 1_024,
    "d_head": 8_192,
    "d_ff": 262_144,
    "n_layers": 256,
    "max_len": 131_072,
    "relative_buckets": 4_096,
    "relative_distance": 131_072,
    "n_segments": 64,
    "n_classes": 100_000,
    "n_experts": 1_024,
    "n_active_experts": 1_024,
    "shared_d_ff": 262_144,
}
MAY_BE_ZERO = {"n_segments", "n_experts", "n_active_experts", "shared_d_ff"}
FLAGS = [field.name for field in dataclasses.fields(ModelConfig) if isinstance(field.default, bool)]

ERRORS = [
    ({"d_model": 10, "n_heads": 4}, "d_model=10 must be divisible by n_heads=4, or d_head must be given"),
    (
        {"d_model": 9, "n_heads": 3},
        "d_model=9 must be even with positions='sinusoidal': sines and cosines come in pairs",
    ),
    (
        {"d_model": 9, "n_heads": 3, "positions": "sinusoidal_doubled"},
        "d_model=9 must be even with positions='sinusoidal_doubled': sines and cosines come in pairs",
    ),
    (
        {"d_model": 12, "n_heads": 4, "positions": "rotary"},
        "d_head=3 must be even with positions='rotary': coordinates turn in pairs",
    ),
    ({"d_head": 5, "positions": "rotary"}, "d_head=5 must be even with positions='rotary': coordinates turn in pairs"),
    (
        {"d_model": 8, "n_heads": 2, "d_head": 3, "projections": False},
        "n_heads=2 times d_head=3 must be d_model=8 with projections=False",
    ),
    (
        {"d_model": 1, "n_heads": 1, "positions": "none", "norm": "unbiased"},
        "d_model=1 must be at least 2 with norm='unbiased', which divides by d - 1",
    ),
    (
        {"embedding_width": 7},
        "embedding_width=7 must be even with positions='sinusoidal': sines and cosines come in pairs",
    ),
    (
        {"embedding_width": 1, "positions": "none", "norm": "unbiased"},
        "embedding_width=1 must be at least 2 with norm='unbiased', which divides by d - 1",
    ),
    (
        {"norm_bias": False, "norm": "rms_norm"},
        "norm_bias=False goes with norm='layer_norm' alone; norm='rms_norm' came",
    ),
    (
        {"positions": "relative", "relative_buckets": 7},
        "relative_buckets=7 must be even and at least 4: half a side",
    ),
    (
        {"positions": "relative", "relative_buckets": 32, "relative_distance": 16},
        "relative_distance=16 must be more than half of relative_buckets=32, which are for one distance each",
    ),
    ({"pooler_norm": True}, "pooler_norm=True must be False with pooler='none': there is nothing to normalise"),
    (
        {"first_attention_norm": False, "norm_order": "post"},
        "first_attention_norm=False needs norm_order='pre' and shared_layers=False; "
        "norm_order='post' and shared_layers=False came",
    ),
    (
        {"shared_layers": True, "windows": (3, None)},
        "windows=(3, None) must be alike with shared_layers=True: all layers are one block",
    ),
    ({"dropout": 1.0}, "dropout=1.0 must be a number, at least 0 and less than 1"),
    ({"dropout": -0.1}, "dropout=-0.1 must be a number, at least 0 and less than 1"),
    ({"dropout": float("nan")}, "dropout=nan must be a number, at least 0 and less than 1"),
    ({"dropout": "0.1"}, "dropout='0.1' must be a number, at least 0 and less than 1"),
    ({"dropout": False}, "dropout=False must be a number, at least 0 and less than 1"),
    ({"norm_eps": 0.0}, "norm_eps=0.0 must be a number, more than 0 and at most 1"),
    ({"norm_eps": float("inf")}, "norm_eps=inf must be a number, more than 0 and at most 1"),
    ({"norm_eps": 10**400}, f"norm_eps={10**400} must be a number, more than 0 and at most 1"),
    ({"pad_id": 13}, "pad_id=13 must be an id of the vocabulary, 0 to 12"),
    ({"pad_id": -1}, "pad_id=-1 must be an id of the vocabulary, 0 to 12"),
    ({"pad_id": 0.5}, "pad_id=0.5 must be an id of the vocabulary, 0 to 12"),
    ({"pad_id": "0"}, "pad_id='0' must be an id of the vocabulary, 0 to 12"),
    ({"activation": "swish"}, "activation='swish' is unknown; it must be one of 'relu', 'gelu', 'gelu_tanh', 'silu'"),
    (
        {"positions": "cosine"},
        "positions='cosine' is unknown; it must be one of "
        "'sinusoidal', 'sinusoidal_doubled', 'learned', 'rotary', 'alibi', 'relative', 'none'",
    ),
    ({"norm": "batch"}, "norm='batch' is unknown; it must be one of 'layer_norm', 'unbiased', 'rms_norm'"),
    ({"pooler": "silu"}, "pooler='silu' is unknown; it must be one of 'none', 'tanh', 'relu', 'gelu'"),
    ({"norm_order": "mid"}, "norm_order='mid' is unknown; it must be one of 'pre', 'post', 'both', 'output'"),
    ({"scoring": "cosine"}, "scoring='cosine' is unknown; it must be one of 'dot_product', 'additive'"),
    ({"pooling": "max"}, "pooling='max' is unknown; it must be one of 'cls', 'mean'"),
    ({"pooling": ["cls"]}, "pooling=['cls'] is unknown; it must be one of 'cls', 'mean'"),
    ({"n_experts": 4}, "n_active_experts=0 must be from 1 to n_experts=4"),
    ({"n_experts": 4, "n_active_experts": 5}, "n_active_experts=5 must be from 1 to n_experts=4"),
    (
        {"n_experts": 1, "n_active_experts": 1},
        "n_experts=1 must be 0 or at least 2: of one expert a router has nothing to choose",
    ),
    (
        {"n_layers": 256, "n_experts": 1_024, "n_active_experts": 2},
        "n_layers=256 times n_experts=1024 is 262,144; it must be at most 2,048",
    ),
    ({"n_active_experts": 2}, "n_active_experts=2 goes with experts alone; n_experts=0 must be at least 2"),
    ({"shared_d_ff": 8}, "shared_d_ff=8 goes with experts alone; n_experts=0 must be at least 2"),
    ({"shared_gate": True}, "shared_gate=True goes with experts alone; n_experts=0 must be at least 2"),
    (
        {"expert_weights_sum_to_one": True},
        "expert_weights_sum_to_one=True goes with experts alone; n_experts=0 must be at least 2",
    ),
    (
        {"n_experts": 4, "n_active_experts": 1, "shared_gate": True},
        "shared_gate=True goes with a shared expert alone; shared_d_ff=0 must be at least 1",
    ),
]


@pytest.mark.parametrize(("changes", "message"), ERRORS)
def test_every_error_names_the_values(changes, message):
    with pytest.raises(ValueError, match=exactly(message)):
        ModelConfig(**({"vocab_size": 13} | changes))


@pytest.mark.parametrize("name", LARGEST)
@pytest.mark.parametrize("value", [-1, 2.0, True, False, "8", 10**12, float("nan")])
def test_sizes_are_whole_numbers_within_bounds(name, value):
    smallest = 0 if name in MAY_BE_ZERO else 1
    message = f"{name}={value!r} must be a whole number from {smallest} to {LARGEST[name]}"
    with pytest.raises(ValueError, match=exactly(message)):
        ModelConfig(**({"vocab_size": 13} | {name: value}))


@pytest.mark.parametrize("name", sorted(set(LARGEST) - MAY_BE_ZERO))
def test_no_size_is_zero(name):
    with pytest.raises(ValueError, match=exactly(f"{name}=0 must be a whole number from 1 to {LARGEST[name]}")):
        ModelConfig(**({"vocab_size": 13} | {name: 0}))


@pytest.mark.parametrize("name", sorted(set(LARGEST) - {"d_head", "target_vocab_size"}))
def test_no_size_but_two_may_be_left_open(name):
    with pytest.raises(ValueError, match=rf"^{name}=None must be a whole number"):
        ModelConfig(**({"vocab_size": 13} | {name: None}))


@pytest.mark.parametrize("name", FLAGS)
@pytest.mark.parametrize("value", ["no", 1, None])
def test_flags_are_true_or_false(name, value):
    with pytest.raises(ValueError, match=exactly(f"{name}={value!r} must be True or False")):
        ModelConfig(vocab_size=13, **{name: value})


def test_every_whole_number_has_bounds():
    whole = {field.name for field in dataclasses.fields(ModelConfig) if type(field.default) is int}
    assert whole - {"pad_id"} <= set(LARGEST)


@given(st.integers(1, 64), st.integers(1, 16), st.none() | st.integers(1, 64))
def test_d_head_is_given_or_the_quotient(d_model, n_heads, d_head):
    sizes = {"vocab_size": 13, "d_model": d_model, "n_heads": n_heads, "d_head": d_head, "positions": "learned"}
    if d_head is None and d_model % n_heads:
        with pytest.raises(ValueError, match=rf"^d_model={d_model} must be divisible by n_heads={n_heads}, "):
            ModelConfig(**sizes)
    else:
        assert ModelConfig(**sizes).d_head == (d_head or d_model // n_heads)


def test_the_target_vocabulary_is_the_sources_unless_given():
    assert ModelConfig(vocab_size=13).target_vocab_size == 13
    assert ModelConfig(vocab_size=13, target_vocab_size=7).target_vocab_size == 7


def test_a_config_cannot_be_changed():
    with pytest.raises(dataclasses.FrozenInstanceError):
        ModelConfig(vocab_size=13).d_model = 8  # type: ignore[misc]


def test_a_config_survives_being_written_out():
    config = ModelConfig(vocab_size=13, d_head=5, positions="alibi", pad_id=None)
    assert ModelConfig(**dataclasses.asdict(config)) == config


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
    refused(folder, f"glass/{CONFIG} has neither format=1, as a bundle of ours has, nor model_type")


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
    refused(folder, "glass/model.safetensors: the model has vocab_size=1,000,000; at most 262,144 are opened")
    change_model(folder, vocab_size=262_144)
    refused(
        folder, "glass/model.safetensors: the model has 4,492,587,565,056 parameters; at most 650,000,000 are opened"
    )
    change_model(folder, vocab_size=13, d_model=64, d_head=64, d_ff=64, n_heads=4)
    refused(folder, "glass/model.safetensors lacks decoder.embedding.position.weight")


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
