"""Pages read models of every kind and shape, or say in words what one cannot; a card is shown as plain text."""

from dataclasses import replace
from pathlib import Path

import pytest
import torch
from streamlit.testing.v1 import AppTest

from pages.kit.header import DEFAULT_TEXT
from pages.kit.models import MORE_MODELS, forget_models, open_bundle
from pages.kit.navigation import page_path
from pages.language import plain, prose, safe_line, words
from tests.helpers import nightly_but
from tests.helpers.made_runs import FRAMES, SPECS, made_run
from tests.helpers.pages import asks, minus, run, show_all, told
from transformer_core.bundle import MODELS, Bundle, save
from transformer_core.config import ModelConfig
from transformer_core.models import Classifier
from transformer_core.text import Tokenizer
from transformer_core.training.runs.store.records import State

SHAPES = {
    "inside-post": {"norm_order": "post", "activation": "relu", "norm": "unbiased", "pooling": "mean"},
    "inside-bare": {"residual": False, "activation": "gelu_tanh", "embedding_norm": True, "positions": "rotary"},
}


@pytest.mark.parametrize("model", list(SHAPES))
@pytest.mark.parametrize("part", nightly_but(["curves", "neurons", "dead", "swap"], ["neurons", "swap"]))
def test_the_feed_forward_page_reads_them(model: str, part: str) -> None:
    app = run("feed_forward", model=model, text="a glass box a glass bell", feed_forward_part=part)
    if asks(app):
        asks(app)[0].set_value("none" if part == "dead" else "little").run()
    assert not app.exception
    assert not app.error


@pytest.mark.parametrize("model", list(SHAPES))
@pytest.mark.parametrize("part", ["vector", "residual"])
def test_the_norm_page_reads_them(model: str, part: str) -> None:
    app = run("norm", model=model, text="a glass box a glass bell", norm_part=part)
    assert not app.exception
    assert not app.error
    if part == "residual":
        kind = "post" if model == "inside-post" else "none"
        assert prose("en", "norm")[f"identity_{kind}"] in told(app)


TEXTS = ["a glass box rings", "a glass bell rings", "a box of glass"] * 3
TEXT = "a glass box rings"
KINDS = ("classifier", "bert", "gpt", "encoder", "tagger", "answerer")
PARTS = {
    "home": ("",),
    "attention": ("heads", "arcs", "flow", "tendencies", "effect", "corpus"),
    "feed_forward": ("curves", "neurons", "swap"),
    "norm": ("vector", "residual"),
    "embeddings": ("sentence", "row", "neighbours", "map"),
    "tokens": ("split", "one_hot"),
    "positions": ("schemes", "sum"),
    "masks": ("paint", "batch"),
}
CONCLUDING = [
    ("home", ""),
    ("attention", "heads"),
    ("attention", "flow"),
    ("attention", "effect"),
    ("feed_forward", "neurons"),
    ("feed_forward", "swap"),
    ("norm", "vector"),
    ("positions", "sum"),
    ("masks", "paint"),
]
ALL = [(page, part) for page, parts in PARTS.items() for part in parts]
BOXES = dict.fromkeys(("try_open", "masks_try", "positions_try_sum"), "true")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a small untrained model of every kind; the GPT has 3 layers of 3 heads."""
    folder = tmp_path_factory.mktemp("kinds")
    plain, framed = (Tokenizer.train("word", TEXTS, vocab_size=16, template=name) for name in ("none", "cls"))
    for kind in (*KINDS, "translation"):
        torch.manual_seed(0)
        post = {"norm_order": "post", "embedding_norm": True, "n_segments": 2} if kind in ("bert", "encoder") else {}
        size = {"d_model": 18, "n_heads": 3, "n_layers": 3} if kind == "gpt" else {"d_model": 16, "n_heads": 2}
        config = ModelConfig(**{"vocab_size": 16, "d_ff": 24, "n_layers": 2, "max_len": 32} | size | post)  # type: ignore[arg-type]
        labels = ("negative", "positive") if kind == "classifier" else ()
        tokenizer = plain if kind == "gpt" else framed
        save(Bundle(f"tiny-{kind}", MODELS[kind](config).eval(), tokenizer, labels), folder / f"tiny-{kind}")
    for name, shape in SHAPES.items():
        torch.manual_seed(0)
        config = ModelConfig(vocab_size=16, d_model=16, n_heads=2, d_ff=24, n_layers=2, max_len=32, **shape)
        save(Bundle(name, Classifier(config).eval(), framed, ("negative", "positive")), folder / name)
    return folder


@pytest.fixture(autouse=True)
def models(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the app find the small models."""
    monkeypatch.setenv(MORE_MODELS, str(folder))


