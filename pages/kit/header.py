"""The header that every page shares: text, model, language and link, each kept in the URL.

Under the text stands a note where it is unlike anything that the model learned from.
"""

from typing import NoReturn

import numpy as np
import streamlit as st

from pages.kit.component import registered
from pages.kit.controls import Choice, Slider, Switch, Text
from pages.kit.device import device_of_model
from pages.kit.examples import happens_in, outside_note, show_sentences
from pages.kit.experiment import is_asked
from pages.kit.models import broken, choose_model, first_model, is_there, open_bundle, other_kind, take_model
from pages.kit.refusals import in_words, last_read, read_or_last, require_length, show_line
from pages.kit.url import current, set_choice, written
from pages.kit.view import View
from pages.language import LANGUAGES, is_foreign, language, language_of, plain, strings, t
from pages.link import LIVE
from transformer_core.bundle import Bundle
from transformer_core.text import Encoding
from transformer_core.text.chat import ChatError
from transformer_core.untrusted.bundle_files import BundleError

DEFAULT_TEXT = "The film was not good, but I loved the ending."
VERSE = "To be, or not to be: that is the question"
EXAMPLES = {  # of the models that learned another language, or another kind of text, than most of their page
    "sentiment-zh": "虽然房间有点小，但是很干净，服务也好，下次还会来。",
    "gpt-poem": "秋风入客衣，",
    "translation-zh-en": "如果明天下雨，我就待在家里。",
    **dict.fromkeys(("lm-gru", "lm-lstm", "lm-rnn"), VERSE),
}
PAUSE = "250ms"  # of a hand that types, until the page runs, where its pictures come the short way
MOST_CHARACTERS = 2_000
MOST_TOKENS = 128
MOST_UNKNOWN = 0.3  # from this part of the tokens on, a verdict rests on too little to be left without a word
LANGUAGE = Choice("lang", LANGUAGES, label="header.language", collapsed=True, always=True)
CHAT = Switch("chat", False, label="text.as_chat")
FIRST_CJK = 0x2E80  # from here on, scripts that write no blanks between words


def header(*, kinds: tuple[str, ...] = ("classifier",), example: str = DEFAULT_TEXT, chat: bool = False) -> View:
    """Show the controls and one line about the text, and return what was chosen.

    A text that cannot be read leaves the last one that could. Where no model can be opened, the page ends with why.

    Args:
        kinds: of model that the page can read, the likeliest first; others are not listed.
        example: the text to begin with; a model that reads another language has one of its own.
        chat: offer to ask a chat model as it was trained, the text as the user's message.
    """
    text_place, model_place, language_place = st.columns([5.4, 1.6, 2.0], vertical_alignment="bottom")
    with language_place:
        language_and_share()
    if language() != st.session_state.get("framed", language()):
        st.rerun()  # where the page is a fragment, the frame around it speaks the old language still
    with model_place:
        model = choose_model(kinds, typed=written("text"))
    with text_place:
        example = EXAMPLES.get(model or "", example)
        pause = pause_of(st.session_state.page or "home", st.session_state.get("part"))
        text = Text[str]("text", example, label="header.text", pause=pause).show()
    if model is None:
        _end(t("model.none", kinds=", ".join(t(f"kind.{kind}") for kind in kinds)))
    try:
        bundle = open_bundle(model)
    except BundleError as error:
        _end(broken(model, error))
    line = st.container(key="text_line", horizontal=True, vertical_alignment="center", gap="small")
    with line:
        chat = chat and bundle.chat is not None and CHAT.show()
    try:
        encoding, instead = read_or_last("text", text, example, lambda text: encoded(bundle, text, chat=chat))
    except ValueError as error:
        _end(plain(str(error)))
    with line:
        if chat:
            with st.popover(t("text.chat_prompt"), type="tertiary"):
                st.code(encoding.text, language=None, wrap_lines=True)
        window = _window(bundle, encoding)
        offered = _offer_reader(bundle, text, kinds, example)
        asked = is_asked()  # by a lecture, perhaps for that
        about, loud = ((), False) if asked else _about(bundle, encoding, window)
        reads = None if offered else _one_language(bundle, kinds)
        notes = (*about, other_kind(model), reads, device_of_model(bundle.model))
        show_line(instead, *notes, pale=instead is not None, loud=loud)
    show_sentences(bundle, window)
    return View(bundle, window)


