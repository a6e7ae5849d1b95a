"""Sentences that a model can read: five in each of which something happens; and whether a text is none of that kind.

A text lies outside what a model learned from by what was measured of it.
"""

from dataclasses import dataclass
from math import exp

import streamlit as st

from pages.kit.asking import ask_once
from pages.kit.url import current, set_choice, widget_key
from pages.language import joined, language_of, t, words
from transformer_core.analysis.strangeness import Strangeness, strangeness, unusual
from transformer_core.bundle import Bundle
from transformer_core.measured import TypicalRange
from transformer_core.prompt import Prompt
from transformer_core.text import Encoding

OFFERED = 2  # sentences that a model can read


@dataclass(frozen=True)
class Example:
    """A sentence and what happens in it, which tests/pages/kit/test_examples.py measures.

    Args:
        shows: "turns" (without the word another class wins), "next" (the word is the likeliest next token), "masked"
            (the same at [MASK]), "open" (no next token, or none at [MASK], has a quarter of the probability), or
            "writes" (the word stands in the translation).
        word: that it is about.
    """

    text: str
    shows: str
    word: str = ""


CAPTIONS = (
    "A man in a red shirt is riding a horse.",
    "A man is sleeping while a woman reads a book.",
    "An old woman is reading a newspaper on a bench.",
    "Two young women are dancing in the street.",
    "Two dogs are playing on the beach.",
)


def _captions(*words: str) -> tuple[Example, ...]:
    """Return captions with a word of each one's translation."""
    return tuple(Example(text, "writes", word) for text, word in zip(CAPTIONS, words, strict=True))


VERSES = (
    Example("To be, or not to be: that is the questio", "next", "n"),
    Example("O Romeo, Romeo! wherefore art thou Rome", "next", "o"),
    Example("Good morrow, my good lor", "next", "d"),
    Example("My lord, I prithe", "next", "e"),
    Example("What is thy nam", "next", "e"),
)
STORIES = (
    Example("Once upon a time, there was a little", "next", "girl"),
    Example("One day, a little girl named Lily went to the", "next", "park"),
    Example("A man is wearing a black shirt and blue", "next", "jeans"),
    Example("Lily had a dog. The dog's name was", "next", "Spot"),
    Example("The sun was shining and the birds were", "open"),
)
SENTENCES = {
    "sentiment": (
        Example("The film was not good at all.", "turns", "not"),
        Example("The actors were bad, the story was good.", "turns", "good"),
        Example("It is anything but boring.", "turns", "anything but"),
        Example("It never gets boring.", "turns", "never"),
        Example("It does not work.", "turns", "not"),
    ),
    "sentiment-zh": (
        Example("这部电影不好看。", "turns", "不"),
        Example("服务不错，就是太贵了。", "turns", "不错"),
        Example("房间很小，但是很干净。", "turns", "很干净"),
        Example("性价比不高。", "turns", "不"),
        Example("下次不会再来了。", "turns", "不"),
    ),
    "bert": (
        Example("Once upon a [MASK], there was a little girl.", "masked", "time"),
        Example("The children are [MASK] in the park.", "masked", "playing"),
        Example("Two [MASK] are playing in the snow.", "masked", "dogs"),
        Example("Three people are sitting [MASK] a table.", "masked", "at"),
        Example("She was sad because she lost her [MASK].", "open"),
    ),
    **dict.fromkeys(("gpt", "gpt-today"), STORIES),
    "gpt-draft": (STORIES[0], *(Example(example.text, "open") for example in STORIES[1:])),
    "gpt-poem": (
        Example("秋风入客衣", "next", "，"),
        Example("一夜东风满洛", "next", "阳"),
        Example("两岸猿声啼不住，轻舟已过万重", "next", "山"),
        Example("春眠不觉晓，处处闻啼", "next", "莺"),
        Example("夜雨落空", "open"),
    ),
    **dict.fromkeys(("gpt-char", "lm-gru", "lm-lstm", "lm-rnn"), VERSES),
    "translation-en-fr": _captions("rouge", "dort", "journal", "dansent", "plage"),
    "translation-en-de": _captions("roten", "schläft", "Zeitung", "tanzen", "Strand"),
    "seq2seq-en-fr": _captions("rouge", "dort", "journal", "dansent", "plage"),
    "seq2seq-en-fr-plain": _captions("rouge", "sourit", "journal", "dansent", "plage"),
    "translation-en-zh": (
        Example("Please open the window.", "writes", "把"),
        Example("It is raining.", "writes", "下雨"),
        Example("What time is it now?", "writes", "几点"),
        Example("I do not know.", "writes", "不知道"),
        Example("My name is Anna.", "writes", "周日"),
    ),
    "translation-zh-en": (
        Example("如果明天下雨，我就待在家里。", "writes", "If"),
        Example("我是学生。", "writes", "a student"),
        Example("外面在下雨。", "writes", "raining"),
        Example("现在几点了？", "writes", "time"),
        Example("请打开窗户。", "writes", "window"),
    ),
}


