"""Five schemes side by side: what each makes of the scores where one word stands at every place.

Vaswani et al. 2017, section 3.5; Gehring et al. 2017 (learned); Su et al. 2021 (rotary); Press et al. 2022 (ALiBi).
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial

import numpy as np
import torch
from torch import Tensor

from transformer_core.analysis.parts import position_vectors
from transformer_core.analysis.positions.order_effect import order_edits
from transformer_core.bundle import Bundle
from transformer_core.config import ModelConfig, require_range
from transformer_core.layers.positions import ROTARY, Rotary, alibi_bias, rotate, sinusoidal_table
from transformer_core.probe import Edit, capture
from transformer_core.prompt import Prompt
from transformer_core.wiring import Wiring

SCHEMES = ("none", "sinusoidal", "learned", "rotary", "alibi")
UNTRAINED_DEVIATION = 0.02
UNTRAINED_SEED = 0
ATTENTION = "layer0.self_attention"
WEIGHTS = f"*{ATTENTION}.weights"  # the first layer's: no pass need go on


@dataclass(frozen=True, eq=False)
class SchemeScores:
    """What each scheme makes of one word at every place.

    Shapes:
        terms, scores, weights: (scheme, query_pos, key_pos); parameters, deviation: (scheme,)
        query, key: (d_head,); wavelengths: (kind of layer, pair)

    Args:
        schemes: SCHEMES, in their order.
        terms: what position brings by the scheme's own formula: none 0, sinusoidal and learned P_i . P_j, rotary
            q R_(j-i) k / sqrt(d_head), or by the divisor that the model has, before a cap, ALiBi -m_h |i - j|. Not a
            number beyond a learned table's end.
        scores: of the head in the first layer, where the scheme stands in for the model's own.
        weights: after the model's own mask and softmax. Both are not numbers beyond a learned table's end.
        parameters: how many numbers the scheme has to learn.
        deviation: greatest difference between two entries of `terms` with the same j - i.
        query, key: of the word in this head, normalised where the model does so, without position.
        token: the word's label.
        slope: m_h, ALiBi's penalty per place.
        wavelengths: positions that a pair takes for one turn, in the model's layers or, where they are not rotary, in
            the paper's.
        layers: which layers turn so, for each row of wavelengths.
        learned_from: name of the model whose learned table is shown; "" for an untrained one.
    """

    schemes: tuple[str, ...]
    terms: np.ndarray
    scores: np.ndarray
    weights: np.ndarray
    parameters: np.ndarray
    deviation: np.ndarray
    query: np.ndarray
    key: np.ndarray
    token: str
    slope: float
    learned_from: str
    wavelengths: np.ndarray
    layers: tuple[tuple[int, ...], ...]


def same_distance_spread(values: np.ndarray) -> float:
    """Return the greatest difference between two entries of (i, j) with the same j - i, where both are numbers."""
    size = len(values)
    diagonals = (np.diagonal(values, offset) for offset in range(1 - size, size))
    finite = (diagonal[np.isfinite(diagonal)] for diagonal in diagonals)
    return max((float(np.ptp(diagonal)) for diagonal in finite if diagonal.size), default=0.0)


def score_schemes(
    *, prompt: Prompt, place: int, head: int, length: int, pair: int = -1, learned: Bundle | None = None
) -> SchemeScores:
    """Put one token of a text at every place, and let each scheme in turn encode the places.

    The model's own positions are taken out through the probe, and the scheme's put in: vectors are added to the
    embeddings, rotations turn queries and keys, penalties join the scores.

    Args:
        prompt: to any model but a translation.
        place: of the token in the text.
        head: of the first layer; it also sets ALiBi's slope.
        length: how many places.
        pair: the pair of coordinates that rotary's term is restricted to, or -1 for all.
        learned: a model with a learned table; where it is None, or of another width, an untrained one is drawn.

    Raises:
        ValueError: place, head, length or pair lie outside; sizes that a scheme does not fit.
    """
    config = prompt.bundle.config
    encoding = prompt.encoding
    pairs = (rotary_of(config).dims or config.d_head or 0) // 2
    bounds = {
        "place": (place, 0, len(encoding) - 1),
        "head": (head, 0, config.n_heads - 1),
        "length": (length, 2, config.max_len),
        "pair": (pair, -1, pairs - 1),
    }
    for name, (value, low, high) in bounds.items():
        require_range(name, value, low, high)
    ids = torch.full((1, length), encoding.ids[place])
    vectors, learned_from = _learned_table(config.d_embedding, length, learned)
    tables = {"sinusoidal": sinusoidal_table(length, config.d_embedding), "learned": vectors}
    query, key = _content(prompt.bundle, ids, head)
    layers: dict[Rotary, list[int]] = {}
    for layer in range(config.n_layers):
        layers.setdefault(rotary_of(config, layer), []).append(layer)
    terms = _terms(query, key, tables, config, head, pair)
    seen = [_seen(prompt.bundle, ids, scheme, tables, head) for scheme in SCHEMES]
    return SchemeScores(
        schemes=SCHEMES,
        terms=terms,
        scores=np.stack([scores for scores, _ in seen]),
        weights=np.stack([weights for _, weights in seen]),
        parameters=np.array([config.max_len * config.d_embedding * (scheme == "learned") for scheme in SCHEMES]),
        deviation=np.array([same_distance_spread(values) for values in terms]),
        query=query[0].numpy(),
        key=key[0].numpy(),
        token=encoding.labels[place],
        slope=-float(alibi_bias(config.n_heads, 2, 2, torch.device("cpu"))[head, 0, 1]),
        learned_from=learned_from,
        wavelengths=np.stack([2 * math.pi / rotary.angles(config.d_head or 0).numpy() for rotary in layers]),
        layers=tuple(map(tuple, layers.values())),
    )


def _learned_table(width: int, length: int, learned: Bundle | None) -> tuple[Tensor, str]:
    """Return (pos, width) with NaN beyond the table's end, and whose it is."""
    trained = None if learned is None else position_vectors(learned)
    if learned is None or trained is None or trained.weight.shape[1] != width:
        generator = torch.Generator().manual_seed(UNTRAINED_SEED)
        return torch.randn(length, width, generator=generator) * UNTRAINED_DEVIATION, ""
    table = torch.full((length, width), float("nan"))
    rows = trained.weight.detach().cpu()[:length]
    table[: len(rows)] = rows
    return table, learned.name


