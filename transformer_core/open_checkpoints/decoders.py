"""Decoders of today: rotary positions, most with the root mean square norm, a gate and few heads of keys and values.

Touvron et al. 2023 (Llama); Jiang et al. 2023 (Mistral); Qwen Team 2024 and 2025; Gemma Team 2024 and 2025; Abdin et
al. 2024 (Phi-3); OLMo Team 2025; Biderman et al. 2023 (Pythia, a GPT-NeoX). Mixtures of experts: Jiang et al. 2024
(Mixtral); Muennighoff et al. 2024 (OLMoE).
"""

import re
from collections.abc import Callable, Mapping
from typing import Any

from transformer_core.config import ModelConfig
from transformer_core.open_checkpoints.family import Family, Origin, Origins, Shapes, both, per_layer, weights
from transformer_core.untrusted.bundle_files import BundleError
from transformer_core.untrusted.config_json import ConfigJson

MOST_PLACES = 131_072  # that a rotary model is opened with; it has no table that would end there
ATTENTION = {
    "self_attention.query_proj": "self_attn.q_proj",
    "self_attention.key_proj": "self_attn.k_proj",
    "self_attention.value_proj": "self_attn.v_proj",
}
OUTPUT = {"self_attention.output_proj": "self_attn.o_proj"}
GATED = {
    "feed_forward.gate_proj": "mlp.gate_proj",
    "feed_forward.inner_proj": "mlp.up_proj",
    "feed_forward.outer_proj": "mlp.down_proj",
}
EXPERT = {"gate_proj": "gate_proj", "inner_proj": "up_proj", "outer_proj": "down_proj"}
MIXTRAL_EXPERT = {"gate_proj": "w1", "inner_proj": "w3", "outer_proj": "w2"}
NORMS_BEFORE = {"self_attention_norm.norm": "input_layernorm", "feed_forward_norm.norm": "post_attention_layernorm"}
NORMS_AFTER = {
    "self_attention_norm.output_norm": "post_attention_layernorm",
    "feed_forward_norm.output_norm": "post_feedforward_layernorm",
}
NORMS_AROUND = NORMS_AFTER | {
    "self_attention_norm.norm": "input_layernorm",
    "feed_forward_norm.norm": "pre_feedforward_layernorm",
}
NORMS = {"pre": NORMS_BEFORE, "output": NORMS_AFTER, "both": NORMS_AROUND}
QUERY_KEY_NORMS = {"self_attention.query_norm": "self_attn.q_norm", "self_attention.key_norm": "self_attn.k_norm"}
SCALINGS = {"default": "none", "linear": "linear", "llama3": "llama3", "yarn": "yarn", "longrope": "longrope"}
SCALINGS |= {
    "dynamic": "none"
}  # which stretches what is longer than max_position_embeddings, and no longer text is read
OWN_GROWTH = ("attention_factor", "mscale", "mscale_all_dim")  # of yarn, in place of the paper's


def rotary_entries(settings: ConfigJson) -> dict[str, Any]:
    """Return the rotary entries of ModelConfig, as version 5 of the library writes them, or older ones."""
    given = settings.part("rope_parameters")
    local: dict[str, Any] = {}
    if "full_attention" in given.values:
        within = given.part("sliding_attention")
        if within.get("rope_type", "default") != "default":
            raise BundleError(f"{within.where}: rope_type={within.get('rope_type')!r:.60} must be 'default'")
        local = {"rotary_base_in_window": within.get("rope_theta", 10_000.0)}
        given = given.part("full_attention")
    elif not given.values:
        older = settings.part("rope_scaling")
        theta = settings.get("rope_theta", settings.get("rotary_emb_base", 10_000.0))
        given = ConfigJson(older.where, {"rope_theta": theta} | older.values)
        if (base := settings.get("rope_local_base_freq")) is not None:
            local = {"rotary_base_in_window": base}
    kind = given.get("rope_type", given.get("type", "default"))
    if not isinstance(kind, str) or kind not in SCALINGS:
        raise BundleError(f"{given.where}: rope_type={kind!r:.60} is not supported; supported: {', '.join(SCALINGS)}")
    for name in OWN_GROWTH:
        if given.get(name) is not None:
            raise BundleError(f"{given.where}: {name}={given.get(name)!r:.60} is not supported; it must be missing")
    found = local | {"rotary_base": given.get("rope_theta", 10_000.0), "rotary_scaling": SCALINGS[kind]}
    if kind in ("linear", "llama3", "yarn"):
        found["rotary_factor"] = given.need("factor")
    if kind in ("llama3", "yarn"):
        slow, fast = ("low_freq_factor", "high_freq_factor") if kind == "llama3" else ("beta_slow", "beta_fast")
        found["rotary_slow"], found["rotary_fast"] = given.get(slow, 1.0), given.get(fast, 32.0)
    if kind in ("llama3", "yarn", "longrope"):
        found["rotary_original_len"] = given.get(
            "original_max_position_embeddings", settings.get("original_max_position_embeddings")
        )
    if kind == "longrope":
        found |= _longrope(given, settings, found["rotary_original_len"])
    return found


