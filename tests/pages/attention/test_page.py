"""The attention page: every part and control, the numbers that the library computes, odd links, exports."""

import io
import runpy
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from streamlit.testing.v1 import AppTest

from pages.ui.header import whole_words, word_start
from pages.ui.language import LANGUAGES, words
from pages.ui.models import open_bundle
from tests.e2e.paths import ROOT
from tests.pages.running import asks, run, show_all, told
from tests.pages.scripts import repeats
from transformer_core.analysis.attention.head_ablation import head_effects
from transformer_core.analysis.attention.heads import Ablation, head_off
from transformer_core.analysis.attention.occlusion import Substitute, verdict_evidence
from transformer_core.analysis.attention.tendencies import labelled, tendencies_of_reviews, tendencies_of_text
from transformer_core.analysis.outcome import read

TEXT = "The film was not good, but I loved the ending and the music."
PARTS = ("heads", "arcs", "flow", "tendencies", "effect")


def arguments(text: str = TEXT) -> dict:
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


@pytest.mark.parametrize(
    ("name", "text"),
    [
        *((name, "[PAD]") for name in PARTS),
        ("effect", "a"),
        ("flow", "a"),
        ("arcs", "😀😀"),
        ("heads", "هذا فيلم جيد"),
        ("tendencies", "这部电影很好看。"),
        ("flow", "good film " * 100),
    ],
)
def test_any_text_is_read(name: str, text: str) -> None:
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
def test_any_token_in_the_link_is_answered(token: str) -> None:
    assert not part("arcs", attention_token=token).exception


@pytest.mark.parametrize("threshold", ["0.4", "9", "-1", "nan", "x", ""])
def test_any_threshold_in_the_link_is_answered(threshold: str) -> None:
    app = part("tendencies", attention_threshold=threshold)
    assert not app.exception
    assert app.session_state["attention_threshold@attention"] == (0.4 if threshold == "0.4" else 0.2)


@pytest.mark.parametrize(
    ("over", "direction", "language"),
    [
        ("head", "from", "zh"),
        ("mean", "from", "en"),
        ("max", "from", "zh"),
        ("head", "to", "en"),
        ("mean", "to", "zh"),
        ("max", "to", "en"),
    ],
)
def test_arcs_say_what_their_sum_means(over: str, direction: str, language: str) -> None:
    app = part("arcs", lang=language, attention_over=over, attention_direction=direction)
    assert not app.exception
    assert words(language)[f"attention.sum_{over}_{direction}"] in told(app)


def test_names_of_heads_can_be_left_out() -> None:
    app = part("heads", attention_threshold="nan")
    assert not app.exception
    app.toggle(key="attention_names@attention").set_value(False).run()
    assert not app.exception
    assert "off" in app.query_params["attention_names"]


@pytest.mark.parametrize(("substitute", "language"), [("mask", "en"), ("unk", "zh")])
def test_flow_measures_whether_rollout_agrees_with_the_effect(substitute: Substitute, language: str) -> None:
    app = part("flow", lang=language, attention_substitute=substitute)
    assert set(metrics(app)) == {"–"}
    asks(app)[0].set_value("close").run()
    found = verdict_evidence(**arguments(), substitute=substitute)
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


def test_tendencies_are_claimed_on_their_scores() -> None:
    app = part("tendencies", lang="zh")
    app.slider(key="attention_threshold@attention").set_value(0.3).run()
    ours = labelled(tendencies_of_text(**arguments()).scores, 0.3)
    theirs = labelled(tendencies_of_reviews(bundle=open_bundle("sentiment"), language="en", sentences=48).scores, 0.3)
    same, count = int((ours == theirs).sum()), ours.size
    said = words("zh")["attention.labels_agree"].format(same=same, count=count, sentences=48)
    assert said in told(app)
    assert len(app.table[0].value) == int(((ours >= 0) | (theirs >= 0)).sum())


def test_the_sample_can_be_chinese() -> None:
    app = part("tendencies", text="这部电影不好看。")
    assert app.session_state["attention_sample@attention"] == "zh"
    app.button_group(key="attention_sample@attention").set_value("en").run()
    assert not app.exception


@pytest.mark.parametrize(("how", "language"), [("zero", "zh"), ("mean", "en")])
def test_effects_are_shown_after_the_prediction_and_are_the_models(how: Ablation, language: str) -> None:
    found = head_effects(**arguments(), how=how)
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


