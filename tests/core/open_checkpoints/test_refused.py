"""Damaged or hostile checkpoints are told before they are believed; what we do not compute is refused by name."""

import json
from pathlib import Path
from types import SimpleNamespace

import huggingface_hub
import pytest
import torch
from safetensors.torch import load_file, save_file

from tests.helpers.bundles import refused
from tests.helpers.open_checkpoints import change_settings, written
from transformer_core.checkpoints import load
from transformer_core.open_checkpoints import kind_of_folder
from transformer_core.open_checkpoints.sentence_modules import SentenceModules, read_modules
from transformer_core.untrusted.bundle_files import BundleError

SETTINGS = {
    "another family": ({"model_type": "bloom"}, "model_type='bloom' is not supported; supported: bert, distilbert, "),
    "no Transformer": (
        {"model_type": "mamba"},
        "model_type='mamba' is a state-space model, and this app reads Transformers; supported: bert, distilbert, ",
    ),
    "another head": (
        {"architectures": ["BertForMultipleChoice"]},
        "architectures=['BertForMultipleChoice'] is not supported; supported: BertModel, BertForMaskedLM, ",
    ),
    "another activation": ({"hidden_act": "mish"}, "hidden_act='mish' is not supported; supported: gelu, gelu_new, "),
    "no activation": ({"hidden_act": ["gelu"]}, "hidden_act=['gelu'] is not supported"),
    "relative positions": (
        {"position_embedding_type": "relative_key"},
        "position_embedding_type='relative_key' is not supported; supported: 'absolute'",
    ),
    "code of its own": ({"auto_map": {"AutoModel": "evil.Model"}}, "nothing of a checkpoint is executed"),
    "quantized": ({"quantization_config": {"bits": 4}}, "only whole floating-point weights are read"),
    "a decoder": ({"is_decoder": True}, "is_decoder=True is not supported; supported: False"),
    "a missing size": ({"hidden_size": None}, "config.json lacks hidden_size"),
    "a text for a size": ({"hidden_size": "16"}, "d_model='16' must be a whole number"),
    "a huge size": ({"num_hidden_layers": 10**9}, "n_layers=1000000000 must be a whole number from 1 to 256"),
    "another size": ({"intermediate_size": 25}, "intermediate.dense.weight has shape (24, 16); config.json calls for"),
    "more layers": ({"num_hidden_layers": 3}, "lacks encoder.layer.2.attention.output.LayerNorm.bias"),
    "fewer layers": ({"num_hidden_layers": 1}, "which our bert does not compute with"),
    "heads that do not fit": ({"num_attention_heads": 3}, "d_model=16 must be divisible by n_heads=3"),
    "a tie that is no flag": ({"tie_word_embeddings": "no"}, "tie_word_embeddings='no' must be true or false"),
}


@pytest.mark.parametrize(("changes", "message"), SETTINGS.values(), ids=SETTINGS)
def test_settings_are_refused_by_name(changes: dict, message: str, checkpoint: Path) -> None:
    change_settings(checkpoint, **changes)
    refused(checkpoint, message)


POOLINGS = {
    "mean": ({"pooling_mode_mean_tokens": True, "pooling_mode_cls_token": False, "include_prompt": True}, "mean"),
    "cls": ({"pooling_mode_cls_token": True, "word_embedding_dimension": 16}, "cls"),
    "mean by name": ({"pooling_mode": "mean"}, "mean"),
}


@pytest.mark.parametrize(("values", "pooling"), POOLINGS.values(), ids=POOLINGS)
def test_a_sentence_embedding_model_says_how_it_pools(values: dict, pooling: str, checkpoint: Path) -> None:
    (checkpoint / "1_Pooling").mkdir()
    (checkpoint / "1_Pooling" / "config.json").write_text(json.dumps(values))
    bundle = load(checkpoint)
    assert bundle.config.pooling == pooling
    assert ("first token" in bundle.card) == (pooling == "cls")
    for other in ({"pooling_mode_max_tokens": True}, {}, values | {"pooling_mode_weightedmean_tokens": True}):
        if "pooling_mode" in other:
            continue
        (checkpoint / "1_Pooling" / "config.json").write_text(json.dumps(other))
        refused(checkpoint, "1_Pooling/config.json asks for ", "supported: mean_tokens, cls_token")


