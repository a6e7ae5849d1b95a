"""The parts of the attention page: every control in both languages, odd links, honest numbers, scripts that repeat."""

import io
import runpy
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from streamlit.testing.v1 import AppTest

from pages.ui.language import LANGUAGES, words
from pages.ui.models import open_bundle
from tests.pages.running import asks, run, show_all, told
from tests.pages.scripts import repeats
from tests.paths import ROOT
from transformer_core.analysis.attention.head_ablation import head_effects
from transformer_core.analysis.attention.heads import Ablation
from transformer_core.analysis.attention.occlusion import Substitute, verdict_evidence
from transformer_core.analysis.attention.tendencies import labelled, tendencies_of_reviews, tendencies_of_text

TEXT = "The film was not good, but I loved the ending and the music."
PARTS = ("heads", "arcs", "flow", "tendencies", "effect")


def asked(text: str = TEXT) -> dict:
    """Return what the page asks of the library for a text."""
    bundle = open_bundle("sentiment")
    return {"bundle": bundle, "text": text, "n_tokens": len(bundle.tokenizer.encode(text))}


def part(name: str, **query: str) -> AppTest:
    """Open a part of the page."""
    return run("attention", **({"text": TEXT, "attention_part": name} | query))


def metrics(app: AppTest) -> list[str]:
    """Return the numbers that stand large on the page."""
    return [metric.value for metric in app.metric]


@pytest.mark.parametrize("language", LANGUAGES)
@pytest.mark.parametrize("name", PARTS)
def test_a_part_opens_from_the_link_and_no_other_is_computed(language: str, name: str) -> None:
    app = part(name, lang=language)
    assert not app.exception
    assert not app.error
    assert app.session_state["attention_part@attention"] == name
    assert ("attention_threshold@attention" in app.session_state) == (name == "tendencies")
    assert ("attention_over@attention" in app.session_state) == (name == "arcs")


@pytest.mark.parametrize("name", PARTS)
@pytest.mark.parametrize("text", ["a", "[PAD]", "😀😀", "هذا فيلم جيد", "这部电影很好看。", "good film " * 100])
def test_any_text_is_survived(name: str, text: str) -> None:
    app = part(name, text=text)
    assert not show_all(app).exception


ODD = {
    "attention_part": ("nonsense", "heads"),
    "attention_over": ("sum", "head"),
    "attention_direction": ("up", "from"),
    "attention_ablation": ("half", "zero"),
    "attention_sample": ("fr", "en"),
    "attention_substitute": ("[Log in](https://example.org)", "mask"),
}
HOME = {"over": "arcs", "direction": "arcs", "ablation": "effect", "sample": "tendencies", "substitute": "flow"}


@pytest.mark.parametrize("name", ODD)
def test_what_is_not_there_is_named(name: str) -> None:
    asked_for, shown = ODD[name]
    app = part(**{"name": HOME.get(name.removeprefix("attention_"), "heads"), name: asked_for})
    assert not app.exception
    assert app.session_state[f"{name}@attention"] == shown
    assert f"{name} = " in told(app).replace("\\", "")
    assert "](" not in "".join(toast.value for toast in app.toast)


@pytest.mark.parametrize("token", ["0", "3", "999", "-1", "x", "٣", "9" * 5000, "1.5", ""])
def test_any_token_in_the_link_is_survived(token: str) -> None:
    assert not part("arcs", attention_token=token).exception


@pytest.mark.parametrize("threshold", ["0.4", "9", "-1", "nan", "x", ""])
def test_any_threshold_in_the_link_is_survived(threshold: str) -> None:
    app = part("tendencies", attention_threshold=threshold)
    assert not app.exception
    assert app.session_state["attention_threshold@attention"] == (0.4 if threshold == "0.4" else 0.2)
    assert not part("heads", attention_threshold=threshold).exception


@pytest.mark.parametrize("language", LANGUAGES)
@pytest.mark.parametrize("over", ["head", "mean", "max"])
@pytest.mark.parametrize("direction", ["from", "to"])
def test_arcs_say_what_their_sum_means(language: str, over: str, direction: str) -> None:
    app = part("arcs", lang=language, attention_over=over, attention_direction=direction)
    assert not app.exception
    assert words(language)[f"attention.sum_{over}_{direction}"] in told(app)


def test_names_of_heads_can_be_left_out() -> None:
    app = part("heads")
    app.toggle(key="attention_names@attention").set_value(False).run()
    assert not app.exception
    assert "off" in app.query_params["attention_names"]


