"""What a model is asked to guess, so that its guesses with and without order can be compared.

Devlin et al. 2019, section 3.1 (hidden words); Radford et al. 2018, eq. 1 (next words). A translator guesses each next
word of what it writes with order, so that one of any two languages can be asked.
"""

from collections import defaultdict
from dataclasses import dataclass

import torch
from torch import Tensor

from transformer_core.bundle import Bundle
from transformer_core.generation import greedy
from transformer_core.models import Translation
from transformer_core.probe import capture
from transformer_core.prompt import Prompt
from transformer_core.text import Encoding, Tokenizer
from transformer_core.training.batching import padded
from transformer_core.training.corpora.grammar import Language
from transformer_core.training.corpora.pairs import translation_pairs
from transformer_core.training.corpora.reviews import Review, reviews, written_reviews

LANGUAGES: tuple[Language, ...] = ("en", "zh")
LABELS = ("negative", "positive")
HIDDEN = 0.15
MOST_HIDDEN_HERE = 16
MOST_WRITTEN = 64  # tokens of a translation
KINDS = ("classifier", "gpt", "bert", "translation")
SAMPLE = 20
NOT_ASKED = -1


@dataclass(frozen=True, eq=False)
class Cases:
    """Texts of one length whose special tokens stand at the same places.

    Shapes:
        token_ids: (text, pos), what is read
        targets: (text, guess), the right class, next token or hidden token; -1 where nothing is asked
        written: (text, guess), what a translator's decoder reads; None for other kinds

    Args:
        special: which places hold special tokens, (pos,).
        plain: which texts say what they mean without turning their words round, (text,); None for a typed text.
    """

    token_ids: Tensor
    targets: Tensor
    special: tuple[bool, ...]
    plain: Tensor | None = None
    written: Tensor | None = None


def best_language(tokenizer: Tokenizer) -> Language:
    """Return the language that a tokenizer knows best: least is unknown, and then a byte takes fewest tokens."""

    def cost(language: Language) -> tuple[float, float]:
        texts = [example.text for example in reviews(language, train=0, held_out=SAMPLE)[1]]
        encodings = tokenizer.encode_batch(texts)
        tokens = sum(len(encoding) for encoding in encodings)
        unknown = sum(sum(encoding.unknown) for encoding in encodings)
        return round(unknown / tokens, 2), tokens / sum(len(text.encode()) for text in texts)

    return min(LANGUAGES, key=cost)


def require_opinions(bundle: Bundle) -> None:
    """Raise ValueError unless the classes are those of the built-in reviews."""
    if bundle.labels != LABELS:
        raise ValueError(f"{bundle.name} tells {', '.join(bundle.labels)}; the reviews at hand are {', '.join(LABELS)}")


def cases_of_reviews(bundle: Bundle, count: int) -> tuple[Language, list[Cases]]:
    """Return the language and held-out reviews of the built-in corpus, grouped by length; to a translator, sentences.

    Raises:
        ValueError: the bundle is not a classifier of negative and positive, a gpt, a bert or a translation; count is
            less than 1.
    """
    _check_kind(bundle)
    if bundle.kind == "classifier":
        require_opinions(bundle)
    if count < 1:
        raise ValueError(f"texts={count} must be at least 1")
    language = best_language(bundle.tokenizer)
    if bundle.kind == "translation":
        known: list[Language] = [one for one in LANGUAGES if one == bundle.reads] or [language]
        return known[0], _sentences(bundle, known[0], count)
    _, written = written_reviews(language, train=0, held_out=count + count % 2)
    encodings = bundle.tokenizer.encode_batch(
        [review.text for review in written[:count]], max_len=bundle.config.max_len
    )
    groups: dict[tuple[bool, ...], list[tuple[Encoding, Review]]] = defaultdict(list)
    for encoding, review in zip(encodings, written, strict=False):
        groups[encoding.special].append((encoding, review))
    return language, [_group(bundle, special, members) for special, members in groups.items() if len(special) > 1]


def _sentences(bundle: Bundle, language: Language, count: int) -> list[Cases]:
    """Return held-out sentences of the built-in pairs with what the model makes of them, grouped by length."""
    _, pairs = translation_pairs("fr" if language == "en" else "zh", train=0, held_out=count)
    groups: dict[tuple[bool, ...], list[tuple[int, ...]]] = defaultdict(list)
    for english, chinese in pairs:
        text = english if language == "en" else chinese
        encoding = bundle.tokenizer.encode(text, max_len=bundle.config.max_len)
        groups[encoding.special].append(encoding.ids)
    return [_translations(bundle, torch.tensor(ids), special) for special, ids in groups.items()]


