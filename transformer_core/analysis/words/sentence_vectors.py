"""A sentence as vectors: what the model looks up, what positions add, and what each layer makes of it.

Vaswani et al. 2017, section 3.4; the same word, another vector in every sentence: Peters et al. 2018, section 3.
"""

from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np
import torch
from torch import Tensor

from transformer_core.analysis.outcome import one_text
from transformer_core.analysis.parts import reading_part
from transformer_core.analysis.words.vocabulary import unit_rows
from transformer_core.bundle import Bundle
from transformer_core.config import require_choice
from transformer_core.probe import capture
from transformer_core.prompt import Prompt
from transformer_core.text import Encoding

Stage = Literal["looked_up", "with_positions", "after_layers", "handed_on"]
LOOKED_UP, SUMMED = "embedding.token_embedding", "embedding.residual"


@dataclass(frozen=True, eq=False)
class SentenceVectors:
    """The vectors of one sentence at one stage.

    Shapes:
        token_ids: (pos,); vectors: (pos, d_model); norms: (pos,); cosine: (pos, pos)

    Args:
        norms: Euclidean lengths of the vectors.
        cosine: of the angle between each two of them; 0 where one is zero.
        closest: places of the two different words with the greatest cosine; None where there are not two.
    """

    labels: tuple[str, ...]
    token_ids: np.ndarray
    vectors: np.ndarray
    norms: np.ndarray
    cosine: np.ndarray
    closest: tuple[int, int] | None


@dataclass(frozen=True, eq=False)
class SameWord:
    """One word at two places of a sentence.

    Shapes:
        cosine: (stage,), between the two vectors: looked up, with positions, then after each layer

    Args:
        label: the word.
        text: that was read: the sentence, or twice the sentence where no word of it came twice.
        first, second: the places, from 0.
    """

    label: str
    text: str
    first: int
    second: int
    cosine: np.ndarray


def _stages(bundle: Bundle, encoding: Encoding) -> list[Tensor]:
    """Return (pos, d_model) as looked up, with positions, after each layer, and as handed on to what follows."""
    part = reading_part(bundle.model)
    layers = tuple(f"layer{index}.residual" for index in range(bundle.config.n_layers))
    output, trace = capture(part, one_text(bundle, encoding), sites=(LOOKED_UP, SUMMED, *layers))
    return [vectors[0].float().cpu() for vectors in (*(trace[name] for name in (LOOKED_UP, SUMMED, *layers)), output)]


def sentence_vectors(*, prompt: Prompt, stage: Stage = "looked_up") -> SentenceVectors:
    """Return a sentence's vectors and how alike their directions are.

    Args:
        prompt: to any model that reads text.
        stage: the rows as looked up; these scaled, with positions and segments added; after the last layer; or as
            handed on to what follows, which in a pre-norm stack is after one more norm.

    Raises:
        ValueError: stage is unknown, or the text cannot be encoded in so many tokens.
    """
    require_choice("stage", stage, get_args(Stage))
    encoding = prompt.encoding
    stages = _stages(prompt.bundle, encoding)
    vectors = stages[{"looked_up": 0, "with_positions": 1, "after_layers": -2, "handed_on": -1}[stage]]
    unit = unit_rows(vectors)
    cosine = (unit @ unit.T).clamp(-1.0, 1.0)
    return SentenceVectors(
        encoding.labels,
        np.array(encoding.ids),
        vectors.numpy(),
        vectors.norm(dim=1).numpy(),
        cosine.numpy(),
        _closest(encoding, cosine),
    )


