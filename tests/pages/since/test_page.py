"""The page on what changed since 2017: both numbers of every change, what it was worth, and the twins to train."""

from pathlib import Path

import pytest

from pages.kit.models import open_bundle
from pages.kit.number_format import significant
from pages.language import LANGUAGES, words
from pages.since.change import CHANGED, EQUATIONS, twins
from tests.helpers.pages import asks, run, told
from transformer_core.analysis.gpt.ladder import NAMES, RUNGS, config_at, ladder
from transformer_core.analysis.gpt.rungs import WAYS, both_ways, cost_of
from transformer_core.prompt import Prompt
from transformer_core.training.runs.run_list import RunList
from transformer_core.training.runs.settings import differences

TEXT = "Once upon a time, there was a bird."


@pytest.mark.parametrize("rung", WAYS)
def test_a_change_shows_both_ways_its_costs_and_what_it_was_worth(rung: str) -> None:
    language = tuple(LANGUAGES)[list(WAYS).index(rung) % 2]
    said, asked = words(language), {"layer": "1", "since_token": "3"}
    app = run("since", model="gpt-today", text=TEXT, lang=language, since_rung=rung, **asked)
    assert not app.exception
    assert [element.value.strip("$\n") for element in app.latex] == [*EQUATIONS[rung]]
    below = NAMES[NAMES.index(rung) - 1]
    for config in (config_at(below), config_at(rung)):
        assert f"{cost_of(config).weights:,}" in told(app)
    bundle = open_bundle("gpt-today")
    prompt = Prompt(bundle, TEXT, len(bundle.tokenizer.encode(TEXT)))
    if rung not in ("learned", "rotary"):
        for one in both_ways(prompt=prompt, rung=rung, layer=1, place=3).measures:
            if rung in ("pre", "rms_norm") and one.after is not None:
                assert significant(one.after, 3) in told(app), one
    (question,) = asks(app)
    found = ladder(rungs=(rung,))
    assert f"{abs(found.worth[0]):.4f}" not in told(app)
    question.set_value(found.outcome(rung)).run()
    assert said["try.right"] in told(app)
    assert f"{abs(found.worth[0]):.4f}" in told(app)


def test_every_change_has_a_place_in_the_diagram() -> None:
    assert set(CHANGED) == set(EQUATIONS) == set(WAYS) == {rung.name for rung in RUNGS[1:]}
    diagrams = {}
    for rung in ("learned", "rotary"):
        app = run("since", model="gpt", text=TEXT, since_rung=rung)
        (diagram,) = [
            one for one in app.get("bidi_component") if one.proto.mixed.arrow_blobs or "svg" in str(one.proto)
        ]
        diagrams[rung] = str(diagram.proto)
    assert "box positions changed" in diagrams["learned"]
    assert "box attention changed" in diagrams["rotary"]
    assert "positions changed" not in diagrams["rotary"]


@pytest.mark.parametrize("language", LANGUAGES)
def test_the_whole_ladder_names_each_change_under_what_it_was(language: str) -> None:
    app, said, found = run("since", since_part="ladder", lang=language), words(language), ladder()
    assert not app.exception
    for kind in ("better", "worse", "within"):
        names = [said[f"since.name_{rung}"] for rung in WAYS if found.outcome(rung) == kind]
        sentence = said[f"since.all_{kind}"]
        assert (sentence.partition("{")[0] in told(app)) == bool(names)
        assert not names or sentence.format(names=said["since.and"].join(names)) in told(app)
    for place, nats in enumerate(found.nats.mean(1)):
        assert f"| {nats:.3f} |" in told(app), NAMES[place]


@pytest.mark.parametrize("rung", WAYS)
def test_twins_differ_in_the_change_alone(rung: str) -> None:
    first, second = twins(rung)
    change = next(one.change for one in RUNGS if one.name == rung)
    assert set(differences(first, second)) == set(change)


def test_both_twins_begin_and_compare_opens_on_them(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("VITRINE_RUNS", str(tmp_path))
    started = []
    monkeypatch.setattr(
        "transformer_core.training.runs.launcher.Launcher.start", lambda _, store: started.append(store.id)
    )
    app = run("since", model="gpt", text=TEXT, since_rung="rms_norm")
    app.button(key="since_train").click().run()
    assert not app.exception
    assert [app.query_params[name] for name in ("run", "other")] == started
    specs = [RunList(tmp_path).open(run).spec for run in started]
    assert [spec.model.norm for spec in specs] == ["layer_norm", "rms_norm"]
    assert app.session_state["page"] == "compare"
