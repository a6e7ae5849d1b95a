"""Drafts: a small model proposes the next words, the large one checks them in one pass; the text stays its own.

Leviathan et al. 2023; the model's own first layers as the small one: Elhoushi et al. 2024, section 3.3; words looked up
in the text: Saxena 2023.
"""

from dataclasses import dataclass
from itertools import islice

from transformer_core.analysis.gpt.kept_logits import gpt_of, ids_on_device, labels_at
from transformer_core.analysis.words.chat import ends_of
from transformer_core.bundle import Bundle
from transformer_core.config import require_range
from transformer_core.generation.sampling import greedy_words
from transformer_core.generation.speculative import SmallModel, greedy_with_drafts, looked_up
from transformer_core.models import Gpt
from transformer_core.prompt import Prompt

MOST_GUESSED, MOST_WRITTEN = 8, 64


@dataclass(frozen=True)
class DraftedPass:
    """One pass of the large model.

    Args:
        guessed: labels of the proposed tokens, in their order.
        accepted: how many of them stand in the text.
        own: label of the large model's token after those; None where the last of those ends the text.
    """

    guessed: tuple[str, ...]
    accepted: int
    own: str | None


@dataclass(frozen=True)
class Drafted:
    """A text written with drafts.

    Args:
        passes: of the large model, in their order.
        text: what was written.
        tokens: how many tokens that is, which without drafts would be as many passes.
        same: how many of them greedy decoding without drafts writes, from the first on.
        share: the weights that a proposed token needs, as a share of the large model's; 0 where none is computed.
    """

    passes: tuple[DraftedPass, ...]
    text: str
    tokens: int
    same: int
    share: float

    @property
    def guessed(self) -> int:
        """How many tokens were proposed."""
        return sum(len(one.guessed) for one in self.passes)

    @property
    def accepted(self) -> int:
        """How many of those stand in the text."""
        return sum(one.accepted for one in self.passes)

    @property
    def weights(self) -> float:
        """How often as many weights as the large model has are read, in all passes of both."""
        return len(self.passes) + self.share * self.guessed


def _weights(model: Gpt) -> int:
    """Return how many numbers a model has, a matrix that two parts share counted once."""
    return sum(parameter.numel() for parameter in model.parameters())


def drafted(
    *, prompt: Prompt, drafter: Bundle | None, layers: int | None, length: int, steps: int = MOST_WRITTEN
) -> Drafted:
    """Write on as greedy does, with drafts, and once more without them.

    Args:
        prompt: to a GPT, which checks.
        drafter: a GPT of the same vocabulary, which proposes; None for the model itself.
        layers: the drafter's first layers alone; without a drafter, None looks the next words up in the text.
        length: tokens proposed a pass, from 1 to MOST_GUESSED.
        steps: tokens written in all.

    Raises:
        ValueError: a bundle is not a GPT or has another vocabulary, or a number is out of range.
    """
    model, tokenizer = gpt_of(prompt.bundle), prompt.bundle.tokenizer
    require_range("length", length, 1, MOST_GUESSED)
    require_range("steps", steps, 1, MOST_WRITTEN)
    small = model if drafter is None else gpt_of(drafter)
    if small.config.vocab_size != model.config.vocab_size:
        raise ValueError(
            f"drafter has {small.config.vocab_size} tokens; it must have {model.config.vocab_size}, as the model has"
        )
    if layers is not None:
        small = small.first_layers(layers)
    proposing = drafter is not None or layers is not None
    propose = SmallModel(small) if proposing else looked_up
    ids, ends = prompt.encoding.ids, ends_of(prompt.bundle)
    written: list[int] = []
    passes: list[DraftedPass] = []
    for one in greedy_with_drafts(model, ids, propose, length=length, most=steps, ends=ends):
        before = [*ids, *written]
        agreed = len(one.guessed) >= len(one.token_ids) and one.guessed[len(one.token_ids) - 1] == one.token_ids[-1]
        accepted = len(one.token_ids) - (not agreed)  # all are where the model ends the text as was proposed
        labels = labels_at(tokenizer, [*before, *one.guessed], one.guessed, first=len(before)) if one.guessed else ()
        last = labels_at(tokenizer, [*before, *one.token_ids], one.token_ids[accepted:], first=len(before) + accepted)
        passes.append(DraftedPass(labels, accepted, last[0] if last else None))
        written += one.token_ids
    plain = [step.token_id for step in islice(greedy_words(model, ids_on_device(model, ids), most=len(written)), steps)]
    same = next((place for place, pair in enumerate(zip(written, plain, strict=False)) if pair[0] != pair[1]), None)
    known = [id_ for id_ in written if id_ < tokenizer.vocab_size]
    return Drafted(
        passes=tuple(passes),
        text=tokenizer.decode(known),
        tokens=len(written),
        same=min(len(written), len(plain)) if same is None else same,
        share=_weights(small) / _weights(model) if proposing else 0.0,
    )