@dataclass(frozen=True, eq=False)
class DotAndCosine:
    """Two ways to compare a sentence's vectors: by dot product, and by the cosine that divides both lengths out.

    Shapes:
        dots, cosines: (pos, pos); nearest_dot, nearest_cosine: (pos,), the place of the most alike other token
        norms: (pos,), lengths of the vectors

    Args:
        labels: of the tokens.
        others: at how many places the two name different tokens.
        beaten: at how many places another token has a greater dot product with the vector than the vector itself.
        longest: the place of the longest vector; chosen_dot, chosen_cosine: how often it is the nearest.
    """

    labels: tuple[str, ...]
    dots: np.ndarray
    cosines: np.ndarray
    norms: np.ndarray
    nearest_dot: np.ndarray
    nearest_cosine: np.ndarray
    others: int
    beaten: int
    longest: int
    chosen_dot: int
    chosen_cosine: int


def dot_and_cosine(*, prompt: Prompt, stage: Stage = "looked_up") -> DotAndCosine:
    """Compare a sentence's vectors in both ways; arguments and errors as of sentence_vectors.

    Raises:
        ValueError: as sentence_vectors, or there are not two tokens.
    """
    found = sentence_vectors(prompt=prompt, stage=stage)
    if len(found.labels) < 2:
        raise ValueError(f"text={prompt.text!r:.60} must have at least 2 tokens, which can be compared")
    vectors = found.vectors.astype(np.float64)
    dots = vectors @ vectors.T
    alone = np.where(np.eye(len(dots), dtype=bool), -np.inf, 0.0)
    by_dot, by_cosine = (dots + alone).argmax(1), (found.cosine + alone).argmax(1)
    longest = int(found.norms.argmax())
    return DotAndCosine(
        labels=found.labels,
        dots=dots.astype(np.float32),
        cosines=found.cosine,
        norms=found.norms,
        nearest_dot=by_dot,
        nearest_cosine=by_cosine,
        others=int((by_dot != by_cosine).sum()),
        beaten=int(((dots + alone).max(1) > np.diagonal(dots) * (1 + 1e-9)).sum()),
        longest=longest,
        chosen_dot=int((by_dot == longest).sum()),
        chosen_cosine=int((by_cosine == longest).sum()),
    )


def _closest(encoding: Encoding, cosine: Tensor) -> tuple[int, int] | None:
    ids, own = np.array(encoding.ids), ~np.array(encoding.special, dtype=bool)
    wanted = np.triu(own[:, None] & own[None, :] & (ids[:, None] != ids[None, :]))  # (pos, pos)
    if not wanted.any():
        return None
    first, second = np.unravel_index(np.where(wanted, cosine.numpy(), -2.0).argmax(), wanted.shape)
    return int(first), int(second)


def same_word(*, prompt: Prompt) -> SameWord:
    """Follow one word that stands at two places of a sentence from the table of vectors through every layer.

    Args:
        prompt: to any model that reads text.
        prompt: whose text is read twice where no word comes twice in it.

    Raises:
        ValueError: the model cannot read the text twice, or it has no word.
    """
    text = prompt.text
    tokenizer = prompt.bundle.tokenizer
    encoding = tokenizer.encode(text, max_len=prompt.n_tokens)
    found = _twice(encoding)
    if found is None:
        encoding = tokenizer.encode(f"{text} {text}", max_len=min(2 * prompt.n_tokens, prompt.bundle.config.max_len))
        found = _twice(encoding)
    if found is None:
        raise ValueError(f"text={text[:40]!r} must hold a word that can be read twice")
    first, second = found
    cosines = [torch.cosine_similarity(x[first], x[second], dim=0) for x in _stages(prompt.bundle, encoding)[:-1]]
    return SameWord(encoding.labels[first], encoding.text, first, second, torch.stack(cosines).numpy())


def _twice(encoding: Encoding) -> tuple[int, int] | None:
    """Return the two places of the longest word that comes twice."""
    seen: dict[int, int] = {}
    pairs = []
    for place, id_ in enumerate(encoding.ids):
        if encoding.offsets[place] == (0, 0) or encoding.unknown[place]:
            continue
        if id_ in seen:
            pairs.append((seen[id_], place))
        seen.setdefault(id_, place)
    return max(pairs, key=lambda pair: len(encoding.labels[pair[0]]), default=None)
