"""Greedy translation: the alternatives at each step, and where every head of the decoder looked.

Vaswani et al. 2017, sections 3.1 and 3.2.3; greedy decoding: Sutskever et al. 2014, section 3.2.
"""

import math
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import torch
from torch import Tensor

from transformer_core.analysis.outcome import one_text
from transformer_core.generation import SpeculativePass, greedy_from_drafts
from transformer_core.prompt import Prompt
from transformer_core.text import Encoding
from transformer_core.trace import Trace

MOST_WORDS = 96


@dataclass(frozen=True, eq=False)
class Source:
    """A text that a model translates, as tokens and as ids, and the tokens at both ends of a translation.

    Shapes:
        ids: (1, source_pos)

    Args:
        model: a Translation, or a Seq2Seq.
    """

    model: Any
    encoding: Encoding
    ids: Tensor
    bos_id: int
    eos_id: int

    @property
    def most(self) -> int:
        """How many words can be written."""
        return min(MOST_WORDS, self.model.config.max_len - 1)


def source_of(prompt: Prompt, *kinds: str) -> Source:
    """Encode a text for a model of one of these kinds, which translate; it is cut where the model's places end.

    Raises:
        ValueError: the bundle is of another kind, or its tokenizer has no [BOS] and [EOS].
    """
    bundle, kinds = prompt.bundle, kinds or ("seq2seq", "translation")
    if bundle.kind not in kinds:
        raise ValueError(f"bundle={bundle.name!r} is a {bundle.kind}; it must be a {' or a '.join(kinds)}")
    bos_id, eos_id = bundle.tokenizer.bos_id, bundle.tokenizer.eos_id
    if bos_id is None or eos_id is None:
        raise ValueError(f"bundle={bundle.name!r} has a tokenizer without [BOS] and [EOS]; it must have both")
    encoding = prompt.fitting.encoding
    return Source(bundle.model, encoding, one_text(bundle, encoding), bos_id, eos_id)


@dataclass(frozen=True, eq=False)
class Written:
    """A translation word by word; step k reads the start and the k words before and writes the next one.

    Shapes:
        probabilities: (step,); likeliest_ids, likeliest: (step, rank), the likeliest first
        self_weights: (layer, head, step, step); cross_weights: (layer, head, step, source_pos)

    Args:
        text: the translation.
        token_ids: the start, then what was written.
        source: the source's labels; read: what each step was given last; words: what each step wrote.
        prefixes: the text written up to each step, that step's word included.
        ended: the end token was written; else the bound on words was reached, or more is being written.
        whole: no more is being written.
        others: labels by step and rank.
    """

    text: str
    token_ids: tuple[int, ...]
    source: tuple[str, ...]
    read: tuple[str, ...]
    words: tuple[str, ...]
    prefixes: tuple[str, ...]
    ended: bool
    whole: bool
    probabilities: np.ndarray
    likeliest_ids: np.ndarray
    likeliest: np.ndarray
    others: tuple[tuple[str, ...], ...]
    self_weights: np.ndarray
    cross_weights: np.ndarray

    @property
    def log_prob(self) -> float:
        """ln P of the whole: the probabilities multiplied."""
        return float(np.log(self.probabilities.astype(np.float64)).sum())


