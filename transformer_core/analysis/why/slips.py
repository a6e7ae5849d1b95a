"""Common slips: what texts and listings often write, beside what is right, both computed on one text.

Each is measured in full on the page of its subject; here they stand together, by one measure.
"""

import math
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import cross_entropy

from transformer_core.analysis.before.printed_gru import printed_gru
from transformer_core.analysis.bert.head_gelu import head_gelu
from transformer_core.analysis.encoder.padded_mean import padded_mean
from transformer_core.analysis.feed_forward.activations import pre_activations
from transformer_core.analysis.masks.mixed_masks import mixed_masks
from transformer_core.analysis.outcome import one_text
from transformer_core.analysis.positions.counted import positions_by
from transformer_core.analysis.stream.normalization import normed_vector
from transformer_core.analysis.why.sentence_attention import LayerAttention, sentence_attention
from transformer_core.analysis.words.sentence_vectors import dot_and_cosine
from transformer_core.bundle import Bundle
from transformer_core.layers.positions import sinusoidal_table
from transformer_core.prompt import Prompt

PADS, TOP = 8, 100
LARGE = -1e9  # that many listings write in place of minus infinity
Row = tuple[float, float, float]  # the two numbers that are furthest apart, and the share


@dataclass(frozen=True, eq=False)
class CommonSlips:
    """How far each slip moves what is computed of a text.

    Shapes:
        written, right: (slip,), the two numbers that are furthest apart
        apart: (slip,), length of the difference of all numbers over the length of the right ones, or of the others
            where the right ones are 0; "padding" and "mixed": how far the sentence's vector moves, over its length

    Args:
        names: keys of SLIPS; all of a slip is nan where this text or model cannot show it.
    """

    names: tuple[str, ...]
    written: np.ndarray
    right: np.ndarray
    apart: np.ndarray

    def many(self, share: float) -> int:
        """Return how many slips move what is computed by more than a share."""
        return int((self.apart > share).sum())


def _compared(written: Tensor, right: Tensor) -> Row:
    """Compare all numbers of one version with all of the other."""
    written, right = written.double().cpu().flatten(), right.double().cpu().flatten()
    most = int((written - right).abs().argmax())
    length = right.norm() if right.any() else written.norm()
    return float(written[most]), float(right[most]), float((written - right).norm() / length.clamp(min=1e-12))


def _exponent(prompt: Prompt, _: LayerAttention) -> Row:
    length, width = len(prompt.encoding), prompt.bundle.config.d_embedding
    return _compared(sinusoidal_table(length, width, doubled=True), sinusoidal_table(length, width))


def _counted(prompt: Prompt, _: LayerAttention) -> Row:
    tokens = sentence_attention(prompt).tokens.double()  # (pos, d_embedding)
    return _compared(*(tokens + positions_by(scheme, *tokens.shape) for scheme in ("counted", "sinusoidal")))


def _norm(prompt: Prompt, _: LayerAttention) -> Row:
    token = len(prompt.encoding) // 2
    found = normed_vector(prompt=prompt, layer=0, sublayer="feed_forward", token=token, scale=1.0)
    if "unbiased" not in found.others:
        raise ValueError(f"norm={found.norm!r} takes no deviation")
    return _compared(torch.from_numpy(found.others["unbiased"]), torch.from_numpy(found.after))


def _gelu(prompt: Prompt, _: LayerAttention) -> Row:
    x = pre_activations(prompt, 0).double()  # (pos, d_ff)
    kept = torch.special.ndtr(x)
    return _compared((1 - kept) * x, kept * x)


def _scale(prompt: Prompt, layer: LayerAttention) -> Row:
    products = layer.query @ layer.key.transpose(-2, -1)  # (head, query_pos, key_pos)
    written = layer.weights_of(products / math.sqrt(prompt.bundle.config.d_model) + layer.bias)
    return _compared(written, layer.weights)


def _hidden(_: Prompt, layer: LayerAttention) -> Row:
    row = layer.scores[:, :1]  # (head, 1, key_pos)
    return _compared(torch.full_like(row, LARGE).softmax(-1), torch.zeros_like(row))  # as the layers have such a row


def _padding(prompt: Prompt, _: LayerAttention) -> Row:
    found = padded_mean(prompt=prompt, pads=PADS)
    return float(found.all_shares[-1]), float(found.real_shares[-1]), float(found.all_moves[-1])


def _mixed(prompt: Prompt, _: LayerAttention) -> Row:
    texts = (prompt.text, prompt.text[: len(prompt.text) // 2] or prompt.text)
    found = mixed_masks(bundle=prompt.bundle, texts=texts, n_tokens=prompt.n_tokens)
    most = float(found.mixed_moves.max())
    return most, float(found.right_moves.max()), most


def _cosine(prompt: Prompt, _: LayerAttention) -> Row:
    found = dot_and_cosine(prompt=prompt, stage="handed_on")
    return _compared(torch.from_numpy(found.dots), torch.from_numpy(found.cosines))


def _loss(prompt: Prompt, _: LayerAttention) -> Row:
    logits = prompt.bundle.model(one_text(prompt.bundle, prompt.encoding)).cpu().double()  # (1, class)
    answer = logits.argmax(-1)
    return _compared(cross_entropy(logits.softmax(-1), answer), cross_entropy(logits, answer))


OWN: dict[str, Callable[[Prompt, LayerAttention], Row]] = {
    "exponent": _exponent,
    "counted": _counted,
    "scale": _scale,
    "hidden": _hidden,
    "mixed": _mixed,
    "padding": _padding,
    "norm": _norm,
    "gelu": _gelu,
    "cosine": _cosine,
    "loss": _loss,
}
SLIPS = (*OWN, "head", "gru")


@torch.inference_mode()
def common_slips(*, prompt: Prompt, bert: Bundle, gru: Bundle) -> CommonSlips:
    """Compute both versions of every slip on a text.

    Args:
        prompt: to a classifier, which shows all slips but two.
        bert: whose head guesses the word in the middle of the text.
        gru: a recurrent model of that unit, which reads the text.

    Raises:
        ValueError: the bundle of the prompt is no classifier.
    """
    layer = sentence_attention(prompt).layer(0)

    def head() -> Row:
        asked = Prompt(bert, prompt.text, bert.config.max_len)
        place = len(asked.encoding) // 2
        exact, by_tanh = head_gelu(prompt=asked, hidden=(place,), place=place, top=TOP).probabilities
        return _compared(torch.from_numpy(by_tanh), torch.from_numpy(exact))

    def printed() -> Row:
        found = printed_gru(prompt=Prompt(gru, prompt.text, gru.config.max_len))
        return _compared(torch.from_numpy(found.printed), torch.from_numpy(found.computed))

    rows = np.full((len(SLIPS), 3), np.nan)
    for place, name in enumerate(SLIPS):
        with suppress(ValueError):  # this text or model cannot show it
            rows[place] = OWN[name](prompt, layer) if name in OWN else head() if name == "head" else printed()
    return CommonSlips(SLIPS, *rows.T)
