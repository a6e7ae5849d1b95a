"""A typed word on the embeddings page: found in the vocabulary, or said why not."""

from pages.ui.language import t
from pages.ui.last_text import in_words, read_and_tell
from pages.ui.url import text_input
from transformer_core.analysis.words.vocabulary import Found, find
from transformer_core.text import Tokenizer

MOST_CHARACTERS = 60


def ask_for_word(tokenizer: Tokenizer, label: str, *, name: str, default: str) -> Found | None:
    """Show a line for a word and return its one token; where it has none, that of the last word that had one."""
    return read_and_tell(
        name, text_input(label, name=name, default=default), default, lambda word: _one(tokenizer, word)
    )


def _one(tokenizer: Tokenizer, word: str) -> Found:
    """Return a word's one token.

    Raises:
        ValueError: it has none, or several; in words for the page.
    """
    word = word.strip()
    if not word:
        raise ValueError(t("embeddings.word_empty"))
    shown = word[:MOST_CHARACTERS]
    if len(word) > MOST_CHARACTERS:
        raise ValueError(t("embeddings.word_long", word=shown, most=MOST_CHARACTERS))
    with in_words():
        found = find(tokenizer, word)
    if not found.known:
        raise ValueError(t("embeddings.word_unknown", word=shown))
    if len(found.ids) > 1:
        pieces = " + ".join(found.labels)
        raise ValueError(t("embeddings.word_pieces", word=shown, count=len(found.ids), pieces=pieces))
    return found
