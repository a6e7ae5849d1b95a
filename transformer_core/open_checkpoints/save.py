"""save_hf: write a BERT or a GPT-2 of ours as a folder that the `transformers` library reads."""

import json
import os
import tempfile
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import save_file
from torch import Tensor

from transformer_core.bundle import LABELLED, Bundle
from transformer_core.config import ModelConfig
from transformer_core.open_checkpoints.bert import BERT
from transformer_core.open_checkpoints.family import Family, Origins
from transformer_core.open_checkpoints.gpt2 import GPT2
from transformer_core.open_checkpoints.tokenizer_classes import TOKENIZER_CONFIG
from transformer_core.open_checkpoints.vocabularies import vocabulary_file
from transformer_core.untrusted.bundle_files import CONFIG, TOKENIZER, WEIGHTS, BundleError

ALWAYS: dict[str, Any] = {
    "positions": "learned",
    "positions_skip_padding": False,
    "norm": "layer_norm",
    "scoring": "dot_product",
    "residual": True,
    "projections": True,
    "share_query_key": False,
    "share_key_value": False,
    "bias": True,
    "scale_embeddings": False,
    "padding_mask": "keys",
    "dropout_at": "everywhere",
    "n_kv_heads": None,
    "query_key_value_bias": None,
    "query_key_norm": "none",
    "score_width": None,
    "score_cap": None,
    "logit_cap": None,
    "windows": (),
    "parallel": False,
    "gated": False,
    "n_experts": 0,
    "embedding_width": None,
    "shared_layers": False,
    "norm_bias": True,
    "first_attention_norm": True,
    "head_bias": True,
    "pooler_norm": False,
    "scale_output": False,
}
NEEDED: dict[str, dict[str, Any]] = {
    "bert": ALWAYS | {"norm_order": "post", "embedding_norm": True, "scale_scores": True},
    "gpt2": ALWAYS | {"norm_order": "pre", "embedding_norm": False, "n_segments": 0, "causal": True},
}
BY_KIND: dict[str, dict[str, Any]] = {
    "bert": {"activation": "gelu", "head_activation": "gelu"},
    "classifier": {"pooler": "tanh", "pooling": "cls"},
}
THEIR_ACTIVATIONS = {"gelu": "gelu", "gelu_tanh": "gelu_new", "relu": "relu", "silu": "silu"}
ARCHITECTURES = {
    "bert": "BertForPreTraining",
    "classifier": "BertForSequenceClassification",
    "encoder": "BertModel",
    "tagger": "BertForTokenClassification",
    "answerer": "BertForQuestionAnswering",
    "gpt": "GPT2LMHeadModel",
}


def save_hf(bundle: Bundle, folder: str | os.PathLike[str]) -> None:
    """Write config.json, model.safetensors and the tokenizer's files as the `transformers` library has them.

    Args:
        bundle: a bert, classifier or encoder that is BERT in all its choices, or a gpt that is GPT-2.
        folder: created if it is missing.

    Raises:
        BundleError: the model has a choice that theirs lacks, by name.
    """
    family = GPT2 if bundle.kind == "gpt" else BERT
    _check(bundle, family)
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    origins = family.origins(bundle.config, bundle.kind)
    headless = bundle.kind == "encoder"
    tensors = {_full_name(name, family, headless): tensor for name, tensor in _assembled(bundle, origins).items()}
    with tempfile.TemporaryDirectory(dir=folder) as scratch:
        draft = Path(scratch)
        save_file(tensors, draft / WEIGHTS, metadata={"format": "pt"})
        (draft / WEIGHTS).chmod(0o644)
        bundle.tokenizer.save(draft / TOKENIZER)
        (draft / TOKENIZER_CONFIG).write_text(vocabulary_file(bundle.tokenizer, _spoken(bundle)), encoding="utf-8")
        (draft / CONFIG).write_text(json.dumps(_settings(bundle), indent=2) + "\n", encoding="utf-8")
        for name in (WEIGHTS, TOKENIZER, TOKENIZER_CONFIG, CONFIG):
            os.replace(draft / name, folder / name)


