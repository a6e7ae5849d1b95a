"""A conversation as tokens: each token's message is found by rendering, and what cannot be found is left open."""

from dataclasses import replace
from itertools import groupby

import pytest

from tests.helpers.chats import TEMPLATES, chat_model
from transformer_core.analysis.gpt.continuation import written_on
from transformer_core.analysis.words.chat import BEFORE, UNKNOWN, ChatTokens, chat_tokens, ends_of
from transformer_core.prompt import Prompt
from transformer_core.text.chat import ChatError, Messages

TALK: Messages = (("system", "Be brief. "), ("user", " Who? "), ("assistant", "A model."), ("user", "And?"))


def of(template: str, messages: Messages = TALK, *, prompted: bool = True) -> ChatTokens:
    return chat_tokens(bundle=chat_model(template), messages=messages, prompted=prompted)


def runs(found: ChatTokens) -> list[tuple[int, bool, str]]:
    """Return (message, whether its own words, characters) of each run of tokens."""
    both = zip(found.owners, found.own, strict=True)
    whose = groupby(enumerate(both), key=lambda one: one[1])
    said = []
    for (owner, own), tokens in whose:
        places = [place for place, _ in tokens]
        said.append((owner, own, found.text[found.cut.starts[places[0]] : found.cut.ends[places[-1]]]))
    return said


@pytest.mark.parametrize("name", TEMPLATES)
@pytest.mark.parametrize("prompted", [True, False])
def test_the_words_of_each_message_are_where_they_stand_and_nothing_is_lost(name: str, prompted: bool) -> None:
    found = of(TEMPLATES[name], prompted=prompted)
    assert "".join(text for *_, text in runs(found)) == found.text
    words = {owner: text.strip() for owner, own, text in runs(found) if own}
    assert words == {place: text.strip() for place, (_, text) in enumerate(TALK)}
    assert (max(found.owners) == len(TALK)) == (prompted and name != "mistral")  # which has no header of an answer
    assert found.its_own


def test_what_a_message_brings_is_of_it_and_what_a_template_moves_is_left_open() -> None:
    assert runs(of(TEMPLATES["gemma"]))[:6] == [
        (BEFORE, False, "<s>"),
        (1, False, "<turn>user\n"),
        (0, True, "Be brief. "),  # in the user's turn, since Gemma has no other
        (1, False, "\n\n"),
        (1, True, "Who?"),
        (1, False, "</turn>\n"),
    ]
    moved = runs(of(TEMPLATES["mistral"]))
    assert moved[:3] == [(BEFORE, False, "<s>"), (UNKNOWN, False, "[INST]"), (1, True, " Who? ")]
    assert moved[-4:-1] == [(0, True, "Be brief. "), (3, False, "\n\n"), (3, True, "And?")]


CUT = "{% for message in messages %}{{ message.role }}: {{ message.content | upper }};{% endfor %}"
TWICE = "{% for message in messages %}{{ message.content }}={{ message.content }};{% endfor %}"
FORGED = "{% for message in messages %}\ue000999\ue001{{ message.content }};{% endfor %}"


def test_words_that_a_template_changes_are_not_found_and_no_guess_is_made() -> None:
    found = of(CUT, TALK[1:2])
    assert runs(found) == [(0, False, "user:  WHO? ;")]
    assert runs(of(TWICE, TALK[3:])) == [(0, True, "And?"), (0, False, "="), (0, True, "And?"), (0, False, ";")]
    assert not any(own for _, own, _ in runs(of(FORGED, TALK[3:])))


def test_a_model_without_a_template_is_asked_by_one_that_is_not_its_own() -> None:
    mute = replace(chat_model(TEMPLATES["gemma"]), chat=None)
    found = chat_tokens(bundle=mute, messages=TALK[3:], prompted=False)
    assert (found.its_own, found.text) == (False, "<|im_start|>user\nAnd?<|im_end|>\n")


def test_a_template_that_refuses_says_so() -> None:
    with pytest.raises(ChatError, match="the chat template refuses this conversation: Roles must alternate"):
        of(TEMPLATES["mistral"], (TALK[1], TALK[3]))


ENDS = {"llama": "<|eot|>", "qwen": "<|im_end|>", "gemma": "</turn>", "mistral": "[EOS]", "chatml": "<|im_end|>"}


@pytest.mark.parametrize("name", TEMPLATES)
def test_writing_ends_where_the_template_ends_an_answer(name: str) -> None:
    bundle = chat_model(TEMPLATES[name])
    end = bundle.tokenizer.id_of(bundle.tokenizer.named.get(ENDS[name], ENDS[name]))
    assert ends_of(bundle) == {end, bundle.tokenizer.eos_id}
    prompt = Prompt(bundle, "A film", 16)
    rules = {"how": "greedy", "temperature": 1.0, "top_k": None, "top_p": None, "seed": 0}
    found = written_on(prompt=prompt, **rules, choices=((2, end),), steps=6)
    assert found.ended
    assert [step.token_id for step in found.steps][2:] == [end]


UNWRITTEN = "{{ messages[1].content }}{{ '\\ud800' }}"  # a lone half of a character


@pytest.mark.parametrize("template", ["{{", "{{ raise_exception('No such role') }}", CUT, UNWRITTEN])
def test_a_template_that_ends_no_answer_leaves_the_end_token(template: str) -> None:
    bundle = chat_model(template)
    assert ends_of(bundle) == {bundle.tokenizer.eos_id}
    assert ends_of(replace(bundle, chat=None)) == {bundle.tokenizer.eos_id}
