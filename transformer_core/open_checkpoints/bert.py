"""BERT, DistilBERT and RoBERTa: post-norm encoders with learned positions and a normalised embedding.

Devlin et al. 2019; Sanh et al. 2019; Liu et al. 2019. Read next: bert_names.py.
"""

import re
from typing import Any

from transformer_core.bundle_files import BundleError
from transformer_core.open_checkpoints.bert_names import bert_origins, distilbert_origins, roberta_origins, skipped
from transformer_core.open_checkpoints.family import POSITION_IDS, Family, Shapes
from transformer_core.open_checkpoints.settings import Settings

PAIR_HEAD = ("pooler.dense.weight", "cls.seq_relationship.weight")


def _check_head(settings: Settings, kind: str, name: str, activation: str) -> None:
    if kind == "bert" and activation != "gelu":
        raise BundleError(
            f"{settings.where}: {name}={settings.get(name)!r} is not supported with a masked-word head, "
            "whose own activation is 'gelu'"
        )


def _common(settings: Settings, kind: str, shapes: Shapes, pooler: str, classes: str) -> dict[str, Any]:
    values: dict[str, Any] = {
        "vocab_size": settings.need("vocab_size"),
        "pad_id": settings.values.get("pad_token_id", 0),
        "positions": "learned",
        "embedding_norm": True,
        "norm_order": "post",
        "tied_output": True,
        "pooling": "mean" if kind == "encoder" else "cls",
    }
    if kind == "classifier":
        problem = settings.get("problem_type", "single_label_classification")
        n_classes = len(settings.labels()) or (shapes.get(f"{classes}.weight") or (2,))[0]
        if problem != "single_label_classification" or n_classes < 2:
            raise BundleError(
                f"{settings.where}: problem_type={problem!r:.60} with {n_classes} classes is not supported; "
                "supported: single_label_classification with at least 2"
            )
        values |= {"pooler": pooler, "n_classes": n_classes}
    return values


def _bert_sizes(settings: Settings) -> dict[str, Any]:
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


def _bert(settings: Settings, kind: str, shapes: Shapes) -> dict[str, Any]:
    values = _common(settings, kind, shapes, "tanh", "classifier") | _bert_sizes(settings)
    _check_head(settings, kind, "hidden_act", values["activation"])
    if kind == "bert":
        both_heads = settings.get("architectures") == ["BertForPreTraining"]
        values["pair_head"] = both_heads or all(name in shapes for name in PAIR_HEAD)
    return values


def _roberta(settings: Settings, kind: str, shapes: Shapes) -> dict[str, Any]:
    values = _common(settings, kind, shapes, "tanh", "classifier.out_proj") | _bert_sizes(settings)
    _check_head(settings, kind, "hidden_act", values["activation"])
    values["pad_id"] = settings.values.get("pad_token_id", 1)
    skip = skipped(values["pad_id"])
    if not isinstance(values["max_len"], int) or values["max_len"] <= skip:
        raise BundleError(f"{settings.where}: max_position_embeddings={values['max_len']!r:.60} must exceed {skip}")
    return values | {"max_len": values["max_len"] - skip, "pair_head": kind != "bert"}


def _distilbert(settings: Settings, kind: str, shapes: Shapes) -> dict[str, Any]:
    values = _common(settings, kind, shapes, "relu", "classifier") | {
        "d_model": settings.need("dim"),
        "n_heads": settings.need("n_heads"),
        "d_ff": settings.need("hidden_dim"),
        "n_layers": settings.need("n_layers"),
        "max_len": settings.get("max_position_embeddings", 512),
        "dropout": settings.get("dropout", 0.1),
        "norm_eps": 1e-12,
        "activation": settings.activation("activation", "gelu"),
        "pair_head": kind != "bert",
    }
    _check_head(settings, kind, "activation", values["activation"])
    return values


def _kinds(name: str, *more: str) -> dict[str, str]:
    kinds = {f"{name}Model": "encoder", f"{name}ForMaskedLM": "bert", f"{name}ForSequenceClassification": "classifier"}
    return kinds | dict.fromkeys(more, "bert")


BERT = Family(
    model_type="bert",
    prefix="bert.",
    backbone=("embeddings.", "encoder."),
    kinds=_kinds("Bert", "BertForPreTraining"),
    configure=_bert,
    origins=bert_origins,
    word_matrix="embeddings.word_embeddings.weight",
    head_matrix="cls.predictions.decoder.weight",
    buffers=re.compile(POSITION_IDS),
    aliases={"cls.predictions.bias": "cls.predictions.decoder.bias"},
    vocabulary=("vocab.txt",),
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