def _spoken(bundle: Bundle) -> dict[str, str]:
    return {} if bundle.chat is None else {**dict(bundle.chat.tokens), "chat_template": bundle.chat.source}


def _check(bundle: Bundle, family: Family) -> None:
    if bundle.kind not in ARCHITECTURES:
        raise BundleError(f"bundle={bundle.name!r} is a {bundle.kind}; it must be one of {', '.join(ARCHITECTURES)}")
    config = bundle.config
    for name, needed in (NEEDED[family.model_type] | BY_KIND.get(bundle.kind, {})).items():
        if getattr(config, name) != needed:
            raise BundleError(f"{name}={getattr(config, name)!r} cannot be written: {family.model_type} has {needed!r}")
    if config.n_heads * (config.d_head or 0) != config.d_model:
        raise BundleError(
            f"n_heads={config.n_heads} times d_head={config.d_head} must be d_model={config.d_model} to be written"
        )
    if family is BERT and not config.n_segments:
        raise BundleError("n_segments=0 cannot be written: bert has at least 1")


def _assembled(bundle: Bundle, origins: Origins) -> dict[str, Tensor]:
    """Return their tensors, each reassembled from our parts, and under its other name too."""
    parts: dict[str, list[Tensor]] = {}
    for name, parameter in bundle.model.named_parameters():
        origin = origins[name]
        parts.setdefault(origin.name, [torch.empty(0)] * origin.parts)[origin.part] = parameter.detach().cpu().float()
    turned = {origin.name: origin.transposed for origin in origins.values()}
    whole = {name: _turned(torch.cat(found), turned[name]) for name, found in parts.items()}
    doubles = {alias: whole[name].clone() for alias, name in BERT.aliases.items() if name in whole}
    return whole | doubles


def _turned(tensor: Tensor, transposed: bool) -> Tensor:
    return (tensor.T if transposed else tensor).contiguous()


def _full_name(name: str, family: Family, headless: bool) -> str:
    backbone = name.startswith((*family.backbone, "pooler."))
    return f"{family.prefix}{name}" if backbone and not headless else name


def _settings(bundle: Bundle) -> dict[str, Any]:
    config, kind = bundle.config, bundle.kind
    architecture = "BertForMaskedLM" if kind == "bert" and not config.pair_head else ARCHITECTURES[kind]
    values: dict[str, Any] = {
        "architectures": [architecture],
        "vocab_size": config.vocab_size,
        "pad_token_id": config.pad_id,
        "tie_word_embeddings": config.tied_output,
        "dtype": "float32",
    }
    if kind == "gpt":
        return values | _like_gpt2(config, bundle)
    if kind in LABELLED:
        labels = bundle.labels or tuple(f"LABEL_{place}" for place in range(config.n_classes))
        values["id2label"] = dict(enumerate(labels))
        values["label2id"] = {label: place for place, label in enumerate(labels)}
    return values | {
        "model_type": "bert",
        "hidden_size": config.d_model,
        "num_attention_heads": config.n_heads,
        "num_hidden_layers": config.n_layers,
        "intermediate_size": config.d_ff,
        "max_position_embeddings": config.max_len,
        "type_vocab_size": config.n_segments,
        "layer_norm_eps": config.norm_eps,
        "hidden_act": THEIR_ACTIVATIONS[config.activation],
        "hidden_dropout_prob": config.dropout,
        "attention_probs_dropout_prob": config.dropout,
    }


def _like_gpt2(config: ModelConfig, bundle: Bundle) -> dict[str, Any]:
    return {
        "model_type": "gpt2",
        "n_embd": config.d_model,
        "n_head": config.n_heads,
        "n_layer": config.n_layers,
        "n_inner": config.d_ff,
        "n_positions": config.max_len,
        "layer_norm_epsilon": config.norm_eps,
        "activation_function": THEIR_ACTIVATIONS[config.activation],
        "scale_attn_weights": config.scale_scores,
        "resid_pdrop": config.dropout,
        "embd_pdrop": config.dropout,
        "attn_pdrop": config.dropout,
        "bos_token_id": bundle.tokenizer.bos_id,
        "eos_token_id": bundle.tokenizer.eos_id,
    }
