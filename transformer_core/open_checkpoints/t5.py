"""T5, Flan-T5 and mT5: an encoder and a decoder with relative positions, root mean square norms and no bias.

Raffel et al. 2020; gated, as version 1.1 is: Shazeer 2020; Flan: Chung et al. 2022; mT5: Xue et al. 2021.
"""

import re
from dataclasses import replace
from typing import Any

from transformer_core.config import ModelConfig
from transformer_core.open_checkpoints.family import Family, Origin, Origins, Shapes, per_layer, weights
from transformer_core.untrusted.bundle_files import BundleError
from transformer_core.untrusted.config_json import ConfigJson

SELF, CROSS = ("self_attention", "SelfAttention"), ("cross_attention", "EncDecAttention")
PROJECTIONS = {"query_proj": "q", "key_proj": "k", "value_proj": "v", "output_proj": "o"}
OWN = {side: f"{side}.embed_tokens.weight" for side in ("encoder", "decoder")}
BIAS = "SelfAttention.relative_attention_bias"


def _feed_forward(settings: ConfigJson) -> dict[str, Any]:
    named = settings.get("feed_forward_proj", "relu")
    if named == "gated-gelu":  # theirs has the formula by tanh under this name
        return {"gated": True, "activation": "gelu_tanh"}
    gated = isinstance(named, str) and named.startswith("gated-")
    known = ConfigJson(settings.where, {"feed_forward_proj": named.removeprefix("gated-") if gated else named})
    return {"gated": gated, "activation": known.activation("feed_forward_proj", "relu")}


def _configure(settings: ConfigJson, kind: str, shapes: Shapes) -> dict[str, Any]:
    n_layers, pad_id = settings.need("num_layers"), settings.get("pad_token_id", 0)
    for name, value in (("num_decoder_layers", n_layers), ("decoder_start_token_id", pad_id)):
        if settings.get(name, value) != value:
            same = "num_layers" if name == "num_decoder_layers" else "pad_token_id"
            raise BundleError(
                f"{settings.where}: {name}={settings.get(name)!r:.40} must be {same}={value!r:.40} to be supported"
            )
    tied = settings.flag("tie_word_embeddings", True)
    return _feed_forward(settings) | {
        "vocab_size": settings.need("vocab_size"),
        "d_model": settings.need("d_model"),
        "n_heads": settings.need("num_heads"),
        "d_head": settings.need("d_kv"),
        "d_ff": settings.need("d_ff"),
        "n_layers": n_layers,
        "max_len": settings.get("n_positions", 512),  # of the texts that it learned from; no table ends there
        "dropout": settings.get("dropout_rate", 0.1),
        "pad_id": pad_id,
        "positions": "relative",
        "relative_buckets": settings.get("relative_attention_num_buckets", 32),
        "relative_distance": settings.get("relative_attention_max_distance", 128),
        "scale_scores": False,
        "norm": "rms_norm",
        "norm_order": "pre",
        "norm_eps": settings.get("layer_norm_epsilon", 1e-6),
        "bias": False,
        "tied_output": True,
        "scale_output": settings.flag("scale_decoder_outputs", tied),
        "share_embeddings": True,
        "starts_with_pad": True,
    }


def _configure_mt5(settings: ConfigJson, kind: str, shapes: Shapes) -> dict[str, Any]:
    known = ConfigJson(settings.where, {"feed_forward_proj": "gated-gelu"} | settings.values)
    return _configure(known, kind, shapes) | {"scale_output": False}  # whatever its config.json says of tied matrices


def _layer(config: ModelConfig, *attentions: tuple[str, str]) -> Origins:
    found: Origins = {}
    for place, (ours, theirs) in enumerate(attentions):
        parts = {f"{ours}.{proj}": f"layer.{place}.{theirs}.{name}" for proj, name in PROJECTIONS.items()}
        found |= weights(parts | {f"{ours}_norm.norm": f"layer.{place}.layer_norm"})
    last = f"layer.{len(attentions)}"
    maps = {"gate_proj": "wi_0", "inner_proj": "wi_1"} if config.gated else {"inner_proj": "wi"}
    parts = {f"feed_forward.{ours}": f"{last}.DenseReluDense.{theirs}" for ours, theirs in maps.items()}
    parts |= {"feed_forward.outer_proj": f"{last}.DenseReluDense.wo", "feed_forward_norm.norm": f"{last}.layer_norm"}
    return found | weights(parts)


def _origins(config: ModelConfig, kind: str) -> Origins:
    found = {"encoder.embedding.token.weight": Origin("shared.weight")}
    for side, attentions in (("encoder", (SELF,)), ("decoder", (SELF, CROSS))):
        layer = _layer(config, *attentions)
        found |= per_layer(layer, config.n_layers, f"{side}.stack.layers.{{n}}", f"{side}.block.{{n}}")
        found |= weights({f"{side}.stack.final_norm": f"{side}.final_layer_norm"})
        found |= weights({f"{side}.stack.layers.0.self_attention.relative_bias": f"{side}.block.0.layer.0.{BIAS}"})
    if not config.tied_output:
        found["output.proj.weight"] = Origin("lm_head.weight")
    return found


T5 = Family(
    model_type="t5",
    prefix="",
    backbone=("encoder.", "decoder.", "shared."),
    kinds={"T5ForConditionalGeneration": "translation"},
    configure=_configure,
    origins=_origins,
    word_matrix="shared.weight",
    head_matrix="lm_head.weight",
    buffers=re.compile(r"decoder\.block\.0\.layer\.1\.EncDecAttention\.relative_attention_bias\.weight"),  # of no use
    aliases=dict.fromkeys(OWN.values(), "shared.weight"),
    vocabulary=(),
)
MT5 = replace(T5, model_type="mt5", kinds={"MT5ForConditionalGeneration": "translation"}, configure=_configure_mt5)