def _translations(bundle: Bundle, ids: Tensor, special: tuple[bool, ...]) -> Cases:
    """Return sentences (text, pos) of one length with each next token that the model writes greedily, the end too."""
    model, tokenizer = bundle.model, bundle.of_target
    bos_id, eos_id = tokenizer.bos_id, tokenizer.eos_id
    if not isinstance(model, Translation) or bos_id is None or eos_id is None:
        raise ValueError(f"{bundle.name} has no token that a translation begins or ends with")
    sources = ids.to(next(model.parameters()).device)
    written = [
        [step.token_id for step in greedy(model, row[None], bos_id=bos_id, eos_id=eos_id, most=MOST_WRITTEN)]
        for row in sources
    ]
    targets = padded(written, NOT_ASKED)
    begins = torch.full((len(written), 1), bos_id)
    return Cases(ids, targets, special, written=torch.cat((begins, targets[:, :-1].clamp(min=0)), 1))


def _group(bundle: Bundle, special: tuple[bool, ...], members: list[tuple[Encoding, Review]]) -> Cases:
    ids = torch.tensor([encoding.ids for encoding, _ in members])
    if bundle.kind == "classifier":
        plain = torch.tensor([review.construction == "plain" for _, review in members])
        return Cases(ids, torch.tensor([[review.label] for _, review in members]), special, plain)
    if bundle.kind == "gpt":
        return _next_tokens(bundle, ids, special)
    own = torch.tensor([not is_special for is_special in special])
    draws = torch.rand(ids.shape, generator=torch.Generator().manual_seed(len(special))).masked_fill(~own, 2.0)
    hidden = (draws < HIDDEN) | (draws == draws.amin(-1, keepdim=True)) & own  # at least one per text
    return _hidden_tokens(bundle, ids, hidden, special)


def cases_of_text(prompt: Prompt) -> Cases:
    """Return the guesses that one text asks for; right is what a classifier or a translator says with order.

    Raises:
        ValueError: another kind of model, or a text that leaves nothing to guess.
    """
    bundle = prompt.bundle
    _check_kind(bundle)
    encoding = prompt.encoding
    ids = torch.tensor([encoding.ids])
    if bundle.kind == "classifier":
        logits, _ = capture(bundle.model, ids.to(bundle.device), sites=())
        return Cases(ids, logits.cpu().argmax(-1)[:, None], encoding.special)
    if bundle.kind == "gpt":
        if len(encoding) < 2:
            raise ValueError(f"text={prompt.text!r:.40} has {len(encoding)} tokens; guessing the next one needs 2")
        return _next_tokens(bundle, ids, encoding.special)
    own = [place for place, is_special in enumerate(encoding.special) if not is_special]
    if bundle.kind == "translation" and own:
        return _translations(bundle, ids, encoding.special)
    if not own:
        raise ValueError(f"text={prompt.text!r:.40} has no token of its own to hide")
    places = [own[i * len(own) // min(len(own), MOST_HIDDEN_HERE)] for i in range(min(len(own), MOST_HIDDEN_HERE))]
    hidden = torch.zeros(len(places), len(encoding), dtype=torch.bool)
    hidden[range(len(places)), places] = True
    return _hidden_tokens(bundle, ids.expand(len(places), -1), hidden, encoding.special)


def _check_kind(bundle: Bundle) -> None:
    if bundle.kind not in KINDS:
        raise ValueError(f"{bundle.name} is a {bundle.kind}; order is measured for {', '.join(KINDS)}")


def _next_tokens(bundle: Bundle, ids: Tensor, special: tuple[bool, ...]) -> Cases:
    return Cases(ids, ids[:, 1:].masked_fill(ids[:, 1:] == bundle.config.padding, NOT_ASKED), special)


def _hidden_tokens(bundle: Bundle, ids: Tensor, hidden: Tensor, special: tuple[bool, ...]) -> Cases:
    mask_id = bundle.tokenizer.mask_id
    if mask_id is None:
        raise ValueError(f"{bundle.name} has no token [MASK] to hide a word behind")
    return Cases(ids.masked_fill(hidden, mask_id), ids.masked_fill(~hidden, NOT_ASKED), special)
