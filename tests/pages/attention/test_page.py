"""The attention page: parts in both languages, odd links and texts, the model's own numbers, scripts that repeat."""

import io
from collections.abc import Callable
from dataclasses import replace
from itertools import cycle

import numpy as np
import pytest
from streamlit.testing.v1 import AppTest

from pages.attention.corpus import written
from pages.attention.induction import how_many, rises
from pages.figures.heads import STEP_NAMES
from pages.kit.asking import ask
from pages.kit.models import open_bundle
from pages.language import LANGUAGES, words
from tests.helpers import nightly_but
from tests.helpers.pages import asks, matrices, minus, repeats, run, show_all, told
from transformer_core.analysis.attention.dropped import dropped_weights
from transformer_core.analysis.attention.head_ablation import head_effects, without_head
from transformer_core.analysis.attention.heads import Ablation
from transformer_core.analysis.attention.occlusion import Substitute, verdict_evidence
from transformer_core.analysis.attention.tendencies import labelled, tendencies_of_reviews, tendencies_of_text
from transformer_core.analysis.corpus.head_measures import MEASURES, heads_over_corpus
from transformer_core.analysis.corpus.induction_learned import induction_learned
from transformer_core.analysis.outcome import read
from transformer_core.bundle import Bundle
from transformer_core.prompt import Prompt

TEXT = "The film was not good, but I loved the ending and the music."
PARTS = ("heads", "arcs", "flow", "tendencies", "effect", "corpus")


def asked(text: str = TEXT) -> dict:
    """Return what the page asks of the library for a text."""
    bundle = open_bundle("sentiment")
    return {"prompt": Prompt(bundle, text, len(bundle.tokenizer.encode(text)))}


def part(name: str, **query: str) -> AppTest:
    """Open a part of the page."""
    return run("attention", **({"text": TEXT, "attention_part": name} | query))


def metrics(app: AppTest) -> list[str]:
    """Return the numbers that stand large on the page."""
    return [metric.value for metric in app.metric]


@pytest.mark.parametrize("name", nightly_but(["arcs", "tendencies"], ["arcs"]))
def test_no_other_part_is_computed(name: str) -> None:
    app = part(name)
    assert ("attention_threshold@attention" in app.session_state) == (name == "tendencies")
    assert ("attention_over@attention" in app.session_state) == (name == "arcs")


@pytest.mark.parametrize(("step", "language"), [*zip(STEP_NAMES, cycle(LANGUAGES), strict=False)])
def test_every_step_of_the_head_in_the_link_is_shown(language: str, step: str) -> None:
    app = part("heads", lang=language, step=step, layer="1", head="2")
    assert not app.exception
    assert not app.error
    assert app.session_state["step@attention"] == step
    assert app.session_state["layer@attention"] == "1"
    assert app.session_state["head@attention"] == "2"


TEXTS = ("a", "😀😀", "هذا فيلم جيد", "[PAD]", "[MASK] " * 130, "[CLS] [SEP] " * 80, "unwatchability " * 60)


@pytest.mark.nightly
@pytest.mark.parametrize(("name", "text"), [*zip(cycle(PARTS), TEXTS, strict=False)])
def test_any_text_is_read(name: str, text: str) -> None:
    assert not show_all(part(name, text=text)).exception


@pytest.mark.parametrize(
    ("name", "control", "value", "shown"),
    [
        ("heads", "attention_part", "nonsense", "heads"),
        ("heads", "layer", "9", "0"),
        ("heads", "head", "[Log in again](https://example.org)", "0"),
        ("arcs", "attention_over", "sum", "head"),
        ("arcs", "attention_direction", "up", "from"),
        ("effect", "attention_ablation", "half", "zero"),
        ("tendencies", "attention_sample", "fr", "en"),
        ("flow", "attention_substitute", "[Log in](https://example.org)", "mask"),
    ],
)
def test_a_choice_that_is_not_there_is_named_without_its_links(name: str, control: str, value: str, shown: str) -> None:
    app = part(**({"name": name} | {control: value}))
    assert not app.exception
    assert app.session_state[f"{control}@attention"] == shown
    plain = told(app).replace("\\", "")
    assert f"{control} = {value.partition('(')[0]}" in plain
    assert "](" not in "".join(toast.value for toast in app.toast)