@pytest.mark.parametrize(
    ("step", "language"),
    [("products", "en"), ("scores", "zh"), ("masked_scores", "en"), ("weights", "zh"), ("mixture", "en")],
)
def test_every_step_is_shown(step: str, language: str) -> None:
    app = run("attention", lang=language, text=TEXT, step=step, layer="1", head="2")
    assert not app.exception
    assert not app.error
    assert app.session_state["step@attention"] == step
    assert app.session_state["layer@attention"] == "1"
    assert app.session_state["head@attention"] == "2"


def test_an_unknown_layer_in_the_link_is_named() -> None:
    app = run("attention", layer="9", head="x")
    assert not app.exception
    assert "layer = 9" in told(app)
    assert "head = x" in told(app)
    assert app.session_state["layer@attention"] == "0"


@pytest.mark.parametrize("cell", ["3.4", "99.0", "x.y", "", "1", "-1.2", "٣.1", "1.1.1", f"{'9' * 5000}.1"])
def test_any_cell_in_the_link_is_answered(cell: str) -> None:
    assert not run("attention", text=TEXT, cell=cell).exception


def test_long_text_is_windowed_in_words() -> None:
    app = run("attention", text="good film " * 100)
    assert not app.exception
    assert words("en")["text.part_read"].format(count=202, most=128) in app.get("popover")[0].proto.popover.label
    app.slider(key="start@attention").set_value(40).run()
    assert not app.exception


def test_a_window_beyond_a_shortened_text_moves_back() -> None:
    app = run("attention", text="good film " * 100)
    app.slider(key="start@attention").set_value(70).run()
    app.text_input(key="text@attention").set_value("good film " * 70).run()
    assert not app.exception
    assert app.slider(key="start@attention").value == app.slider(key="start@attention").max


def test_the_experiment_shows_what_the_model_computes_without_the_head() -> None:
    app = run("attention", text=TEXT, layer="2", head="3", try_open="true")
    asks(app)[0].set_value("little").run()
    bundle = open_bundle("sentiment")
    encoding = bundle.tokenizer.encode(TEXT)
    before = read(bundle, encoding, sites=("class_logits",)).probabilities
    off = head_off("encoder.layer2.self_attention", 3)
    after = read(bundle, encoding, sites=("class_logits",), edits=off).probabilities
    winner = before.index(max(before))
    assert f"{100 * (after[winner] - before[winner]):+.2f}" in told(app)
    assert any(f"{after[winner]:.1%}" in bar.proto.body for bar in app.get("html"))


@pytest.mark.parametrize("text", ["[MASK] " * 130, "[PAD]", "[CLS] [SEP] " * 80, "unwatchability " * 60])
def test_text_that_spells_special_tokens_is_read(text: str) -> None:
    assert not run("attention", text=text).exception


@pytest.mark.parametrize(
    ("text", "place", "start"),
    [("an unwatchability", 8, 3), ("an unwatchability", 3, 3), ("这部电影", 2, 2), ("a.b", 2, 2)],
)
def test_a_window_starts_where_a_word_does(text: str, place: int, start: int) -> None:
    assert word_start(text, place) == start


@pytest.mark.parametrize(
    ("text", "most", "read"),
    [
        ("good films and unwatchability here", 6, "good films and"),
        ("unwatchability", 3, "unwatch"),
        ("good films ", 9, "good films "),
        ("这部电影很好看", 6, "这部电影"),
    ],
)
def test_a_window_ends_where_a_word_does(text: str, most: int, read: str) -> None:
    assert whole_words(open_bundle("sentiment").tokenizer.encode(text, max_len=most)) == read


@pytest.mark.parametrize(
    ("name", "start"), [("gpt", "0"), ("gpt", "50"), ("bert", "7"), ("translation", "3"), ("encoder", "11")]
)
def test_no_page_shows_more_of_a_long_text_than_is_read(name: str, start: str) -> None:
    text = " ".join(f"the old dog sees {number} trees." for number in range(60))
    app = run(name, text=text, start=start, gpt_part="write", encoder_part="edit", translation_part="cross")
    assert not app.exception
    blocks = [block.value for block in app.code] + [block.proto.body for block in app.get("html")]
    assert "59 trees" not in "".join([told(app), *blocks])


def test_a_link_cannot_put_a_link_into_a_message() -> None:
    app = run("attention", layer="[Log in again](https://example.org)")
    assert not app.exception
    assert "](" not in "".join(toast.value for toast in app.toast)


def test_typed_padding_is_hidden_from_every_query() -> None:
    bundle = open_bundle("sentiment")
    encoding = bundle.tokenizer.encode("good [PAD] film")
    weights = read(bundle, encoding, sites=("*.weights",)).trace.stack("*.weights")
    assert weights[..., encoding.ids.index(bundle.tokenizer.pad_id)].abs().max() == 0


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
