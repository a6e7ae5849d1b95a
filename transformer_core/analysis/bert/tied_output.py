"""The tied output matrix: the row that looks a word up is the row that scores it, and one score decomposed.

Press and Wolf 2017; Devlin et al. 2019, their code.
"""

from dataclasses import dataclass

import numpy as np
import torch

from transformer_core.analysis.bert.masked_words import bert_of, hidden_text, ranks_of, tensors
from transformer_core.analysis.words.vocabulary import unit_rows
from transformer_core.probe import capture
from transformer_core.prompt import Prompt

SITES = ("mlm_head.transformed", "mlm_head.logits")


@dataclass(frozen=True, eq=False)
class OneScore:
    """The score of one word behind one mask: the sum of products that it is, and what stands nearby.

    Shapes:
        transformed, row, products: (d_model), products = transformed * row, in float64
        near_ids, near_cosines, near_scores, guess_ids, guess_scores: (neighbour)

    Args:
        word: label of the word.
        score: as the model computed it, in its own precision.
        bias: of the word.
        recomputed: sum of the products and the bias, in float64; `difference` is its distance from the score.
        rounding: the most that rounding can make of it in the model's precision.
        rank: of the word among all, from 1.
        tied: whether embedding and output matrix are one tensor.
        apart: greatest absolute difference of the two matrices.
        parameters: numbers in one of them.
        near_words: labels of `near_ids`, the words whose rows have the greatest cosine with the word's row.
        guesses: labels of `guess_ids`, the likeliest words.
        shared: how many of those are among the nearest, the word itself left out of both.
    """

    word: str
    transformed: np.ndarray
    row: np.ndarray
    products: np.ndarray
    score: float
    bias: float
    recomputed: float
    difference: float
    rounding: float
    rank: int
    tied: bool
    apart: float
    parameters: int
    near_ids: np.ndarray
    near_words: tuple[str, ...]
    near_cosines: np.ndarray
    near_scores: np.ndarray
    guess_ids: np.ndarray
    guesses: tuple[str, ...]
    guess_scores: np.ndarray
    shared: int


@torch.inference_mode()
def one_score(*, prompt: Prompt, hidden: tuple[int, ...], place: int, word_id: int, top: int = 8) -> OneScore:
    """Decompose the score of one word behind one mask.

    Args:
        hidden: places of tokens to hide, beside every [MASK] that the text spells out.
        place: of the mask, one of those.
        word_id: any entry of the vocabulary.
        top: how many neighbours and guesses to name.

    Raises:
        ValueError: there is no mask at the place, no such word, or a place cannot be hidden.
    """
    model, label = bert_of(prompt.bundle), prompt.bundle.tokenizer.label_of
    word = label(word_id)
    read = hidden_text(prompt, hidden, place=place)
    ids, segment_ids = tensors(prompt.bundle, [read.masked.ids], read.masked.segment_ids)
    _, trace = capture(model, ids, segment_ids=segment_ids, sites=SITES)
    transformed, scores = (trace[site][0, place].float().cpu() for site in SITES)  # (d_model), (vocab)
    proj, embedding = model.mlm_head.output.proj, model.encoder.embedding.token.weight
    matrix = proj.weight.float().cpu()  # (vocab, d_model)
    row, bias = matrix[word_id], 0.0 if proj.bias is None else float(proj.bias[word_id])
    products = transformed.double() * row.double()
    recomputed = float(products.sum()) + bias
    unit = unit_rows(matrix)
    cosines = unit @ unit[word_id]  # (vocab)
    others = torch.arange(len(matrix)) != word_id
    near = cosines.masked_fill(~others, -torch.inf).topk(top).indices
    guesses = scores.topk(top).indices
    return OneScore(
        word=word,
        transformed=transformed.numpy(),
        row=row.numpy(),
        products=products.numpy(),
        score=float(scores[word_id]),
        bias=bias,
        recomputed=recomputed,
        difference=abs(recomputed - float(scores[word_id])),
        rounding=float((products.abs().sum() + abs(bias)) * len(row) * torch.finfo(proj.weight.dtype).eps),
        rank=int(ranks_of(scores[None], torch.tensor([word_id]))),
        tied=proj.weight is embedding,
        apart=float((proj.weight - embedding).abs().max()),
        parameters=embedding.numel(),
        near_ids=near.numpy(),
        near_words=tuple(map(label, near.tolist())),
        near_cosines=cosines[near].numpy(),
        near_scores=scores[near].numpy(),
        guess_ids=guesses.numpy(),
        guesses=tuple(map(label, guesses.tolist())),
        guess_scores=scores[guesses].numpy(),
        shared=len(set(near.tolist()) & set(guesses.tolist()) - {word_id}),
    )
