"""In each of a model's five sentences happens what is said of it, as the model itself measures it."""

import pytest
import torch

from pages.kit.examples import SENTENCES, Example
from pages.kit.models import shipped_names
from pages.language import LANGUAGES, words
from tests.helpers.engine import shipped
from tests.helpers.pages import first_screen, note
from transformer_core.analysis.outcome import read
from transformer_core.analysis.strangeness import strangeness, unusual
from transformer_core.bundle import Bundle
from transformer_core.probe import capture
from transformer_core.prompt import Prompt
from transformer_core.recipes.translation import translate

FEW = 0.25


def likeliest(bundle: Bundle, text: str) -> tuple[str, float]:
    """Return the likeliest class, next token or token at [MASK], and its probability."""
    encoding = bundle.tokenizer.encode(text)
    if bundle.kind == "lm":
        logits, _ = capture(bundle.model, torch.tensor([encoding.ids]), sites=())
        probabilities = logits[0, -1].softmax(-1)
        return bundle.tokenizer.decode([int(probabilities.argmax())]), float(probabilities.max())
    outcome, probabilities = bundle.reader.outcome(encoding), read(bundle, encoding, sites=()).probabilities
    assert outcome is not None
    best = max(range(len(probabilities)), key=probabilities.__getitem__)
    return outcome.reader.label(best), float(probabilities[best])


def happens(bundle: Bundle, example: Example) -> bool:
    """Return whether what is said of an example is so."""
    if example.shows == "turns":
        without = " ".join(example.text.replace(example.word, "", 1).split())
        return likeliest(bundle, example.text)[0] != likeliest(bundle, without)[0]
    if example.shows == "writes":
        return example.word in translate(bundle, [example.text])[0]
    token, chance = likeliest(bundle, example.text)
    return chance < FEW if example.shows == "open" else token.strip("␣ ") == example.word


@pytest.mark.parametrize("name", SENTENCES)
def test_what_is_said_of_a_sentence_happens_and_the_model_can_read_it(name: str) -> None:
    bundle, examples = shipped(name), SENTENCES[name]
    assert len({example.text for example in examples}) == 5
    assert [example for example in examples if not happens(bundle, example)] == []
    for example in examples:
        found = strangeness(prompt=Prompt(bundle, example.text, bundle.config.max_len))
        assert unusual(bundle, found) is None, example.text


def test_every_shipped_model_has_sentences_and_says_what_it_learned() -> None:
    assert set(SENTENCES) == set(shipped_names())
    for language in LANGUAGES:
        assert {f"learned.{name}" for name in SENTENCES} <= words(language).keys()


@pytest.mark.parametrize(
    ("language", "model", "own"),
    [("en", "sentiment", "my own words"), ("zh", "sentiment-zh", "房间不大，很干净。")],
)
def test_one_tap_puts_a_sentence_and_the_line_says_what_happens(language: str, model: str, own: str) -> None:
    app = first_screen("tokens", lang=language)
    chosen = SENTENCES[model][1]
    assert app.pills(key="example@tokens").value is None
    app.pills(key="example@tokens").set_value(chosen.text).run()
    assert not app.exception
    assert app.text_input(key="text@tokens").value == chosen.text
    assert words(language)["example.turns"].format(word=chosen.word) in note(app)
    app.text_input(key="text@tokens").set_value(own).run()
    assert app.pills(key="example@tokens").value is None
