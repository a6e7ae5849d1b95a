"""Parts of a model, whatever its kind: the stack that reads the ids first, its embedding, its first attention."""

from transformer_core.bundle import Bundle
from transformer_core.layers.attention import MultiHeadAttention
from transformer_core.layers.embeddings import InputEmbedding
from transformer_core.layers.positions import LearnedPositions
from transformer_core.models import Encoder, MaskedDecoder


def first_part(bundle: Bundle) -> Encoder | MaskedDecoder:
    """Return a model's encoder, or its decoder where it has no encoder."""
    parts = (part for part in bundle.model.children() if isinstance(part, Encoder | MaskedDecoder))
    return next(parts)


def input_embedding(bundle: Bundle) -> InputEmbedding:
    """Return the embedding that reads the ids."""
    return first_part(bundle).embedding


def first_attention(bundle: Bundle) -> MultiHeadAttention:
    """Return the self-attention of the first layer."""
    return next(module for module in first_part(bundle).stack.modules() if isinstance(module, MultiHeadAttention))


def position_vectors(bundle: Bundle) -> LearnedPositions | None:
    """Return a model's trained position vectors, or None where it has learned none."""
    found = input_embedding(bundle).position
    return found if isinstance(found, LearnedPositions) else None
