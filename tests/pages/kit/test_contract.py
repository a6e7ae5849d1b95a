"""The contract of a part, without a browser: what holds for every part of every page, whatever a link and a text say.

A part opens on a picture, in both languages; no covered picture tells its answer; odd values in a link are refused in
words or let be, odd texts are answered in words, and nothing that was typed is lost.
"""

import re
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from streamlit.runtime.state import QueryParamsProxy
from streamlit.testing.v1 import AppTest

from pages.kit.header import whole_words, word_start
from pages.kit.models import KINDS_OF_PAGE, open_bundle
from pages.kit.verdict import Verdict
from pages.language import LANGUAGES, plain, prose, words
from tests.helpers import nightly_but
from tests.helpers.engine import TODAY
from tests.helpers.made_runs import SPECS, made_run
from tests.helpers.pages import ALL_SCREENS, SCREENS, asks, named, note, run, show_all, texts, told
from transformer_core.bundle import Bundle
from transformer_core.training.runs.run_list import RunList
from transformer_core.training.runs.store.folder import DATABASE, SPEC
from transformer_core.training.runs.store.records import State

PICTURES = ("vega_lite_chart", "bidi_component", "plotly_chart", "metric", "html")
NO_PICTURES = ("underway_sign", "share", "live")  # keys of components; the last is there where the server is live
BESIDE = {  # how many more exports than pictures: of tables; fewer where one is of two, and none is of the diagram
    ("attention", "tendencies"): 1,
    ("encoder", "agree"): -1,
    ("gpt", "cache"): -1,
    ("home", ""): -1,
    ("norm", "orders"): 2,
    ("positions", "matrix"): -3,  # this page's parts have one export each
    ("positions", "exponent"): -2,
    ("positions", "schemes"): -2,
    ("positions", "sum"): -2,
    ("positions", "beyond"): -1,
    ("translation", "toy"): -1,
}


PLACE = re.compile(r"{[a-z_]\w*}|{\w+:[^{}|]*\|")
MANY = {form for word in words("en").values() for form in re.findall(r"{\w+:[^|}]*\|(\w+s)}", word)}
ONE_OF_MANY = re.compile(rf"(?<![\d.,])\b1 ({'|'.join(sorted(MANY))})\b")


def reads_well(app: AppTest) -> None:
    """Check that no text of a page has a place that nothing was put into, nor 1 of what is many, such as "1 tokens"."""
    for text in texts(app):
        assert not PLACE.search(text), text
        assert not ONE_OF_MANY.search(text), text


def places(block: object, above: str = "") -> Iterator[tuple[str, object]]:
    """Yield all blocks and elements below a block, each with the names of the blocks that it is or lies in."""
    for child in getattr(block, "children", {}).values():
        is_block = hasattr(child, "children")
        names = f"{above} {getattr(getattr(child, 'proto', None), 'id', '')}" if is_block else above
        yield names, child
        yield from places(child, names)


def under_covers(app: AppTest) -> Iterator[object]:
    """Yield every element that lies in a covered picture."""
    return (one for names, one in places(app.main) if "cover_" in names and not hasattr(one, "children"))


LINK_NAMES = set((Path(__file__).parent / "link_names.txt").read_text(encoding="utf-8").split())  # shared links stay
SAID_ALONE = {"embeddings_times", "masks_polarity", "translation_whole", "translation_toy_padding", "why_heads"}


def covers(app: AppTest) -> set[str]:
    """Return the names of all covers that lie over a picture; those over the sentence that judges are left out."""
    found = re.findall(r"cover_\w+", " ".join(names for names, _ in places(app.main)))
    return {name for name in found if not name.endswith("_judged")}


ODD = (
    *(
        "9" * 400,
        "-1",
        "nan",
        "inf",
        "1e400",
        "",
        "true",
        "😀",
        "[a](https://example.org)",
        "<b>",
        "٣",
        "999",
        "1.2.900",
    ),
    ["1", "2"],
)


LONG_BOXES = ("corpus_learned_open", "positions_beyond_open", "refit_open")


