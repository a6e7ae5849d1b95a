"""Configuration: every size and choice of a model, checked once when it is made.

Names follow Vaswani et al. 2017, section 3 and table 3.
Read next: transformer_core/sites.py
"""

from dataclasses import dataclass
from typing import Annotated, Any, Literal

from msgspec import Meta

from transformer_core.untrusted.schema import Probability, check_fields

Positions = Literal["sinusoidal", "sinusoidal_doubled", "learned", "rotary", "alibi", "none"]
NormOrder = Literal["pre", "post"]
Norm = Literal["layer_norm", "unbiased"]
Activation = Literal["relu", "gelu", "gelu_tanh", "silu"]
Scoring = Literal["dot_product", "additive"]
Pooling = Literal["cls", "mean"]
Pooler = Literal["none", "tanh", "relu"]
DropoutAt = Literal["everywhere", "sublayers"]
PaddingMask = Literal["keys", "queries_too", "mixed_heads"]

VocabSize = Annotated[int, Meta(ge=1, le=1_000_000)]
Width = Annotated[int, Meta(ge=1, le=65_536)]
MaxLen = Annotated[int, Meta(ge=1, le=131_072)]
Classes = Annotated[int, Meta(ge=1, le=100_000)]


def require_choice(name: str, value: Any, choices: tuple[str, ...]) -> None:
    """Raise ValueError unless `value` is one of `choices`, naming the argument and what it may be."""
    if value not in choices:
        raise ValueError(f"{name}={value!r} is unknown; it must be one of {', '.join(map(repr, choices))}")


def require_range(name: str, value: int, least: int, most: int) -> None:
    """Raise ValueError unless an argument is from `least` to `most`."""
    if not least <= value <= most:
        raise ValueError(f"{name}={value} must be from {least} to {most}")


def require_index(name: str, value: int, size: int) -> None:
    """Raise ValueError unless an argument is the place of one of `size` things, counted from 0."""
    require_range(name, value, 0, size - 1)


def head_size(d_model: int, n_heads: int, d_head: int | None) -> int:
    """Return d_head, by default d_model // n_heads (Vaswani et al. 2017, section 3.2.2: d_k = d_model / h).

    Raises:
        ValueError: no d_head is given and d_model is not divisible by n_heads.
    """
    if d_head is not None:
        return d_head
    if d_model % n_heads:
        raise ValueError(f"d_model={d_model} must be divisible by n_heads={n_heads}, or d_head must be given")
    return d_model // n_heads


PADDED = -1  # stands for padding in the token ids of a model that may read its padding token in a text