@pytest.mark.parametrize("cell", ["99.0", "x.y", "-1.2", "٣.1", f"{'9' * 5000}.1"])
def test_any_cell_in_the_link_is_read_or_ignored(cell: str) -> None:
    assert not part("heads", cell=cell).exception


@pytest.mark.parametrize("threshold", ["0.4", "9"])
def test_a_threshold_in_the_link_holds_in_its_range_alone(threshold: str) -> None:
    app = part("tendencies", attention_threshold=threshold)
    assert not app.exception
    assert app.session_state["attention_threshold@attention"] == (0.4 if threshold == "0.4" else 0.2)


def test_names_of_heads_can_be_left_out() -> None:
    app = part("heads")
    app.toggle(key="attention_names@attention").set_value(False).run()
    assert not app.exception
    assert "off" in app.query_params["attention_names"]


def test_the_experiment_shows_what_the_model_computes_without_the_head() -> None:
    app = part("heads", layer="2", head="3", try_open="true")
    asks(app)[0].set_value("little").run()
    found = without_head(**asked(), layer=2, head=3)
    assert minus(f"{100 * (found.after[found.winner] - found.before[found.winner]):+.2f}") in told(app)
    assert any(f"{found.after[found.winner]:.1%}" in bar.proto.body for bar in app.get("html"))


def test_typed_padding_is_hidden_from_every_query() -> None:
    bundle = open_bundle("sentiment")
    encoding = bundle.tokenizer.encode("good [PAD] film")
    weights = read(bundle, encoding, sites=("*.weights",)).trace.stack("*.weights")
    assert weights[..., encoding.ids.index(bundle.tokenizer.pad_id)].abs().max() == 0


@pytest.mark.parametrize("over", ["head", "mean", "max"])
@pytest.mark.parametrize(("direction", "language"), [("from", "en"), ("to", "zh")])
def test_arcs_say_what_their_weights_sum_to(language: str, over: str, direction: str) -> None:
    app = part("arcs", lang=language, attention_over=over, attention_direction=direction)
    assert not app.exception
    assert words(language)[f"attention.sum_{over}_{direction}"] in told(app)


@pytest.mark.parametrize(("substitute", "language"), [("mask", "en"), ("unk", "zh")])
def test_flow_measures_whether_rollout_agrees_with_the_effect(language: str, substitute: Substitute) -> None:
    app = part("flow", lang=language, attention_substitute=substitute)
    assert set(metrics(app)) == {"–"}
    asks(app)[0].set_value("close").run()
    found = verdict_evidence(**asked(), substitute=substitute)
    assert metrics(app) == [f"{found.rollout_agrees.rho:+.2f}", f"{found.last_agrees.rho:+.2f}"]
    assert f"{found.rollout_agrees.chance:.1%}" in told(app)
    assert (words(language)["try.right"] in told(app)) == (found.rollout_agrees.rho >= 0.7)


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


def test_the_sample_follows_the_language_of_the_text_until_another_is_chosen() -> None:
    app = part("tendencies", text="这部电影不好看。")
    assert app.session_state["attention_sample@attention"] == "zh"
    app.button_group(key="attention_sample@attention").set_value("en").run()
    assert not app.exception


@pytest.mark.parametrize(("how", "language"), [("zero", "en"), ("mean", "zh")])
def test_effects_are_shown_after_the_prediction_and_are_the_models(language: str, how: Ablation) -> None:
    found = head_effects(**asked(), how=how)
    layer, head = found.most_effect
    app = part("effect", lang=language, attention_ablation=how, layer=str(layer), head=str(head))
    assert set(metrics(app)) == {"–"}
    asks(app)[0].set_value("first").run()
    assert not app.exception
    assert metrics(app) == [f"{found.agreement.rho:+.2f}"]
    moved = minus(f"{100 * found.change[layer, head]:+.2f}")
    assert told(app).count(moved) >= 2
    assert (words(language)["try.right"] in told(app)) == (found.place == 1)
    for layer, head in found.idle[:3].tolist():
        assert minus(f"{100 * found.change[layer, head]:+.3f}") in told(app)


