"""The key-value cache: what it holds, the memory that it takes, and the time of one more token with it and without.

Incremental decoding: Shazeer 2019, section 2.4; heads that share keys and values: section 3, and Ainslie et al. 2023.
"""

from dataclasses import dataclass

import numpy as np
import torch

from transformer_core.analysis.gpt.kept_logits import gpt_of, ids_on_device
from transformer_core.analysis.timing import Stopwatch, alone_on_one_thread
from transformer_core.bundle import Bundle
from transformer_core.config import ModelConfig, require_index
from transformer_core.layers.cache import MOST_TAKEN_BACK, KeyValueCache
from transformer_core.progress import counted
from transformer_core.prompt import Prompt

LARGE = 30_000_000
MOST_LENGTH = 128
POINTS = 65


@dataclass(frozen=True, eq=False)
class KeptOfText:
    """The keys and values that a GPT keeps of a text, and what they would take with more heads of them or fewer.

    Shapes:
        key, value: (kv_head, kept_pos, d_head), of one layer, keys as they are scored
        lengths: (length,); needed: (number, length), bytes in all layers

    Args:
        labels: of the positions that are kept.
        forgotten: positions before those, which the layer's window hides from whatever comes.
        size: bytes of this text's keys and values in all layers.
        heads: numbers of heads of keys and values, falling: as many as heads of queries, the model's own, and one.
        here: bytes that this text needs with each of these numbers.
    """

    key: np.ndarray
    value: np.ndarray
    labels: tuple[str, ...]
    forgotten: int
    size: int
    heads: tuple[int, ...]
    here: tuple[int, ...]
    lengths: np.ndarray
    needed: np.ndarray


def bytes_kept(config: ModelConfig, length: int, kv_heads: int, bytes_each: int) -> int:
    """Return how many bytes keys and values of a text take: 2 numbers a position kept, head, coordinate and layer.

    Args:
        length: tokens of the text; a layer with a window keeps its own and MOST_TAKEN_BACK more at most.
        kv_heads: heads of keys and values.
        bytes_each: of a number.
    """
    windows = (config.window(layer) for layer in range(config.n_layers))
    kept = sum(length if window is None else min(length, window + MOST_TAKEN_BACK) for window in windows)
    return 2 * kept * kv_heads * (config.d_head or 0) * bytes_each


def _size(state: KeyValueCache) -> int:
    pairs = (layer.self_attention for layer in state.layers)
    return sum(part.nbytes for pair in pairs for part in (pair.key, pair.value) if part is not None)


@torch.inference_mode()
def kept_of_text(*, prompt: Prompt, layer: int) -> KeptOfText:
    """Read a text into a cache, and return what it holds.

    Args:
        prompt: to a GPT.
        layer: whose keys and values are returned, from 0.

    Raises:
        ValueError: the bundle is not a GPT, or there is no such layer.
    """
    model, config = gpt_of(prompt.bundle), prompt.bundle.config
    require_index("layer", layer, config.n_layers)
    state = model.start(ids_on_device(model, prompt.encoding.ids))
    pair = state.layers[layer].self_attention
    assert pair.key is not None
    assert pair.value is not None
    each, length = pair.key.element_size(), len(prompt.encoding)
    heads = tuple(sorted({config.n_heads, config.kv_heads, 1}, reverse=True))
    lengths = np.unique(np.linspace(1, config.max_len, POINTS).round().astype(int))
    return KeptOfText(
        key=pair.key[0].float().cpu().numpy(),
        value=pair.value[0].float().cpu().numpy(),
        labels=prompt.encoding.labels[pair.forgotten :],
        forgotten=pair.forgotten,
        size=_size(state),
        heads=heads,
        here=tuple(bytes_kept(config, length, count, each) for count in heads),
        lengths=lengths,
        needed=np.array([[bytes_kept(config, int(one), count, each) for one in lengths] for count in heads]),
    )


@dataclass(frozen=True, eq=False)
class CacheTimes:
    """Times, the least of several calls, and sizes on this machine, measured now.

    Shapes:
        lengths, plain, cached: (length,), seconds for one more token after so many, without a cache and with it
        size: (length,), bytes of keys and values kept

    Args:
        apart: the greatest difference of the two ways' scores.
        faster: how many times faster the cache is at the greatest length.
        bytes_a_token: that each further token adds.
        spread: of the times, as of Stopwatch.
    """

    lengths: np.ndarray
    plain: np.ndarray
    cached: np.ndarray
    size: np.ndarray
    apart: float
    faster: float
    bytes_a_token: float
    spread: float


def lengths_for(bundle: Bundle) -> tuple[int, ...]:
    """Return the lengths to measure: fewer for a large model, none beyond what the model can read."""
    most = min(MOST_LENGTH, bundle.config.max_len)
    count = 3 if bundle.n_parameters > LARGE else 6
    return tuple(sorted({max(2, round(most * (step + 1) / count)) for step in range(count)}))


@torch.inference_mode()
def cache_times(*, prompt: Prompt, measurement: int) -> CacheTimes:
    """Measure one more token after the text, which is repeated to the length that is needed.

    Args:
        prompt: to a GPT.
        measurement: names this measurement; another number asks for another one.

    Raises:
        ValueError: the bundle is not a GPT.
    """
    model, ids = gpt_of(prompt.bundle), prompt.encoding.ids
    lengths = lengths_for(prompt.bundle)
    repeated = [ids[place % len(ids)] for place in range(lengths[-1])]
    batch = ids_on_device(model, repeated)  # (1, pos)
    empty = model.start(batch[:, :0])
    plain, cached, size, apart, watch = [], [], [], 0.0, Stopwatch(batch.device)
    with alone_on_one_thread():
        for length in counted(lengths):
            whole, last = batch[:, :length], batch[:, length - 1 : length]
            _, state = model.advance(batch[:, : length - 1], empty)
            plain.append(watch.seconds(lambda whole=whole: model.advance(whole, empty)))
            cached.append(watch.seconds(lambda last=last, state=state: model.advance(last, state)))
            (uncached, _), (kept, after) = model.advance(whole, empty), model.advance(last, state)
            apart = max(apart, float((uncached - kept).abs().max()))
            size.append(_size(after))
    return CacheTimes(
        lengths=np.array(lengths),
        plain=np.array(plain),
        cached=np.array(cached),
        size=np.array(size),
        apart=apart,
        faster=plain[-1] / cached[-1],
        bytes_a_token=size[-1] / lengths[-1],
        spread=watch.spread,
    )