class Names(set[str]):
    """The names that pages look up in their links, and those of boxes among them."""

    @property
    def boxes(self) -> dict[str, str]:
        """All boxes open, but those in which a model is trained or points are laid out."""
        return dict.fromkeys((name for name in self if name.endswith("_open") and name not in LONG_BOXES), "true")

    def odd(self, shift: int, fixed: dict[str, str]) -> dict[str, str | list[str]]:
        """Each other name with an odd value, another one from name to name and from shift to shift."""
        free = sorted(self - fixed.keys() - self.boxes.keys() - {*LONG_BOXES})
        return {name: ODD[(place + shift) % len(ODD)] for place, name in enumerate(free)}


@pytest.fixture
def looked_up(monkeypatch: pytest.MonkeyPatch) -> Names:
    """Note the names that pages look up."""
    names, look = Names(), QueryParamsProxy.__getitem__

    def note(proxy: QueryParamsProxy, name: str) -> str:
        names.add(name)
        return look(proxy, name)

    monkeypatch.setattr(QueryParamsProxy, "__getitem__", note)
    return names


TURNS = [(turn, number, *screen) for number, screen in enumerate(ALL_SCREENS) for turn in range(3)]


@pytest.mark.parametrize(("turn", "number", "page", "part"), nightly_but(TURNS, lambda case: case[0] == 0))
def test_a_part_opens_on_a_picture_and_stands_whatever_its_link_says(
    looked_up: Names, turn: int, number: int, page: str, part: str
) -> None:
    language = tuple(LANGUAGES)[(number + turn) % 2]
    fixed = named(page, part)
    app = run(page, lang=language, **fixed)
    opens_on_a_picture(app, language, page, part)
    reads_well(app)
    assert "lang" in looked_up
    odd = looked_up.odd(number + 5 * turn, fixed)
    app = run(page, **odd, **looked_up.boxes, **fixed)  # its boxes look up more names
    assert not app.exception, odd
    reads_well(app)
    asked = {str(one.key).split()[1] for one in asks(app)} - SAID_ALONE  # by a sentence, without a picture
    new = looked_up - LINK_NAMES
    assert not new, f"links have new names: put {sorted(new)} into link_names.txt; an old name goes on being read"
    bare = {name for name in asked if not any(place.startswith(f"cover_{name}") for place in covers(app))}
    assert not bare or app.info, bare  # where nothing can be measured, a line says so
    assert "](" not in "".join(toast.value for toast in app.toast).replace("\\](", "")


def opens_on_a_picture(app: AppTest, language: str, page: str, part: str) -> None:
    """Check a part as a bare link opens it: no error, each picture is offered as files, no cover tells its answer."""
    assert not app.exception
    assert not app.error
    assert not app.toast
    assert f"{page}.heading" not in words(language) or words(language)[f"{page}.heading"] in told(app)
    looked = prose(language, page).get(f"look_{part}", "") if page == "encoder" else ""
    assert all(paragraph in told(app) for paragraph in looked.split("\n\n"))  # the picture stands between them
    assert not part or app.session_state["part"] == part
    if (page, part) not in SCREENS:
        return
    assert any(app.get(kind) for kind in PICTURES)
    offered = [one for one in app.get("popover") if one.proto.popover.label == words(language)["export.heading"]]
    drawn = [one for one in app.get("bidi_component") if not str(one.key).startswith(NO_PICTURES)]
    assert len(offered) == len(app.get("vega_lite_chart")) + len(drawn) + BESIDE.get((page, part), 0)
    ways = [button for button in app.button if str(button.key).startswith("show_")]
    assert [button.label for button in ways] == [words(language)["try.show"]] * len(asks(app))
    written = [element for element in under_covers(app) if getattr(element, "type", "") in ("markdown", "caption")]
    assert bool(written) <= bool(ways)
    for element in written:
        assert not re.search(r"[0-9a-mo-z]", element.value.lower().replace("\\n", "")), element.value  # type: ignore[attr-defined]
    for element in under_covers(app):
        said = getattr(element.proto, "body", "") if getattr(element, "type", "") == "html" else ""
        assert not re.search("[0-9]%", re.sub("<.*?>", "", said)), said
    for element in under_covers(app):
        assert getattr(element, "type", "") != "metric" or element.value == "–"  # type: ignore[attr-defined]


