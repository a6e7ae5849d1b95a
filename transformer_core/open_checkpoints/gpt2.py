"""GPT-2: a pre-norm masked decoder; its linear maps are stored (in, out), and query, key and value as one.

Radford et al. 2019.
"""

import re
from typing import Any

from transformer_core.config import ModelConfig
from transformer_core.open_checkpoints.family import Family, Origin, Origins, Shapes, both, per_layer
from transformer_core.untrusted.config_json import ConfigJson

PROJECTIONS = ("query_proj", "key_proj", "value_proj")
TURNED = {
    "self_attention.output_proj": "attn.c_proj",
    "feed_forward.inner_proj": "mlp.c_fc",
    "feed_forward.outer_proj": "mlp.c_proj",
}
NORMS = {"self_attention_norm.norm": "ln_1", "feed_forward_norm.norm": "ln_2"}


def _configure(settings: ConfigJson, kind: str, shapes: Shapes) -> dict[str, Any]:
    width = settings.need("n_embd")
    return {
        "vocab_size": settings.need("vocab_size"),
        "d_model": width,
        "n_heads": settings.need("n_head"),
        "d_ff": settings.get("n_inner", 4 * width if isinstance(width, int) else width),
        "n_layers": settings.need("n_layer"),
        "max_len": settings.get("n_positions", 1024),
        "dropout": settings.get("resid_pdrop", 0.1),
        "pad_id": None,  # the library hides no token for its id; what comes later is hidden anyway
        "positions": "learned",
        "norm_order": "pre",
        "norm_eps": settings.get("layer_norm_epsilon", 1e-5),
        "activation": settings.activation("activation_function", "gelu_new"),
        "scale_scores": settings.flag("scale_attn_weights", True),
        "tied_output": True,
    }


def _origins(config: ModelConfig, kind: str) -> Origins:
    layer = both(TURNED, transposed=True) | both(NORMS)
    for part, proj in enumerate(PROJECTIONS):
        layer[f"self_attention.{proj}.weight"] = Origin("attn.c_attn.weight", transposed=True, part=part, parts=3)
        layer[f"self_attention.{proj}.bias"] = Origin("attn.c_attn.bias", part=part, parts=3)
    found = per_layer(layer, config.n_layers, "decoder.stack.layers.{n}", "h.{n}") | both(
        {"decoder.stack.final_norm": "ln_f"}
    )
    found["decoder.embedding.token.weight"] = Origin("wte.weight")
    found["decoder.embedding.position.weight"] = Origin("wpe.weight")
    if not config.tied_output:
        found["output.proj.weight"] = Origin("lm_head.weight")
    return found


GPT2 = Family(
    model_type="gpt2",
    prefix="transformer.",
    backbone=("wte.", "wpe.", "h.", "ln_f."),
    kinds={"GPT2LMHeadModel": "gpt", "GPT2Model": "gpt"},
    configure=_configure,
    origins=_origins,
    word_matrix="wte.weight",
    head_matrix="lm_head.weight",
    buffers=re.compile(r"h\.\d+\.attn\.(masked_)?bias"),
    aliases={},
    vocabulary=("vocab.json", "merges.txt"),
)
