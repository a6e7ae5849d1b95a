"""A conversation as the tokens that a chat model gets: those of each message, and those that its template adds."""

from functools import partial
from itertools import groupby

import streamlit as st

from pages.kit.asking import Answer, ask
from pages.kit.controls import Choice, Kept, Switch, Text
from pages.kit.experiment import fragment
from pages.kit.header import View, why_no_chat
from pages.kit.models import READERS, chat_models, offer_model
from pages.kit.url import whole_number
from pages.language import joined, plain, t
from pages.room import Part
from pages.tokens.chips import offer_chips, show_chips
from pages.tokens.figures import Line
from transformer_core.analysis.words.chat import BEFORE, UNKNOWN, ChatTokens, chat_tokens
from transformer_core.text.chat import ChatError, Messages

MOST_MESSAGES, MOST_CHARACTERS = 6, 600
ROLES = ("system", "user", "assistant")
TURNS = ("user", "assistant") * MOST_MESSAGES
HUES = {"user": 0, "assistant": 2, "system": 3}
HUE_OF_TEMPLATE = 5
MOST_NAMED = 5


def _first_roles(view: View) -> tuple[str, ...]:
    """Return the roles of the messages at first: with one of the system, unless the template refuses that."""
    with_system = ROLES[:1] + TURNS
    try:
        if view.bundle.chat is not None:
            view.bundle.chat.render(tuple((role, role) for role in with_system[:2]))
    except ChatError:
        return TURNS
    return with_system


def _role(place: int, view: View) -> str:
    return _first_roles(view)[place]


def _said(place: int, view: View) -> str:
    """Return what a message says at first: the page's sentence where it is the first of the user."""
    role, roles = _role(place, view), _first_roles(view)
    if role == "user":
        return view.encoding.text[:MOST_CHARACTERS] if place == roles.index("user") else t("tokens.chat_again")
    return t(f"tokens.chat_{role}")


def _count(_: View, said: str) -> int:
    return whole_number(said, MOST_MESSAGES, least=1) or 2


COUNT = Kept("tokens_messages", parse=_count)
WHO = [
    Choice(
        f"tokens_role{place}",
        ROLES,
        label="tokens.role",
        words="tokens.role_{}",
        default=partial(_role, place),
        form="list",
    )
    for place in range(MOST_MESSAGES)
]
SAYS = [
    Text[str](f"tokens_said{place}", partial(_said, place), label="tokens.said", most=MOST_CHARACTERS)
    for place in range(MOST_MESSAGES)
]
PROMPTED = Switch("tokens_prompted", True, label="tokens.prompted")


def _remove(place: int, view: View) -> None:
    """Take a message out, and let those after it move up; only in a callback."""
    last = COUNT.read(view) - 1
    for control in (WHO, SAYS):
        after = [control[later].read(view) for later in range(place + 1, last + 1)]
        for at, value in enumerate(after, start=place):
            control[at].take(value, view)
        control[last].forget()
    COUNT.set(str(last))


def _conversation(view: View) -> Messages:
    """Show the messages, with what adds one and takes one out, and return them."""
    count, messages = COUNT.read(view), []
    for place in range(count):
        role, text, out = st.columns([1.5, 8, 0.6], vertical_alignment="bottom")
        with role:
            who = WHO[place].show(view)
        with text:
            messages.append((who, SAYS[place].show(view)))
        out.button(
            "",
            icon=":material/close:",
            help=t("tokens.chat_remove"),
            type="tertiary",
            disabled=count == 1,
            key=f"tokens_remove{place}",
            on_click=_remove,
            args=(place, view),
        )
    with st.container(horizontal=True, vertical_alignment="center", gap="medium"):
        st.button(
            t("tokens.chat_add"),
            icon=":material/add:",
            disabled=count == MOST_MESSAGES,
            key="tokens_add",
            on_click=COUNT.set,
            args=(str(count + 1),),
        )
        PROMPTED.show()
        if view.bundle.chat is None:
            st.caption(t("tokens.chat_not_own"))
    return tuple(messages)


@fragment
def _show(view: View) -> None:
    """Show the messages, and the tokens that the template makes of them."""
    messages = _conversation(view)
    try:
        answer = ask(chat_tokens, bundle=view.bundle, messages=messages, prompted=PROMPTED.read())
    except ChatError as error:
        st.warning(plain(why_no_chat(error)), icon=":material/block:")
        return
    found = answer.value
    chips = show_chips(found.text, _lines(answer, messages), answer, name="tokens_chat")
    st.markdown(_told(found))
    offer_chips(chips, answer, of="message")
    if view.bundle.chat is None:
        _say_that_there_is_none(view)


def _say_that_there_is_none(view: View) -> None:
    """Say that a model has no template, that the one below is not its own, and which models have one."""
    names = chat_models()
    there = t("tokens.chat_there", names=", ".join(map(plain, names[:MOST_NAMED]))) if names else t("tokens.chat_open")
    said = t("tokens.needs_template", name=plain(view.bundle.name))
    if names:
        offer_model(said, READERS, name=names[0])
    else:
        st.info(said, icon=":material/info:")
    st.caption(there)


def _told(found: ChatTokens) -> str:
    own = sum(found.own)
    counts = {"count": len(found.own), "own": own, "added": len(found.own) - own, "special": sum(found.cut.special)}
    told = t("tokens.chat_told", **counts)
    return joined(told, t("tokens.chat_open_places")) if UNKNOWN in found.owners else told


def _lines(answer: Answer[ChatTokens], messages: Messages) -> tuple[Line, ...]:
    """Return a line for each run of tokens that come from one message."""
    found, cut = answer.value, answer.value.cut
    names = {BEFORE: t("tokens.chat_before"), UNKNOWN: t("tokens.chat_unknown"), len(messages): t("tokens.chat_header")}
    names |= {place: f"{place} · {t(f'tokens.role_{role}')}" for place, (role, _) in enumerate(messages)}
    lines = []
    for owner, run in groupby(range(len(found.owners)), key=found.owners.__getitem__):
        first, *_ = places = list(run)
        part = slice(first, places[-1] + 1)
        added = len(places) - sum(found.own[part])
        role = messages[owner][0] if 0 <= owner < len(messages) else ""
        lines.append(
            Line.of(
                cut,
                part,
                title=names[owner],
                count="",
                unit=t("text.tokens", count=len(places)),
                facts=(t("tokens.chat_fact", count=added),) if 0 < added < len(places) else (),
                verdict="",
                faithful=True,
                framed=[not own for own in found.own[part]],
                hue=HUES.get(role, HUE_OF_TEMPLATE),
            )
        )
    return tuple(lines)


CHAT = Part("tokens", "chat", _show, sites=None)