def test_an_open_picture_stays_open_for_another_text_and_in_a_link() -> None:
    app = run("encoder", encoder_part="sum", text="A dull film.")
    asks(app)[0].set_value("0").run()
    assert app.query_params["shown"] == "score_layer"
    judged = [words("en")["try.right"], words("en")["try.wrong"].partition("{")[0]]
    assert any(said in element.value for said in judged for element in app.markdown)
    app.text_input(key="text@encoder").set_value("A lovely film.").run()
    assert asks(app)[0].value is None
    assert any(words("en")["try.shown"].partition("{")[0] in element.value for element in app.markdown)
    assert not any(said in element.value for said in judged for element in app.markdown)
    linked = run("encoder", encoder_part="sum", text="A lovely film.", shown="score_layer")
    assert [element.value for element in linked.markdown] == [element.value for element in app.markdown]
    app.button(key="hide_score_layer").click().run()
    assert "shown" not in app.query_params
    assert show_all(app).query_params["shown"] == "score_layer"


@pytest.mark.parametrize("shown", ["<b>", "a" * 5_000, "nosuchpart.", "\u202e"])
def test_odd_names_of_open_pictures_are_survived(shown: str) -> None:
    app = run("norm", norm_part="depth", shown=shown)
    assert not app.exception
    assert not app.error


