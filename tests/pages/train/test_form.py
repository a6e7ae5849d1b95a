"""The form of the Train page: each control in both languages, in the link, bounded again on the server."""

from concurrent.futures import Future
from pathlib import Path

import pytest
from streamlit.proto.ForwardMsg_pb2 import ForwardMsg
from streamlit.testing.v1 import AppTest, local_script_runner

from pages.language import words
from pages.train import form as train_form
from pages.train.article import alone, together
from pages.train.data import Base, Learned, in_language
from pages.train.form import too_few, wanted
from pages.train.settings import (
    ALL,
    LANGUAGE,
    LEARN,
    MODEL,
    MODERN,
    NETWORK,
    OPTIMISER,
    RUN,
    SECTIONS,
    Flag,
    Number,
    Pick,
    apply,
)
from tests.helpers.pages import run, told
from transformer_core.evaluation.article_differences import CHOICES, ArticleMeasured, ArticleRow, article_measured
from transformer_core.training.runs.presets import PRESETS, QUICK, fitted
from transformer_core.training.runs.settings import change, settings
from transformer_core.training.runs.store.records import Estimate
from transformer_core.training.spec import KIND_OF_SOURCE, Origin

SOURCE_OF = {kind: source for source, kind in KIND_OF_SOURCE.items() if source not in ("table", "imdb")}
OTHER = {
    "threads": "2",
    "patience": "3",
    "n_kv_heads": "1",
    "examples": "500",
    "d_model": "32",
    "n_heads": "2",
    "max_len": "24",
}