def _longrope(given: ConfigJson, settings: ConfigJson, learned: Any) -> dict[str, Any]:
    """Return what is read of longrope: the factors of texts no longer than those learned from."""
    factors, longest = given.need("short_factor"), settings.get("max_position_embeddings")
    if not isinstance(factors, list) or not isinstance(learned, int) or not isinstance(longest, int) or learned < 2:
        raise BundleError(
            f"{given.where}: longrope must have short_factor as a list, and original_max_position_embeddings and "
            f"max_position_embeddings as whole numbers from 2"
        )
    return {"rotary_factors": tuple(factors), "rotary_factor": given.get("factor", longest / learned)}


def _turning(settings: ConfigJson, d_head: Any) -> int | None:
    """Return how many coordinates turn, None for all."""
    share = settings.part("rope_parameters").get("partial_rotary_factor", settings.get("partial_rotary_factor"))
    share = settings.get("rotary_pct", 1.0) if share is None else share
    if not isinstance(share, int | float) or not 0 < share <= 1 or not isinstance(d_head, int):
        raise BundleError(f"{settings.where}: partial_rotary_factor={share!r:.60} must be a number from 0 to 1")
    return None if share == 1 else int(d_head * share)


def windows_of(settings: ConfigJson, within: Callable[[int], bool]) -> tuple[int | None, ...]:
    """Return the windows by layer, where layer_types does not say it by `within`, by the layer's number."""
    window, n_layers = settings.get("sliding_window"), settings.need("num_hidden_layers")
    if window is None or not settings.flag("use_sliding_window", True) or not isinstance(n_layers, int):
        return ()
    kinds = settings.get("layer_types")
    if kinds is None:
        kinds = ["sliding_attention" if within(layer) else "full_attention" for layer in range(min(n_layers, 1_000))]
    if not isinstance(kinds, list) or not set(map(str, kinds)) <= {"sliding_attention", "full_attention"}:
        raise BundleError(f"{settings.where}: layer_types={kinds!r:.60} must list sliding_attention or full_attention")
    if "sliding_attention" not in kinds:
        return ()
    window = min(window, MOST_PLACES) if isinstance(window, int) else window
    return tuple(window if kind == "sliding_attention" else None for kind in kinds)


def _common(settings: ConfigJson) -> dict[str, Any]:
    """Return what all of these families' config.json say alike."""
    width, n_heads = settings.need("hidden_size"), settings.need("num_attention_heads")
    d_head = settings.get("head_dim")
    if d_head is None and isinstance(width, int) and isinstance(n_heads, int) and n_heads > 0:
        d_head = width // n_heads
    places, rotary = settings.get("max_position_embeddings", 2048), rotary_entries(settings)
    if rotary["rotary_scaling"] == "longrope":
        places = min(places, rotary["rotary_original_len"])
    return rotary | {
        "vocab_size": settings.need("vocab_size"),
        "d_model": width,
        "n_heads": n_heads,
        "n_kv_heads": settings.get("num_key_value_heads"),
        "d_head": d_head,
        "d_ff": settings.need("intermediate_size"),
        "n_layers": settings.need("num_hidden_layers"),
        "max_len": min(places, MOST_PLACES) if isinstance(places, int) else places,
        "dropout": 0.0,
        "pad_id": None,  # the library hides no token for its id; what comes later is hidden anyway
        "positions": "rotary",
        "rotary_halves": True,
        "rotary_dims": _turning(settings, d_head),
        "norm": "rms_norm",
        "norm_order": "pre",
        "norm_eps": settings.get("rms_norm_eps", 1e-6),
        "gated": True,
        "bias": False,
        "tied_output": True,
    }