@pytest.mark.parametrize("language", LANGUAGES)
def test_heads_over_a_corpus_show_the_chosen_heads_measures_and_its_rows(language: str) -> None:
    app = part("corpus", lang=language, layer="0", head="3", corpus_texts="12", corpus_induction_open="true")
    assert not app.exception
    model = next(box for box in app.selectbox if box.label == words(language)["attention.corpus_of"])
    assert {"sentiment", "translation-en-fr"} <= {*model.options}
    found = heads_over_corpus(bundle=open_bundle("sentiment"), among="built_in", texts=12)
    place = found.place("encoder", 0, 3)
    for at, name in enumerate(MEASURES):
        said = f"| {words(language)[f'measure.{name}']} | {written(name, float(found.values[at, place]))} |"
        assert said in told(app), name
    rows = [one.proto.body for one in app.get("html") if 'class="looked"' in one.proto.body]
    assert len(rows) == 5
    assert f"{np.nanmax(found.row_weights[place, 0]):.2f}" in rows[0]
    asks(app)[0].set_value("none").run()
    assert words(language)["try.right"] in told(app)
    assert f"{np.nanmax(found.values[0]):.3f}" in told(app)
    app.button(key="corpus_open_1").click().run()
    assert app.session_state["attention_part@attention"] == "heads"
    assert app.text_input[0].value == found.texts[found.row_text[place, 1]]
    assert app.query_params["cell"] in ((cell := f"{found.row_query[place, 1]}.{found.row_key[place, 1]}"), [cell])
    heads = read(open_bundle("sentiment"), open_bundle("sentiment").tokenizer.encode(app.text_input[0].value))
    weights = heads.trace["encoder.layer0.self_attention.weights"][0, 3]
    seen = float(weights[found.row_query[place, 1], found.row_key[place, 1]])
    assert seen == pytest.approx(float(found.row_weight[place, 1]), abs=1e-5)


@pytest.mark.nightly
@pytest.mark.parametrize("language", LANGUAGES)
def test_a_translators_heads_stand_over_a_corpus_and_what_says_nothing_of_them_is_told(language: str) -> None:
    chosen = {"corpus_model": "translation-en-fr", "corpus_kind": "cross", "corpus_across": "marks"}
    app = part("corpus", lang=language, layer="1", head="2", corpus_texts="12", **chosen)
    assert not app.exception
    found = heads_over_corpus(bundle=open_bundle("translation-en-fr"), among="built_in", texts=12)
    place, known = found.place("cross", 1, 2), words(language)
    for at, name in enumerate(MEASURES):
        assert f"| {known[f'measure.{name}']} | {written(name, float(found.values[at, place]))} |" in told(app), name
    silent = {name for name in MEASURES if not found.says(name, place)}
    assert silent == {"induction", "previous", "next", "same", "repeated", "copying", "distance"}
    for reason in ("cross", "induction", "copying"):
        assert known[f"measure_lacks.{reason}"] in told(app)
    assert known["measure_lacks.next"] not in told(app)
    app.button(key="corpus_open_0").click().run()
    kept = app.session_state["kept"]
    assert (kept["translation_part"], kept["layer"], kept["head"]) == ("cross", "1", "2")
    assert app.text_input[0].value == kept["text"] == found.texts[found.row_text[place, 0]]


@pytest.mark.parametrize(("count", "option"), [(0, "none"), (1, "one"), (2, "several"), (9, "several")])
def test_how_many_heads_induce_is_said_by_their_number(count: int, option: str) -> None:
    assert how_many(count) == option


@pytest.mark.parametrize(
    ("scores", "appears", "option"),
    [
        ([0.0, 0.0, 0.0, 0.0, 0.6, 0.7], 200, "sudden"),
        ([0.0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8], 200, "steady"),
        ([0.0, 0.1, 0.2], -1, "never"),
    ],
)
def test_a_rise_is_called_by_its_steepest_part(scores: list[float], appears: int, option: str) -> None:
    found = induction_learned(steps=1)
    induction = np.array(scores)[:, None, None]
    assert rises(replace(found, induction=induction, layer=0, head=0, appears=appears)) == option


EXPORTS = {
    "corpus": {"corpus_heads"},
    "heads": {"heads", "head_large"},
    "arcs": {"arcs"},
    "flow": {"entropy", "entropy_tokens", "rollout", "led", "hidden"},
    "tendencies": {"tendencies_here", "tendencies_sample", "head_tendency"},
    "effect": {"effects", "head_effect"},
}


