"""BERT and what grew from it: post-norm encoders with learned positions and a normalised embedding.

Devlin et al. 2019; Sanh et al. 2019 (DistilBERT); Liu et al. 2019 (RoBERTa); Conneau et al. 2020 (XLM-RoBERTa); Clark
et al. 2020 (ELECTRA); Lan et al. 2020 (ALBERT).
"""

import re
from dataclasses import replace
from typing import Any

from transformer_core.config import ModelConfig
from transformer_core.open_checkpoints.family import POSITION_IDS, Family, Origin, Origins, Shapes, both, per_layer
from transformer_core.untrusted.bundle_files import BundleError
from transformer_core.untrusted.config_json import ConfigJson

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
ALBERT_LAYER = {
    "self_attention.query_proj": "attention.query",
    "self_attention.key_proj": "attention.key",
    "self_attention.value_proj": "attention.value",
    "self_attention.output_proj": "attention.dense",
    "self_attention_norm.norm": "attention.LayerNorm",
    "feed_forward.inner_proj": "ffn",
    "feed_forward.outer_proj": "ffn_output",
    "feed_forward_norm.norm": "full_layer_layer_norm",
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
ELECTRA_WORDS = {
    "mlm_head.transform_proj": "generator_predictions.dense",
    "mlm_head.norm": "generator_predictions.LayerNorm",
    "mlm_head.output.proj": "generator_lm_head",
}
ALBERT_WORDS = {
    "mlm_head.transform_proj": "predictions.dense",
    "mlm_head.norm": "predictions.LayerNorm",
    "mlm_head.output.proj": "predictions.decoder",
}
BERT_CLASSES = {"pooler_proj": "pooler.dense", "class_proj": "classifier"}
ALBERT_CLASSES = {"pooler_proj": "pooler", "class_proj": "classifier"}
ROBERTA_CLASSES = {"pooler_proj": "classifier.dense", "class_proj": "classifier.out_proj"}
DISTILLED_CLASSES = {"pooler_proj": "pre_classifier", "class_proj": "classifier"}
OF_TOKENS = {"tagger": {"class_proj": "classifier"}, "answerer": {"bound_proj": "qa_outputs"}}  # in every family


def skipped(pad_id: Any) -> int:
    """RoBERTa counts positions from pad_id + 1 on; of the rows before, the last is the padding token's."""
    return pad_id + 1 if isinstance(pad_id, int) else 0


def _embedding(config: ModelConfig, *, skip: int = 0, shared_segment: bool = True) -> Origins:
    embedding = both({"norm": "LayerNorm"}) | {
        "token.weight": Origin("word_embeddings.weight"),
        "position.weight": Origin("position_embeddings.weight", skip=skip),
    }
    embedding = per_layer(embedding, 1, "encoder.embedding", "embeddings")
    if config.n_segments:
        embedding["encoder.embedding.segment.weight"] = Origin(SEGMENTS)
    elif shared_segment:
        embedding["encoder.embedding.position.weight"] = Origin(POSITIONS, skip=skip, added=SEGMENTS)
    if config.positions_skip_padding:
        added = None if config.n_segments else SEGMENTS
        last = Origin(POSITIONS, skip=skip - 1, after=config.max_len, added=added)
        embedding["encoder.embedding.padding_position.weight"] = last
    return embedding


def _heads(config: ModelConfig, kind: str, words: dict[str, str], classes: dict[str, str]) -> Origins:
    if kind == "classifier":
        return both(classes)
    if kind in OF_TOKENS:
        return both(OF_TOKENS[kind])
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


def electra_origins(config: ModelConfig, kind: str) -> Origins:
    layers = per_layer(both(LAYER), config.n_layers, "encoder.stack.layers.{n}", "encoder.layer.{n}")
    widened = {} if config.embedding_width is None else both({"encoder.embedding.stream_proj": "embeddings_project"})
    return _embedding(config) | widened | layers | _heads(config, kind, ELECTRA_WORDS, ROBERTA_CLASSES)


def albert_origins(config: ModelConfig, kind: str) -> Origins:
    widened = both({"encoder.embedding.stream_proj": "encoder.embedding_hidden_mapping_in"})
    block = per_layer(
        both(ALBERT_LAYER), 1, "encoder.stack.layers.{n}", "encoder.albert_layer_groups.{n}.albert_layers.0"
    )
    return _embedding(config) | widened | block | _heads(config, kind, ALBERT_WORDS, ALBERT_CLASSES)


def distilbert_origins(config: ModelConfig, kind: str) -> Origins:
    layers = both(DISTILLED_LAYER)
    layers = per_layer(layers, config.n_layers, "encoder.stack.layers.{n}", "transformer.layer.{n}")
    heads = _heads(config, kind, DISTILLED_WORDS, DISTILLED_CLASSES)
    return _embedding(config, shared_segment=False) | layers | heads


PAIR_HEAD = ("pooler.dense.weight", "cls.seq_relationship.weight")


def _common(settings: ConfigJson, kind: str, shapes: Shapes, pooler: str, classes: str) -> dict[str, Any]:
    values: dict[str, Any] = {
        "vocab_size": settings.need("vocab_size"),
        "pad_id": settings.values.get("pad_token_id", 0),
        "pad_is_read": True,
        "positions": "learned",
        "embedding_norm": True,
        "norm_order": "post",
        "tied_output": True,
        "pooling": "mean" if kind == "encoder" else "cls",
    }
    if kind == "classifier":
        values |= {"pooler": pooler, "n_classes": settings.n_classes(shapes, classes)}
    if kind == "tagger":
        values["n_classes"] = len(settings.labels()) or (shapes.get("classifier.weight") or (2,))[0]
    return values


def _bert_sizes(settings: ConfigJson) -> dict[str, Any]:
    segments = settings.get("type_vocab_size", 2)
    return {
        "d_model": settings.need("hidden_size"),
        "n_heads": settings.need("num_attention_heads"),
        "d_ff": settings.need("intermediate_size"),
        "n_layers": settings.need("num_hidden_layers"),
        "max_len": settings.get("max_position_embeddings", 512),
        "dropout": settings.get("hidden_dropout_prob", 0.1),
        "norm_eps": settings.get("layer_norm_eps", 1e-12),
        "n_segments": 0 if segments == 1 else segments,
        "activation": settings.activation("hidden_act", "gelu"),
    }


def _bert(settings: ConfigJson, kind: str, shapes: Shapes) -> dict[str, Any]:
    values = _common(settings, kind, shapes, "tanh", "classifier") | _bert_sizes(settings)
    if kind == "bert":
        values["head_activation"] = values["activation"]
        both_heads = settings.get("architectures") == ["BertForPreTraining"]
        values["pair_head"] = both_heads or all(name in shapes for name in PAIR_HEAD)
    return values


def _roberta(settings: ConfigJson, kind: str, shapes: Shapes) -> dict[str, Any]:
    values = _common(settings, kind, shapes, "tanh", "classifier.out_proj") | _bert_sizes(settings)
    values["pad_id"] = settings.values.get("pad_token_id", 1)
    skip = skipped(values["pad_id"])
    if not isinstance(values["max_len"], int) or values["max_len"] <= skip:
        raise BundleError(f"{settings.where}: max_position_embeddings={values['max_len']!r:.60} must exceed {skip}")
    return values | {
        "max_len": values["max_len"] - skip,
        "positions_skip_padding": skip > 0,
        "pair_head": kind != "bert",
    }


def _distilbert(settings: ConfigJson, kind: str, shapes: Shapes) -> dict[str, Any]:
    activation = settings.activation("activation", "gelu")
    return _common(settings, kind, shapes, "relu", "classifier") | {
        "d_model": settings.need("dim"),
        "n_heads": settings.need("n_heads"),
        "d_ff": settings.need("hidden_dim"),
        "n_layers": settings.need("n_layers"),
        "max_len": settings.get("max_position_embeddings", 512),
        "dropout": settings.get("dropout", 0.1),
        "norm_eps": 1e-12,
        "activation": activation,
        **({"head_activation": activation, "pair_head": False} if kind == "bert" else {}),
    }


def _electra(settings: ConfigJson, kind: str, shapes: Shapes) -> dict[str, Any]:
    values = _common(settings, kind, shapes, "gelu", "classifier.out_proj") | _bert_sizes(settings)
    width = settings.get("embedding_size", 128)
    return values | {
        "embedding_width": None if width == values["d_model"] else width,
        "pair_head": kind != "bert",
    }


def _albert(settings: ConfigJson, kind: str, shapes: Shapes) -> dict[str, Any]:
    for name in ("num_hidden_groups", "inner_group_num"):
        if settings.get(name, 1) != 1:
            raise BundleError(f"{settings.where}: {name}={settings.get(name)!r:.60} is not supported; supported: 1")
    activation = settings.activation("hidden_act", "gelu_new")
    return (
        _common(settings, kind, shapes, "tanh", "classifier")
        | _bert_sizes(settings)
        | {
            "embedding_width": settings.get("embedding_size", 128),  # with a map even where it is d_model
            "shared_layers": True,
            "dropout": settings.get("hidden_dropout_prob", 0.0),
            "activation": activation,
            "head_activation": activation,
            "pair_head": kind != "bert",
        }
    )


def _kinds(name: str, *more: str) -> dict[str, str]:
    kinds = {f"{name}Model": "encoder", f"{name}ForMaskedLM": "bert", f"{name}ForSequenceClassification": "classifier"}
    kinds |= {f"{name}ForTokenClassification": "tagger", f"{name}ForQuestionAnswering": "answerer"}
    return kinds | dict.fromkeys(more, "bert")


PAIRS_ALONE = "BertForNextSentencePrediction"
BERT = Family(
    model_type="bert",
    prefix="bert.",
    backbone=("embeddings.", "encoder."),
    kinds=_kinds("Bert", "BertForPreTraining") | {PAIRS_ALONE: "classifier"},
    configure=_bert,
    origins=bert_origins,
    word_matrix="embeddings.word_embeddings.weight",
    head_matrix="cls.predictions.decoder.weight",
    buffers=re.compile(POSITION_IDS),
    aliases={"cls.predictions.bias": "cls.predictions.decoder.bias"},
    vocabulary=("vocab.txt",),
    heads={PAIRS_ALONE: {"cls.seq_relationship.": "classifier."}},
    labels={PAIRS_ALONE: ("next sentence", "random sentence")},
)
DISTILBERT = Family(
    model_type="distilbert",
    prefix="distilbert.",
    backbone=("embeddings.", "transformer."),
    kinds=_kinds("DistilBert"),
    configure=_distilbert,
    origins=distilbert_origins,
    word_matrix="embeddings.word_embeddings.weight",
    head_matrix="vocab_projector.weight",
    buffers=re.compile(POSITION_IDS),
    aliases={},
    vocabulary=("vocab.txt",),
)
ROBERTA = Family(
    model_type="roberta",
    prefix="roberta.",
    backbone=("embeddings.", "encoder."),
    kinds=_kinds("Roberta"),
    configure=_roberta,
    origins=roberta_origins,
    word_matrix="embeddings.word_embeddings.weight",
    head_matrix="lm_head.decoder.weight",
    buffers=re.compile(POSITION_IDS),
    aliases={"lm_head.bias": "lm_head.decoder.bias"},
    vocabulary=("vocab.json", "merges.txt"),
)
XLM_ROBERTA = replace(ROBERTA, model_type="xlm-roberta", kinds=_kinds("XLMRoberta"), vocabulary=())
ELECTRA = Family(
    model_type="electra",
    prefix="electra.",
    backbone=("embeddings.", "embeddings_project.", "encoder."),
    kinds=_kinds("Electra") | {"ElectraForPreTraining": "encoder"},  # whose head tells which words were exchanged
    configure=_electra,
    origins=electra_origins,
    word_matrix="embeddings.word_embeddings.weight",
    head_matrix="generator_lm_head.weight",
    buffers=re.compile(POSITION_IDS),
    aliases={},
    vocabulary=("vocab.txt",),
)
ALBERT = Family(
    model_type="albert",
    prefix="albert.",
    backbone=("embeddings.", "encoder."),
    kinds=_kinds("Albert", "AlbertForPreTraining"),  # whose head for the order of two sentences is left unread
    configure=_albert,
    origins=albert_origins,
    word_matrix="embeddings.word_embeddings.weight",
    head_matrix="predictions.decoder.weight",
    buffers=re.compile(POSITION_IDS),
    aliases={"predictions.bias": "predictions.decoder.bias"},
    vocabulary=(),
)
