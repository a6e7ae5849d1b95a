"""GGUF: one file with everything of a model, told over as a folder of the `transformers` library would have it.

Names and numbers are those of that library, so that no family need know where a model comes from; what the converter of
llama.cpp changed on the way into the file is undone.

Format: the GGUF specification; Kudo and Richardson 2018 (SentencePiece), whose merges are made anew from its scores.
"""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

import tokenizers
from tokenizers import AddedToken, Regex, decoders, models, normalizers, pre_tokenizers, processors
from torch import Tensor

from transformer_core.layers.positions import Rotary
from transformer_core.text import Tokenizer
from transformer_core.text.loading import failing_clearly
from transformer_core.untrusted.bundle_files import BundleError
from transformer_core.untrusted.config_json import ConfigJson
from transformer_core.untrusted.gguf_file import MOST_TENSORS, GgufFile, name_of
from transformer_core.untrusted.tensors import Place, Shape, Tensors
from transformer_core.untrusted.tokenizer_json import LONGEST_TOKEN, check_added

OF_DECODER = {
    "context_length": "max_position_embeddings",
    "embedding_length": "hidden_size",
    "block_count": "num_hidden_layers",
    "feed_forward_length": "intermediate_size",
    "attention.head_count": "num_attention_heads",
    "attention.head_count_kv": "num_key_value_heads",
    "attention.key_length": "head_dim",
    "attention.layer_norm_rms_epsilon": "rms_norm_eps",
    "attention.sliding_window": "sliding_window",
    "rope.freq_base": "rope_theta",
    "attn_logit_softcapping": "attn_logit_softcapping",
    "final_logit_softcapping": "final_logit_softcapping",
    "attention.clamp_kqv": "clip_qkv",
    "attention.layer_norm_epsilon": "layer_norm_eps",
    "use_parallel_residual": "use_parallel_residual",
    "expert_count": "num_experts",
    "expert_used_count": "num_experts_per_tok",
    "expert_feed_forward_length": "moe_intermediate_size",
    "expert_shared_feed_forward_length": "shared_expert_intermediate_size",
    "expert_weights_norm": "norm_topk_prob",
}
OF_GPT2 = {
    "context_length": "n_positions",
    "embedding_length": "n_embd",
    "block_count": "n_layer",
    "feed_forward_length": "n_inner",
    "attention.head_count": "n_head",
    "attention.layer_norm_epsilon": "layer_norm_epsilon",
}
ENDS = {"token_embd": "model.embed_tokens", "output_norm": "model.norm", "output": "lm_head"}
ENDS_OF_GPT2 = {"token_embd": "wte", "position_embd": "wpe", "output_norm": "ln_f", "output": "lm_head"}
ENDS_OF_NEOX = {"token_embd": "gpt_neox.embed_in", "output_norm": "gpt_neox.final_layer_norm", "output": "embed_out"}
LAYER = {
    "attn_norm": "input_layernorm",
    "attn_q": "self_attn.q_proj",
    "attn_k": "self_attn.k_proj",
    "attn_v": "self_attn.v_proj",
    "attn_qkv": "self_attn.qkv_proj",
    "attn_output": "self_attn.o_proj",
    "attn_q_norm": "self_attn.q_norm",
    "attn_k_norm": "self_attn.k_norm",
    "post_attention_norm": "post_attention_layernorm",
    "ffn_norm": "post_attention_layernorm",
    "post_ffw_norm": "post_feedforward_layernorm",
    "ffn_gate_inp": "mlp.gate",
    "ffn_gate_inp_shexp": "mlp.shared_expert_gate",
}
for _part in ("gate", "up", "down"):
    LAYER[f"ffn_{_part}"] = f"mlp.{_part}_proj"
    LAYER[f"ffn_{_part}_exps"] = f"mlp.experts.{{}}.{_part}_proj"  # of all experts, along the first axis
    LAYER[f"ffn_{_part}_shexp"] = f"mlp.shared_expert.{_part}_proj"
