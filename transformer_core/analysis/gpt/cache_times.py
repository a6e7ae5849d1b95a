"""The key-value cache: the time of one more token with it and without it, and the memory that it takes.

Incremental decoding: Shazeer 2019, section 2.4.
"""

from dataclasses import dataclass

import numpy as np
import torch

from transformer_core.analysis.gpt.kept_logits import gpt_of, ids_on_device
from transformer_core.analysis.timing import Stopwatch, alone_on_one_thread
from transformer_core.bundle import Bundle
from transformer_core.progress import counted
from transformer_core.prompt import Prompt

LARGE = 30_000_000
MOST_LENGTH = 128


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
            uncached, kept = model.advance(whole, empty)[0], model.advance(last, state)[0]
            apart = max(apart, float((uncached - kept).abs().max()))
            pairs = (layer.self_attention for layer in model.advance(last, state)[1].layers)
            size.append(sum(part.nbytes for pair in pairs for part in (pair.key, pair.value) if part is not None))
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
