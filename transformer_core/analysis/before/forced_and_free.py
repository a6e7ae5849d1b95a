"""Teacher forcing beside free running: each next word after the right words, and after the model's own.

Williams and Zipser 1989 name the first; Bengio et al. 2015 and Ranzato et al. 2016 (exposure bias) are about the gap.
"""

from dataclasses import dataclass

import torch

from transformer_core.analysis.before.alignments import MOST_WORDS, given_to, written_by
from transformer_core.analysis.translation.greedy_steps import source_of
from transformer_core.analysis.translation.teacher_forcing import Scored, scored
from transformer_core.prompt import Prompt


@dataclass(frozen=True, eq=False)
class ForcedAndFree(Scored):
    """A given translation, word by word, and what a model writes with and without it.

    Args:
        words: labels of the given translation, the end token included.
        free: what it writes alone, up to as many words, padded with "".
        free_text: the whole of it.
        free_right: at how many places that has the given word.
        leaves: the first place where the model alone writes another word; -1 where it writes the given words.
    """

    words: tuple[str, ...]
    free: tuple[str, ...]
    free_text: str
    free_right: int
    leaves: int


@torch.inference_mode()
def forced_and_free(*, prompt: Prompt, target: str) -> ForcedAndFree:
    """Read a given translation with the decoder, and let the decoder write its own.

    Args:
        prompt: to a seq2seq or a translation.
        target: the translation; most of its tokens that are read are 64.

    Raises:
        ValueError: as source_of, or of the tokenizer.
    """
    bundle = prompt.bundle
    source = source_of(prompt)
    most = min(MOST_WORDS, source.model.config.max_len - 1)
    given, written = given_to(source, bundle, target, most)[-most:], written_by(source, most)
    read = torch.tensor([[source.bos_id, *given[:-1]]], device=source.ids.device)  # (1, step)
    found = scored(source.model(source.ids, read)[0], given, bundle.tokenizer)
    alone = [*written, *[-1] * len(given)][: len(given)]
    label = bundle.tokenizer.label_of
    return ForcedAndFree(
        **vars(found),
        words=bundle.tokenizer.labels_of(given),
        free=tuple("" if id_ < 0 else label(id_) for id_ in alone),
        free_text=bundle.tokenizer.decode(written),
        free_right=sum(one == other for one, other in zip(alone, given, strict=True)),
        leaves=next((k for k, (a, b) in enumerate(zip(alone, given, strict=True)) if a != b), -1),
    )