LAYER_OF_GEMMA = LAYER | {"ffn_norm": "pre_feedforward_layernorm"}
LAYER_OF_PHI3 = LAYER | {"ffn_up": "mlp.gate_up_proj"}
LAYER_OF_MIXTRAL = LAYER | {"ffn_gate_inp": "block_sparse_moe.gate"}
for _part, _own in (("gate", "w1"), ("up", "w3"), ("down", "w2")):
    LAYER_OF_MIXTRAL[f"ffn_{_part}_exps"] = f"block_sparse_moe.experts.{{}}.{_own}"
LAYER_OF_GPT2 = {
    "attn_norm": "ln_1",
    "attn_qkv": "attn.c_attn",
    "attn_output": "attn.c_proj",
    "ffn_norm": "ln_2",
    "ffn_up": "mlp.c_fc",
    "ffn_down": "mlp.c_proj",
}
LAYER_OF_NEOX = LAYER | {
    "attn_qkv": "attention.query_key_value",
    "attn_output": "attention.dense",
    "ffn_up": "mlp.dense_h_to_4h",
    "ffn_down": "mlp.dense_4h_to_h",
}
Undo = Callable[[str, Tensor, Mapping[str, Any]], Tensor]


def _halves_again(name: str, tensor: Tensor, settings: Mapping[str, Any]) -> Tensor:
    """Put rows of queries and keys back: the file has the coordinates that turn together side by side."""
    heads = {"q_proj": "num_attention_heads", "k_proj": "num_key_value_heads"}
    for part, count in heads.items():
        if f".self_attn.{part}." in name:
            return tensor.unflatten(0, (settings[count], -1, 2)).transpose(1, 2).flatten(0, 2)
    return tensor


def _less_one(name: str, tensor: Tensor, settings: Mapping[str, Any]) -> Tensor:
    return tensor - 1 if "norm." in name else tensor


def _turned(name: str, tensor: Tensor, settings: Mapping[str, Any]) -> Tensor:
    return tensor.T if re.search(r"\.c_(attn|proj|fc)\.weight$", name) else tensor


def _by_head_again(name: str, tensor: Tensor, settings: Mapping[str, Any]) -> Tensor:
    """Put query, key and value of each head together: the file has all queries first."""
    if ".query_key_value." not in name:
        return tensor
    return tensor.unflatten(0, (3, settings["num_attention_heads"], -1)).transpose(0, 1).flatten(0, 2)


@dataclass(frozen=True)
class _Architecture:
    """One general.architecture.

    Args:
        model_type: what config.json calls it; named: the class of its checkpoints.
        layer, ends: their names of a layer's tensors, and of the others; layers: what stands before a layer's number.
        entries: their names of the numbers.
        undo: what the converter changed in a tensor, by the library's name.
        more: entries where the file does not say them.
    """

    model_type: str
    named: str
    layer: Mapping[str, str]
    undo: Undo | None
    ends: Mapping[str, str]
    entries: Mapping[str, str]
    more: Mapping[str, Any]
    layers: str


def _decoder(
    model_type: str, named: str, layer: Mapping[str, str] = LAYER, undo: Undo | None = None, **more: Any
) -> _Architecture:
    ends, layers = (ENDS_OF_NEOX, "gpt_neox.layers") if layer is LAYER_OF_NEOX else (ENDS, "model.layers")
    return _Architecture(model_type, f"{named}ForCausalLM", layer, undo, ends, OF_DECODER, more, layers)


