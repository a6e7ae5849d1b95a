"""The page with a recurrent language model, and its part on length: numbers of the library, and a way to others."""

import numpy as np
import pytest

from pages.before.next import sizes_of
from pages.kit.models import open_bundle
from tests.helpers import nightly_but
from tests.helpers.pages import answered, repeats, run, show_all, told
from tests.pages.before.test_page import PARTS, before, bundle
from transformer_core.analysis.before.by_length import by_length
from transformer_core.analysis.before.gates import gates_of_sentence
from transformer_core.analysis.before.models_compared import foreseen, timed_translation
from transformer_core.analysis.before.textbook import textbook
from transformer_core.analysis.gpt.next_token import expected, surprisals
from transformer_core.prompt import Prompt

TEXT = "a cat sat on the mat"
NAMES = ("lm-gru", "lm-lstm", "lm-rnn", "gpt-char")
made_models = bundle  # the fixture that makes the tiny models


READ_BY = [(model, part) for model in ("lm", "lm-plain") for part in PARTS]


@pytest.mark.parametrize(
    ("model", "part"),
    nightly_but(READ_BY, READ_BY[:8:3]),
)
def test_every_part_reads_a_language_model_or_offers_another(model: str, part: str) -> None:
    boxes = {"before_gates_open": "true", "before_reach_open": "true", "before_length": "16", "glass_open": "true"}
    app = before(model=model, before_part=part, lang="zh", **boxes)
    assert not app.exception
    assert not app.error
    offered = [button for button in app.button if button.key == "offer"]
    assert bool(offered) == (part in ("vector", "look"))


@pytest.mark.parametrize(("language", "token"), [("en", "token"), ("zh", "词元")])
@pytest.mark.parametrize("part", ["gates", "reach"])
def test_what_a_model_of_characters_reads_is_not_called_tokens(language: str, token: str, part: str) -> None:
    boxes = dict.fromkeys(("before_gates_open", "before_reach_open", "before_ranges_open"), "true")
    app = show_all(before(model="lm", before_part=part, lang=language, before_length="16", **boxes))
    said = [*told(app).splitlines(), *(option for pills in app.pills for option in pills.options)]
    assert said
    assert [line for line in said if token in line] == []


def test_gates_and_states_of_a_language_model_are_shown() -> None:
    found = gates_of_sentence(prompt=Prompt(open_bundle("lm"), TEXT, 32))
    app = before(model="lm", before_part="gates")
    kept = found.kept.mean(1)
    assert f"**{kept.min():.0%}**" in told(app)
    app = before(model="lm", before_part="gates", before_show="states")
    assert "How alike each state is" in told(app)
    assert "no gate" in told(before(model="lm-plain", before_part="gates"))


def test_the_next_character_is_that_of_the_library() -> None:
    asked = {"prompt": Prompt(open_bundle("lm"), TEXT, len(TEXT))}
    app = before(model="lm", before_part="next", before_back="-1")
    found = expected(**asked, place=len(TEXT) - 1, top=10)
    assert f"**{found.came_bits:.2f} bits**" in told(app)
    assert f"**{surprisals(**asked).mean_bits:.2f} bits** a character" in told(app)
    app = before(model="lm", before_part="next", before_back="-999", text="a")
    assert not app.exception


def test_the_textbooks_network_is_counted_and_offered_for_training() -> None:
    found = textbook(vocab_size=open_bundle("lm").config.vocab_size)
    app = before(model="lm", before_part="next")
    assert f"{found.one_hot:,} numbers (one bias a gate), against {found.embedded:,}" in told(app)
    app.button(key="before_textbook").click().run()
    assert app.query_params["preset"] == "recurrent_lm"


def test_a_button_switches_to_a_language_model() -> None:
    app = before(before_part="next")
    app.button(key="offer").click().run()
    assert not app.exception
    assert "a character; " in told(app)


@pytest.mark.parametrize(("most", "said"), [(105, "alike"), (106, "apart")])
def test_sizes_are_called_alike_within_five_per_cent(most: int, said: str) -> None:
    assert sizes_of(np.array([100, most])) == said


def test_all_language_models_read_the_typed_text() -> None:
    models = {name.replace("-", "_"): open_bundle(name) for name in NAMES}
    found = foreseen(text=TEXT, n_tokens=len(TEXT), **models)
    app = run("before", model="lm-gru", text=TEXT, before_part="next")
    assert f"**{found.nats[0]:.3f}**" not in told(app)
    app = answered(app, NAMES[int(found.nats.argmin())])
    for nats, usual in zip(found.nats, found.usual, strict=True):
        assert f"**{nats:.3f}**" in told(app)
        assert f"{usual:.3f}" in told(app)


def test_who_loses_most_is_judged_and_the_sentence_translated_by_all() -> None:
    found = by_length(name="length_en_fr")
    app = before(before_part="length", text="A dog is running.")
    for name in found.models:
        assert timed_translation(bundle=open_bundle(name), text="A dog is running.").text in told(app)
    assert f"{found.bleu[0, 0]:.1f} → {found.bleu[0, -1]:.1f}" not in told(app)
    app = show_all(app)
    assert f"{found.bleu[0, 0]:.1f} → {found.bleu[0, -1]:.1f}" in told(app)
    assert found.command in [code.value for code in app.code]
    assert (found.bleu[:, 0] > found.bleu[:, -1]).all()  # as is said below the curves


@pytest.mark.nightly
def test_scripts_compute_the_same() -> None:
    from pages.kit.asking import ask

    answer = ask(foreseen, text=TEXT, n_tokens=len(TEXT), first=open_bundle("lm-gru"), second=open_bundle("gpt-char"))
    repeats(answer.script, answer.arrays)
    answer = ask(by_length, name="length_en_fr")
    repeats(answer.script, answer.arrays)
