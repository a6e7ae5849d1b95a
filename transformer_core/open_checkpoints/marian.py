"""Marian: the paper's Transformer as OPUS-MT trained it; computed positions in halves, a target that begins with pad.

Junczys-Dowmunt et al. 2018; Vaswani et al. 2017, figure 1.
"""

import re
from typing import Any

from transformer_core.config import ModelConfig
from transformer_core.open_checkpoints.family import Family, Origin, Origins, Shapes, both, per_layer
from transformer_core.untrusted.bundle_files import BundleError
from transformer_core.untrusted.config_json import ConfigJson

ATTENTION = {"query_proj": "q_proj", "key_proj": "k_proj", "value_proj": "v_proj", "output_proj": "out_proj"}
ENCODER_LAYER = {f"self_attention.{ours}": f"self_attn.{theirs}" for ours, theirs in ATTENTION.items()} | {
    "self_attention_norm.norm": "self_attn_layer_norm",
    "feed_forward.inner_proj": "fc1",
    "feed_forward.outer_proj": "fc2",
    "feed_forward_norm.norm": "final_layer_norm",
}
CROSS = {f"cross_attention.{ours}": f"encoder_attn.{theirs}" for ours, theirs in ATTENTION.items()}
DECODER_LAYER = ENCODER_LAYER | CROSS | {"cross_attention_norm.norm": "encoder_attn_layer_norm"}
OWN = {side: f"{side}.embed_tokens.weight" for side in ("encoder", "decoder")}


def _alike(settings: ConfigJson, name: str) -> Any:
    encoder, decoder = (settings.need(f"{side}_{name}") for side in ("encoder", "decoder"))
    if encoder != decoder:
        raise BundleError(
            f"{settings.where}: encoder_{name}={encoder!r:.40} and decoder_{name}={decoder!r:.40} "
            "must be the same to be supported"
        )
    return encoder


def _configure(settings: ConfigJson, kind: str, shapes: Shapes) -> dict[str, Any]:
    vocab_size = settings.need("vocab_size")
    if settings.get("decoder_vocab_size", vocab_size) != vocab_size:
        raise BundleError(f"{settings.where}: decoder_vocab_size must be vocab_size={vocab_size!r:.40} to be supported")
    pad_id = settings.need("pad_token_id")
    if settings.get("decoder_start_token_id", pad_id) != pad_id:
        raise BundleError(
            f"{settings.where}: decoder_start_token_id must be pad_token_id={pad_id!r:.40} to be supported"
        )
    separate = OWN["decoder"] in shapes
    return {
        "vocab_size": vocab_size,
        "d_model": settings.need("d_model"),
        "n_heads": _alike(settings, "attention_heads"),
        "d_ff": _alike(settings, "ffn_dim"),
        "n_layers": _alike(settings, "layers"),
        "max_len": settings.get("max_position_embeddings", 1024),
        "dropout": settings.get("dropout", 0.1),
        "pad_id": pad_id,
        "positions": "sinusoidal",
        "sinusoidal_halves": True,
        "scale_embeddings": settings.flag("scale_embedding", False),
        "norm_order": "post",
        "norm_eps": 1e-5,
        "activation": settings.activation("activation_function", "gelu"),
        "tied_output": not separate,
        "share_embeddings": not separate,
        "starts_with_pad": True,
        "output_bias": "final_logits_bias" in shapes,
    }


def _origins(config: ModelConfig, kind: str) -> Origins:
    found = {"encoder.embedding.token.weight": Origin("shared.weight")}
    if not config.share_embeddings:
        found = {f"{side}.embedding.token.weight": Origin(name) for side, name in OWN.items()}
    if config.output_bias:
        found["output.proj.bias"] = Origin("final_logits_bias", flat=True)
    for side, layer in (("encoder", ENCODER_LAYER), ("decoder", DECODER_LAYER)):
        found |= per_layer(both(layer), config.n_layers, f"{side}.stack.layers.{{n}}", f"{side}.layers.{{n}}")
    if not config.tied_output:
        found["output.proj.weight"] = Origin("lm_head.weight")
    return found


MARIAN = Family(
    model_type="marian",
    prefix="model.",
    backbone=("encoder.", "decoder.", "shared."),
    kinds={"MarianMTModel": "translation"},
    configure=_configure,
    origins=_origins,
    word_matrix="shared.weight",
    head_matrix="lm_head.weight",
    buffers=re.compile(r"(encoder|decoder)\.embed_positions\.weight|shared\.weight"),
    aliases=dict.fromkeys(OWN.values(), "shared.weight"),
    vocabulary=("source.spm", "vocab.json"),
)
