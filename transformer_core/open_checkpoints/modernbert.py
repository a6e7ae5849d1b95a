"""ModernBERT: an encoder with rotary positions, gates, windows in most layers, and hardly a bias.

Warner et al. 2024.
"""

import re
from typing import Any

from transformer_core.config import ModelConfig
from transformer_core.open_checkpoints.decoders import rotary_entries, windows_of
from transformer_core.open_checkpoints.family import Family, Origin, Origins, Shapes, both, per_layer, weights
from transformer_core.untrusted.bundle_files import BundleError
from transformer_core.untrusted.config_json import ConfigJson

POOLERS = ("gelu", "relu")


def _alike(settings: ConfigJson, names: tuple[str, ...]) -> bool:
    """Return a flag that several entries must have alike."""
    flags = {settings.flag(name, False) for name in names}
    if len(flags) > 1:
        raise BundleError(f"{settings.where}: {' and '.join(names)} must be the same to be supported")
    return flags.pop()


def _positions(settings: ConfigJson) -> dict[str, Any]:
    """Return rotary entries and windows; older files have an entry for each base, and one for every how many layers."""
    every, width = settings.get("global_attn_every_n_layers", 3), settings.get("local_attention", 128)
    for name, value in (("global_attn_every_n_layers", every), ("local_attention", width)):
        if not isinstance(value, int) or isinstance(value, bool) or value < 1:
            raise BundleError(f"{settings.where}: {name}={value!r:.60} must be a whole number from 1")
    bases = {"full_attention": ("global_rope_theta", 160_000.0), "sliding_attention": ("local_rope_theta", 10_000.0)}
    older = {kind: {"rope_theta": settings.get(name, usual)} for kind, (name, usual) in bases.items()}
    own = {"rope_parameters": settings.get("rope_parameters", older), "sliding_window": width // 2 + 1}
    known = ConfigJson(settings.where, settings.values | own)  # half the width on both sides, and the position itself
    return rotary_entries(known) | {"windows": windows_of(known, lambda layer: layer % every > 0)}


def _configure(settings: ConfigJson, kind: str, shapes: Shapes) -> dict[str, Any]:
    if not settings.flag("decoder_bias", True):
        raise BundleError(f"{settings.where}: decoder_bias=false is not supported; supported: true")
    activation = settings.activation("classifier_activation", "gelu")
    values = _positions(settings) | {
        "vocab_size": settings.need("vocab_size"),
        "d_model": settings.need("hidden_size"),
        "n_heads": settings.need("num_attention_heads"),
        "d_ff": settings.need("intermediate_size"),
        "n_layers": settings.need("num_hidden_layers"),
        "max_len": settings.get("max_position_embeddings", 8192),
        "dropout": settings.get("mlp_dropout", 0.0),
        "pad_id": settings.values.get("pad_token_id", 50_283),
        "pad_is_read": True,
        "positions": "rotary",
        "rotary_halves": True,
        "embedding_norm": True,
        "norm_order": "pre",
        "norm_eps": settings.get("norm_eps", 1e-5),
        "norm_bias": settings.flag("norm_bias", False),
        "first_attention_norm": False,
        "activation": settings.activation("hidden_activation", "gelu"),
        "gated": True,
        "bias": _alike(settings, ("attention_bias", "mlp_bias")),
        "head_activation": activation,
        "head_bias": settings.flag("classifier_bias", False),
        "tied_output": True,
        "pair_head": kind != "bert",
        "pooling": "mean" if kind == "encoder" else settings.get("classifier_pooling", "cls"),
    }
    if kind != "classifier":
        return values
    if activation not in POOLERS:
        raise BundleError(
            f"{settings.where}: classifier_activation={settings.get('classifier_activation')!r:.60} is not supported "
            f"with a classifier; supported: {', '.join(POOLERS)}"
        )
    return values | {"pooler": activation, "pooler_norm": True, "n_classes": settings.n_classes(shapes, "classifier")}


def _origins(config: ModelConfig, kind: str) -> Origins:
    maps, norms = (both if config.bias else weights), (both if config.norm_bias else weights)
    layer = maps({"self_attention.output_proj": "attn.Wo", "feed_forward.outer_proj": "mlp.Wo"})
    layer |= norms({"self_attention_norm.norm": "attn_norm", "feed_forward_norm.norm": "mlp_norm"})
    fused = {"self_attention.query_proj": ("attn.Wqkv", 0, 3), "self_attention.key_proj": ("attn.Wqkv", 1, 3)}
    fused |= {"self_attention.value_proj": ("attn.Wqkv", 2, 3)}
    fused |= {"feed_forward.gate_proj": ("mlp.Wi", 0, 2), "feed_forward.inner_proj": ("mlp.Wi", 1, 2)}
    for ours, (theirs, part, parts) in fused.items():
        for form in ("weight", "bias")[: 1 + config.bias]:
            layer[f"{ours}.{form}"] = Origin(f"{theirs}.{form}", part=part, parts=parts)
    found = per_layer(layer, config.n_layers, "encoder.stack.layers.{n}", "layers.{n}")
    for form in ("weight", "bias")[: 1 + config.norm_bias]:
        del found[f"encoder.stack.layers.0.self_attention_norm.norm.{form}"]
    found |= weights({"encoder.embedding.token": "embeddings.tok_embeddings"})
    found |= norms({"encoder.embedding.norm": "embeddings.norm", "encoder.stack.final_norm": "final_norm"})
    head = both if config.head_bias else weights
    if kind == "classifier":
        return (
            found
            | head({"pooler_proj": "head.dense"})
            | norms({"pooler_norm": "head.norm"})
            | both({"class_proj": "classifier"})
        )
    if kind == "encoder":
        return found
    found |= head({"mlm_head.transform_proj": "head.dense"}) | norms({"mlm_head.norm": "head.norm"})
    found["mlm_head.output.proj.bias"] = Origin("decoder.bias")
    if not config.tied_output:
        found["mlm_head.output.proj.weight"] = Origin("decoder.weight")
    return found


MODERNBERT = Family(
    model_type="modernbert",
    prefix="model.",
    backbone=("embeddings.", "layers.", "final_norm."),
    kinds={
        "ModernBertModel": "encoder",
        "ModernBertForMaskedLM": "bert",
        "ModernBertForSequenceClassification": "classifier",
    },
    configure=_configure,
    origins=_origins,
    word_matrix="embeddings.tok_embeddings.weight",
    head_matrix="decoder.weight",
    buffers=re.compile(r"rotary_emb\..*"),
    aliases={},
    vocabulary=(),
)