@pytest.mark.parametrize("language", LANGUAGES)
@pytest.mark.parametrize("substitute", ["mask", "unk"])
def test_flow_measures_whether_rollout_agrees_with_the_effect(language: str, substitute: Substitute) -> None:
    app = part("flow", lang=language, attention_substitute=substitute)
    assert set(metrics(app)) == {"–"}
    asks(app)[0].set_value("close").run()
    found = verdict_evidence(**asked(), substitute=substitute)
    assert metrics(app) == [f"{found.rollout_agrees.rho:+.2f}", f"{found.last_agrees.rho:+.2f}"]
    assert f"{found.rollout_agrees.chance:.1%}" in told(app)
    outcome = "close" if found.rollout_agrees.rho >= 0.7 else "no"
    right = words(language)["try.right"]
    assert (right in told(app)) == (outcome == "close")


def test_two_words_have_no_rank_correlation_and_that_is_said() -> None:
    app = part("flow", text="good film")
    asks(app)[0].set_value("none").run()
    assert not app.exception
    assert words("en")["attention.no_rho"].format(count=2) in told(app)


@pytest.mark.parametrize("language", LANGUAGES)
def test_tendencies_are_claimed_on_their_scores(language: str) -> None:
    app = part("tendencies", lang=language)
    app.slider(key="attention_threshold@attention").set_value(0.3).run()
    ours = labelled(tendencies_of_text(**asked()).scores, 0.3)
    theirs = labelled(tendencies_of_reviews(bundle=open_bundle("sentiment"), language="en", sentences=48).scores, 0.3)
    same, count = int((ours == theirs).sum()), ours.size
    said = words(language)["attention.labels_agree"].format(same=same, count=count, sentences=48)
    assert said in told(app)
    assert len(app.table[0].value) == int(((ours >= 0) | (theirs >= 0)).sum())


def test_the_sample_can_be_chinese() -> None:
    app = part("tendencies", text="这部电影不好看。")
    assert app.session_state["attention_sample@attention"] == "zh"
    app.button_group(key="attention_sample@attention").set_value("en").run()
    assert not app.exception


@pytest.mark.parametrize("language", LANGUAGES)
@pytest.mark.parametrize("how", ["zero", "mean"])
def test_effects_are_shown_after_the_prediction_and_are_the_models(language: str, how: Ablation) -> None:
    found = head_effects(**asked(), how=how)
    layer, head = found.most_effect
    app = part("effect", lang=language, attention_ablation=how, layer=str(layer), head=str(head))
    assert set(metrics(app)) == {"–"}
    asks(app)[0].set_value("first").run()
    assert not app.exception
    assert metrics(app) == [f"{found.agreement.rho:+.2f}"]
    moved = f"{100 * found.change[layer, head]:+.2f}"
    assert told(app).count(moved) >= 2
    assert (words(language)["try.right"] in told(app)) == (found.place == 1)
    for layer, head in found.idle[:3].tolist():
        assert f"{100 * found.change[layer, head]:+.3f}" in told(app)


def exported(monkeypatch: pytest.MonkeyPatch, name: str, **query: str) -> dict[str, dict]:
    """Return the files that a part offers, by their key."""
    files: dict[str, dict] = {}

    def take(offered: Callable[[], dict], *, key: str, **_: object) -> None:
        files[key] = offered()

    monkeypatch.setattr("pages.ui.exports.offer_files", take)
    monkeypatch.setattr("pages.attention.arcs.offer_files", take)
    app = part(name, **query)
    show_all(app)
    return files


KEYS = {
    "heads": ["heads", "head_large"],
    "arcs": ["arcs"],
    "flow": ["entropy", "entropy_tokens", "rollout", "led", "hidden"],
    "tendencies": ["tendencies_here", "tendencies_sample", "head_tendency"],
    "effect": ["effects", "head_effect"],
}


@pytest.mark.parametrize("name", PARTS)
def test_every_figure_is_exported_and_its_script_repeats_it(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, name: str
) -> None:
    files = exported(monkeypatch, name, layer="1", head="2", text='It\'s "fine", 好 \\n — not good at all, not at all.')
    assert set(files) == set(KEYS[name])
    (tmp_path / "assets").symlink_to(ROOT / "assets")
    monkeypatch.chdir(tmp_path)
    for key, offered in files.items():
        for ending in ("zip" if "zip" in offered else "csv", "html"):
            assert offered[ending]()
        script = tmp_path / "again.py"
        script.write_text(offered["py"](), encoding="utf-8")
        runpy.run_path(str(script))
        (path,) = tmp_path.glob("*.npz")
        with np.load(path) as again, np.load(io.BytesIO(offered["npz"]())) as shown:
            assert set(again) == set(shown)
            for field in shown:
                np.testing.assert_allclose(again[field], shown[field], atol=1e-5, err_msg=f"{key}: {field}")
        path.unlink()


def test_a_script_runs_where_a_person_runs_it(monkeypatch: pytest.MonkeyPatch) -> None:
    offered = exported(monkeypatch, "effect")["effects"]
    with np.load(io.BytesIO(offered["npz"]())) as shown:
        repeats(offered["py"](), dict(shown))