@dataclass(frozen=True, kw_only=True)
class ModelConfig:
    """Every size and choice that shapes a model.

    Args:
        vocab_size: entries of the (source) vocabulary; ids run from 0 to vocab_size - 1.
        target_vocab_size: entries of the target vocabulary of Translation; None means vocab_size.
        d_model: width of the residual stream.
        n_heads: attention heads a layer.
        d_head: width of one head; None means d_model // n_heads, any other width is free.
        d_ff: width of the feed-forward layer's inside.
        n_layers: blocks of the encoder, and of the decoder where there is one.
        max_len: most positions a sentence may have.
        dropout: probability of dropping an entry in training, in [0, 1).
        dropout_at: "everywhere" drops embeddings, attention weights, the feed-forward layer's inside, every sublayer's
            output and what the head reads; "sublayers" the outputs of the sublayers alone.
        padding_mask: of an Encoder: which pairs padding hides. "keys": pairs whose key is padding, with minus infinity;
            "queries_too": those whose query is padding as well, with -1e20, so that a padding row averages over all;
            "mixed_heads": the same, repeated head by head, so that heads use other sentences' masks (a slip).
        pad_id: id of the padding token, whose row of the embedding stands where a text was padded; None where the
            vocabulary has none, and that is the row of token 0.
        pad_is_read: the padding token is read as any other where a text has it, and what was padded is hidden alone
            (transformers: its attention_mask); False hides the token wherever it stands.
        positions: how positions are encoded.
        positions_skip_padding: learned positions count no padding token, typed or padded, which has one of its own
            (RoBERTa).
        scale_embeddings: multiply token embeddings by sqrt(d_model) (section 3.4).
        n_segments: segment embeddings (BERT has 2); 0 means none.
        embedding_norm: normalise the summed embeddings, as BERT does.
        norm_order: "pre" or "post": normalise before a sublayer, or after its residual sum (the paper).
        norm: "layer_norm" as in torch, or "unbiased" with the unbiased deviation and eps outside the root.
        norm_eps: the small number that keeps the normalisation from dividing by zero, at most 1.
        activation: of the feed-forward layer.
        residual: False removes every residual connection.
        scoring: "dot_product" (the paper) or "additive" (Bahdanau et al. 2015).
        scale_scores: divide dot products by sqrt(d_head).
        projections: False removes query, key, value and output projections.
        share_query_key, share_key_value: use one projection for both.
        bias: linear maps have a bias.
        causal: the decoder's self-attention hides later positions; False lets it see the words that it must predict.
        n_classes: of Classifier.
        pooling: of Classifier and SentenceEncoder: the sentence's vector from position 0 or from the mean.
        pooler: Classifier maps that vector once more, through this function (BERT: "tanh"; DistilBERT: "relu").
        tied_output: the output matrix is the token embedding's.
        share_embeddings: Translation's encoder and decoder look up one matrix (section 3.4); one vocabulary for both.
        sinusoidal_halves: sines fill the first half of a position's vector and cosines the second, as Marian has them,
            instead of taking turns as in the paper.
        starts_with_pad: Translation's target begins with the padding token, which is then read wherever it stands
            (Marian).
        output_bias: Translation's output matrix has a bias per word.
        pair_head: Bert has the pooled vector and the verdict on sentence pairs; RoBERTa was trained without.
    """

    vocab_size: VocabSize
    target_vocab_size: VocabSize | None = None
    d_model: Width = 128
    n_heads: Annotated[int, Meta(ge=1, le=1_024)] = 4
    d_head: Annotated[int, Meta(ge=1, le=8_192)] | None = None
    d_ff: Annotated[int, Meta(ge=1, le=262_144)] = 512
    n_layers: Annotated[int, Meta(ge=1, le=256)] = 2
    max_len: MaxLen = 512
    dropout: Probability = 0.1
    dropout_at: DropoutAt = "everywhere"
    padding_mask: PaddingMask = "keys"
    pad_id: int | None = 0
    pad_is_read: bool = False
    positions: Positions = "sinusoidal"
    positions_skip_padding: bool = False
    scale_embeddings: bool = False
    n_segments: Annotated[int, Meta(ge=0, le=64)] = 0
    embedding_norm: bool = False
    norm_order: NormOrder = "pre"
    norm: Norm = "layer_norm"
    norm_eps: Annotated[float, Meta(gt=0, le=1, description="a number, more than 0 and at most 1")] = 1e-5
    activation: Activation = "gelu"
    residual: bool = True
    scoring: Scoring = "dot_product"
    scale_scores: bool = True
    projections: bool = True
    share_query_key: bool = False
    share_key_value: bool = False
    bias: bool = True
    causal: bool = True
    n_classes: Classes = 2
    pooling: Pooling = "cls"
    pooler: Pooler = "none"
    tied_output: bool = True
    share_embeddings: bool = False
    sinusoidal_halves: bool = False
    starts_with_pad: bool = False
    output_bias: bool = False
    pair_head: bool = True

    @property
    def dropout_elsewhere(self) -> float:
        """Probability of dropping an entry anywhere but at a sublayer's output."""
        return self.dropout if self.dropout_at == "everywhere" else 0.0

    def __post_init__(self) -> None:
        check_fields(self, "pad_id")
        if self.pad_id is not None and not (type(self.pad_id) is int and 0 <= self.pad_id < self.vocab_size):
            raise ValueError(f"pad_id={self.pad_id!r} must be an id of the vocabulary, 0 to {self.vocab_size - 1}")
        d_head = head_size(self.d_model, self.n_heads, self.d_head)
        self._check_fit(d_head)
        object.__setattr__(self, "d_head", d_head)
        object.__setattr__(self, "target_vocab_size", self.target_vocab_size or self.vocab_size)

    @property
    def padding(self) -> int:
        """What stands for padding in token ids, and is hidden: pad_id, or PADDED where a text may hold that token."""
        return PADDED if self.pad_id is None or self.pad_is_read or self.starts_with_pad else self.pad_id

    def _check_fit(self, d_head: int) -> None:
        if self.share_embeddings and self.target_vocab_size not in (None, self.vocab_size):
            raise ValueError(
                f"target_vocab_size={self.target_vocab_size} must be vocab_size={self.vocab_size} with "
                "share_embeddings=True: both sides look up one matrix"
            )
        if self.norm == "unbiased" and self.d_model < 2:
            raise ValueError(f"d_model={self.d_model} must be at least 2 with norm='unbiased', which divides by d - 1")
        if self.positions.startswith("sinusoidal") and self.d_model % 2:
            raise ValueError(
                f"d_model={self.d_model} must be even with positions={self.positions!r}: "
                "sines and cosines come in pairs"
            )
        if self.positions == "rotary" and d_head % 2:
            raise ValueError(f"d_head={d_head} must be even with positions='rotary': coordinates turn in pairs")
        if not self.projections and self.n_heads * d_head != self.d_model:
            raise ValueError(
                f"n_heads={self.n_heads} times d_head={d_head} must be d_model={self.d_model} with projections=False"
            )