Changes = Callable[[ConfigJson], dict[str, Any]]


def _no_bias(settings: ConfigJson) -> None:
    if settings.flag("attention_bias", False):
        raise BundleError(f"{settings.where}: attention_bias=true is not supported; supported: false")


def _llama(settings: ConfigJson) -> dict[str, Any]:
    biased = settings.flag("attention_bias", False)
    if biased != settings.flag("mlp_bias", False):
        raise BundleError(f"{settings.where}: attention_bias={biased} is supported with mlp_bias={biased} alone")
    return {"activation": settings.activation("hidden_act", "silu"), "bias": biased}


def _mistral(settings: ConfigJson) -> dict[str, Any]:
    windows = windows_of(settings, lambda layer: True)
    return {"activation": settings.activation("hidden_act", "silu"), "windows": windows}


def _qwen2(settings: ConfigJson) -> dict[str, Any]:
    first = settings.get("max_window_layers", 28)
    within = settings.flag("use_sliding_window", False)
    windows = windows_of(settings, lambda layer: isinstance(first, int) and layer >= first) if within else ()
    return {
        "activation": settings.activation("hidden_act", "silu"),
        "windows": windows,
        "query_key_value_bias": True,
    }


def _qwen3(settings: ConfigJson) -> dict[str, Any]:
    _no_bias(settings)
    return _qwen2(settings) | {"query_key_value_bias": False, "query_key_norm": "head"}


def _gemma(settings: ConfigJson) -> dict[str, Any]:
    _no_bias(settings)
    return {
        "activation": settings.activation("hidden_act", "gelu_pytorch_tanh"),
        "scale_embeddings": True,
    }


def _gemma2(settings: ConfigJson) -> dict[str, Any]:
    _no_bias(settings)
    return {
        "activation": settings.activation("hidden_activation", "gelu_pytorch_tanh"),
        "scale_embeddings": True,
        "norm_order": "both",
        "score_width": settings.get("query_pre_attn_scalar", 256),
        "score_cap": settings.get("attn_logit_softcapping"),
        "logit_cap": settings.get("final_logit_softcapping"),
        "windows": windows_of(settings, lambda layer: layer % 2 == 0),
    }


def _gemma3(settings: ConfigJson) -> dict[str, Any]:
    pattern = settings.get("sliding_window_pattern", settings.get("_sliding_window_pattern", 6))
    if not isinstance(pattern, int) or pattern < 1:
        raise BundleError(f"{settings.where}: sliding_window_pattern={pattern!r:.60} must be a whole number from 1")
    windows = windows_of(settings, lambda layer: (layer + 1) % pattern != 0)
    return _gemma2(settings) | {"windows": windows, "query_key_norm": "head"}


def _olmo2(settings: ConfigJson) -> dict[str, Any]:
    _no_bias(settings)
    return {
        "activation": settings.activation("hidden_act", "silu"),
        "norm_order": "output",
        "query_key_norm": "all",
        "norm_eps": settings.get("rms_norm_eps", 1e-5),
    }


def _mixture(settings: ConfigJson, sums_to_one: bool) -> dict[str, Any]:
    """Return the entries of a mixture of experts, which each of its layers must be."""
    for name, usual in (("decoder_sparse_step", 1), ("mlp_only_layers", [])):
        if (value := settings.get(name, usual)) != usual:
            raise BundleError(f"{settings.where}: {name}={value!r:.60} is not supported; supported: {usual}")
    counted = settings.get("num_experts", settings.get("num_local_experts"))
    return {
        "n_experts": settings.need("num_experts") if counted is None else counted,
        "n_active_experts": settings.need("num_experts_per_tok"),
        "expert_weights_sum_to_one": sums_to_one,
    }


def _mixtral(settings: ConfigJson) -> dict[str, Any]:
    return _mistral(settings) | {"norm_eps": settings.get("rms_norm_eps", 1e-5)} | _mixture(settings, True)