def test_modules_after_the_pooling_are_named_as_left_out(checkpoint: Path) -> None:
    assert read_modules(checkpoint) == SentenceModules()
    modules = [
        {"idx": place, "name": f"{place}", "path": path, "type": f"sentence_transformers.models.{kind}"}
        for place, (kind, path) in enumerate(
            [("Transformer", ""), ("Pooling", "1_Pooling"), ("Dense", "2_Dense"), ("Normalize", "3_Normalize")]
        )
    ]
    (checkpoint / "modules.json").write_text(json.dumps(modules))
    (checkpoint / "sentence_bert_config.json").write_text('{"max_seq_length": 16, "do_lower_case": false}')
    assert read_modules(checkpoint) == SentenceModules(("Dense", "Normalize"), 16)
    card = load(checkpoint).card
    assert "left out here: Dense, Normalize." in card
    assert "reads at most 16 tokens" in card


DAMAGED = {
    "an object": ("modules.json", "{}", "modules.json must hold a list; it holds a dict"),
    "no type": ("modules.json", '[{"idx": 0}]', "must list at most 16 modules, each with its type"),
    "no module": ("modules.json", "[7]", "must list at most 16 modules, each with its type"),
    "too many": ("modules.json", json.dumps([{"type": "Dense"}] * 17), "must list at most 16 modules"),
    "a text": ("sentence_bert_config.json", '{"max_seq_length": "16"}', "max_seq_length='16' must be a whole number"),
    "nothing": ("sentence_bert_config.json", '{"max_seq_length": 0}', "max_seq_length=0 must be a whole number from 1"),
}


@pytest.mark.parametrize(("file", "text", "message"), DAMAGED.values(), ids=DAMAGED)
def test_damaged_lists_of_modules_are_refused(file: str, text: str, message: str, checkpoint: Path) -> None:
    (checkpoint / file).write_text(text)
    refused(checkpoint, message)


def test_what_is_refused_by_its_family_has_no_kind(checkpoint: Path) -> None:
    assert kind_of_folder(checkpoint) == "encoder"
    change_settings(checkpoint, architectures=None)
    assert kind_of_folder(checkpoint) == load(checkpoint).kind == "encoder"
    change_settings(checkpoint, architectures=["BertForMultipleChoice"])
    assert kind_of_folder(checkpoint) is None
    change_settings(checkpoint, model_type="llama")
    assert kind_of_folder(checkpoint) is None
    (checkpoint / "config.json").write_text("{")
    assert kind_of_folder(checkpoint) is None
    assert kind_of_folder(checkpoint / "nowhere") is None