@pytest.mark.parametrize("name", nightly_but(PARTS, {"arcs", "effect"}))
def test_every_figure_is_exported_and_its_script_repeats_it(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    files: dict[str, dict] = {}

    def take(offered: Callable[[], dict], *, key: str, **_: object) -> None:
        files[key] = offered()

    monkeypatch.setattr("pages.kit.exports.offer_files", take)
    monkeypatch.setattr("pages.attention.arcs.offer_files", take)
    show_all(part(name, layer="1", head="2", text='It\'s "fine", 好 \\n — not good at all, not at all.'))
    assert set(files) == EXPORTS[name]
    for offered in files.values():
        for ending in ("zip" if "zip" in offered else "csv", "html"):
            assert offered[ending]()
        with np.load(io.BytesIO(offered["npz"]())) as shown:
            repeats(offered["py"](), dict(shown))


@pytest.mark.parametrize("language", LANGUAGES)
def test_dropout_on_a_head_is_shown_after_a_prediction(language: str) -> None:
    query = {"attention_dropout_open": "true", "attention_dropout": "30", "attention_dropout_draws": "16"}
    app = part("heads", lang=language, layer="1", head="2", attention_dropout_seed="4", **query)
    assert not app.exception
    found = dropped_weights(**asked(), layer=1, head=2, percent=30, seed=4, draws=16)
    low, high = f"{found.row_sums.min():.2f}", f"{found.row_sums.max():.2f}"
    said = words(language)["attention.sums_measured"].format(low=low, high=high, mean=f"{found.row_sums.mean():.2f}")
    assert said not in told(app)
    assert "30%" in told(app)  # as the slider says
    next(pills for pills in asks(app) if "attention_dropout" in str(pills.key)).set_value("mixed").run()
    assert not app.exception
    assert words(language)["try.right"] in told(app)
    assert said in told(app)
    assert "77" in told(app)  # of 256
    for value in (found.after.min(), found.after.max(), found.after[0]):
        assert f"{value:.1%}" in told(app)
    app.button(key="attention_dropout_again").click().run()
    assert not app.exception
    assert app.query_params["attention_dropout_seed"] in ("5", ["5"])


def test_no_dropout_leaves_each_row_at_1_and_a_model_without_outcome_says_so() -> None:
    query = {"attention_dropout_open": "true", "attention_dropout": "0", "attention_dropout_draws": "4"}
    app = part("heads", **query)
    next(pills for pills in asks(app) if "attention_dropout" in str(pills.key)).set_value("one").run()
    assert words("en")["try.right"] in told(app)
    app = part("heads", model="bert", **query)
    next(pills for pills in asks(app) if "attention_dropout" in str(pills.key)).set_value("one").run()
    assert not app.exception
    assert words("en")["attention.dropout_concludes_nothing"] in told(app)


def test_the_script_of_dropout_computes_the_same() -> None:
    answer = ask(dropped_weights, **asked(), layer=0, head=1, percent=20, seed=2, draws=4)
    repeats(answer.script, answer.arrays)


@pytest.mark.parametrize(
    ("options", "language"), [("llama", "en"), ("multi_query", "zh"), ("gemma2", "zh"), ("window", "en")]
)
def test_shared_keys_and_values_and_a_layers_window_are_said(
    options: str, language: str, opened_odd: Callable[[str, str], Bundle]
) -> None:
    bundle = opened_odd("gpt", options)
    config, said = bundle.config, words(language)
    app = run("attention", lang=language, model=bundle.name, text=TEXT, layer="0", head="1")
    assert not app.exception
    figures = [header for header, _ in matrices(app)]
    notes = "".join(figure.get("note", "") for figure in figures)
    grid = next(figure for figure in figures if len(figure["panels"]) == config.n_layers * config.n_heads)
    groups = [panel["group"] for panel in grid["panels"]][: config.n_heads]
    named = [said["axis.shared"].format(number=config.kv_head(head)) for head in range(config.n_heads)]
    assert groups == (named if config.kv_heads < config.n_heads else [""] * config.n_heads)
    sharing = {"llama": "grouped", "multi_query": "multi"}.get(options, "no")
    for kind in ("grouped", "multi"):
        text = said[f"attention.{kind}_query"].format(heads=config.n_heads, shared=config.kv_heads)
        assert (text in notes) == (kind == sharing)
    before = (config.window(0) or 0) - 1
    assert (said["axis.window_causal"].format(before=before) in notes) == (before >= 0)
    windows = [[config.window(layer), None] if config.window(layer) else None for layer in range(config.n_layers)]
    assert [panel["window"] for panel in grid["panels"]][:: config.n_heads] == windows