def _qwen2_moe(settings: ConfigJson) -> dict[str, Any]:
    first, within = settings.get("max_window_layers", 28), settings.flag("use_sliding_window", False)
    windows = windows_of(settings, lambda layer: isinstance(first, int) and layer < first and layer % 2 == 0)
    return {
        "activation": settings.activation("hidden_act", "silu"),
        "windows": windows if within else (),
        "query_key_value_bias": settings.flag("qkv_bias", True),
        "d_ff": settings.need("moe_intermediate_size"),
        "shared_d_ff": settings.need("shared_expert_intermediate_size"),
        "shared_gate": True,
        **_mixture(settings, settings.flag("norm_topk_prob", False)),
    }


def _qwen3_moe(settings: ConfigJson) -> dict[str, Any]:
    _no_bias(settings)
    return {
        "activation": settings.activation("hidden_act", "silu"),
        "windows": windows_of(settings, lambda layer: True) if settings.flag("use_sliding_window", False) else (),
        "query_key_norm": "head",
        "d_ff": settings.need("moe_intermediate_size"),
        **_mixture(settings, settings.flag("norm_topk_prob", False)),
    }


def _olmoe(settings: ConfigJson) -> dict[str, Any]:
    if settings.get("clip_qkv") is not None:
        raise BundleError(
            f"{settings.where}: clip_qkv={settings.get('clip_qkv')!r:.60} is not supported; it must be null"
        )
    mixture = _mixture(settings, settings.flag("norm_topk_prob", False))
    return _olmo2(settings) | {"norm_order": "pre"} | mixture


def _neox(settings: ConfigJson) -> dict[str, Any]:
    if not settings.flag("attention_bias", True):
        raise BundleError(f"{settings.where}: attention_bias=false is not supported; supported: true")
    return {
        "activation": settings.activation("hidden_act", "gelu"),
        "n_kv_heads": None,
        "norm": "layer_norm",
        "norm_eps": settings.get("layer_norm_eps", 1e-5),
        "gated": False,
        "bias": True,
        "parallel": settings.flag("use_parallel_residual", True),
    }


def _common_layer(config: ModelConfig) -> Origins:
    """Return the origins of one layer, by the names that all families but Phi-3 and GPT-NeoX use."""
    of_own = config.bias if config.query_key_value_bias is None else config.query_key_value_bias
    norms = NORMS[config.norm_order] | (QUERY_KEY_NORMS if config.query_key_norm != "none" else {})
    inside = _experts(config, "mlp", EXPERT) if config.n_experts else GATED
    maps = (both if of_own else weights)(ATTENTION) | (both if config.bias else weights)(OUTPUT | inside)
    return maps | weights(norms)


def _experts(config: ModelConfig, scope: str, names: Mapping[str, str]) -> dict[str, str]:
    """Return the linear maps of a mixture, ours to theirs.

    Args:
        names: of an expert's maps.
    """
    experts = {f"experts.{n}": f"experts.{n}" for n in range(config.n_experts)}
    if config.shared_d_ff:
        experts["shared"] = "shared_expert"
    routing = {"router": "gate"} | ({"shared_gate": "shared_expert_gate"} if config.shared_gate else {})
    maps = routing | {f"{to}.{ours}": f"{of}.{own}" for to, of in experts.items() for ours, own in names.items()}
    return {f"feed_forward.{ours}": f"{scope}.{theirs}" for ours, theirs in maps.items()}


def _mixtral_layer(config: ModelConfig) -> Origins:
    return weights(ATTENTION | OUTPUT | NORMS_BEFORE | _experts(config, "block_sparse_moe", MIXTRAL_EXPERT))


def _gemma_layer(config: ModelConfig) -> Origins:
    norms = NORMS[config.norm_order] | (QUERY_KEY_NORMS if config.query_key_norm != "none" else {})
    return _common_layer(config) | weights(norms, plus=1.0)