ARCHITECTURES = {
    "llama": _decoder("llama", "Llama", undo=_halves_again),
    "qwen2": _decoder("qwen2", "Qwen2"),
    "qwen3": _decoder("qwen3", "Qwen3"),
    "gemma": _decoder("gemma", "Gemma", undo=_less_one),
    "gemma2": _decoder("gemma2", "Gemma2", LAYER_OF_GEMMA, _less_one),
    "gemma3": _decoder("gemma3_text", "Gemma3", LAYER_OF_GEMMA, _less_one, rope_local_base_freq=10_000.0),
    "phi3": _decoder("phi3", "Phi3", LAYER_OF_PHI3),
    "olmo2": _decoder("olmo2", "Olmo2"),
    "qwen2moe": _decoder("qwen2_moe", "Qwen2Moe"),
    "qwen3moe": _decoder("qwen3_moe", "Qwen3Moe", norm_topk_prob=True),
    "olmoe": _decoder("olmoe", "Olmoe"),
    "gpt2": _Architecture("gpt2", "GPT2LMHeadModel", LAYER_OF_GPT2, _turned, ENDS_OF_GPT2, OF_GPT2, {}, "h"),
    "gptneox": _decoder("gpt_neox", "GPTNeoX", LAYER_OF_NEOX, _by_head_again, hidden_act="gelu"),
}
MIXTRAL = _decoder("mixtral", "Mixtral", LAYER_OF_MIXTRAL, _halves_again)  # llama.cpp calls it a llama with experts
SCALINGS = {"linear": "linear", "yarn": "yarn", "none": None}
STRETCHED = "rope_freqs.weight"  # in the place of Llama 3's scaling, whose numbers the file does not have
MOST_PAIRS = 4_096  # of a head's coordinates
LLAMA3 = tuple((factor, 1.0, 4.0, 8192) for factor in (8.0, 32.0))  # that Meta's models have


@dataclass(frozen=True)
class GgufSource:
    """A model in a GGUF file, in the words of the `transformers` library.

    Args:
        settings: what config.json would say.
    """

    file: GgufFile
    architecture: _Architecture
    settings: ConfigJson

    @classmethod
    def of(cls, file: GgufFile) -> "GgufSource":
        """Say what a file has.

        Raises:
            BundleError: an architecture that is not read, or numbers that are missing.
        """
        named = file.values.get("general.architecture")
        if not isinstance(named, str) or named not in ARCHITECTURES:
            raise BundleError(
                f"{file.where}: general.architecture={named!r:.60} is not supported; "
                f"supported: {', '.join(ARCHITECTURES)}"
            )
        found = MIXTRAL if named == "llama" and file.values.get("llama.expert_count") else ARCHITECTURES[named]
        values = _entries(file, named, found)
        if STRETCHED in file.tensors:
            values["rope_scaling"] = _llama3(file, values)
        return cls(file, found, ConfigJson(file.where, values))

    def tensors(self, rename: Callable[[str], str]) -> Tensors:
        """Return the tensors by the names that a renaming gives the library's names.

        Raises:
            BundleError: a name that the architecture does not have, or another number of experts than the file says.
        """
        places: dict[str, Place] = {}
        for name, tensor in self.file.tensors.items():
            if name == STRETCHED:
                continue
            theirs, shape, kind = self._their_name(name), tensor.shape, name_of(tensor.kind)
            if "{}" in theirs:
                n_experts = self.settings.get("num_experts")
                if len(shape) != 3 or shape[0] != n_experts or len(places) + shape[0] > MOST_TENSORS:
                    raise BundleError(
                        f"{self.file.where}: {name!r:.80} has the shape {shape}; it must have 3 axes, the first of "
                        f"expert_count={n_experts!r:.40}, and all experts at most {MOST_TENSORS} tensors"
                    )
                for item in range(shape[0]):
                    take = partial(self._read, name, theirs, shape[1:], item)
                    places[rename(theirs.format(item))] = Place(name, shape[1:], kind, take)
                continue
            if self.architecture.undo is _turned and len(shape) == 2 and ".c_" in theirs:
                shape = shape[::-1]
            if theirs.endswith("shared_expert_gate.weight"):  # of which the converter drops the axis of size 1
                shape = (1, *shape)[-2:]
            places[rename(theirs)] = Place(name, shape, kind, partial(self._read, name, theirs, shape))
        return Tensors(self.file.where, places)

    def _their_name(self, name: str) -> str:
        layer = re.fullmatch(r"blk\.(\d+)\.(\w+)\.(weight|bias)", name)
        end = re.fullmatch(r"(\w+)\.(weight|bias)", name)
        if layer and layer[2] in self.architecture.layer:
            return f"{self.architecture.layers}.{layer[1]}.{self.architecture.layer[layer[2]]}.{layer[3]}"
        if end and end[1] in self.architecture.ends:
            return f"{self.architecture.ends[end[1]]}.{end[2]}"
        raise BundleError(
            f"{self.file.where} has the tensor {name!r:.80}, which our {self.architecture.model_type} lacks"
        )

    def _read(self, name: str, theirs: str, shape: Shape, item: int | None = None) -> Tensor:
        tensor, undo = self.file.read(name, item), self.architecture.undo
        return (tensor if undo is None else undo(theirs, tensor, self.settings.values)).view(shape)

    @property
    def chat_template(self) -> str:
        """The template of a conversation, in Jinja; empty where there is none."""
        template = self.file.values.get("tokenizer.chat_template", "")
        return template if isinstance(template, str) else ""

    def tokenizer(self) -> Tokenizer:
        """Return the tokenizer that the metadata describe.

        Raises:
            BundleError: one of another kind, or a vocabulary that makes none.
        """
        words = _Words(self.file)
        try:
            with failing_clearly("the vocabulary makes no tokenizer"):
                return Tokenizer(words.pipeline(), words.named)
        except BundleError:
            raise
        except ValueError as error:
            if isinstance(error.__cause__, BundleError):
                raise error.__cause__ from None
            raise BundleError(f"{self.file.where}: {error!s:.400}") from error