@pytest.mark.parametrize(
    ("architecture", "changes", "message"),
    [
        ("ModernBertForMaskedLM", {"decoder_bias": False}, "decoder_bias=false is not supported; supported: true"),
        ("ModernBertModel", {"mlp_bias": True}, "attention_bias and mlp_bias must be the same to be supported"),
        ("ModernBertModel", {"local_attention": "6"}, "local_attention='6' must be a whole number from 1"),
        ("ModernBertModel", {"global_attn_every_n_layers": 0}, "global_attn_every_n_layers=0 must be a whole number"),
        ("ModernBertModel", {"layer_types": ["chunked"] * 4}, "layer_types=['chunked', "),
        (
            "ModernBertForSequenceClassification",
            {"classifier_activation": "silu"},
            "classifier_activation='silu' is not supported with a classifier; supported: gelu, relu",
        ),
        ("T5ForConditionalGeneration", {"num_decoder_layers": 1}, "num_decoder_layers=1 must be num_layers=2"),
        (
            "T5ForConditionalGeneration",
            {"decoder_start_token_id": 3},
            "decoder_start_token_id=3 must be pad_token_id",
        ),
        (
            "T5ForConditionalGeneration",
            {"feed_forward_proj": "gated-mish"},
            "feed_forward_proj='mish' is not supp",
        ),
        (
            "T5ForConditionalGeneration",
            {"model_type": "umt5"},
            "model_type='umt5' has a table of distances in each layer",
        ),
        ("LlamaForCausalLM", {"rope_parameters": {"rope_type": "longrope"}}, "rope_parameters lacks short_factor"),
        (
            "LlamaForCausalLM",
            {"rope_parameters": {"rope_type": "longrope", "short_factor": [1.0, 2.0]}},
            "longrope must have short_factor as a list, and original_max_position_embeddings and max_position_",
        ),
        (
            "LlamaForCausalLM",
            {
                "rope_parameters": {
                    "rope_type": "longrope",
                    "short_factor": [1, 2],
                    "original_max_position_embeddings": 8,
                }
            },
            "rotary_factors has 2 numbers; it must have one for each of 3 pairs",
        ),
        ("T5ForConditionalGeneration", {"feed_forward_proj": 7}, "feed_forward_proj=7 is not supported"),
        ("T5ForConditionalGeneration", {"relative_attention_num_buckets": 3}, "relative_buckets=3 must be even"),
        ("AlbertModel", {"num_hidden_groups": 2}, "num_hidden_groups=2 is not supported; supported: 1"),
        ("AlbertModel", {"inner_group_num": 2}, "inner_group_num=2 is not supported; supported: 1"),
        ("BertForSequenceClassification", {"problem_type": "regression"}, "problem_type='regression'"),
        ("GPT2LMHeadModel", {"scale_attn_by_inverse_layer_idx": True}, "scale_attn_by_inverse_layer_idx=True"),
        ("GPT2LMHeadModel", {"scale_attn_weights": "yes"}, "scale_attn_weights='yes' must be true or false"),
        ("MarianMTModel", {"decoder_layers": 1}, "encoder_layers=2 and decoder_layers=1 must be the same"),
        ("MarianMTModel", {"decoder_start_token_id": 3}, "decoder_start_token_id must be pad_token_id=59"),
        ("MarianMTModel", {"share_encoder_decoder_embeddings": False}, "share_encoder_decoder_embeddings=False"),
        ("RobertaModel", {"max_position_embeddings": 2}, "max_position_embeddings=2 must exceed 2"),
        ("Qwen2MoeForCausalLM", {"decoder_sparse_step": 2}, "decoder_sparse_step=2 is not supported; supported: 1"),
        ("Qwen3MoeForCausalLM", {"mlp_only_layers": [0]}, "mlp_only_layers=[0] is not supported; supported: []"),
        ("OlmoeForCausalLM", {"clip_qkv": 8.0}, "clip_qkv=8.0 is not supported; it must be null"),
        ("OlmoeForCausalLM", {"num_experts": None}, "config.json lacks num_experts"),
        (
            "MixtralForCausalLM",
            {"num_local_experts": 10**9},
            "n_experts=1000000000 must be a whole number from 0 to 1024",
        ),
        ("MixtralForCausalLM", {"num_local_experts": 1024}, "times n_experts=1024 is 3,072; it must be at most 2,048"),
        ("MixtralForCausalLM", {"num_experts_per_tok": 6}, "n_active_experts=6 must be from 1 to n_experts=5"),
        ("MixtralForCausalLM", {"num_local_experts": 6}, "lacks layers.0.block_sparse_moe.experts.5.w1.weight"),
    ],
)
def test_families_refuse_what_they_lack(architecture: str, changes: dict, message: str, tmp_path: Path) -> None:
    written(architecture, tmp_path)
    change_settings(tmp_path, **changes)
    refused(tmp_path, message)


def test_a_modernbert_of_older_files_has_the_same_bases_and_windows(tmp_path: Path) -> None:
    written("ModernBertForMaskedLM", tmp_path)
    config = load(tmp_path, device="cpu").config
    assert (config.rotary_base, config.rotary_base_in_window, config.windows) == (160_000, 10_000, (None, 4, 4, None))
    change_settings(
        tmp_path, rope_parameters=None, layer_types=None, global_rope_theta=160_000, local_rope_theta=10_000
    )
    assert load(tmp_path, device="cpu").config == config


def test_a_family_is_told_by_its_architecture_where_model_type_is_missing(tmp_path: Path) -> None:
    written("BertForSequenceClassification", tmp_path)
    change_settings(tmp_path, model_type=None, id2label={"0": 0, "1": 1})
    bundle = load(tmp_path, device="cpu")
    assert (bundle.kind, bundle.labels) == ("classifier", ("0", "1"))
    change_settings(tmp_path, architectures=["NoModel"])
    refused(tmp_path, "config.json lacks model_type, and architectures=['NoModel'] tells of none that is supported")
    change_settings(tmp_path, architectures=None)
    refused(tmp_path, "config.json lacks model_type")


WEIGHTS, INDEX = "model.safetensors", "model.safetensors.index.json"