def _about(bundle: Bundle, encoding: Encoding, window: Encoding) -> tuple[tuple[str | None, ...], bool]:
    """Return what is said of a text's tokens and of what the model does with it, and whether it says so loudly."""
    unit = "characters" if bundle.tokenizer.kind == "character" else "tokens"
    length = None if window is not encoding else t(f"text.{unit}", count=len(encoding))
    strange, unknown, loud = outside_note(bundle, window), *_unknown(window)
    notes = (length, strange, unknown, _typed_padding(bundle, window), happens_in(bundle, encoding.text))
    return notes, loud and strange is None  # else the row below says it loudly


def pause_of(page: str, part: str | None) -> str:
    """Return how long a hand that types rests until the page runs: a moment where the pictures come the short way."""
    return PAUSE if (page, part) in LIVE else "0ms"


def _offer_reader(bundle: Bundle, text: str, kinds: tuple[str, ...], example: str) -> bool:
    """Show a button that switches to a model which reads the text's language, where this one does not.

    Where this page has none, the button puts a sentence that its model reads into the box.

    Returns:
        Whether there is a button, which says what the model reads.
    """
    spoken = language_of(text)
    if spoken is None or not is_foreign(text, bundle.reads):
        return False
    name = first_model(spoken, (*[kind for kind in kinds if kind == bundle.kind], *kinds))
    if name is not None:
        label, icon = t(f"text.offer_{spoken}", name=plain(name)), ":material/swap_horiz:"
        st.button(label, icon=icon, type="tertiary", key="offer_reader", on_click=take_model, args=(name,))
    elif language_of(example) == bundle.reads:
        label, icon = t(f"text.only_{bundle.reads}"), ":material/edit:"
        st.button(label, icon=icon, type="tertiary", key="offer_sentence", on_click=set_choice, args=("text", example))
    else:
        return False
    return True


def _one_language(bundle: Bundle, kinds: tuple[str, ...]) -> str | None:
    """Say which language a page's models read, where none of them reads that of the interface."""
    if bundle.reads in ("", language()) or first_model(language(), kinds) is not None:
        return None
    return t(f"text.reads_{bundle.reads}")


def choose_text(text: str) -> None:
    """Let the header show another text; only in a callback of a part, which runs alone, so that the page runs next."""
    set_choice("text", text)
    st.session_state.whole_page = True


def whole_page_asked() -> bool:
    """Tell, once, whether choose_text was called since the page ran."""
    return bool(st.session_state.pop("whole_page", False))


def encoded(bundle: Bundle, text: str, *, max_len: int | None = None, chat: bool = False) -> Encoding:
    """Return a text as a model reads it.

    Args:
        max_len: tokens that are read; all by default.
        chat: the text is a user's message to the model, which has a chat template; it must fit whole.

    Raises:
        ValueError: why it cannot be read, in words for the page.
    """
    if not text.strip():
        raise ValueError(t("text.empty"))
    require_length(text, MOST_CHARACTERS)
    if chat and bundle.chat is not None:
        try:
            text = bundle.chat.render((("user", text),))
        except ChatError as error:
            raise ValueError(why_no_chat(error)) from error
    with in_words():
        encoding = bundle.tokenizer.encode(text, max_len=max_len, add_special=not chat)
    if chat and len(encoding) > _most(bundle):
        raise ValueError(t("text.chat_long", count=len(encoding), most=_most(bundle)))
    if not any(end for _, end in encoding.offsets):  # nothing but special tokens, which the template adds
        raise ValueError(t("text.nothing_known"))
    return encoding


def why_no_chat(error: ChatError) -> str:
    """Say what a chat template did instead of making a text."""
    return t(f"chat_template.{error.why}", detail=error.detail)


def _unknown(encoding: Encoding) -> tuple[str | None, bool]:
    """Return how much of a text a model does not know, in words, and whether that is too much to conclude from."""
    own = [
        unknown for unknown, special in zip(encoding.unknown, encoding.special, strict=True) if unknown or not special
    ]
    if not sum(own):
        return None, False
    much = sum(own) / len(own) >= MOST_UNKNOWN
    return t("text.unknown" if much else "text.some_unknown", count=sum(own), all=len(own)), much


def _typed_padding(bundle: Bundle, encoding: Encoding) -> str | None:
    """Say what a model does with a padding token that the text itself has."""
    pad_id = bundle.tokenizer.pad_id
    if pad_id is None or pad_id not in encoding.ids:
        return None
    key = "text.typed_padding_hidden" if pad_id == bundle.config.padding else "text.typed_padding_read"
    return t(key, token=bundle.tokenizer.token_of(pad_id))


