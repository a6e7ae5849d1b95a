"""Which tensor of BERT, DistilBERT and RoBERTa is which of ours.

Read next: gpt2.py.
"""

from typing import Any

from transformer_core.config import ModelConfig
from transformer_core.open_checkpoints.origins import Origin, Origins, both, per_layer

SEGMENTS = "embeddings.token_type_embeddings.weight"
POSITIONS = "embeddings.position_embeddings.weight"
LAYER = {
    "self_attention.query_proj": "attention.self.query",
    "self_attention.key_proj": "attention.self.key",
    "self_attention.value_proj": "attention.self.value",
    "self_attention.output_proj": "attention.output.dense",
    "self_attention_norm.norm": "attention.output.LayerNorm",
    "feed_forward.inner_proj": "intermediate.dense",
    "feed_forward.outer_proj": "output.dense",
    "feed_forward_norm.norm": "output.LayerNorm",
}
DISTILLED_LAYER = {
    "self_attention.query_proj": "attention.q_lin",
    "self_attention.key_proj": "attention.k_lin",
    "self_attention.value_proj": "attention.v_lin",
    "self_attention.output_proj": "attention.out_lin",
    "self_attention_norm.norm": "sa_layer_norm",
    "feed_forward.inner_proj": "ffn.lin1",
    "feed_forward.outer_proj": "ffn.lin2",
    "feed_forward_norm.norm": "output_layer_norm",
}
BERT_WORDS = {
    "mlm_head.transform_proj": "cls.predictions.transform.dense",
    "mlm_head.norm": "cls.predictions.transform.LayerNorm",
    "mlm_head.output.proj": "cls.predictions.decoder",
}
BERT_PAIRS = {"pooler_proj": "pooler.dense", "nsp_head.class_proj": "cls.seq_relationship"}
ROBERTA_WORDS = {
    "mlm_head.transform_proj": "lm_head.dense",
    "mlm_head.norm": "lm_head.layer_norm",
    "mlm_head.output.proj": "lm_head.decoder",
}
DISTILLED_WORDS = {
    "mlm_head.transform_proj": "vocab_transform",
    "mlm_head.norm": "vocab_layer_norm",
    "mlm_head.output.proj": "vocab_projector",
}
BERT_CLASSES = {"pooler_proj": "pooler.dense", "class_proj": "classifier"}
ROBERTA_CLASSES = {"pooler_proj": "classifier.dense", "class_proj": "classifier.out_proj"}
DISTILLED_CLASSES = {"pooler_proj": "pre_classifier", "class_proj": "classifier"}


def skipped(pad_id: Any) -> int:
    """RoBERTa counts positions from pad_id + 1 on; the rows before serve padding alone."""
    return pad_id + 1 if isinstance(pad_id, int) else 0


def _embedding(config: ModelConfig, *, skip: int = 0, shared_segment: bool = True) -> Origins:
    embedding = both({"norm": "LayerNorm"}) | {
        "token.weight": Origin("word_embeddings.weight"),
        "position.weight": Origin("position_embeddings.weight", skip=skip),
    }
    embedding = per_layer(embedding, 1, "encoder.embedding", "embeddings")
    if config.n_segments:
        return embedding | {"encoder.embedding.segment.weight": Origin(SEGMENTS)}
    if shared_segment:
        embedding["encoder.embedding.position.weight"] = Origin(POSITIONS, skip=skip, added=SEGMENTS)
    return embedding


def _heads(config: ModelConfig, kind: str, words: dict[str, str], classes: dict[str, str]) -> Origins:
    if kind == "classifier":
        return both(classes)
    if kind == "encoder":
        return {}
    heads = both(words) | (both(BERT_PAIRS) if config.pair_head else {})
    if config.tied_output:
        del heads["mlm_head.output.proj.weight"]
    return heads


def bert_origins(config: ModelConfig, kind: str) -> Origins:
    layers = per_layer(both(LAYER), config.n_layers, "encoder.stack.layers.{n}", "encoder.layer.{n}")
    return _embedding(config) | layers | _heads(config, kind, BERT_WORDS, BERT_CLASSES)


def roberta_origins(config: ModelConfig, kind: str) -> Origins:
    layers = per_layer(both(LAYER), config.n_layers, "encoder.stack.layers.{n}", "encoder.layer.{n}")
    skip = skipped(config.pad_id)
    return _embedding(config, skip=skip) | layers | _heads(config, kind, ROBERTA_WORDS, ROBERTA_CLASSES)


def distilbert_origins(config: ModelConfig, kind: str) -> Origins:
    layers = both(DISTILLED_LAYER)
    layers = per_layer(layers, config.n_layers, "encoder.stack.layers.{n}", "transformer.layer.{n}")
    heads = _heads(config, kind, DISTILLED_WORDS, DISTILLED_CLASSES)
    return _embedding(config, shared_segment=False) | layers | heads