def readable(bundle: Bundle) -> tuple[str, ...]:
    """Return sentences that a shipped model can read; none of another one."""
    return tuple(example.text for example in SENTENCES.get(bundle.name, ()))


def show_examples(bundle: Bundle) -> None:
    """Show a shipped model's sentences in one row, which scrolls where it is narrow."""
    texts = list(readable(bundle))
    if not texts:
        return
    text = current("text")
    here = texts.index(text) if text in texts else None
    key = widget_key("example" if here is None else f"example_{here}")
    st.session_state[key] = text if here is not None else None
    with st.container(key="examples"):
        st.pills(
            t("header.examples"),
            texts,
            key=key,
            on_change=_put,
            args=(key, text),
            label_visibility="collapsed",
            wrap=False,
        )


def _put(key: str, there: str) -> None:
    """Put a sentence into the box where a person tapped it: what was there when the row was shown is no tap.

    The browser goes on sending the row's choice with each letter until it has the next row, which is another widget.
    """
    text = st.session_state[key]
    if text not in (None, there):
        set_choice("text", text)


def happens_in(bundle: Bundle, text: str) -> str | None:
    """Return in words what happens in one of the sentences of a shipped model; None for other texts."""
    found = next((example for example in SENTENCES.get(bundle.name, ()) if example.text == text), None)
    return None if found is None else t(f"example.{found.shows}", word=found.word)


def outside(bundle: Bundle, encoding: Encoding) -> tuple[Strangeness, TypicalRange] | None:
    """Return how strange a text is and what is usual, where of 100 texts that were set aside 95 are less strange, or
    hardly any is as long.

    None where it is neither, is too short to be measured, or nothing was measured of this model.

    Args:
        encoding: of the text as the model reads it.
    """
    if not bundle.measured.usual or all(encoding.special):
        return None
    found = ask_once(strangeness, prompt=Prompt(bundle, encoding.text, len(encoding))).value
    usual = unusual(bundle, found)
    return None if usual is None else (found, usual)


def learned_by(bundle: Bundle) -> str | None:
    """Return in plain words what a shipped model learned from; None where nobody wrote it down."""
    key = f"learned.{bundle.name}"
    return t(key) if key in words("en") else None


def outside_note(bundle: Bundle, encoding: Encoding) -> str | None:
    """Return how strange a text is to a model, in words, where it lies outside what that learned; else None."""
    judged = outside(bundle, encoding)
    if judged is None:
        return None
    found, usual = judged
    by_character = language_of(encoding.text) == "zh" or bundle.tokenizer.kind == "character"
    said = {
        "value": f"{exp(found.value or 0):,.0f}",
        "median": f"{exp(usual.median):,.0f}",
        "high": f"{exp(usual.high):,.0f}",
        "tokens": f"{found.tokens:,}",
        "most": f"{usual.tokens[1]:,}",
        "unit": t(f"unit.{usual.unit}"),
        "piece": t("piece.character" if by_character else "piece.token"),
    }
    return t("outside.longer" if usual.is_shorter_than(found.tokens) else f"outside.{found.measure}", **said)


def _lead(bundle: Bundle) -> str:
    learned = learned_by(bundle)
    return t("outside.lead_of", learned=learned) if learned else t("outside.lead")


def show_sentences(bundle: Bundle, encoding: Encoding) -> None:
    """Show in one row a model's sentences in which something happens.

    Where the text lies outside what the model learned, the row says so, with two sentences that it can read: above
    every answer, and nothing below moves for it.
    """
    if outside(bundle, encoding) is None:
        show_examples(bundle)
        return
    with st.container(key="notice", horizontal=True, vertical_alignment="center"):
        offered = sorted(readable(bundle), key=len)[:OFFERED]
        said = joined(_lead(bundle), *([t("outside.can_read")] if offered else []))
        st.markdown(f":material/warning: **{said}**", width="content")
        for number, text in enumerate(offered):
            st.button(text, key=f"readable_{number}", on_click=set_choice, args=("text", text))
