"""Models beside each other on one text: language models by nats a token, translators by what they write and how long.

Mikolov et al. 2010 compare recurrent language models so; Radford et al. 2018, eq. 1, is the measure.
"""

import math
import time
from dataclasses import dataclass

import numpy as np

from transformer_core.analysis.gpt.next_token import surprisals
from transformer_core.bundle import Bundle
from transformer_core.generation import translate
from transformer_core.prompt import Prompt


@dataclass(frozen=True, eq=False)
class Foreseen:
    """How well several language models foresee one text, and texts that none of them learned from.

    Shapes:
        nats: (model,), the mean surprise of a token of the text; not a number where it has but one
        share: (model,), tokens of the text that were the likeliest
        usual, high: (model,), the median and the 95th percentile of nats a token over the texts set aside; not a
            number where they were not measured
        parameters: (model,)

    Args:
        models: names of their bundles.
        data: names of the texts set aside, one a model; empty where there are none.
        n_tokens: of the text.
    """

    models: tuple[str, ...]
    nats: np.ndarray
    share: np.ndarray
    usual: np.ndarray
    high: np.ndarray
    parameters: np.ndarray
    data: tuple[str, ...]
    n_tokens: int


def foreseen(*, text: str, n_tokens: int, **bundles: Bundle) -> Foreseen:
    """Let several language models read one text.

    Args:
        n_tokens: most tokens of the text to read.
        bundles: of a GPT or a recurrent language model each, all with the same tokenizer; by any keywords.

    Raises:
        ValueError: there are none, one is no language model, or their tokenizers differ, so that nats a token could
            not be compared.
    """
    models = list(bundles.values())
    if not models:
        raise ValueError("bundles are none; at least one is needed")
    first = models[0].tokenizer.to_json()
    if strange := [one.name for one in models if one.tokenizer.to_json() != first]:
        raise ValueError(f"bundle={strange[0]!r} has another tokenizer than {models[0].name!r}; they must share one")
    found = [surprisals(prompt=Prompt(one, text, n_tokens)) for one in models]
    known = len(found[0].labels) - 1
    usual = [next((row for row in one.measured.usual if row.measure == "nats_a_token"), None) for one in models]
    return Foreseen(
        models=tuple(one.name for one in models),
        nats=np.array([one.mean_bits * math.log(2) if known else math.nan for one in found]),
        share=np.array([one.foreseen / known if known else math.nan for one in found]),
        usual=np.array([math.nan if row is None else row.median for row in usual]),
        high=np.array([math.nan if row is None else row.high for row in usual]),
        parameters=np.array([one.n_parameters for one in models]),
        data=tuple("" if row is None else row.data for row in usual),
        n_tokens=known + 1,
    )


@dataclass(frozen=True)
class TimedTranslation:
    """A translation and how long it took.

    Args:
        text: the translation.
        seconds: of wall-clock time, encoding included; another call takes another time.
        source_tokens: how many the model read.
    """

    text: str
    seconds: float
    source_tokens: int


def timed_translation(*, bundle: Bundle, text: str) -> TimedTranslation:
    """Translate a text greedily; of a longer one than the model can read, its beginning.

    Args:
        bundle: a seq2seq or a translation.

    Raises:
        ValueError: as translate.
    """
    started = time.perf_counter()
    written = translate(bundle, [text], width=1)[0]
    seconds = time.perf_counter() - started
    return TimedTranslation(written, seconds, len(bundle.tokenizer.encode(text, max_len=bundle.config.max_len)))