def test_only_pickled_weights_are_refused_and_never_opened(checkpoint: Path) -> None:
    (checkpoint / WEIGHTS).unlink()
    (checkpoint / "pytorch_model.bin").write_bytes(b"cos\nsystem\n(S'touch owned'\ntR.")
    refused(checkpoint, "it has pytorch_model.bin, which is not read: only safetensors is; another format is converted")
    refused(checkpoint, "from transformers import BertModel as M; M.from_pretrained('.').save_pretrained('.')")
    assert not Path("owned").exists()


def change_weights(folder: Path, change) -> None:
    """Let `change` work on the tensors by name."""
    tensors = load_file(folder / WEIGHTS)
    change(tensors)
    save_file(tensors, folder / WEIGHTS)


SPOILT = {
    "a missing tensor": (lambda t: t.pop("encoder.layer.0.output.dense.bias"), "lacks encoder.layer.0.output.dense.b"),
    "not finite": (lambda t: t["embeddings.LayerNorm.bias"].fill_(float("nan")), "must hold finite floating-point"),
    "whole numbers": (
        lambda t: t.update({"embeddings.LayerNorm.bias": torch.ones(16, dtype=torch.int64)}),
        "embeddings.LayerNorm.bias must hold finite floating-point numbers",
    ),
    "relative distances": (
        lambda t: t.update({"encoder.layer.0.attention.self.distance_embedding.weight": torch.ones(3, 8)}),
        "distance_embedding.weight (1 tensors in all), which our bert does not compute with",
    ),
    "the same twice": (
        lambda t: t.update({"bert.embeddings.LayerNorm.bias": torch.ones(16)}),
        "holds embeddings.LayerNorm.bias twice",
    ),
}


@pytest.mark.parametrize(("change", "message"), SPOILT.values(), ids=SPOILT)
def test_spoilt_weights_are_told(change, message: str, checkpoint: Path) -> None:
    change_weights(checkpoint, change)
    refused(checkpoint, message)


def test_heads_that_we_do_not_read_are_named_in_the_card(checkpoint: Path) -> None:
    change_weights(checkpoint, lambda t: t.update({"qa_outputs.weight": torch.ones(2, 16)}))
    assert "Left unread: pooler.dense.bias, pooler.dense.weight, qa_outputs.weight (3 tensors" in load(checkpoint).card


def test_old_names_and_buffers_are_read(checkpoint: Path) -> None:
    before = load(checkpoint, device="cpu").model

    def age(tensors: dict) -> None:
        for name in list(tensors):
            old = name.replace("LayerNorm.weight", "LayerNorm.gamma").replace("LayerNorm.bias", "LayerNorm.beta")
            tensors[f"bert.{old}"] = tensors.pop(name)
        tensors["bert.embeddings.position_ids"] = torch.arange(20)[None]

    change_weights(checkpoint, age)
    after = load(checkpoint, device="cpu").model
    assert all(torch.equal(p, q) for p, q in zip(before.parameters(), after.parameters(), strict=True))


def test_a_truncated_file_is_told(checkpoint: Path) -> None:
    (checkpoint / WEIGHTS).write_bytes((checkpoint / WEIGHTS).read_bytes()[:-100])
    refused(checkpoint, "is not a safetensors file")


def test_sizes_are_bounded_before_anything_is_read(checkpoint: Path) -> None:
    refused(checkpoint, "bytes; at most 1000 are read", max_bytes=1000)


def sharded(folder: Path) -> dict[str, str]:
    """Let theirs write a model in several files; return the index's map."""
    written("BertModel", folder, max_shard_size="4KB")
    return json.loads((folder / INDEX).read_text())["weight_map"]


def test_shards_are_read_as_one(sound_checkpoint: Path, tmp_path: Path) -> None:
    assert len(set(sharded(tmp_path).values())) > 2
    one, other = (load(folder, device="cpu").model for folder in (sound_checkpoint, tmp_path))
    assert all(torch.equal(p, q) for p, q in zip(one.parameters(), other.parameters(), strict=True))


@pytest.mark.parametrize(
    "name", ["../sound/model.safetensors", "/etc/passwd", "a\\b.safetensors", "..", "", "x\n.safetensors", "w.bin"]
)
def test_an_index_cannot_lead_out_of_the_folder(name: str, tmp_path: Path) -> None:
    names = sharded(tmp_path)
    names[next(iter(names))] = name
    (tmp_path / INDEX).write_text(json.dumps({"weight_map": names}))
    refused(tmp_path, "must be the plain name of a safetensors file in the same folder")