def played(page: str, part: str, *, text: str = TEXT, **query: str) -> AppTest:
    """Open a part of a page with its boxes open, and answer whatever it asks."""
    app = run(page, **({f"{page}_part": part, "text": text} | BOXES | query))
    show_all(app)
    assert not app.exception
    assert not app.error
    return app


@pytest.mark.parametrize(("page", "part"), nightly_but(ALL, ALL[::3]))
def test_a_gpt_is_read_in_chinese(page: str, part: str) -> None:
    app = played(page, part, model="tiny-gpt", lang="zh")
    assert words("zh")["outcome.needs_head"].partition("{")[0] not in told(app)


@pytest.mark.parametrize(("page", "part"), CONCLUDING)
def test_a_bert_guesses_behind_a_mask(page: str, part: str) -> None:
    said = told(played(page, part, text="a glass [MASK] rings", model="tiny-bert"))
    assert words("en")["outcome.needs_mask"] not in said


@pytest.mark.parametrize("kind", nightly_but(["encoder", "tagger"], ["encoder"]))
@pytest.mark.parametrize(("page", "part"), nightly_but(ALL, ALL[1::3]))
def test_an_encoder_says_what_it_cannot(page: str, part: str, kind: str) -> None:
    said = told(played(page, part, model=f"tiny-{kind}"))
    if (page, part) in CONCLUDING and page != "norm":
        assert words("en")["outcome.needs_head"].partition("}")[2] in said


def test_a_button_puts_the_mask_in() -> None:
    app = played("attention", "effect", model="tiny-bert")
    app.button(key="concludes").click().run()
    assert not app.exception
    assert app.text_input[0].value == "a glass box [MASK]"


def test_a_button_switches_to_a_classifier() -> None:
    app = played("attention", "effect", model="tiny-encoder")
    app.button(key="concludes").click().run()
    assert not app.exception
    assert app.selectbox[0].value in ("sentiment", "tiny-classifier", *SHAPES)
    assert words("en")["outcome.needs_head"].partition("}")[2] not in told(app)


@pytest.mark.parametrize("kind", [*KINDS, "translation"])
def test_home_draws_every_kind(kind: str) -> None:
    app = run("home", model=f"tiny-{kind}", text=TEXT)
    assert not app.exception
    assert words("en")["home.heading"] in told(app)


def test_a_model_of_another_kind_gives_way_and_stays_chosen() -> None:
    app = run("why", model="tiny-gpt", text=TEXT)
    assert not app.exception
    said = words("en")["model.elsewhere"].format(
        name="tiny-gpt", kind=words("en")["kind.gpt"], shown=app.selectbox[0].value
    )
    assert said in told(app)
    assert "tiny-gpt" not in app.selectbox[0].options
    app.switch_page(str(page_path("attention"))).run()
    assert app.selectbox[0].value == "tiny-gpt"
    assert not app.toast


def test_a_choice_made_here_is_the_one_that_stays() -> None:
    app = run("why", model="tiny-gpt", text=TEXT)
    app.selectbox[0].set_value("tiny-classifier").run()
    app.switch_page(str(page_path("tokens"))).run()
    assert app.selectbox[0].value == "tiny-classifier"
    app.selectbox[0].set_value("tiny-bert").run()
    app.switch_page(str(page_path("why"))).run()
    assert app.selectbox[0].value == "tiny-classifier"
    assert words("en")["kind.bert"] in told(app)


def test_a_smaller_model_has_its_own_first_head_and_says_nothing() -> None:
    app = run("attention", model="tiny-gpt", text=TEXT, layer="2", head="2")
    assert not app.toast
    app.selectbox[0].set_value("tiny-bert").run()
    assert not app.exception
    assert not app.toast


@pytest.mark.parametrize("page", ["attention", "masks"])
def test_a_head_that_no_model_has_is_refused_in_words(page: str) -> None:
    app = run(page, model="tiny-gpt", text=TEXT, head="12", layer="99")
    assert not app.exception
    assert "12" in "".join(str(toast.value) for toast in app.toast)