def _phi3_layer(config: ModelConfig) -> Origins:
    assert config.d_head is not None
    queries, kept = config.n_heads * config.d_head, config.kv_heads * config.d_head
    joined, gates = "self_attn.qkv_proj.weight", "mlp.gate_up_proj.weight"
    return weights(OUTPUT | {"feed_forward.outer_proj": "mlp.down_proj"} | NORMS_BEFORE) | {
        "self_attention.query_proj.weight": Origin(joined, after=2 * kept),
        "self_attention.key_proj.weight": Origin(joined, skip=queries, after=kept),
        "self_attention.value_proj.weight": Origin(joined, skip=queries + kept),
        "feed_forward.gate_proj.weight": Origin(gates, part=0, parts=2),
        "feed_forward.inner_proj.weight": Origin(gates, part=1, parts=2),
    }


def _neox_layer(config: ModelConfig) -> Origins:
    layer = both(
        {
            "self_attention.output_proj": "attention.dense",
            "feed_forward.inner_proj": "mlp.dense_h_to_4h",
            "feed_forward.outer_proj": "mlp.dense_4h_to_h",
        }
        | NORMS_BEFORE
    )
    for part, proj in enumerate(("query_proj", "key_proj", "value_proj")):
        for kind in ("weight", "bias"):
            layer[f"self_attention.{proj}.{kind}"] = Origin(
                f"attention.query_key_value.{kind}", part=part, parts=3, groups=config.n_heads
            )
    return layer


def _family(
    model_type: str,
    kind: str,
    changes: Changes,
    layer: Callable[[ModelConfig], Origins] = _common_layer,
    *,
    prefix: str = "model.",
    names: tuple[str, str, str] = ("embed_tokens", "norm", "lm_head"),
    plus: float = 0.0,
) -> Family:
    """Return a family of these.

    Args:
        kind: how the names of their classes begin.
        changes: what its config.json says otherwise than most.
        layer: where the parameters of a layer come from.
        names: of their embedding, last norm and head.
        plus: added to the norms' weights, which are stored as what they are more than it.
    """
    embedding, norm, head = names

    def configure(settings: ConfigJson, kind: str, shapes: Shapes) -> dict[str, Any]:
        return _common(settings) | changes(settings)

    def origins(config: ModelConfig, kind: str) -> Origins:
        found = per_layer(layer(config), config.n_layers, "decoder.stack.layers.{n}", "layers.{n}")
        found["decoder.embedding.token.weight"] = Origin(f"{embedding}.weight")
        found["decoder.stack.final_norm.weight"] = Origin(f"{norm}.weight", plus=plus)
        if config.norm == "layer_norm":
            found["decoder.stack.final_norm.bias"] = Origin(f"{norm}.bias")
        if not config.tied_output:
            found["output.proj.weight"] = Origin(f"{head}.weight")
        return found

    return Family(
        model_type=model_type,
        prefix=prefix,
        backbone=(f"{embedding}.", "layers.", f"{norm}."),
        kinds={f"{kind}ForCausalLM": "gpt", f"{kind}Model": "gpt"},
        configure=configure,
        origins=origins,
        word_matrix=f"{embedding}.weight",
        head_matrix=f"{head}.weight",
        buffers=re.compile(
            r"layers\.\d+\.(self_attn|attention)\.(rotary_emb\.inv_freq|bias|masked_bias)|rotary_emb\..*"
        ),
        aliases={},
        vocabulary=(),
    )


DECODERS = (
    _family("llama", "Llama", _llama),
    _family("mistral", "Mistral", _mistral),
    _family("qwen2", "Qwen2", _qwen2),
    _family("qwen3", "Qwen3", _qwen3),
    _family("gemma", "Gemma", _gemma, _gemma_layer, plus=1.0),
    _family("gemma2", "Gemma2", _gemma2, _gemma_layer, plus=1.0),
    _family("gemma3_text", "Gemma3", _gemma3, _gemma_layer, plus=1.0),
    _family("phi3", "Phi3", _mistral, _phi3_layer),
    _family("olmo2", "Olmo2", _olmo2),
    _family("mixtral", "Mixtral", _mixtral, _mixtral_layer),
    _family("qwen2_moe", "Qwen2Moe", _qwen2_moe),
    _family("qwen3_moe", "Qwen3Moe", _qwen3_moe),
    _family("olmoe", "Olmoe", _olmoe),
    _family(
        "gpt_neox",
        "GPTNeoX",
        _neox,
        _neox_layer,
        prefix="gpt_neox.",
        names=("embed_in", "final_layer_norm", "embed_out"),
    ),
)
