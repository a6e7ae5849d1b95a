"""What order is worth, on the page: measured after the prediction, for every kind of model."""

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from pages.figures.charts import rows_of
from pages.kit import models
from pages.kit.asking import ask, forget_answers
from pages.kit.models import open_bundle, opener
from pages.positions.figures.models import order_chart
from pages.positions.order import needs_order, texts_for
from tests.helpers.engine import made
from tests.helpers.pages import asks, repeats, strings, told
from tests.pages.positions.test_page import TEXT, page
from transformer_core.analysis.positions.order_effect import order_effect_here, order_effect_on_set
from transformer_core.bundle import Bundle, save
from transformer_core.models import Bert, Classifier, Gpt, Translation
from transformer_core.prompt import Prompt
from transformer_core.text import Tokenizer
from transformer_core.training.corpora.reviews import reviews


@pytest.fixture
def others(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Put tiny untrained models of every kind in place of the shipped ones."""
    texts = [example.text for example in reviews("en", train=40, held_out=0)[0]]
    tokenizer = Tokenizer.train("wordpiece", texts, vocab_size=200, lowercase=True)
    kinds = {"classifier": Classifier, "gpt": Gpt, "bert": Bert, "translation": Translation}
    schemes = {"classifier": "rotary", "gpt": "alibi", "bert": "learned", "translation": "sinusoidal"}
    for name, kind in kinds.items():
        model = made(kind, vocab_size=tokenizer.vocab_size, max_len=48, positions=schemes[name])
        labels = ("negative", "positive") if kind is Classifier else ()
        save(Bundle(name, model, tokenizer, labels), tmp_path / name)
    monkeypatch.setattr(models, "CHECKPOINTS", tmp_path)
    opener.cache_clear()
    forget_answers()
    yield
    opener.cache_clear()
    forget_answers()


@pytest.mark.nightly
@pytest.mark.parametrize("model", ["classifier", "sentiment"])
def test_order_is_measured_only_after_the_prediction(model: str, request: pytest.FixtureRequest) -> None:
    if model == "classifier":
        request.getfixturevalue("others")
    app = page("order", model=model)
    bundle = open_bundle(model)
    found = order_effect_on_set(bundle=bundle, texts=texts_for(bundle))
    removed = f"{100 * found.accuracy[2].mean():.1f} |"
    assert removed not in told(app)
    asks(app)[0].set_value("much").run()
    assert not app.exception
    assert removed in told(app)
    here = order_effect_here(prompt=Prompt(bundle, TEXT, len(bundle.tokenizer.encode(TEXT))), seeds=20)
    assert here.probabilities is not None
    flips = (here.probabilities[1].argmax(-1) != here.probabilities[0, 0].argmax()).sum()
    assert f"**{flips}**" in told(app)
    app.text_input(key="text@positions").set_value("مرحبا [PAD]").run()
    assert not app.exception


@pytest.mark.nightly
@pytest.mark.usefixtures("others")
def test_models_of_other_kinds_are_measured_and_their_learned_tables_shown() -> None:
    english = strings("positions")
    app = page("schemes", model="classifier")
    assert "bert" in told(app)
    assert "UNTRAINED" not in told(app)
    assert page("sum", model="classifier").info  # it is rotary, and adds no vectors
    app = page("order", model="classifier")
    asks(app)[0].set_value("nothing").run()
    assert not app.exception
    assert not app.error
    for name in ("gpt", "bert", "translation"):
        bundle = open_bundle(name)
        nats = order_effect_on_set(bundle=bundle, texts=texts_for(bundle)).nats
        assert f"{nats[2].mean():.3f} |" in told(app)
        here = order_effect_here(prompt=Prompt(bundle, TEXT, 48), seeds=5).nats
        assert f"**{here[2].mean():.3f}**" in told(app)
    assert english["claim"] in told(app)
    app.toggle(key="positions_all@positions").set_value(False).run()
    assert not app.exception


BORDERS = [(0.2, 0.26, "less"), (0.2, 0.24, "alike"), (0.24, 0.2, "alike"), (0.26, 0.2, "more")]


@pytest.mark.parametrize(("translator", "fill_in", "said"), BORDERS)
def test_a_claim_on_order_is_judged_by_what_moves(translator: float, fill_in: float, said: str) -> None:
    assert needs_order(translator, fill_in) == said


def test_the_script_repeats_the_numbers() -> None:
    bundle, text = open_bundle("sentiment"), "not a dull film"
    n_tokens = len(bundle.tokenizer.encode(text))
    answer = ask(order_effect_here, prompt=Prompt(bundle, text, n_tokens), seeds=2)
    repeats(answer.script, answer.arrays)


def test_figures_hold_the_numbers_of_the_library() -> None:
    english = strings("positions")
    values = np.array([[0.5, 0.5], [0.4, 0.2], [0.1, 0.1], [0.3, 0.3]])
    treatments = ("kept", "positions_shuffled", "positions_removed", "tokens_shuffled")
    rows = rows_of(order_chart(values, treatments, english, axis="accuracy", whole=True))
    means = {row["treatment"]: row["mean"] for row in rows if "mean" in row}
    assert means[english["treatment_positions_shuffled"]] == pytest.approx(0.3)
    assert sum("value" in row for row in rows) >= 5