class Writing:
    """A greedy translation while it is written: it can be looked at before its last word.

    Several threads may go on with it in turn.
    """

    def __init__(self, prompt: Prompt, drafts: Sequence[Sequence[int]] = ()) -> None:
        """Read the source.

        Args:
            prompt: as of written_greedily.
            drafts: as in greedy_from_drafts; they change how long the writing takes, and what is written in rounding
                alone.

        Raises:
            ValueError: as source_of.
        """
        self._source, self._tokenizer = source_of(prompt, "translation"), prompt.bundle.tokenizer
        model, ends = self._source.model, {"bos_id": self._source.bos_id, "eos_id": self._source.eos_id}
        with torch.inference_mode():
            state = model.start(self._source.ids)
        options = {**ends, "most": self._source.most, "sites": ("decoder.*.weights",)}
        self._begin = partial(greedy_from_drafts, model, state, drafts, **options)
        self._to_come = self._begin()
        self._passes: list[SpeculativePass] = []
        self._done = False
        self._lock = threading.Lock()

    def go_on(self, seconds: float = math.inf) -> bool:
        """Write on, a pass at least; return whether the last word is written. Where a pass fails, it begins again.

        Args:
            seconds: after which no further pass begins.

        Raises:
            ValueError: as greedy_from_drafts.
        """
        end = time.monotonic() + seconds
        with self._lock:
            while not self._done:
                try:
                    one = next(self._to_come, None)
                except BaseException:  # a generator that has failed would seem to have ended
                    self._to_come, self._passes = self._begin(), []
                    raise
                if one is None:
                    self._done = True
                else:
                    self._passes.append(one)
                if time.monotonic() >= end:
                    break
            return self._done

    def so_far(self, top: int = 8) -> Written:
        """Return what is written, of which there must be something.

        Args:
            top: as of written_greedily.
        """
        with self._lock:
            passes, whole = list(self._passes), self._done
        source, tokenizer = self._source, self._tokenizer
        written = tuple(token_id for one in passes for token_id in one.token_ids)
        probabilities = torch.cat([one.logits for one in passes]).float().softmax(-1)  # (step, vocab)
        likeliest, likeliest_ids = probabilities.topk(min(top, probabilities.shape[1]))  # (step, rank)
        token_ids = (source.bos_id, *written)
        return Written(
            text=tokenizer.decode(written),
            token_ids=token_ids,
            source=source.encoding.labels,
            read=tokenizer.labels_of(token_ids[:-1]),
            words=tokenizer.labels_of(written),
            prefixes=tuple(tokenizer.decode(written[: place + 1]) for place in range(len(written))),
            ended=written[-1] == source.eos_id,
            whole=whole,
            probabilities=probabilities[torch.arange(len(written)), list(written)].cpu().numpy(),
            likeliest_ids=likeliest_ids.cpu().numpy(),
            likeliest=likeliest.cpu().numpy(),
            others=tuple(tuple(map(tokenizer.label_of, row)) for row in likeliest_ids.tolist()),
            self_weights=_weights(passes, "self_attention"),
            cross_weights=_weights(passes, "cross_attention"),
        )


def written_greedily(*, prompt: Prompt, top: int = 8, begun: Writing | None = None) -> Written:
    """Translate a text, each time by the likeliest word, and look at every step.

    Args:
        prompt: to a translation.
        top: how many of the likeliest words are named at each step.
        begun: a writing of this very text, with which to go on; it changes how long this takes.

    Raises:
        ValueError: as source_of.
    """
    writing = Writing(prompt) if begun is None else begun
    writing.go_on()
    return writing.so_far(top)


def _weights(passes: Sequence[SpeculativePass], sublayer: str) -> np.ndarray:
    """Return the decoder's weights of one kind of attention, step by step, as the passes that wrote them had them.

    Shapes:
        returns: (layer, head, step, key_pos)
    """
    rows = []
    for one in passes:
        read = stacked(one.trace, sublayer)  # (layer, head, query_pos, key_pos)
        rows.append(read[:, :, -one.count :][:, :, : len(one.token_ids)])
    keys = sum(len(one.token_ids) for one in passes) if sublayer == "self_attention" else rows[0].shape[-1]
    return np.concatenate([_to_width(part, keys) for part in rows], axis=2)


def _to_width(weights: np.ndarray, keys: int) -> np.ndarray:
    """Return weights over so many positions: 0 for those that were not there yet, and without those guessed wrongly."""
    return np.pad(weights[..., :keys], ((0, 0), (0, 0), (0, 0), (0, max(0, keys - weights.shape[-1]))))


def stacked(trace: Trace, sublayer: str) -> np.ndarray:
    """Return the decoder's weights of one kind of attention for the first pair of a batch.

    Shapes:
        returns: (layer, head, query_pos, key_pos)
    """
    return trace.stack(f"decoder.*.{sublayer}.weights")[:, 0].float().cpu().numpy()