def _content(bundle: Bundle, ids: Tensor, head: int) -> tuple[Tensor, Tensor]:
    """Return query and key of the head, (pos, d_head), without any positions."""
    sites = _unturned(bundle.config)
    edits = order_edits(bundle.config, None, first=True)
    token_ids = ids.to(bundle.device)
    _, trace = capture(bundle.model, token_ids, sites=(*sites, WEIGHTS), edits=edits, until=WEIGHTS)
    heads = (head, bundle.config.kv_head(head))
    query, key = (trace.stack(site)[0, 0, one].float().cpu() for site, one in zip(sites, heads, strict=True))
    return query, key


def _unturned(config: ModelConfig) -> list[str]:
    """Return by which names queries and keys are recorded before a position turns them."""
    return [Wiring(config).before_turning(f"*{ATTENTION}", role) for role in ("query", "key")]


def rotary_of(config: ModelConfig, layer: int = 0) -> Rotary:
    """Return the rotary positions of a layer, or where the model has others those of the paper."""
    return Rotary.of_layer(config, layer) if config.positions == "rotary" else ROTARY


def _terms(
    query: Tensor, key: Tensor, tables: Mapping[str, Tensor], config: ModelConfig, head: int, pair: int
) -> np.ndarray:
    rotary, n_heads = rotary_of(config), config.n_heads
    if pair >= 0:
        kept = torch.zeros(query.shape[-1])
        kept[[*rotary.pair(pair, len(kept))]] = 1.0
        query, key = query * kept, key * kept
    length = len(query)
    turned_query, turned_key = (rotate(x[None, None], rotary=rotary)[0, 0] for x in (query, key))  # (pos, d_head)
    terms = {
        "none": torch.zeros(length, length),
        "rotary": turned_query @ turned_key.T / (config.score_divisor or math.sqrt(query.shape[-1])),
        "alibi": alibi_bias(n_heads, length, length, torch.device("cpu"))[head],
    }
    terms |= {scheme: table @ table.T for scheme, table in tables.items()}
    return np.stack([terms[scheme].numpy() for scheme in SCHEMES])


def _seen(
    bundle: Bundle, ids: Tensor, scheme: str, tables: Mapping[str, Tensor], head: int
) -> tuple[np.ndarray, np.ndarray]:
    """Return the head's scores and weights, (query_pos, key_pos), with the scheme in place of the model's own."""
    device = bundle.device
    edits: dict[str, Edit] = dict(order_edits(bundle.config, None, first=True))
    reached = ids.shape[1]
    if scheme in tables:
        reached = int(tables[scheme].isfinite().all(-1).sum())
        edits["*embedding.residual"] = lambda x: x + tables[scheme][:reached].to(device)
    if scheme == "rotary":
        turn = partial(rotate, rotary=rotary_of(bundle.config))
        edits |= dict.fromkeys(_unturned(bundle.config), turn)
    if scheme == "alibi":
        edits[f"*{ATTENTION}.scores"] = lambda x: x + alibi_bias(x.shape[1], x.shape[2], x.shape[3], x.device)
    sites = (f"*{ATTENTION}.scores", WEIGHTS)
    _, trace = capture(bundle.model, ids[:, :reached].to(device), sites=sites, edits=edits, until=WEIGHTS)
    seen = np.full((2, ids.shape[1], ids.shape[1]), np.nan, dtype=np.float32)
    seen[:, :reached, :reached] = [trace.stack(site)[0, 0, head].float().cpu().numpy() for site in sites]
    return seen[0], seen[1]
