"""The Compare page: two runs, what sets them apart, and a second one that is the same but for one thing."""

import json
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from streamlit.testing.v1 import AppTest

from pages.compare.pair import gap_by_step, kin_of, measure_rows
from pages.language import words
from pages.serving import owners
from pages.train.variant import GUESSES, measured_change, one_changes
from tests.helpers.made_runs import FRAMES, SPECS, STEPS, made_run, spoil_measures
from tests.helpers.pages import nothing_starts, run, told
from transformer_core.training.runs.run_list import RunList
from transformer_core.training.runs.settings import change, differences
from transformer_core.training.spec import Origin

QUICK = SPECS["classifier"]


@pytest.fixture(autouse=True)
def started(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> list[str]:
    """Keep the runs of a test in a folder of its own; start nothing, but remember what was to be started."""
    return nothing_starts(monkeypatch, tmp_path).started


def two(tmp_path: Path, **values: object):
    """Make two runs of which the second has other settings and comes to less."""
    first = made_run(tmp_path, replace(QUICK, name="mine"))
    second = made_run(tmp_path, replace(change(QUICK, **values), name="yours"), held_out=0.6)
    return first, second


def page(language: str = "en", **query: str) -> AppTest:
    """Open the page."""
    app = run("compare", lang=language, **query)
    assert not app.exception, app.exception
    return app


@pytest.mark.parametrize("language", ["en", "zh"])
def test_without_runs_the_way_to_the_first_is_shown(language: str) -> None:
    app = page(language)
    assert words(language)["compare.to_train"] in {one.label for one in app.button}


@pytest.mark.parametrize("language", ["en", "zh"])
def test_two_runs_are_set_side_by_side(language: str, tmp_path: Path) -> None:
    first, second = two(tmp_path, activation="relu")
    app = page(language, run=first.id, other=second.id)
    said, word = told(app), words(language)
    assert f"| {word['setting.activation']} | **GELU** | **ReLU** |" in said
    assert word["setting.dropout"] not in said
    assert f"| {word['measure.held_out_accuracy']} | **97.0%** | 60.0% | −37.0 |" in said
    assert word["compare.many"].format(count=2) not in said
    assert app.get("vega_lite_chart")


def test_a_run_with_one_character_changed_is_left_out_and_the_others_are_compared(tmp_path: Path) -> None:
    first, second = two(tmp_path, activation="relu")
    spoilt = made_run(tmp_path, replace(QUICK, name="spoilt"))
    spoil_measures(spoilt)
    for query in ({}, {"run": first.id, "other": second.id}, {"run": spoilt.id, "other": first.id}):
        app = page(**query)
        assert f"{words('en')['measure.held_out_accuracy']} | " in told(app)
        assert all(spoilt.id not in option for box in app.selectbox for option in box.options)


def test_nothing_is_concluded_while_a_run_is_under_way(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first, second = two(tmp_path, activation="relu")
    monkeypatch.setattr("pages.compare.pair.LIVE", ("finished",))
    said = told(page(run=first.id, other=second.id))
    assert words("en")["compare.wait"] in said
    assert words("en")["measure.seconds"] not in said


def test_many_differences_are_warned_of(tmp_path: Path) -> None:
    first, second = two(tmp_path, activation="relu", dropout=0.3)
    assert words("en")["compare.many"].format(count=2) in told(page(run=first.id, other=second.id))


def test_no_difference_is_said(tmp_path: Path) -> None:
    first, second = two(tmp_path)
    assert words("en")["compare.no_difference"] in told(page(run=first.id, other=second.id))


@pytest.mark.parametrize("query", [{"run": "nothere123"}, {"other": "[b](c)"}, {"run": "", "other": ""}])
def test_a_link_to_a_run_that_is_gone_is_survived(query: dict, tmp_path: Path) -> None:
    two(tmp_path)
    app = page(**query)
    assert len(app.toast) == sum(map(bool, query.values()))
    assert "](" not in "".join(toast.value for toast in app.toast)
    assert words("en")["compare.no_difference"] in told(app)


def test_a_run_is_never_compared_with_itself(tmp_path: Path) -> None:
    first, second = two(tmp_path)
    app = page(run=first.id, other=first.id)
    assert app.query_params["other"] == second.id


def test_the_kin_of_a_run_comes_first(tmp_path: Path) -> None:
    first, second = two(tmp_path)
    stranger = made_run(tmp_path, SPECS["gpt"])
    child = made_run(tmp_path, replace(QUICK, origin=Origin(run=first.id)))
    runs = RunList(tmp_path).all()
    assert kin_of(first, runs).id == child.id
    assert kin_of(child, runs).id == first.id
    assert kin_of(stranger, runs).id in {first.id, second.id, child.id}
    assert kin_of(first, [first]) is None


@pytest.mark.parametrize("kind", SPECS)
def test_every_offered_change_changes_exactly_one_setting(kind: str) -> None:
    spec = SPECS[kind]
    changes = one_changes(spec)
    assert {"positions", "activation", "norm_order", "scale_scores", "residual"} <= {
        name for name, _ in changes.values()
    }
    assert ("causal" in {name for name, _ in changes.values()}) == (kind in ("gpt", "translation"))
    for name, value in changes.values():
        assert differences(spec, change(spec, **{name: value})).keys() == {name}
        assert name != "seed"


@pytest.mark.parametrize("language", ["en", "zh"])
@pytest.mark.parametrize("guess", ["worse", None])
def test_same_but_asks_for_a_prediction_and_starts_the_other_run(
    language: str, guess: str | None, tmp_path: Path, started: list[str]
) -> None:
    first = made_run(tmp_path, replace(QUICK, name="mine"))
    app = page(language, run=first.id)
    app.selectbox(key=f"change {first.id}").set_value("residual=False").run()
    if guess is not None:
        app.radio(key=f"guess {first.id} residual=False").set_value(guess).run()
    next(one for one in app.button if one.label == words(language)["compare.start"]).click().run()
    assert not app.exception
    (made,) = (store for store in RunList(tmp_path).all() if store.id != first.id)
    assert started == [made.id]
    assert differences(first.spec, made.spec) == {"residual": (True, False)}
    assert made.spec.origin == Origin(run=first.id)
    assert made.spec.name == "mine · no residual"
    assert app.query_params["other"] == made.id
    assert app.query_params["guess"] == f"{made.id}.{guess or 'none'}"


@pytest.mark.usefixtures("on_a_network")
def test_what_another_person_learned_from_is_theirs_alone_to_repeat(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(owners, "_key", lambda: "mine")
    data = replace(QUICK.data, source="table", file="data.jsonl", labels=("calm", "angry"), held_out=8)
    rows = [{"text": f"{word} {number}", "label": label} for number in range(20) for label, word in enumerate("ab")]
    text = "\n".join(map(json.dumps, rows)).encode()
    for owner, offered in ((owners.owner_of("mine"), True), (owners.owner_of("other"), False)):
        run = made_run(tmp_path, replace(QUICK, data=data), data=text, owner=owner)
        app = page("en", run=run.id, same_but_open="true")
        assert not app.exception
        assert any(str(box.key).startswith("change ") for box in app.selectbox) == offered


@pytest.mark.parametrize(("guess", "language"), [*zip(GUESSES, ("en", "en", "zh"), strict=True)])
def test_the_prediction_is_answered_when_both_rest(guess: str, language: str, tmp_path: Path) -> None:
    first, second = two(tmp_path, residual=False)
    app = page(language, run=first.id, other=second.id, guess=f"{second.id}.{guess}")
    (answer,) = app.success
    assert (words(language)["compare.right"] in answer.value) == (guess == "worse")
    assert "97.0%" in answer.value
    assert "−37.0" in answer.value


def test_who_foretold_nothing_is_shown_what_was_measured(tmp_path: Path) -> None:
    first, second = two(tmp_path, residual=False)
    (answer,) = page(run=first.id, other=second.id, guess=f"{second.id}.none").success
    assert answer.value.startswith(words("en")["try.shown"].format(outcome=words("en")["guess.worse"]))


def test_a_prediction_of_another_run_is_not_answered(tmp_path: Path) -> None:
    first, second = two(tmp_path, residual=False)
    for guess in (f"{first.id}.worse", f"{second.id}.nonsense"):
        assert not page(run=first.id, other=second.id, guess=guess).success


def test_two_points_are_no_difference() -> None:
    assert [measured_change(0.9, after) for after in (0.95, 0.915, 0.885, 0.85)] == ["better", "same", "same", "worse"]
    assert [measured_change(0.85, after) for after in (0.87, 0.8694, 0.83, 0.8306)] == [
        "better",
        "same",
        "worse",
        "same",
    ]


def test_the_gap_is_that_of_the_frames(tmp_path: Path) -> None:
    gap = gap_by_step(*two(tmp_path))
    assert list(gap["step"]) == [round(STEPS * i / (FRAMES - 1)) for i in range(FRAMES)]
    assert gap["gap"].iloc[0] == 0
    assert gap["gap"].iloc[-1] == pytest.approx(-37.0)


def test_the_better_value_is_bold_and_equal_ones_are_not() -> None:
    rows = measure_rows(
        {"held_out_loss": 0.2, "steps": 5.0, "seconds": 3.0}, {"held_out_loss": 0.3, "steps": 9.0, "seconds": 3.0}
    )
    assert [row[1:] for row in rows] == [["**0.200**", "0.300", "+0.100"], ["3", "3", "="], ["5", "9", "+4"]]


@pytest.mark.parametrize(
    ("name", "values", "row"),
    [
        ("held_out_loss", (1.3e-5, 7.9e-6), ["1.3×10⁻⁵", "**7.9×10⁻⁶**", "−5.1×10⁻⁶"]),
        ("held_out_loss", (0.1, 0.0999), ["0.1000", "**0.0999**", "−0.0001"]),
        ("held_out_loss", (0.4512, 0.4514), ["**0.4512**", "0.4514", "+0.0002"]),
        ("held_out_loss", (0.0, 0.0), ["0.000", "0.000", "="]),
        ("held_out_accuracy", (0.84149, 0.84151), ["84.1%", "**84.2%**", "+0.002"]),
        ("held_out_accuracy", (0.8414, 0.8413), ["**84.14%**", "84.13%", "−0.01"]),
        ("train_accuracy", (0.5, 0.5), ["50.0%", "50.0%", "="]),
        ("seconds", (3.01, 3.04), ["**3.01**", "3.04", "+0.03"]),
    ],
)
def test_numbers_that_differ_are_never_written_alike(name: str, values: tuple[float, float], row: list[str]) -> None:
    ((_, *found),) = measure_rows({name: values[0]}, {name: values[1]})
    assert found == row


@given(first=st.floats(0, 1e6), second=st.floats(0, 1e6), name=st.sampled_from(["held_out_loss", "train_accuracy"]))
def test_equal_is_said_of_equal_numbers_alone(first: float, second: float, name: str) -> None:
    ((_, one, other, difference),) = measure_rows({name: first}, {name: second})
    assert (difference == "=") == (first == second)
    assert difference == "=" or any(digit in difference for digit in "123456789")
    assert one.count("*") + other.count("*") == (0 if first == second else 4)