def _entries(file: GgufFile, named: str, found: _Architecture) -> dict[str, Any]:
    values: dict[str, Any] = {"model_type": found.model_type, "architectures": [found.named], **found.more}
    for theirs, entry in found.entries.items():
        value = file.values.get(f"{named}.{theirs}")
        if isinstance(value, list):  # one for each layer
            if len(set(map(str, value))) != 1:
                raise BundleError(f"{file.where}: {named}.{theirs}={value!r:.60} must be the same in all layers")
            value = value[0]
        if value is not None:
            values[entry] = value
    tokens = file.values.get("tokenizer.ggml.tokens")
    embedding = file.tensors.get("token_embd.weight")
    if not isinstance(tokens, list) or embedding is None:
        raise BundleError(f"{file.where} lacks tokenizer.ggml.tokens or token_embd.weight")
    values["vocab_size"] = embedding.shape[0]
    values["tie_word_embeddings"] = "output.weight" not in file.tensors
    if named == "llama" and "head_dim" not in values and (turning := file.values.get("llama.rope.dimension_count")):
        values["head_dim"] = turning
    if named == "gptneox":
        values["rotary_pct"] = _share_that_turns(file, values)
    scaling = file.values.get(f"{named}.rope.scaling.type", "none")
    if not isinstance(scaling, str) or scaling not in SCALINGS:
        raise BundleError(f"{file.where}: rope.scaling.type={scaling!r:.60} is not supported")
    if scaling != "none":
        values["rope_scaling"] = {
            "rope_type": scaling,
            "factor": file.values.get(f"{named}.rope.scaling.factor"),
            "original_max_position_embeddings": file.values.get(f"{named}.rope.scaling.original_context_length"),
        }
    return values


def _share_that_turns(file: GgufFile, values: Mapping[str, Any]) -> float:
    """Return which part of a head's coordinates turn, of which the file has the number."""
    turning = file.values.get("gptneox.rope.dimension_count")
    heads, width = values.get("num_attention_heads"), values.get("hidden_size")
    if not (isinstance(turning, int) and isinstance(heads, int) and isinstance(width, int) and width > 0):
        raise BundleError(f"{file.where}: rope.dimension_count, head_count and embedding_length must be whole numbers")
    return turning * heads / width


