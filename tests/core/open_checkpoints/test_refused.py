"""What we do not compute is refused by name."""

import json
from pathlib import Path

import pytest

from tests.helpers.bundles import refused
from tests.helpers.open_checkpoints import change_settings, written
from transformer_core.checkpoints import load
from transformer_core.open_checkpoints import kind_of_folder
from transformer_core.open_checkpoints.sentence_modules import SentenceModules, read_modules

SETTINGS = {
    "another family": ({"model_type": "llama"}, "model_type='llama' is not supported; supported: bert, distilbert, "),
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
        ("BertForMaskedLM", {"hidden_act": "relu"}, "hidden_act='relu' is not supported with a masked-word head"),
        ("BertForSequenceClassification", {"problem_type": "regression"}, "problem_type='regression'"),
        ("GPT2LMHeadModel", {"scale_attn_by_inverse_layer_idx": True}, "scale_attn_by_inverse_layer_idx=True"),
        ("GPT2LMHeadModel", {"scale_attn_weights": "yes"}, "scale_attn_weights='yes' must be true or false"),
        ("MarianMTModel", {"decoder_layers": 1}, "encoder_layers=2 and decoder_layers=1 must be the same"),
        ("MarianMTModel", {"decoder_start_token_id": 3}, "decoder_start_token_id must be pad_token_id=59"),
        ("MarianMTModel", {"share_encoder_decoder_embeddings": False}, "share_encoder_decoder_embeddings=False"),
        ("RobertaModel", {"max_position_embeddings": 2}, "max_position_embeddings=2 must exceed 2"),
    ],
)
def test_families_refuse_what_they_lack(architecture: str, changes: dict, message: str, tmp_path: Path) -> None:
    written(architecture, tmp_path)
    change_settings(tmp_path, **changes)
    refused(tmp_path, message)