def test_the_text_follows_and_an_untouched_one_does_not() -> None:
    app = run("attention")
    assert app.text_input[0].value == DEFAULT_TEXT
    app.text_input[0].set_value("my own words").run()
    app.switch_page(str(page_path("tokens"))).run()
    assert app.text_input[0].value == "my own words"


def test_a_text_is_kept_though_the_page_is_left_before_it_was_read() -> None:
    app = run("tokens")
    app.text_input[0].set_value(TEXT)
    app.switch_page(str(page_path("embeddings"))).run()
    assert app.text_input[0].value == TEXT


def test_a_finished_run_of_a_gpt_is_read_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("VITRINE_RUNS", str(tmp_path / "runs"))
    store = made_run(tmp_path / "runs", SPECS["gpt"])
    app = run("attention", model=f"run:{store.id}", text="a dull film")
    assert not app.exception
    assert app.selectbox[0].value == f"run:{store.id}"
    assert words("en")["outcome.asks_next"] in told(app)


@pytest.mark.parametrize("state", ["finished", "stopped", "failed"])
def test_a_run_that_ended_is_among_the_models_and_so_are_its_moments_once_it_is_on_the_screen(
    state: State, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("VITRINE_RUNS", str(tmp_path / "runs"))
    store = made_run(tmp_path / "runs", state=state)
    forget_models()
    name = f"run:{store.id}"
    app = run("lab", lab_part="side", text="a dull film", lab_other="a dull film")
    offered = app.selectbox(key="model@lab").options
    assert (f"run: {store.spec.name}" in offered) == (state != "failed")
    if state == "failed":
        return
    app.selectbox(key="model@lab").set_value(name).run()
    moments = [f"{name}@{frame.number}" for frame in store.frames()]
    assert len(moments) == FRAMES
    assert [one for one in app.selectbox(key="model@lab").options if one.startswith("run:")] == [
        f"run: {store.spec.name}",
        *(f"run: {store.spec.name}, frame {frame.number}" for frame in store.frames()),
    ]
    app.selectbox(key="model@lab").set_value(moments[-1]).run()
    app.selectbox(key="lab_model@lab").set_value(moments[0]).run()
    assert not app.exception
    late, early = store.model(), store.model(0)
    with torch.inference_mode():
        found = [
            one.model(torch.tensor([one.tokenizer.encode("a dull film").ids])).log_softmax(-1)[0]
            for one in (late, early)
        ]
    best = int(found[0].argmax())
    said = f"ln p of the first one's answer: {found[0][best]:.3f} in the first, {found[1][best]:.3f} in the second."
    assert minus(said) in minus(told(app))


CARD = """# Sign in
![picture](https://example.org/seen.png)

[Sign in again](https://example.org/sign-in) or at https://example.org, www.example.org, me@example.org

<img src="https://example.org/html.png"> :red[red]

[later]: https://example.org/later
"""


@pytest.fixture
def foreign(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A model with a card of somebody's."""
    save(replace(open_bundle("sentiment"), card=CARD, card_zh=""), tmp_path / "foreign")
    monkeypatch.setenv(MORE_MODELS, str(tmp_path))
    forget_models()


@pytest.mark.parametrize("page", ["home", "my_model"])
@pytest.mark.parametrize("language", ["en", "zh"])
def test_the_card_of_a_model_that_is_not_ours_is_shown_as_plain_text(page: str, language: str, foreign: None) -> None:
    app = run(page, model="foreign", lang=language)
    assert not app.exception
    shown = told(app)
    heading, *lines = [line for line in CARD.splitlines() if line]
    assert f"**{heading.removeprefix('# ')}**" in shown
    for line in lines:
        assert plain(line) in shown
        assert line not in shown


def test_a_model_without_a_card_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    save(replace(open_bundle("sentiment"), card="", card_zh=""), tmp_path / "bare")
    monkeypatch.setenv(MORE_MODELS, str(tmp_path))
    assert words("en")["model.no_card"] in told(run("home", model="bare"))


def test_a_card_keeps_its_layout_and_nothing_that_reaches_out() -> None:
    assert safe_line("## A [b](http://c.d)") == f"\n**A {plain('[b](http://c.d)')}**\n"
    assert safe_line("| `a*b` | **no** | ![x](y) |") == f"| `a*b` | **no** | {plain('![x](y)')} |"
    assert safe_line("|---|:-:|") == "| --- | :-: |"
    assert safe_line("- <b>x</b> ` :red[y]") == f"- {plain('<b>x</b> ` :red[y]')}"
