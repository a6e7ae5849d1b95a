"""Small random models as GGUF files, written with the `gguf` package as llama.cpp's converter writes them."""

import re
import struct
from pathlib import Path
from typing import Any

import gguf
import numpy as np
import torch

from tests.helpers.open_checkpoints import made

PIECES = ["<pad>", "<eos>", "<bos>", "<unk>", "<0x0A>", *(f"<0x{byte:02X}>" for byte in range(256) if byte != 10)]
LETTERS = ["▁", "a", "b", "c", "▁a", "ab", "▁ab", "bc", "abc", "▁abc", "你", "你好", "好", "▁▁"]
OWN_NAMES = {
    "llama": ("llama", "Llama", {}),
    "qwen2": ("qwen2", "Qwen2", {}),
    "qwen3": ("qwen3", "Qwen3", {"tie_word_embeddings": True}),
    "gemma": ("gemma", "Gemma", {}),
    "gemma2": ("gemma2", "Gemma2", {"query_pre_attn_scalar": 256}),
    "gemma3": ("gemma3", "Gemma3", {"query_pre_attn_scalar": 256}),
    "phi3": ("phi3", "Phi3", {"sliding_window": None}),
    "olmo2": ("olmo2", "Olmo2", {}),
    "gpt2": ("gpt2", "GPT2", {}),
    "gptneox": ("gptneox", "GPTNeoX", {"tie_word_embeddings": False}),
    "mixtral": ("llama", "Mixtral", {"sliding_window": None}),
    "qwen2moe": ("qwen2moe", "Qwen2Moe", {}),
    "qwen3moe": ("qwen3moe", "Qwen3Moe", {"norm_topk_prob": True}),
    "olmoe": ("olmoe", "Olmoe", {}),
}
MIXTURES = ("mixtral", "qwen2moe", "qwen3moe", "olmoe")
LAYER = {
    "input_layernorm": "attn_norm",
    "self_attn.q_proj": "attn_q",
    "self_attn.k_proj": "attn_k",
    "self_attn.v_proj": "attn_v",
    "self_attn.qkv_proj": "attn_qkv",
    "self_attn.o_proj": "attn_output",
    "self_attn.q_norm": "attn_q_norm",
    "self_attn.k_norm": "attn_k_norm",
    "post_attention_layernorm": "ffn_norm",
    "pre_feedforward_layernorm": "ffn_norm",
    "post_feedforward_layernorm": "post_ffw_norm",
    "mlp.gate_proj": "ffn_gate",
    "mlp.up_proj": "ffn_up",
    "mlp.gate_up_proj": "ffn_up",
    "mlp.down_proj": "ffn_down",
    "mlp.gate": "ffn_gate_inp",
    "mlp.experts.down_proj": "ffn_down_exps",
    "mlp.shared_expert_gate": "ffn_gate_inp_shexp",
    "mlp.shared_expert.gate_proj": "ffn_gate_shexp",
    "mlp.shared_expert.up_proj": "ffn_up_shexp",
    "mlp.shared_expert.down_proj": "ffn_down_shexp",
    "ln_1": "attn_norm",
    "attn.c_attn": "attn_qkv",
    "attn.c_proj": "attn_output",
    "ln_2": "ffn_norm",
    "mlp.c_fc": "ffn_up",
    "mlp.c_proj": "ffn_down",
    "attention.query_key_value": "attn_qkv",
    "attention.dense": "attn_output",
    "mlp.dense_h_to_4h": "ffn_up",
    "mlp.dense_4h_to_h": "ffn_down",
}
ENDS = {
    "model.embed_tokens": "token_embd",
    "model.norm": "output_norm",
    "lm_head": "output",
    "transformer.wte": "token_embd",
    "transformer.wpe": "position_embd",
    "transformer.ln_f": "output_norm",
    "gpt_neox.embed_in": "token_embd",
    "gpt_neox.final_layer_norm": "output_norm",
    "embed_out": "output",
}


def _their_name(name: str, architecture: str) -> str:
    module, _, kind = name.rpartition(".")
    if module in ENDS:
        return f"{ENDS[module]}.{kind}"
    parts = re.sub(r"^(model\.layers|transformer\.h|gpt_neox\.layers)\.", "", module).split(".", 1)
    named = LAYER[parts[1]]
    if parts[1] == "post_attention_layernorm" and architecture in ("gemma2", "gemma3", "olmo2"):
        named = "post_attention_norm"
    return f"blk.{parts[0]}.{named}.{kind}"


def _changed(name: str, tensor: torch.Tensor, architecture: str, config: Any) -> torch.Tensor:
    """Change a tensor as the converter does."""
    if architecture == "llama" and name.endswith(("q_proj.weight", "k_proj.weight")):
        heads = config.num_attention_heads if "q_proj" in name else config.num_key_value_heads
        return tensor.unflatten(0, (heads, 2, -1)).transpose(1, 2).flatten(0, 2)
    if architecture.startswith("gemma") and "norm" in name:
        return tensor + 1
    if architecture == "gpt2" and name.endswith(("c_attn.weight", "c_proj.weight", "c_fc.weight")):
        return tensor.T
    if "query_key_value" in name:
        return tensor.unflatten(0, (config.num_attention_heads, 3, -1)).transpose(0, 1).flatten(0, 2)
    return tensor[0] if "shared_expert_gate" in name else tensor


def _parts(name: str, parameter: torch.Tensor, architecture: str) -> dict[str, torch.Tensor]:
    """Return what of a parameter lies in the file under which name; theirs has gate and up of all experts in one."""
    if name.endswith("mlp.experts.gate_up_proj"):
        start = f"blk.{name.split('.')[2]}.ffn"
        gate, up = parameter.chunk(2, dim=1)
        return {f"{start}_gate_exps.weight": gate, f"{start}_up_exps.weight": up}
    whole = f"{name}.weight" if "mlp.experts." in name else name
    return {_their_name(whole, architecture): parameter}


