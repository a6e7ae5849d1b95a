"""Parts of a model, whatever its kind: the stack that reads the ids first, its embedding, its first attention."""

from torch import nn

from transformer_core.bundle import Bundle
from transformer_core.layers.attention import MultiHeadAttention
from transformer_core.layers.embeddings import InputEmbedding
from transformer_core.layers.positions import LearnedPositions
from transformer_core.models import (
    AnswerFinder,
    Bert,
    Classifier,
    Encoder,
    Gpt,
    MaskedDecoder,
    SentenceEncoder,
    TokenClassifier,
    Translation,
)


def reading_part(model: nn.Module) -> Encoder | MaskedDecoder:
    """Return the part of a model that reads the text: token ids in, one vector per position out.

    Raises:
        ValueError: the model is of no kind that reads text so.
    """
    if isinstance(model, Classifier | Bert | SentenceEncoder | Translation | TokenClassifier | AnswerFinder):
        return model.encoder
    if isinstance(model, Gpt):
        return model.decoder
    raise ValueError(f"model={type(model).__name__} must be a Classifier, a Bert, a Gpt or a Translation")


def input_embedding(model: nn.Module) -> InputEmbedding:
    """Return the embedding layer of the part that reads the text; ValueError as reading_part."""
    return reading_part(model).embedding


def first_attention(bundle: Bundle) -> MultiHeadAttention:
    """Return the self-attention of the first layer."""
    return next(
        module for module in reading_part(bundle.model).stack.modules() if isinstance(module, MultiHeadAttention)
    )


def position_vectors(bundle: Bundle) -> LearnedPositions | None:
    """Return a model's trained position vectors, or None where it has learned none."""
    found = input_embedding(bundle.model).position
    return found if isinstance(found, LearnedPositions) else None