@pytest.fixture
def runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The ids of runs of every state: finished ones of every kind, unfinished ones, one not yet begun."""
    monkeypatch.setenv("VITRINE_RUNS", str(tmp_path))
    states: tuple[State, ...] = ("stopped", "failed", "queued", "running", "paused")
    made = [made_run(tmp_path, spec) for spec in SPECS.values()]
    made += [made_run(tmp_path, state=state, message="out of memory") for state in states]
    made.append(RunList(tmp_path).create(SPECS["classifier"]))
    return [run.id for run in made]


def broken(root: Path) -> None:
    """Leave runs of which nobody can read one file or the other."""
    for damage in (SPEC, DATABASE):
        (made_run(root).folder / damage).write_bytes(b"damaged" * 100)


@pytest.mark.parametrize("shift", nightly_but(range(len(ODD)), {0}))
@pytest.mark.parametrize("page", ["train", "compare", "sweep"])
def test_no_odd_value_makes_a_page_of_runs_fail(
    looked_up: Names, page: str, shift: int, runs: list[str], tmp_path: Path
) -> None:
    broken(tmp_path)
    fixed = {"run": runs[0], "other": runs[4]}
    assert not run(page, **fixed).exception
    assert not run(page, **looked_up.odd(shift, fixed), **looked_up.boxes, **fixed).exception
    assert not run(page, run=ODD[shift], other=ODD[shift]).exception


@pytest.mark.parametrize("page", nightly_but(["train", "compare", "sweep"], ["compare"]))
def test_a_run_of_any_state_is_shown_among_broken_ones(page: str, runs: list[str], tmp_path: Path) -> None:
    broken(tmp_path)
    for first, other in zip(runs, [*runs[1:], runs[0]], strict=True):
        app = run(page, run=first, other=other, runs_open="true", same_but_open="true", try_open="true")
        assert not app.exception, (first, other)


@pytest.mark.parametrize("page", ["train", "compare", "sweep"])
def test_no_run_but_broken_ones_leaves_a_page_that_stands(page: str, tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setenv("VITRINE_RUNS", str(tmp_path))
    for _ in range(2):  # without any run, then with broken ones alone
        app = run(page, runs_open="true")
        assert not app.exception
        broken(tmp_path)


DROPPED = ("\ufffd", "\u2061", "\u202e", "\0", "\U000e0041", "\u200b\ufeff")  # by the tokenizer of BERT and the like
BLANK = " \t\u3000\u2028\xa0"
SPECIAL = ("[MASK]", "[PAD]", "[UNK]", "[SEP]")
READ = ("a", "🙂 مرحبا 你好", "x" * 1_990, "good film " * 190)
ODD_TEXTS = (*DROPPED, BLANK, *SPECIAL, *READ)
BOXES_OPEN = dict.fromkeys(("bert_hardest_open", "bert_each_layer_open", "glass_open", "gpt_guess_open"), "true")
DROPPING = {"translation": "translation-zh-en"}  # of pages whose usual model knows each byte
KNOWING_BYTES = ("gpt", "before", "since")
TEXTS = [(text, number, *screen) for number, screen in enumerate(SCREENS) for text in ODD_TEXTS]


def in_turn(case: tuple) -> bool:
    """Tell whether the gate runs a case: the texts take turns over every fifth part; one header reads them all."""
    text, number, *_ = case
    return text == ODD_TEXTS[number // 5 % len(ODD_TEXTS)] and number % 5 == 0


@pytest.mark.parametrize(("text", "number", "page", "part"), nightly_but(TEXTS, in_turn))
def test_a_text_without_a_token_of_its_own_is_answered_in_words_and_not_lost(
    text: str, number: int, page: str, part: str
) -> None:
    model = {"model": DROPPING[page]} if page in DROPPING and text not in SPECIAL else {}
    app = run(page, text=text, **named(page, part), **model, **(BOXES_OPEN if text in SPECIAL else {}))
    assert not app.exception, ascii(text)
    reads_well(app)
    if text == BLANK:
        assert words("en")["text.empty"] in note(app)
        return
    assert app.text_input[0].value == text
    if text in DROPPED and page not in KNOWING_BYTES:
        assert words("en")["text.nothing_known"] in note(app)


def test_a_verdicts_names_and_the_line_under_the_box_are_text() -> None:
    bar = Verdict(("<b>good</b>", "bad"), (0.7, 0.3), 0, note="<i>").html("<u>")
    assert not re.search("<[biu]>", bar)
    app = run("attention", text="<b>A film</b>")
    app.text_input(key="text@attention").set_value("").run()
    lines = "".join(one.proto.body for one in app.get("html") if "text-line" in one.proto.body)
    assert "&lt;b&gt;A film" in lines
    assert "<b>" not in lines


@pytest.mark.parametrize("language", LANGUAGES)
def test_a_bert_whose_text_has_no_word_to_hide_says_so(language: str) -> None:
    for part, box in (("fill", "bert_hardest_open"), ("layers", "bert_each_layer_open")):
        app = run("bert", lang=language, bert_part=part, text="[MASK]", **{box: "true"})
        assert not app.exception
        assert words(language)["bert.no_word"] in [one.value for one in app.info]


STANDING = ("zero", "denormal", "large", "biased", "short")
ODD_MODELS = [
    (page, part, kind, weights) for page, part in SCREENS for kind in KINDS_OF_PAGE[page] for weights in STANDING
]
ODD_MODELS += [
    (page, part, "gpt", options) for page, part in SCREENS if "gpt" in KINDS_OF_PAGE[page] for options in TODAY
]
SOME_ODD_MODELS = (
    ("attention", "flow", "gpt", "short"),
    ("before", "gates", "lm", "zero"),
    ("bert", "layers", "bert", "denormal"),
    ("attention", "heads", "gpt", "llama"),
    ("feed_forward", "neurons", "classifier", "biased"),
    ("feed_forward", "neurons", "gpt", "gemma3"),
    ("feed_forward", "neurons", "gpt", "mixture"),
    ("feed_forward", "mixture", "gpt", "mixture"),
    ("home", "", "gpt", "shared_expert"),
    ("gpt", "next", "gpt", "gemma2"),
    ("norm", "vector", "encoder", "large"),
    ("norm", "vector", "gpt", "olmo2"),
    ("positions", "schemes", "gpt", "neox"),
    ("translation", "steps", "translation", "short"),
)


@pytest.mark.parametrize(("page", "part", "kind", "weights"), nightly_but(ODD_MODELS, SOME_ODD_MODELS))
def test_a_part_stands_whatever_a_models_weights_are(
    page: str, part: str, kind: str, weights: str, opened_odd: Callable[[str, str], Bundle]
) -> None:
    bundle = opened_odd(kind, weights)
    app = run(page, model=bundle.name, **named(page, part))
    assert not app.exception
    assert app.selectbox(key="model@" if page == "home" else f"model@{page}").value == bundle.name
    needs = [
        text.replace("{name}", bundle.name) for key, text in words("en").items() if re.search(r"\.needs_[a-z]+$", key)
    ]
    shown = ", ".join(open_bundle(bundle.name).labels)
    labels = f"{bundle.name} tells {shown}; the reviews at hand are negative, positive"
    needs.append(words("en")["positions.cannot"].format(error=plain(labels)))
    notes = {element.value for element in (*app.error, *app.info) if bundle.name in element.value}
    assert notes <= {*needs}  # which are said of sound weights, too


BOXES = [  # that a part has besides the header's
    ("encoder", {"encoder_part": "edit"}, "encoder_other", "A dull and quiet film."),
    (
        "translation",
        {"translation_cross_open": "true", "translation_part": "cross"},
        "translation_probe",
        "A red horse.",
    ),
    ("translation", {"translation_part": "search"}, "translation_letters", "abc"),
    ("before", {"before_part": "look", "before_look_open": "true"}, "before_probe", "A red horse."),
    ("gpt", {"gpt_part": "mask"}, "gpt_words", "castle"),
    ("bert", {"bert_part": "pair"}, "bert_second", "He rides a horse."),
    ("masks", {"masks_part": "batch"}, "masks_lines", "a film\nno film at all"),
    ("embeddings", {"embeddings_part": "neighbours"}, "embeddings_word", "dull"),
    ("embeddings", {"embeddings_part": "counts"}, "embeddings_word_en", "boring"),
]


@pytest.mark.parametrize(("page", "query", "box", "text"), nightly_but(BOXES, BOXES[::3]))
def test_an_emptied_box_leaves_its_last_picture(page: str, query: dict[str, str], box: str, text: str) -> None:
    app = run(page, **query, **{box: text})
    assert not app.exception
    pictures = {kind: len(app.get(kind)) for kind in PICTURES[:2]}
    assert sum(pictures.values())
    written = [each for each in [*app.text_input, *app.text_area] if each.key == f"{box}@{page}"]
    written[0].set_value("").run()
    assert not app.exception
    assert {kind: len(app.get(kind)) for kind in PICTURES[:2]} == pictures
    assert words("en")["text.still"].partition("}")[2].partition("{")[0] in note(app)


IN_BOXES = [(text, number, *box) for number, box in enumerate(BOXES) for text in ODD_TEXTS]


@pytest.mark.parametrize(
    ("text", "number", "page", "query", "box", "_"),
    nightly_but(IN_BOXES, in_turn),
)
def test_a_second_box_says_what_it_cannot_read(
    text: str, number: int, page: str, query: dict[str, str], box: str, _: str
) -> None:
    twice = f"{text}\n{text}" if box == "masks_lines" else text
    assert not run(page, **query, **{box: twice}).exception, ascii(text)


@pytest.mark.nightly
def test_a_long_text_is_read_in_a_window_that_moves_back_with_a_shortened_text() -> None:
    app = run("attention", text="good film " * 100)
    assert not app.exception
    offered = [one.proto.popover.label for one in app.get("popover")]
    assert words("en")["text.part_read"].format(count=202, most=128) in offered
    app.slider(key="start@attention").set_value(70).run()
    assert not app.exception
    app.text_input(key="text@attention").set_value("good film " * 70).run()
    assert not app.exception
    assert app.slider(key="start@attention").value == app.slider(key="start@attention").max


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


LONG = [("gpt", "0"), ("gpt", "50"), ("bert", "7"), ("translation", "3"), ("encoder", "11")]


@pytest.mark.parametrize(("name", "start"), nightly_but(LONG, {("gpt", "50"), ("encoder", "11")}))
def test_no_page_shows_more_of_a_long_text_than_is_read(name: str, start: str) -> None:
    text = " ".join(f"the old dog sees {number} trees." for number in range(60))
    app = run(name, text=text, start=start, gpt_part="write", encoder_part="edit", translation_part="cross")
    assert not app.exception
    blocks = [block.value for block in app.code] + [block.proto.body for block in app.get("html")]
    assert "59 trees" not in "".join([told(app), *blocks])