def _llama3(file: GgufFile, values: Mapping[str, Any]) -> dict[str, Any]:
    """Return Llama 3's scaling, found by the factor of each pair's angle that the file has in its place."""
    base, shape = values.get("rope_theta", 10_000.0), file.tensors[STRETCHED].shape
    if len(shape) != 1 or shape[0] > MOST_PAIRS or not isinstance(base, int | float) or not base > 0:
        raise BundleError(f"{file.where}: {STRETCHED} has the shape {shape}; it must have a factor for each pair")
    factors, d_head = file.read(STRETCHED).double(), 2 * shape[0]
    for factor, slow, fast, length in LLAMA3:
        rotary = Rotary(float(base), scaling="llama3", factor=factor, original_len=length, slow=slow, fast=fast)
        if (Rotary(float(base)).angles(d_head) / rotary.angles(d_head) - factors).abs().max() < 1e-3 * factor:
            found = {"factor": factor, "low_freq_factor": slow, "high_freq_factor": fast}
            return {"rope_type": "llama3", "original_max_position_embeddings": length, **found}
    raise BundleError(f"{file.where}: {STRETCHED} has other factors than Llama 3's, which is not supported")


MOST_CHARACTERS = 8 << 20  # of all tokens; Gemma's 262,144 have 1.7 million
NORMAL, UNKNOWN, CONTROL, TYPED, UNUSED, BYTE = range(1, 7)  # types of tokens
CONTRACTIONS = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)"
LETTERS = r"|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}%s| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
OF_LLAMA3, OF_QWEN2 = (CONTRACTIONS + LETTERS % digits for digits in ("{1,3}", ""))
CUTS = {  # how a text is cut before pairs of bytes are merged, by tokenizer.ggml.pre; "" as GPT-2 does
    **dict.fromkeys(("gpt-2", "gpt2", "default", "olmo", "smollm"), ""),
    **dict.fromkeys(("llama-bpe", "llama3", "llama-v3", "dbrx", "smaug-bpe"), OF_LLAMA3),
    **dict.fromkeys(("qwen2", "deepseek-r1-qwen"), OF_QWEN2),
}
NORMALIZED = ("qwen2", "deepseek-r1-qwen")
ONE_DIGIT = ("smollm",)
ROLES = {"bos": "[BOS]", "eos": "[EOS]", "unknown": "[UNK]", "padding": "[PAD]"}


