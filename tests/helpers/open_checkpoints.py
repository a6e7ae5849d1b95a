"""Small random checkpoints that the `transformers` library writes itself, and what it makes of a padded batch."""

import io
import json
from pathlib import Path
from typing import Any

import tokenizers
import torch
import transformers
from tokenizers import decoders, models, normalizers, pre_tokenizers, processors
from torch import Tensor

from tests.helpers.bundles import zipped

transformers.logging.set_verbosity_error()
transformers.logging.disable_progress_bar()

VOCAB = 60
SIZES: dict[str, dict[str, Any]] = {
    "Bert": {
        "hidden_size": 16,
        "num_attention_heads": 2,
        "num_hidden_layers": 2,
        "intermediate_size": 24,
        "max_position_embeddings": 20,
    },
    "DistilBert": {"dim": 16, "n_heads": 2, "n_layers": 2, "hidden_dim": 24, "max_position_embeddings": 20},
    "GPT2": {"n_embd": 16, "n_head": 2, "n_layer": 2, "n_positions": 20, "bos_token_id": 4, "eos_token_id": 4},
    "Marian": {
        "d_model": 16,
        "encoder_layers": 2,
        "decoder_layers": 2,
        "encoder_attention_heads": 2,
        "decoder_attention_heads": 2,
        "encoder_ffn_dim": 24,
        "decoder_ffn_dim": 24,
        "max_position_embeddings": 20,
        "eos_token_id": 0,
        "forced_eos_token_id": 0,
        "pad_token_id": 59,
        "decoder_start_token_id": 59,
        "activation_function": "swish",
        "scale_embedding": True,
    },
}
TODAY = {
    "hidden_size": 16,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "num_hidden_layers": 3,
    "intermediate_size": 24,
    "max_position_embeddings": 20,
    "head_dim": 6,
    "sliding_window": 3,
    "pad_token_id": 0,
}
SIZES |= dict.fromkeys(
    ("Llama", "Mistral", "Qwen2", "Qwen3", "Gemma2", "Gemma3", "Gemma", "Phi3", "Olmo2", "GPTNeoX"), TODAY
)
SIZES["Qwen2"] = {name: size for name, size in TODAY.items() if name != "head_dim"}
SIZES["GPTNeoX"] = SIZES["Qwen2"] | {"hidden_size": 32}
SIZES["Phi3"] = SIZES["Olmo2"] = SIZES["Qwen2"]
MOE = {"num_experts": 5, "moe_intermediate_size": 20}
SIZES["Mixtral"] = TODAY | {"num_local_experts": 5, "num_experts_per_tok": 2}
SIZES["Qwen3Moe"] = TODAY | MOE | {"num_experts_per_tok": 3}
SIZES["Qwen2Moe"] = SIZES["Qwen2"] | MOE | {"num_experts_per_tok": 2, "shared_expert_intermediate_size": 28}
SIZES["Olmoe"] = SIZES["Qwen2"] | {"num_experts": 6, "num_experts_per_tok": 2}
SIZES["Gemma3"] = SIZES["Gemma3"] | {"query_pre_attn_scalar": 9}
SIZES["Electra"] = SIZES["Albert"] = SIZES["Bert"] | {"embedding_size": 12}
SIZES["ModernBert"] = SIZES["Bert"] | {"local_attention": 6, "num_hidden_layers": 4, "pad_token_id": 0}
SIZES["T5"] = {"d_model": 16, "d_kv": 6, "d_ff": 24, "num_layers": 2, "num_heads": 2, "n_positions": 20}
SIZES["T5"] |= {"relative_attention_num_buckets": 8, "relative_attention_max_distance": 6, "decoder_start_token_id": 0}
SIZES["Roberta"] = SIZES["XLMRoberta"] = SIZES["Bert"] | {"max_position_embeddings": 22}
SIZES["MT5"] = SIZES["T5"]
PIECES = [*("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"), "a", "glass", "##es", "cafe", "café", "你", "好", "!", "😀"]
TEXTS = ("A glass, Café glasses!", "你好 glass 😀", "  a\tglass  ", "unheard [MASK] <mask> of", "🧑‍🚀 naïve Ünïcode ﬁ")


COMPUTED = ("embed_positions", "inv_freq", "embed_scale")  # buffers that are no weights