def _most(bundle: Bundle) -> int:
    return min(MOST_TOKENS, bundle.config.max_len)


def _window(bundle: Bundle, encoding: Encoding) -> Encoding:
    """Return the part of a long text that is read at a time, behind a button that lets a person move it."""
    most = _most(bundle)
    if len(encoding) <= most:
        return encoding
    with st.popover(t("text.part_read", count=len(encoding), most=most), type="tertiary"):
        return _part_from(bundle, encoding, _start(encoding, most).show(), most)


def _start(encoding: Encoding, most: int) -> Slider[int]:
    """Return the control of the token at which the window on a long text begins."""
    return Slider("start", 0, len(encoding) - most, 0, label="text.window")


def _part_from(bundle: Bundle, encoding: Encoding, start: int, most: int) -> Encoding:
    """Return whole words of a text from one of its tokens on, at most so many tokens."""
    starts = [start for start, end in encoding.offsets if end]  # of the text's own tokens, not the template's
    window = bundle.tokenizer.encode(encoding.text[word_start(encoding.text, starts[start]) :], max_len=most)
    return bundle.tokenizer.encode(whole_words(window), max_len=most)


def linked_view() -> View:
    """Return what the header of a page would choose by the link that is being read.

    Raises:
        ValueError: the text cannot be read.
        BundleError: this visitor has no such model, or it cannot be opened.
    """
    name = current("model") or ""
    if not is_there(name):
        raise BundleError(t("model.gone", name=name))
    bundle = open_bundle(name)
    encoding = encoded(bundle, current("text") or "", chat=bundle.chat is not None and CHAT.read())
    most = _most(bundle)
    if len(encoding) > most:
        encoding = _part_from(bundle, encoding, _start(encoding, most).read(), most)
    return View(bundle, encoding)


def typed_in_link(view: View) -> dict[str, str]:
    """Return what a link says of the text that was typed, and that it is a user's message where it is one."""
    typed = {"text": last_read("text") or str(current("text") or "")}
    return typed if view.encoding.add_special else typed | {CHAT.name: CHAT.link_of(True)}


def encoded_whole(bundle: Bundle, text: str) -> Encoding:
    """Return a text beside the one in the box as a model reads it: as many of its whole words as are read at a time.

    Raises:
        ValueError: as of encoded.
    """
    found = encoded(bundle, text, max_len=_most(bundle))
    return bundle.tokenizer.encode(whole_words(found), max_len=_most(bundle)) if found.truncated else found


def part_read(bundle: Bundle, text: str) -> str | None:
    """Say how much of a text beside the one in the box encoded_whole reads; None where that is all of it.

    Raises:
        ValueError: as of encoded.
    """
    count, read = len(encoded(bundle, text)), len(encoded_whole(bundle, text))
    return None if count <= _most(bundle) else t("text.begin_read", count=count, most=read)


def whole_words(cut: Encoding) -> str:
    """Return the text of a cut encoding up to its last whole word; up to its last token where that is one long word."""
    if not cut.truncated:
        return cut.text
    end = max(end for _, end in cut.offsets)
    return cut.text[: word_start(cut.text, end)].rstrip() or cut.text[:end]


def word_start(text: str, place: int) -> int:
    """Move a place back to where its word starts, so that the window has the whole text's tokens."""
    while place > 0 and _is_inside_word(text[place - 1]) and _is_inside_word(text[place]):
        place -= 1
    return place


def _is_inside_word(character: str) -> bool:
    return character.isalnum() and ord(character) < FIRST_CJK


def some_places(change: np.ndarray) -> list[int]:
    """Return up to four places to choose from, in the order of the text; the one that changes most is among them.

    Shapes:
        change: (pos,), not a number where nothing was hidden
    """
    order = [int(place) for place in np.argsort(-np.abs(change), kind="stable") if np.isfinite(change[place])]
    return sorted({order[len(order) * part // 4] for part in range(4)}) if order else []


def shown_word(label: str) -> str:
    """Return a label without the mark of the blank before it."""
    return label.removeprefix("␣") or label


def _end(message: str) -> NoReturn:
    st.info(message, icon=":material/info:")
    st.stop()


def language_and_share() -> None:
    """Show both at the right end of the header's row; the button works in the browser alone."""
    with st.container(horizontal=True, horizontal_alignment="right", gap="small", key="language_and_share"):
        LANGUAGE.show()
        registered("share")(key="share", data=strings("share"), width="content")