@pytest.fixture(autouse=True)
def _no_worker(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("VITRINE_RUNS", str(tmp_path))
    monkeypatch.setattr(train_form, "estimate", lambda *_: _Measuring())


class _Measuring:
    """An estimate that is still being measured."""

    def done(self) -> bool:
        return False


def page(**query: str) -> AppTest:
    """Open the form with all settings shown."""
    app = run("train", settings_open="true", **query)
    assert not app.exception, app.exception
    return app


def widget(app: AppTest, control: Number | Pick | Flag):
    """Return the widget of a setting."""
    kind = {Number: "number_input", Pick: "selectbox", Flag: "toggle"}[type(control)]
    return getattr(app, kind)(key=f"{control.name}@train")


def another(control: Number | Pick | Flag, value) -> str:
    """Return a value, as the link has it, that is allowed and not the one given."""
    if control.name in OTHER:
        return OTHER[control.name]
    if isinstance(control, Pick):
        return next(option for option in control.options if option != value)
    if isinstance(control, Flag):
        return control.write(not value)
    found = control.least if value != control.least else control.least + control.step
    return control.write(found)


@pytest.mark.parametrize("language", ["en", "zh"])
def test_the_first_screen_offers_the_quick_preset_and_its_start(language: str) -> None:
    app = run("train", lang=language)
    said, word = told(app), words(language)
    assert not app.exception
    assert app.button_group(key="preset@train").value == "quick"
    assert word["train.measuring"] in said
    start = next(button for button in app.button if button.label == word["train.start"])
    assert not start.disabled


@pytest.mark.parametrize(("kind", "language"), [*zip(SOURCE_OF, ("en", "zh", "zh", "en"), strict=True)])
def test_every_setting_of_a_kind_is_shown_with_its_word(kind: str, language: str) -> None:
    app = page(lang=language, source=SOURCE_OF[kind])
    for controls in ((LANGUAGE,), *SECTIONS.values()):
        for control in controls:
            if apply((control,), SOURCE_OF[kind]):
                name = "into" if control is LANGUAGE and SOURCE_OF[kind] == "pairs" else control.name
                assert widget(app, control).label == words(language)[f"setting.{name}"]


RECURRENT = {"reviews": "recurrent_classifier", "reverse": "seq2seq", "characters": "lm"}
NETWORKS = [("reviews", "gru", "en"), ("reverse", "lstm", "zh"), ("characters", "rnn", "en")]


@pytest.mark.parametrize(("source", "network", "language"), NETWORKS)
def test_a_recurrent_network_has_its_own_settings_and_not_those_of_a_transformer(source, network, language) -> None:
    app = page(lang=language, source=source, network=network)
    said, own = words(language), RECURRENT[source]
    assert widget(app, NETWORK).value == network
    assert widget(app, NETWORK).label == said["setting.network"]
    shown = {one.key for kind in ("number_input", "selectbox", "toggle") for one in getattr(app, kind)}
    for control in (control for controls in SECTIONS.values() for control in controls):
        assert (f"{control.name}@train" in shown) == bool(apply((control,), source, network)), control.name
        assert own in control.kinds or f"{control.name}@train" not in shown
    start = next(button for button in app.button if button.label == said["train.start"])
    assert not start.disabled


def test_hidden_words_are_learned_by_a_transformer_alone() -> None:
    app = page(source="masked_words", network="gru")
    assert not app.warning
    assert "network@train" not in {one.key for one in app.selectbox}


def test_a_run_of_a_recurrent_network_goes_over_to_data_that_it_cannot_learn_as_a_transformer() -> None:
    spec = change(QUICK, network="lstm")
    assert fitted(spec, "reverse").network.network == "lstm"
    assert fitted(spec, "masked_words").network.network == "transformer"


def test_weights_of_one_network_do_not_begin_another() -> None:
    asked = wanted(Base(QUICK, Origin(run="abcdefgh12", frame=3)), Learned("reviews"), {"network": "gru"})
    assert asked.spec is None
    assert words("en")["setting.network"] in asked.problem


@pytest.mark.parametrize("controls", [(LANGUAGE,), LEARN, MODEL, MODERN, OPTIMISER, RUN])
def test_a_link_rebuilds_every_setting_and_is_compact(controls: tuple) -> None:
    usual = settings(QUICK)
    asked = {one.name: another(one, usual[one.name]) for one in controls if "classifier" in one.kinds}
    app = page(**asked)
    assert not app.toast
    for control in controls:
        if control.name in asked:
            assert control.write(widget(app, control).value) == asked[control.name]
    in_link = {name for name in app.query_params if name in settings(QUICK)}
    assert in_link == asked.keys()


def test_what_equals_the_preset_is_not_in_the_link() -> None:
    app = page(d_model=str(QUICK.model.d_model))
    assert "d_model" not in app.query_params
    widget(app, MODEL[1]).set_value(128).run()
    assert app.query_params["d_model"] == "128"
    widget(app, MODEL[1]).set_value(QUICK.model.d_model).run()
    assert "d_model" not in app.query_params


def test_every_preset_fills_the_form() -> None:
    app = page()
    widget(app, MODEL[1]).set_value(512).run()
    for name in [name for name in PRESETS if name != "quick"] + ["quick"]:
        app.button_group(key="preset@train").set_value(name).run()
        assert not app.exception
        assert "d_model" not in app.query_params
        assert widget(app, MODEL[1]).value == PRESETS[name].model.d_model


@pytest.mark.parametrize(
    ("name", "value"),
    [
        *(("d_model", value) for value in ("99999", "", "9" * 5_000)),
        *(("learning_rate", value) for value in ("nan", "1e400")),
        ("positions", "[x](https://example.org)"),
        ("residual", "maybe"),
        ("source", "the internet"),
    ],
)
def test_a_bad_value_in_the_link_is_named_and_the_default_taken(name: str, value: str) -> None:
    app = page(**{name: value})
    control = next(one for one in ALL if one.name == name)
    assert any(name in toast.value for toast in app.toast)
    assert "](" not in "".join(toast.value for toast in app.toast)
    assert control.write(widget(app, control).value) == control.write(settings(QUICK)[name])


@pytest.mark.parametrize("language", ["en", "zh"])
def test_what_does_not_go_together_is_said_at_the_form(language: str) -> None:
    app = page(lang=language, d_model="66", positions="rotary")
    start = next(button for button in app.button if button.label == words(language)["train.start"])
    assert start.disabled
    assert any("d\\_model=66" in warning.value for warning in app.warning)


def test_weights_that_are_taken_over_fix_the_vocabulary() -> None:
    base = Base(QUICK, Origin(run="abcdefgh12", frame=3))
    asked = wanted(base, Learned("reviews"), settings(QUICK) | {"vocab_size": 500})
    assert asked.spec is None
    free = wanted(Base(QUICK, Origin(run="abcdefgh12")), Learned("reviews"), settings(QUICK) | {"vocab_size": 500})
    assert free.spec is not None
    assert free.spec.origin == Origin(run="abcdefgh12")
    assert free.spec.name == "quick · vocabulary 500"


def test_what_follows_an_estimate_has_its_place_where_the_estimate_was_dropped(monkeypatch: pytest.MonkeyPatch) -> None:
    sent: list[ForwardMsg] = []
    parse = local_script_runner.parse_tree_from_messages
    monkeypatch.setattr(
        local_script_runner, "parse_tree_from_messages", lambda messages: sent.extend(messages) or parse(messages)
    )
    page()
    again = {message.auto_rerun.fragment_id for message in sent if message.HasField("auto_rerun")}
    assert len(again) == 1
    deltas = [message for message in sent if message.HasField("delta")]
    kept = [tuple(delta.metadata.delta_path) for delta in deltas if delta.delta.fragment_id not in again]
    assert len(kept) < len(deltas)
    before = [(*path[:-1], path[-1] - 1) for path in kept if path[-1]]
    assert set(before) <= set(kept)


@pytest.mark.parametrize("language", ["en", "zh"])
def test_what_the_articles_choices_are_worth_stands_under_its_preset(language: str) -> None:
    app = run("train", lang=language, preset="article", article_open="true")
    assert not app.exception
    found, said = article_measured(), words(language)
    table = next(one.value for one in app.markdown if said["article.embeddings"] in one.value)
    for choice in ("softmax", "all"):
        worth = 100 * (found.mean(choice)[1] - found.mean("ours")[1])
        row = next(line for line in table.splitlines() if line.startswith(f"| {said[f'article.{choice}']} |"))
        assert f"**{worth:+.1f}**".replace("-", "−") in row
    assert not any(said["article.heading"] == box.label for box in run("train", lang=language).expander)


@pytest.mark.parametrize(
    ("alone_train", "all_train", "said"),
    [
        (0.75, 0.599, ("each_learns", "all_little")),
        (0.749, 0.6, ("some_slow", "all_partly")),
        (1.0, 0.749, ("each_learns", "all_partly")),
        (1.0, 0.75, ("each_learns", "all_learns")),
    ],
)
def test_what_is_said_of_the_articles_choices_follows_from_what_was_measured(
    alone_train: float, all_train: float, said: tuple[str, str]
) -> None:
    reached = dict.fromkeys(CHOICES, 1.0) | {"norm": alone_train, "ours": 1.0, "all": all_train}
    rows = tuple(ArticleRow(choice, 0, train, 0.7, 550) for choice, train in reached.items())
    found = ArticleMeasured(rows=rows, examples=1_200, tokens=128, epochs=12, command="", file="")
    for name, sentence in zip(said, (alone(found), together(found)), strict=True):
        assert sentence.startswith(words("en")[f"article.{name}"].partition("{")[0])


def test_no_more_is_asked_for_than_is_there_and_at_most_a_quarter_is_held_out() -> None:
    spec = change(QUICK, examples=1_200, held_out=200)
    assert too_few(spec, None) == ""
    assert too_few(spec, 1_400) == ""
    assert too_few(spec, 1_399) == words("en")["data.too_few"].format(there="1,399", asked="1,400")
    more = change(spec, held_out=1_000)
    assert too_few(more, 4_000) == ""
    assert too_few(more, 3_999) == words("en")["data.too_many_held_out"].format(there="3,999", most="999")


@pytest.mark.parametrize("language", ["en", "zh"])
def test_the_first_preset_learns_from_texts_in_the_readers_language(language: str) -> None:
    app = run("train", lang=language)
    assert app.button_group(key="preset@train").value == "quick"
    assert widget(app, LANGUAGE).value == language
    assert "language" not in app.query_params
    for name, spec in PRESETS.items():
        read = in_language(spec, language)
        assert read.data.language == (language if apply((LANGUAGE,), spec.data.source) else "en"), name


def test_presets_whose_data_are_not_there_come_last_in_grey_with_the_reason(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    missing = [name for name, spec in PRESETS.items() if spec.data.source == "imdb"]
    monkeypatch.delenv("VITRINE_DATA", raising=False)
    app = run("train")
    said, reason = [one.content for one in app.button_group(key="preset@train").proto.options], words("en")
    assert said[-len(missing) :] == [f":gray[{reason[f'preset.{name}']}]" for name in missing]
    assert not any(":gray" in one for one in said[: -len(missing)])
    assert reason["train.presets_without_data"] in told(app)
    monkeypatch.setenv("VITRINE_DATA", str(tmp_path))
    app = run("train")
    assert not any(":gray" in one.content for one in app.button_group(key="preset@train").proto.options)
    assert reason["train.presets_without_data"] not in told(app)


@pytest.mark.parametrize(("length", "off"), [(255, True), (256, False)])
def test_a_text_shorter_than_the_window_takes_start_off_with_the_reason(length: int, off: bool) -> None:
    """Its last tenth must have two characters more than the 24 of a window: 26 of 256."""
    text = ("A dull film. " * 40)[: length - 1] + "x"
    for lang, said in (("en", f"text of {length} characters is too short for windows of max_len=24"), ("zh", "太短")):
        app = run("train", source="characters", passage=text, max_len="24", lang=lang)
        start = next(button for button in app.button if button.label == words(lang)["train.start"])
        assert start.disabled == off
        assert (said in told(app).replace("\\", "")) == off


def test_a_text_of_too_few_sentences_takes_start_off(monkeypatch: pytest.MonkeyPatch) -> None:
    app = run("train", source="masked_words", passage="This is one long sentence without an end and " * 8)
    assert next(button for button in app.button if button.label == words("en")["train.start"]).disabled
    assert "different sentences; at least" in told(app)


@pytest.mark.parametrize(("steps", "alone"), [(10, True), (11, False)])
def test_a_batch_that_holds_all_examples_gets_a_word(steps: int, alone: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    ready: Future[Estimate] = Future()
    ready.set_result(Estimate(1.0, steps, 0.1, 0.1, 4, 1_000, 0.1))
    monkeypatch.setattr(train_form, "estimate", lambda *_: ready)
    app = run("train", epochs="10", batch_size="512")
    assert ("One batch of 512 holds all examples" in told(app)) == alone


def test_other_settings_leave_the_box_of_settings_the_same_one() -> None:
    """A box with other words on it is another one to Streamlit, and its tabs begin with the first again."""
    first, other = (page(learning_rate=rate) for rate in ("0.001", "0.002"))
    labels = [
        next(box.label for box in app.expander if box.label == words("en")["train.settings"]) for app in (first, other)
    ]
    assert labels[0] == labels[1] == "All settings"
    assert "0.002" in told(other)