class _Words:
    """The tokenizer that the metadata of a file describe."""

    def __init__(self, file: GgufFile) -> None:
        self.where = file.where
        self.tokens = self._list(file, "tokens", str, None)
        self.types = self._list(file, "token_type", int, NORMAL)
        self.scores = self._list(file, "scores", float, 0.0)
        self.merges = file.values.get("tokenizer.ggml.merges", [])
        self.kind, self.cut = (str(file.values.get(f"tokenizer.ggml.{name}", "default")) for name in ("model", "pre"))
        self.spaced = file.values.get("tokenizer.ggml.add_space_prefix", True) is True
        ids = {role: file.values.get(f"tokenizer.ggml.{role}_token_id") for role in ROLES}
        there = {role: id_ for role, id_ in ids.items() if isinstance(id_, int) and 0 <= id_ < len(self.tokens)}
        self.named = {ROLES[role]: self.tokens[id_] for role, id_ in there.items()}
        unknown = [token for token, kind in zip(self.tokens, self.types, strict=True) if kind == UNKNOWN]
        self.unknown = self.named.get("[UNK]", unknown[0] if unknown else None)
        adds = {role: file.values.get(f"tokenizer.ggml.add_{role}_token") for role in ("bos", "eos")}
        pieces = self.kind == "llama"
        self.begins = self.named.get("[BOS]") if (pieces if adds["bos"] is None else adds["bos"]) else None
        self.ends = self.named.get("[EOS]") if adds["eos"] else None

    def _list(self, file: GgufFile, name: str, kind: type, missing: Any) -> list[Any]:
        found = file.values.get(f"tokenizer.ggml.{name}")
        if found is None and missing is not None:
            return [missing] * len(self.tokens)
        if not isinstance(found, list) or not all(isinstance(item, kind) for item in found):
            raise BundleError(f"{file.where}: tokenizer.ggml.{name} must be a list of {kind.__name__}")
        if name == "tokens":
            long = max(map(len, found), default=0)
            if long > LONGEST_TOKEN or sum(map(len, found)) > MOST_CHARACTERS:
                raise BundleError(f"{file.where}: tokenizer.ggml.tokens has a token of {long} characters, or too many")
        elif len(found) != len(self.tokens):
            raise BundleError(
                f"{file.where}: tokenizer.ggml.{name} has {len(found)} items; it must have {len(self.tokens)}"
            )
        return found

    def pipeline(self) -> tokenizers.Tokenizer:
        """Return the pipeline."""
        ids = {token: id_ for id_, token in enumerate(self.tokens)}
        if len(ids) != len(self.tokens):
            raise BundleError(f"{self.where}: tokenizer.ggml.tokens has a token twice")
        if self.kind == "llama":
            made = self._of_pieces(ids)
        elif self.kind == "gpt2":
            made = self._of_bytes(ids)
        else:
            raise BundleError(f"{self.where}: tokenizer.ggml.model={self.kind!r:.60} must be 'llama' or 'gpt2'")
        for kinds, special in (((CONTROL, UNKNOWN), True), ((TYPED,), False)):
            tokens = [token for token, kind in zip(self.tokens, self.types, strict=True) if kind in kinds]
            check_added(tokens, "tokenizer.ggml.tokens")
            made.add_tokens([AddedToken(token, special=special, normalized=False) for token in tokens])
        around = [token for token in (self.begins, self.ends) if token is not None]
        if around:
            begin, end = ([] if token is None else [token] for token in (self.begins, self.ends))
            one, two = ([*(f"{t}:{n}" for t in begin), f"${'AB'[n]}:{n}", *(f"{t}:{n}" for t in end)] for n in (0, 1))
            made.post_processor = processors.TemplateProcessing(
                single=one, pair=one + two, special_tokens=[(token, ids[token]) for token in dict.fromkeys(around)]
            )
        return made

    def _of_pieces(self, ids: Mapping[str, int]) -> tokenizers.Tokenizer:
        made = tokenizers.Tokenizer(
            models.BPE(
                dict(ids), self._merged(ids), unk_token=self.unknown, fuse_unk=True, byte_fallback=BYTE in self.types
            )
        )
        steps: list[Any] = [normalizers.Prepend("▁")] if self.spaced else []
        made.normalizer = normalizers.Sequence([*steps, normalizers.Replace(" ", "▁")])
        stripped = [decoders.Strip(content=" ", left=1)] if self.spaced else []
        steps = [decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse(), *stripped]
        made.decoder = decoders.Sequence(steps)
        return made

    def _merged(self, ids: Mapping[str, int]) -> list[tuple[str, str]]:
        """Return the merges that SentencePiece makes: of all pairs the one whose whole has the greatest score."""
        whole = {token for token, kind in zip(self.tokens, self.types, strict=True) if kind in (NORMAL, TYPED, UNUSED)}
        found = sorted(
            (-score, ids[token[:cut]], ids[token[cut:]])
            for token, score in zip(self.tokens, self.scores, strict=True)
            if token in whole
            for cut in range(1, len(token))
            if token[:cut] in whole and token[cut:] in whole
        )
        return [(self.tokens[left], self.tokens[right]) for _, left, right in found]

    def _of_bytes(self, ids: Mapping[str, int]) -> tokenizers.Tokenizer:
        if self.cut not in CUTS:
            raise BundleError(f"{self.where}: tokenizer.ggml.pre={self.cut!r:.60} is not supported")
        if not isinstance(self.merges, list) or not all(
            isinstance(pair, str) and len(pair.split(" ")) == 2 for pair in self.merges
        ):
            raise BundleError(f"{self.where}: tokenizer.ggml.merges must be a list of two tokens and a blank between")
        made = tokenizers.Tokenizer(models.BPE(dict(ids), [tuple(pair.split(" ")) for pair in self.merges]))
        if self.cut in NORMALIZED:
            made.normalizer = normalizers.NFC()
        pattern = CUTS[self.cut]
        steps: list[Any] = [pre_tokenizers.Split(Regex(pattern), "isolated")] if pattern else []
        if self.cut in ONE_DIGIT:
            steps.append(pre_tokenizers.Digits(individual_digits=True))
        steps.append(pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=not pattern))
        made.pre_tokenizer = pre_tokenizers.Sequence(steps)
        made.decoder = decoders.ByteLevel()
        return made
