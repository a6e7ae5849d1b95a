"""One word changed: the swap, among a list of words of opinion, that moves a verdict most.

After HotFlip (Ebrahimi et al. 2018), by trying instead of by gradients. Read next: held_out.py.
"""

import re
from dataclasses import dataclass

import torch

from transformer_core.analysis.encoder.layers import classifier_of, winner_and_rival
from transformer_core.analysis.encoder.measures import margin_lost
from transformer_core.analysis.outcome import one_text
from transformer_core.analysis.positions.order_cases import best_language
from transformer_core.checkpoints import Bundle
from transformer_core.probe import capture
from transformer_core.text import make_batch
from transformer_core.training.corpora.grammar import Language, load_grammar

MOST_TRIED = 48
FIRST_CJK = 0x2E80  # from here on, scripts that write no blanks between words


@dataclass(frozen=True, eq=False)
class OneWordChanged:
    """A text with one word exchanged.

    Args:
        text: the new one.
        old, new: the word that went and the one that came.
        margin, margin_after: winner's minus rival's logit, before and after.
        tried: how many words.
    """

    text: str
    old: str
    new: str
    margin: float
    margin_after: float
    tried: int


def words_of_opinion(language: Language) -> tuple[str, ...]:
    """Return the adjectives of opinion of the built-in reviews, each once, in the order of their lists."""
    lists = load_grammar(language).lists.values()
    known = [word for own in lists for polarity in (0, 1) for word in own["adj", polarity].known]
    return tuple(dict.fromkeys(known))


def one_word_changed(*, bundle: Bundle, text: str, n_tokens: int) -> OneWordChanged:
    """Exchange the word that the verdict would miss most for the word that moves the verdict most.

    Where the text has adjectives of opinion from the list, only those are weighed for going.

    Args:
        bundle: a classifier.
        n_tokens: how many tokens of the text are read at most.

    Raises:
        ValueError: the bundle is no classifier, or the text has no word.
    """
    classifier_of(bundle)
    encoding = bundle.tokenizer.encode(text, max_len=n_tokens)
    with torch.no_grad():
        logits = bundle.model(one_text(bundle, encoding))[0]
    winner, rival = winner_and_rival(logits)
    lost = abs(margin_lost(bundle, text, n_tokens, winner, rival))
    opinions = words_of_opinion(best_language(bundle.tokenizer))
    spans = {place: _word_around(text, *encoding.offsets[place]) for place in range(len(encoding))}
    own = [place for place, special in enumerate(encoding.special) if not special and _is_word(text, spans[place])]
    if not own:
        raise ValueError(f"text={text!r:.40} has no word to exchange")
    named = [place for place in own if text[slice(*spans[place])].lower() in opinions]
    start, end = spans[max(named or own, key=lambda place: (lost[place] == lost[place], lost[place], -place))]
    old = text[start:end]
    others = [word for word in opinions if word != old.lower()]
    stride = max(1, -(-len(others) // MOST_TRIED))
    candidates = [_cased(word, old) for word in others[::stride]]
    texts = [text[:start] + word + text[end:] for word in candidates]
    margins = _margins(bundle, texts, n_tokens, winner, rival)
    best = int(margins.argmin())
    margin = float(logits[winner] - logits[rival])
    return OneWordChanged(texts[best], old, candidates[best], margin, float(margins[best]), len(candidates))


def _margins(bundle: Bundle, texts: list[str], n_tokens: int, winner: int, rival: int) -> torch.Tensor:
    encodings = bundle.tokenizer.encode_batch(texts, max_len=n_tokens)
    token_ids = make_batch(encodings, pad_id=bundle.config.pad_id or 0).token_ids
    logits, _ = capture(bundle.model, token_ids.to(next(bundle.model.parameters()).device), sites=("class_logits",))
    return (logits[:, winner] - logits[:, rival]).double().cpu()


def _word_around(text: str, start: int, end: int) -> tuple[int, int]:
    """Return the bounds of the word that a part of a text belongs to; Chinese signs stand by themselves."""
    for match in re.finditer(r"[^\W_]+(?:['’][^\W_]+)*", text):
        if match.start() <= start and end <= match.end() and ord(text[start]) < FIRST_CJK:
            return match.span()
    return start, end


def _is_word(text: str, span: tuple[int, int]) -> bool:
    return any(sign.isalnum() for sign in text[slice(*span)])


def _cased(word: str, like: str) -> str:
    return word[:1].upper() + word[1:] if like[:1].isupper() else word