def add_words(writer: gguf.GGUFWriter, count: int) -> None:
    """Add a vocabulary of SentencePiece's kind, with unused entries up to a count."""
    tokens = [*PIECES, *LETTERS]
    tokens += [f"<unused{place}>" for place in range(count - len(tokens))]
    types = [3, 3, 3, 2, *[6] * 256, *[1] * len(LETTERS), *[4] * (count - len(PIECES) - len(LETTERS))]
    scores = [-1000.0] * len(PIECES) + [-float(place) for place in range(len(tokens) - len(PIECES))]
    writer.add_tokenizer_model("llama")
    writer.add_token_list(tokens)
    writer.add_token_scores(scores)
    writer.add_token_types(types)
    writer.add_bos_token_id(2)
    writer.add_eos_token_id(1)
    writer.add_unk_token_id(3)
    writer.add_pad_token_id(0)
    writer.add_add_bos_token(True)
    writer.add_add_space_prefix(False)


VOCAB = len(PIECES) + len(LETTERS) + 2
WIDE = {"hidden_size": 32, "intermediate_size": 32, "head_dim": 8}  # rows of whole blocks
WIDE |= {"moe_intermediate_size": 32, "shared_expert_intermediate_size": 32}
TYPES = gguf.GGMLQuantizationType


def _say_sizes(writer: gguf.GGUFWriter, name: str, config: Any) -> None:
    """Write the numbers of a model's config."""
    if name == "gpt2":
        sizes = (config.n_positions, config.n_embd, config.n_layer, 4 * config.n_embd, config.n_head)
        writer.add_layer_norm_eps(config.layer_norm_epsilon)
    else:
        sizes = (config.max_position_embeddings, config.hidden_size, config.num_hidden_layers)
        sizes += (config.intermediate_size, config.num_attention_heads)
        rope = config.rope_parameters
        writer.add_rope_freq_base(rope.get("full_attention", rope)["rope_theta"])
        if name == "gptneox":
            writer.add_layer_norm_eps(config.layer_norm_eps)
            turning = rope["partial_rotary_factor"] * config.hidden_size / config.num_attention_heads
            writer.add_rope_dimension_count(int(turning))
            writer.add_parallel_residual(config.use_parallel_residual)
        else:
            writer.add_head_count_kv(config.num_key_value_heads)
            writer.add_layer_norm_rms_eps(config.rms_norm_eps)
        if getattr(config, "head_dim", None):
            writer.add_key_length(config.head_dim)
    if name in MIXTURES:
        _say_experts(writer, config)
    for add, size in zip(
        (
            writer.add_context_length,
            writer.add_embedding_length,
            writer.add_block_count,
            writer.add_feed_forward_length,
            writer.add_head_count,
        ),
        sizes,
        strict=True,
    ):
        add(size)
    if name in ("gemma2", "gemma3"):
        writer.add_sliding_window(config.sliding_window)
    if name == "gemma2":
        writer.add_attn_logit_softcapping(config.attn_logit_softcapping)
        writer.add_final_logit_softcapping(config.final_logit_softcapping)


def _say_experts(writer: gguf.GGUFWriter, config: Any) -> None:
    counted = config.num_local_experts if hasattr(config, "num_local_experts") else config.num_experts
    writer.add_expert_count(counted)
    writer.add_expert_used_count(config.num_experts_per_tok)
    if width := getattr(config, "moe_intermediate_size", None):
        writer.add_expert_feed_forward_length(width)
    if width := getattr(config, "shared_expert_intermediate_size", None):
        writer.add_expert_shared_feed_forward_length(width)


def write_gguf(
    path: Path, name: str, kind: gguf.GGMLQuantizationType = TYPES.F32, *, chat: str = "", **changes: Any
) -> Any:
    """Write a random model of theirs as a GGUF file; return the model, whose matrices are as the file has them."""
    architecture, family, own = OWN_NAMES[name]
    named = f"{family}LMHeadModel" if family == "GPT2" else f"{family}ForCausalLM"
    model = made(named, vocab_size=VOCAB, **(own | changes))
    config = model.config
    writer = gguf.GGUFWriter(path, architecture)
    _say_sizes(writer, name, config)
    add_words(writer, VOCAB)
    if chat:
        writer.add_chat_template(chat)
    with torch.no_grad():
        for theirs, parameter in model.named_parameters():
            for named, part in _parts(theirs, parameter, architecture).items():
                changed = _changed(theirs, part, architecture, config).contiguous().numpy()
                stored = kind if changed.ndim > 1 and "ffn_gate_inp" not in named else TYPES.F32
                data = gguf.quants.quantize(changed, stored)
                writer.add_tensor(named, data, raw_dtype=stored)
                if stored is not TYPES.F32:
                    whole = torch.from_numpy(gguf.quants.dequantize(data, stored).astype(np.float32))
                    if architecture == "llama" and theirs.endswith(("q_proj.weight", "k_proj.weight")):
                        heads = config.num_attention_heads if "q_proj" in theirs else config.num_key_value_heads
                        whole = whole.unflatten(0, (heads, -1, 2)).transpose(1, 2).flatten(0, 2)
                    part.copy_(whole)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return model


def with_number(data: bytes, at: int, value: int, form: str = "<Q") -> bytes:
    """Return a file's bytes with another number at a place."""
    return data[:at] + struct.pack(form, value) + data[at + struct.calcsize(form) :]