def test_an_index_that_does_not_fit_is_told(tmp_path: Path) -> None:
    names = sharded(tmp_path)
    for wrong in ({}, [], {"a": 1}, None):
        (tmp_path / INDEX).write_text(json.dumps({"weight_map": wrong}))
        refused(tmp_path, "weight_map must say for each tensor the name of its file")
    (tmp_path / INDEX).write_text(json.dumps({"weight_map": names | {"ghost": next(iter(names.values()))}}))
    refused(tmp_path, "lacks 'ghost', which its index names")
    (tmp_path / INDEX).write_text(json.dumps({"weight_map": names}))
    refused(tmp_path, "bytes; at most", max_bytes=9000)
    (tmp_path / next(iter(names.values()))).unlink()
    refused(tmp_path, "is missing")


def test_a_link_out_of_the_folder_is_not_followed(checkpoint: Path, sound_checkpoint: Path) -> None:
    (checkpoint / WEIGHTS).unlink()
    (checkpoint / WEIGHTS).symlink_to(sound_checkpoint / WEIGHTS)
    refused(checkpoint, "is a link; a bundle's files lie in its folder")


def test_a_snapshot_of_the_hubs_cache_is_read_where_its_blobs_lie(sound_checkpoint: Path, tmp_path: Path) -> None:
    snapshot, blobs = tmp_path / "models--x" / "snapshots" / "abc", tmp_path / "models--x" / "blobs"
    snapshot.mkdir(parents=True)
    blobs.mkdir()
    for path in sound_checkpoint.iterdir():
        (blobs / path.name).write_bytes(path.read_bytes())
        (snapshot / path.name).symlink_to(Path("..") / ".." / "blobs" / path.name)
    assert kind_of_folder(snapshot) == load(snapshot).kind == "encoder"
    (snapshot / WEIGHTS).unlink()
    (snapshot / WEIGHTS).symlink_to(sound_checkpoint / WEIGHTS)
    with pytest.raises(BundleError, match="is a link"):
        load(snapshot)


@pytest.fixture
def hub(tmp_path: Path, monkeypatch) -> SimpleNamespace:
    """Stand in for the hub: a folder, and what was asked for."""
    asked: list[dict] = []
    stand_in = SimpleNamespace(folder=tmp_path, asked=asked, size=100)

    def snapshot_download(name: str, **options):
        asked.append({"name": name} | options)
        if options.get("dry_run"):
            return [SimpleNamespace(file_size=stand_in.size)]
        return str(tmp_path)

    monkeypatch.setattr(huggingface_hub, "snapshot_download", snapshot_download)
    monkeypatch.setattr(huggingface_hub.constants, "HF_HUB_OFFLINE", False)
    return stand_in


def test_what_is_asked_for(hub: SimpleNamespace) -> None:
    written("BertModel", hub.folder)
    assert load("hf:someone/tiny").name == "someone/tiny"
    assert [sorted(one) for one in hub.asked] == [
        ["allow_patterns", "name"],
        ["allow_patterns", "dry_run", "name"],
        ["allow_patterns", "name"],
    ]
    patterns = {pattern for one in hub.asked for pattern in one["allow_patterns"]}
    assert {pattern.rpartition(".")[2] for pattern in patterns} == {"jinja", "json", "safetensors", "spm", "txt"}


def test_a_name_that_is_not_supported_costs_no_download(hub: SimpleNamespace) -> None:
    (hub.folder / "config.json").write_text('{"model_type": "bloom"}')
    with pytest.raises(BundleError, match=r"^hf:someone/tiny: model_type='bloom' is not supported; supported: bert, "):
        load("hf:someone/tiny")
    assert len(hub.asked) == 1


def test_what_is_too_large_is_not_fetched(hub: SimpleNamespace) -> None:
    written("BertModel", hub.folder)
    hub.size = 2000
    with pytest.raises(BundleError, match=r"^hf:someone/tiny has 2000 bytes to read; at most 1500 are read$"):
        load("hf:someone/tiny", max_bytes=1500)
    assert len(hub.asked) == 2


@pytest.mark.parametrize("name", ["", "/", "../x", "a/b/c", "a b", "a/..", "https://x.y/z", "a\n", "-x", "x" * 99])
def test_a_name_that_is_none_is_told(name: str, hub: SimpleNamespace) -> None:
    with pytest.raises(BundleError, match=r"must be hf:NAME or hf:OWNER/NAME$"):
        load(f"hf:{name}")
    assert not hub.asked