def lively(model: torch.nn.Module) -> None:
    """Shake every parameter and buffer of scores, so that none can be left out unnoticed."""
    generator = torch.Generator().manual_seed(1)
    with torch.no_grad():
        for name, tensor in [*model.named_parameters(), *model.named_buffers()]:
            if tensor.is_floating_point() and not any(part in name for part in COMPUTED):
                tensor.add_(torch.randn(tensor.shape, generator=generator) * 0.2)


def made(architecture: str, **changes: Any) -> Any:
    """Make a lively model of theirs, in evaluation mode."""
    family = max((name for name in SIZES if architecture.startswith(name)), key=len)
    config_class = "Gemma3TextConfig" if family == "Gemma3" else f"{family}Config"
    config = getattr(transformers, config_class)(**({"vocab_size": VOCAB} | SIZES[family] | changes))
    config._attn_implementation = "eager"
    torch.manual_seed(0)
    model = getattr(transformers, architecture)(config)
    lively(model)
    return model.eval()


def pieces_pipeline() -> tokenizers.Tokenizer:
    """Return BERT's kind of tokenizer."""
    pipeline = tokenizers.Tokenizer(models.WordPiece({piece: k for k, piece in enumerate(PIECES)}, unk_token="[UNK]"))
    pipeline.normalizer = normalizers.BertNormalizer(lowercase=True)
    pipeline.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    pipeline.decoder = decoders.WordPiece(prefix="##")
    pipeline.add_special_tokens(PIECES[:5])
    pipeline.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]", pair="[CLS] $A [SEP] $B:1 [SEP]:1", special_tokens=[("[CLS]", 2), ("[SEP]", 3)]
    )
    return pipeline


def byte_files(folder: Path, *, special: tuple[str, ...]) -> int:
    """Write vocab.json and merges.txt of a byte-level vocabulary; return how many entries it has."""
    merges = [("g", "l"), ("gl", "a"), ("s", "s"), ("gla", "ss"), ("Ġ", "glass"), ("ä", "½")]
    entries = [*special, *sorted(pre_tokenizers.ByteLevel.alphabet()), *("".join(pair) for pair in merges)]
    (folder / "vocab.json").write_text(json.dumps({entry: k for k, entry in enumerate(entries)}), encoding="utf-8")
    lines = ["#version: 0.2", *(" ".join(pair) for pair in merges), ""]
    (folder / "merges.txt").write_text("\n".join(lines), encoding="utf-8")
    return len(entries)


OF_OTHER_PIECES = (
    "Roberta",
    "XLMRoberta",
    "Albert",
    "T5",
    "MT5",
)  # whose own classes do not cut words into BERT's pieces


def written(architecture: str, folder: Path, **changes: Any) -> Any:
    """Let theirs save a model with a tokenizer.json beside it; return the model."""
    saving = {"max_shard_size": changes.pop("max_shard_size")} if "max_shard_size" in changes else {}
    dtype = changes.pop("dtype", torch.float32)
    model = made(architecture, **changes).to(dtype)
    model.save_pretrained(folder, **saving)
    pieces_pipeline().save(str(folder / "tokenizer.json"))
    if architecture.startswith(OF_OTHER_PIECES):
        (folder / "tokenizer_config.json").write_text('{"tokenizer_class": "PreTrainedTokenizerFast"}')
    return model


def padded(pad_id: int, *, length: int = 7, seed: int = 0) -> Tensor:
    """Return three sentences, the second and third with one and two pads."""
    ids = torch.randint(5, 50, (3, length), generator=torch.Generator().manual_seed(seed))
    for row in range(3):
        ids[row, length - row :] = pad_id
    return ids


def change_settings(folder: Path, **changes: Any) -> None:
    """Change entries of config.json; None removes one."""
    path = folder / "config.json"
    values = json.loads(path.read_text()) | changes
    path.write_text(json.dumps({name: value for name, value in values.items() if value is not None}))


def packed(folder: Path, **more: bytes) -> io.BytesIO:
    """Return a folder as a zip, with more files in it."""
    return zipped({path.name: path.read_bytes() for path in folder.iterdir()} | more)


def cached(home: Path, name: str, revision: str = "0" * 40) -> Path:
    """Make the hub's cache as it is after a download; return the snapshot's folder."""
    repository = home / "hub" / f"models--{name.replace('/', '--')}"
    (repository / "refs").mkdir(parents=True)
    (repository / "refs" / "main").write_text(revision)
    snapshot = repository / "snapshots" / revision
    snapshot.mkdir(parents=True)
    (repository / "blobs").mkdir()
    return snapshot
