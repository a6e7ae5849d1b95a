"""Configuration: every size and choice of a model, checked once when it is made.

Names follow Vaswani et al. 2017, section 3 and table 3.
Read next: transformer_core/sites.py
"""

import math
from dataclasses import dataclass
from typing import Annotated, Any, Literal

from msgspec import Meta

from transformer_core.untrusted.schema import Probability, check_fields

Positions = Literal["sinusoidal", "sinusoidal_doubled", "learned", "rotary", "alibi", "relative", "none"]
NormOrder = Literal["pre", "post", "both", "output"]
Norm = Literal["layer_norm", "unbiased", "rms_norm"]
QueryKeyNorm = Literal["none", "head", "all"]
RotaryScaling = Literal["none", "linear", "llama3", "yarn", "longrope"]
Activation = Literal["relu", "gelu", "gelu_tanh", "silu"]
Scoring = Literal["dot_product", "additive"]
Pooling = Literal["cls", "mean"]
Pooler = Literal["none", "tanh", "relu", "gelu"]
DropoutAt = Literal["everywhere", "sublayers"]
PaddingMask = Literal["keys", "queries_too", "mixed_heads"]

VocabSize = Annotated[int, Meta(ge=1, le=1_000_000)]
Width = Annotated[int, Meta(ge=1, le=65_536)]
MaxLen = Annotated[int, Meta(ge=1, le=131_072)]
Classes = Annotated[int, Meta(ge=1, le=100_000)]
Heads = Annotated[int, Meta(ge=1, le=1_024)]
Positive = Annotated[float, Meta(gt=0, le=1e9, description="a number, more than 0 and at most 1e+09")]
Window = Annotated[int, Meta(ge=1, le=131_072)]
MOST_EXPERTS = 2_048  # of all layers: each is a module; OLMoE has 1,024


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
        embedding_width: of a row of the embedding, and of positions and segments, all mapped to d_model once they are
            summed (Lan et al. 2020, section 3.1); None means d_model, without a map.
        n_heads: attention heads a layer.
        n_kv_heads: heads of keys and values, each read by n_heads // n_kv_heads heads in a row; None means n_heads,
            1 is multi-query (Shazeer 2019), any other number grouped-query attention (Ainslie et al. 2023).
        d_head: width of one head; None means d_model // n_heads, any other width is free.
        d_ff: width of the feed-forward layer's inside; of a mixture, of each expert's.
        n_layers: blocks of the encoder, and of the decoder where there is one.
        shared_layers: they are one block, used n_layers times (Lan et al. 2020, section 3.1; Dehghani et al. 2019).
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
        rotary_base: of rotary positions: pair i turns by rotary_base^(-2i / d) a position.
        rotary_base_in_window: the same in layers with a window, which are not scaled then (Gemma 3); None: rotary_base.
        rotary_dims: coordinates of a head that turn; None means all.
        rotary_halves: coordinate i turns with i + d / 2, as most checkpoints store them, instead of 2i with 2i + 1.
        rotary_scaling: how angles are stretched for texts longer than those learned from: see layers/positions.py.
        rotary_factor: by how much.
        rotary_original_len: positions that were learned from, before stretching ("llama3", "yarn", "longrope").
        rotary_factors: what each pair's angle is divided by ("longrope"), in texts of up to rotary_original_len; those
            of longer texts are other ones, so that max_len must not be more.
        rotary_slow, rotary_fast: turns over these positions below which a pair is stretched, above which it is not.
        relative_buckets, relative_distance: of relative positions: how many kinds of distance have a number a head, and
            from which distance on all are of one kind: see layers/positions.py.
        windows: of each layer, how many positions a query sees, itself the last, or None for all; empty: all in all
            layers. In an encoder, as many on both sides (Child et al. 2019; Beltagy et al. 2020, section 3.1).
        norm_order: "pre": normalise before a sublayer; "post": after its residual sum (the paper); "both": before it,
            and its output once more (Gemma 2); "output": its output alone, before the sum (OLMo 2).
        norm: "layer_norm" as in torch, "unbiased" with the unbiased deviation and eps outside the root, or "rms_norm"
            without mean and bias (Zhang and Sennrich 2019).
        first_attention_norm: the first layer's attention reads a normalised stream, as all others; False: what leaves
            the embedding, which embedding_norm has normalised (Warner et al. 2024).
        parallel: attention and feed-forward both read what enters the block, and both are added to it (Wang and
            Komatsuzaki 2021).
        norm_bias: "layer_norm" adds a bias; False leaves it out (Warner et al. 2024).
        norm_eps: the small number that keeps the normalisation from dividing by zero, at most 1.
        activation: of the feed-forward layer.
        gated: the activation's output is multiplied by a second linear map of the input (Shazeer 2020, eq. 5 and 6).
        n_experts: feed-forward layers between which a router chooses for each token (Shazeer et al. 2017); 0: one layer
            and no router.
        n_active_experts: how many of them compute a token.
        expert_weights_sum_to_one: the chosen experts' probabilities are divided by their sum (Mixtral). With one active
            expert every weight is then 1, and only the balance of load teaches the router.
        shared_d_ff: width of an expert that every token reads besides; 0: none.
        shared_gate: that expert's output is multiplied by a sigmoid of the input (Qwen 2 MoE).
        residual: False removes every residual connection.
        scoring: "dot_product" (the paper) or "additive" (Bahdanau et al. 2015).
        scale_scores: divide dot products by sqrt(d_head).
        score_width: width whose root divides dot products in place of d_head (Gemma 2); None means d_head.
        score_cap, logit_cap: scores s, and those of words, become cap * tanh(s / cap) (Gemma 2); None leaves them.
        query_key_norm: RMSNorm of queries and keys before they turn: of each head alone (Qwen 3), or of all heads at
            once (OLMo 2).
        projections: False removes query, key, value and output projections.
        share_query_key, share_key_value: use one projection for both.
        bias: linear maps have a bias.
        query_key_value_bias: whether those of query, key and value have one (Qwen 2 has it there alone); None: bias.
        causal: the decoder's self-attention hides later positions; False lets it see the words that it must predict.
        n_classes: of Classifier.
        pooling: of Classifier and SentenceEncoder: the sentence's vector from position 0 or from the mean.
        pooler: Classifier maps that vector once more, through this function (BERT: "tanh"; DistilBERT: "relu";
            ELECTRA: "gelu").
        pooler_norm: what the pooler gives is normalised.
        head_activation: of Bert's masked-word head.
        head_bias: that head's first map and the pooler have a bias.
        tied_output: the output matrix is the token embedding's.
        share_embeddings: Translation's encoder and decoder look up one matrix (section 3.4); one vocabulary for both.
        sinusoidal_halves: sines fill the first half of a position's vector and cosines the second, as Marian has them,
            instead of taking turns as in the paper.
        starts_with_pad: Translation's target begins with the padding token, which is then read wherever it stands
            (Marian).
        scale_output: Gpt's and Translation's stream is divided by sqrt(d_model) before words are scored (T5).
        output_bias: Translation's output matrix has a bias per word.
        pair_head: Bert has the pooled vector and the verdict on sentence pairs; RoBERTa was trained without.
    """

    vocab_size: VocabSize
    target_vocab_size: VocabSize | None = None
    d_model: Width = 128
    embedding_width: Width | None = None
    n_heads: Heads = 4
    n_kv_heads: Heads | None = None
    d_head: Annotated[int, Meta(ge=1, le=8_192)] | None = None
    d_ff: Annotated[int, Meta(ge=1, le=262_144)] = 512
    n_layers: Annotated[int, Meta(ge=1, le=256)] = 2
    shared_layers: bool = False
    max_len: MaxLen = 512
    dropout: Probability = 0.1
    dropout_at: DropoutAt = "everywhere"
    padding_mask: PaddingMask = "keys"
    pad_id: int | None = 0
    pad_is_read: bool = False
    positions: Positions = "sinusoidal"
    positions_skip_padding: bool = False
    rotary_base: Positive = 10_000.0
    rotary_base_in_window: Positive | None = None
    rotary_dims: Annotated[int, Meta(ge=2, le=8_192)] | None = None
    rotary_halves: bool = False
    rotary_scaling: RotaryScaling = "none"
    rotary_factor: Positive = 1.0
    rotary_original_len: MaxLen | None = None
    rotary_slow: Positive = 1.0
    rotary_fast: Positive = 32.0
    rotary_factors: tuple[Positive, ...] = ()
    relative_buckets: Annotated[int, Meta(ge=1, le=4_096)] = 32
    relative_distance: MaxLen = 128
    windows: tuple[Window | None, ...] = ()
    scale_embeddings: bool = False
    n_segments: Annotated[int, Meta(ge=0, le=64)] = 0
    embedding_norm: bool = False
    norm_order: NormOrder = "pre"
    norm: Norm = "layer_norm"
    norm_bias: bool = True
    norm_eps: Annotated[float, Meta(gt=0, le=1, description="a number, more than 0 and at most 1")] = 1e-5
    first_attention_norm: bool = True
    parallel: bool = False
    activation: Activation = "gelu"
    gated: bool = False
    n_experts: Annotated[int, Meta(ge=0, le=1_024)] = 0
    n_active_experts: Annotated[int, Meta(ge=0, le=1_024)] = 0
    expert_weights_sum_to_one: bool = False
    shared_d_ff: Annotated[int, Meta(ge=0, le=262_144)] = 0
    shared_gate: bool = False
    residual: bool = True
    scoring: Scoring = "dot_product"
    scale_scores: bool = True
    score_width: Positive | None = None
    score_cap: Positive | None = None
    logit_cap: Positive | None = None
    query_key_norm: QueryKeyNorm = "none"
    projections: bool = True
    share_query_key: bool = False
    share_key_value: bool = False
    bias: bool = True
    query_key_value_bias: bool | None = None
    causal: bool = True
    n_classes: Classes = 2
    pooling: Pooling = "cls"
    pooler: Pooler = "none"
    pooler_norm: bool = False
    head_activation: Activation = "gelu"
    head_bias: bool = True
    tied_output: bool = True
    share_embeddings: bool = False
    sinusoidal_halves: bool = False
    starts_with_pad: bool = False
    scale_output: bool = False
    output_bias: bool = False
    pair_head: bool = True

    @property
    def d_embedding(self) -> int:
        """Width of a row of the embedding."""
        return self.embedding_width or self.d_model

    @property
    def kv_heads(self) -> int:
        """How many heads of keys and values each layer has."""
        return self.n_kv_heads or self.n_heads

    def kv_head(self, head: int) -> int:
        """Return which head of keys and values a head reads."""
        return head * self.kv_heads // self.n_heads

    def readers(self, kv_head: int) -> range:
        """Return which heads read a head of keys and values."""
        share = self.n_heads // self.kv_heads
        return range(kv_head * share, (kv_head + 1) * share)

    @property
    def score_divisor(self) -> float | None:
        """What dot products are divided by to be scores; None where scores are no dot products."""
        if self.scoring != "dot_product":
            return None
        return math.sqrt(self.score_width or self.d_head or 1) if self.scale_scores else 1.0

    def window(self, layer: int) -> int | None:
        """Return how many positions a query of a layer sees, None for all."""
        return self.windows[layer] if self.windows else None

    @property
    def norms_input(self) -> bool:
        """Whether a sublayer reads the normalised stream."""
        return self.norm_order in ("pre", "both")

    @property
    def norms_output(self) -> bool:
        """Whether what a sublayer adds is normalised first."""
        return self.norm_order in ("both", "output")

    @property
    def dropout_elsewhere(self) -> float:
        """Probability of dropping an entry anywhere but at a sublayer's output."""
        return self.dropout if self.dropout_at == "everywhere" else 0.0

    def __post_init__(self) -> None:
        check_fields(self, "pad_id")
        if self.pad_id is not None and not (type(self.pad_id) is int and 0 <= self.pad_id < self.vocab_size):
            raise ValueError(f"pad_id={self.pad_id!r} must be an id of the vocabulary, 0 to {self.vocab_size - 1}")
        d_head = head_size(self.d_model, self.n_heads, self.d_head)
        for name in ("windows", "rotary_factors"):
            object.__setattr__(self, name, tuple(getattr(self, name)))
        self._check_fit(d_head)
        self._check_heads()
        self._check_experts()
        self._check_rotary(d_head)
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
        for name, width in (("d_model", self.d_model), ("embedding_width", self.d_embedding)):
            if self.norm == "unbiased" and width < 2:
                raise ValueError(f"{name}={width} must be at least 2 with norm='unbiased', which divides by d - 1")
        name = "d_model" if self.embedding_width is None else "embedding_width"
        if self.positions.startswith("sinusoidal") and self.d_embedding % 2:
            raise ValueError(
                f"{name}={self.d_embedding} must be even with positions={self.positions!r}: "
                "sines and cosines come in pairs"
            )
        if self.positions == "relative" and (self.relative_buckets < 4 or self.relative_buckets % 2):
            raise ValueError(f"relative_buckets={self.relative_buckets} must be even and at least 4: half a side")
        if self.positions == "relative" and self.relative_distance <= self.relative_buckets // 2:
            raise ValueError(
                f"relative_distance={self.relative_distance} must be more than half of "
                f"relative_buckets={self.relative_buckets}, which are for one distance each"
            )
        if not self.projections and self.n_heads * d_head != self.d_model:
            raise ValueError(
                f"n_heads={self.n_heads} times d_head={d_head} must be d_model={self.d_model} with projections=False"
            )
        if self.windows and len(self.windows) != self.n_layers:
            raise ValueError(f"windows has {len(self.windows)} entries; it must have one a layer: {self.n_layers}")
        if not self.norm_bias and self.norm != "layer_norm":
            raise ValueError(f"norm_bias=False goes with norm='layer_norm' alone; norm={self.norm!r} came")
        if self.pooler_norm and self.pooler == "none":
            raise ValueError("pooler_norm=True must be False with pooler='none': there is nothing to normalise")
        if not self.first_attention_norm and (self.norm_order != "pre" or self.shared_layers):
            raise ValueError(
                f"first_attention_norm=False needs norm_order='pre' and shared_layers=False; "
                f"norm_order={self.norm_order!r} and shared_layers={self.shared_layers} came"
            )
        if self.shared_layers and len(set(self.windows)) > 1:
            raise ValueError(f"windows={self.windows} must be alike with shared_layers=True: all layers are one block")
        if self.parallel and not self.norms_input:
            raise ValueError(
                f"norm_order={self.norm_order!r} must be 'pre' or 'both' with parallel=True: "
                "both sublayers read one stream"
            )

    def _check_heads(self) -> None:
        if self.n_heads % self.kv_heads:
            raise ValueError(f"n_heads={self.n_heads} must be divisible by n_kv_heads={self.n_kv_heads}")
        shared = self.share_query_key or not self.projections
        if shared and self.kv_heads != self.n_heads:
            raise ValueError(
                f"n_kv_heads={self.n_kv_heads} must be n_heads={self.n_heads} with share_query_key=True or "
                "projections=False: queries and keys then have one width"
            )
        if self.scoring == "additive":
            for name in ("score_width", "score_cap"):
                if getattr(self, name) is not None:
                    raise ValueError(f"{name}={getattr(self, name)} goes with scoring='dot_product' alone")
        if self.score_width is not None and not self.scale_scores:
            raise ValueError(f"score_width={self.score_width} must be None with scale_scores=False")

    def _check_experts(self) -> None:
        if not self.n_experts:
            for name in ("n_active_experts", "expert_weights_sum_to_one", "shared_d_ff", "shared_gate"):
                if value := getattr(self, name):
                    raise ValueError(f"{name}={value} goes with experts alone; n_experts=0 must be at least 2")
            return
        if self.n_experts == 1:
            raise ValueError("n_experts=1 must be 0 or at least 2: of one expert a router has nothing to choose")
        if not 1 <= self.n_active_experts <= self.n_experts:
            raise ValueError(f"n_active_experts={self.n_active_experts} must be from 1 to n_experts={self.n_experts}")
        if (experts := self.n_layers * self.n_experts) > MOST_EXPERTS:
            raise ValueError(
                f"n_layers={self.n_layers} times n_experts={self.n_experts} is {experts:,}; "
                f"it must be at most {MOST_EXPERTS:,}"
            )
        if self.shared_gate and not self.shared_d_ff:
            raise ValueError("shared_gate=True goes with a shared expert alone; shared_d_ff=0 must be at least 1")

    def _check_rotary(self, d_head: int) -> None:
        if self.positions != "rotary":
            for name in ("rotary_dims", "rotary_base_in_window", "rotary_original_len"):
                if getattr(self, name) is not None:
                    raise ValueError(f"{name}={getattr(self, name)} goes with positions='rotary' alone")
            return
        name, turning = ("d_head", d_head) if self.rotary_dims is None else ("rotary_dims", self.rotary_dims)
        if turning % 2:
            raise ValueError(f"{name}={turning} must be even with positions='rotary': coordinates turn in pairs")
        if turning > d_head:
            raise ValueError(f"rotary_dims={turning} must be at most d_head={d_head}")
        if len(self.rotary_factors) != (turning // 2 if self.rotary_scaling == "longrope" else 0):
            raise ValueError(
                f"rotary_factors has {len(self.rotary_factors)} numbers; it must have one for each of {turning // 2} "
                "pairs with rotary_scaling='longrope', and none without"
            )
        if self.rotary_scaling in ("llama3", "yarn", "longrope"):
            if self.rotary_original_len is None:
                raise ValueError(f"rotary_original_len is missing; rotary_scaling={self.rotary_scaling!r} needs it")
            if self.rotary_fast <= self.rotary_slow:
                raise ValueError(f"rotary_fast={self.rotary_fast} must be more than rotary_slow={self.rotary_slow}")
            if self.rotary_scaling == "longrope" and self.max_len > self.rotary_original_len:
                raise ValueError(
                    f"max_len={self.max_len} must be at most rotary_original_len={self.rotary_original_len} with "
                    "rotary_scaling='longrope': longer texts have other rotary_factors"
                )
