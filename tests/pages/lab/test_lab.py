"""The Lab: every part on every kind of model, with numbers that are those of the engine, and a log that repeats."""

import csv
import io
import json
import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from streamlit.testing.v1 import AppTest

from pages.kit.exports import rows_csv
from pages.lab.edits import MOST_EDITS
from pages.lab.figures import numbered, on_off_board, tables
from pages.lab.heads import adds_up, heads_in
from pages.lab.log import rows_from
from pages.lab.outcome import N_CONTROLS, signed_nats
from pages.lab.script import script_of
from pages.lab.table import Window
from tests.helpers import ROOT, nightly_but
from tests.helpers.figures import unpack
from tests.helpers.made_runs import SPECS, made_run
from tests.helpers.pages import first_screen, metrics, minus, told, told_by
from transformer_core import load
from transformer_core.analysis.lab.changes import changes_of
from transformer_core.analysis.lab.heads_off import few_heads, head_boards
from transformer_core.analysis.lab.intervention import intervene, intervene_on_set
from transformer_core.analysis.lab.minimal_pairs import patch_on_pairs
from transformer_core.analysis.lab.weight_curve import weight_curve, weight_table
from transformer_core.analysis.lab.weights import matrices_of
from transformer_core.prompt import Prompt

TEXTS = {
    "sentiment": "The film was not good.",
    "bert": "the food was [MASK] good",
    "gpt": "Lily had a dog. The dog's name was",
    "translation-en-fr": "A man is riding a horse.",
    "lm-gru": "To be, or not to",
    "seq2seq-en-fr": "A man is riding a horse.",
}
OTHERS = TEXTS | {
    "sentiment": "The film was very good.",
    "bert": "the weather was [MASK] good",
    "gpt": "Lily had a cat. The cat's name was",
    "translation-en-fr": "A woman is riding a horse.",
    "lm-gru": "To do, or not to",
    "seq2seq-en-fr": "A woman is riding a horse.",
}
PARTS = ("heads", "patch", "weights", "steer", "side", "log")
SITE = "encoder.layer0.residual"
QUERY = "encoder.stack.layers.0.self_attention.query_proj.weight"
STROKES = [[0.0, [[0, 0, 192, 40]]], [1.5, [[3, 4, 2, 1]]]]
PAINTED = json.dumps([{"code": [QUERY, "paint", 0.0, 0, STROKES], "on": True}])
OUTSIDE = json.dumps([{"code": [QUERY, "paint", 0.0, 0, [[0.0, [[0, 0, 193, 1]]]]], "on": True}])
PRUNED = json.dumps([{"code": [QUERY, "prune", 0.9, 0, []], "on": True}])


def lab(part: str, model: str = "sentiment", **query: str) -> AppTest:
    query.setdefault("text", TEXTS.get(model, TEXTS["sentiment"]))
    return first_screen("lab", lab_part=part, model=model, **query)


def read_here() -> Prompt:
    """Return the sentence as the classifier reads it, outside the app."""
    bundle = load(ROOT / "assets/checkpoints/sentiment")
    return Prompt(bundle, TEXTS["sentiment"], len(bundle.tokenizer.encode(TEXTS["sentiment"])))


EVERY = [(number + place, part, model) for number, part in enumerate(PARTS) for place, model in enumerate(TEXTS)]


@pytest.mark.parametrize(("turn", "part", "model"), nightly_but(EVERY, lambda case: case[0] % 6 == 0))
def test_every_part_opens_on_every_kind_of_model(turn: int, part: str, model: str) -> None:
    app = lab(part, model, lab_other=OTHERS[model], shown="lab_patch", lang="zh" if model == "gpt" else "en")
    assert not app.exception, [one.message for one in app.exception]
    if part == "heads" and model.startswith(("lm", "seq")):
        assert "no heads" in told(app)


def test_heads_that_are_off_change_the_answer_as_the_engine_says() -> None:
    app = lab("heads", lab_off="encoder.0.1-encoder.3.0")
    changes = tuple(("head", f"encoder.layer{layer}.self_attention", head, "zero") for layer, head in ((0, 1), (3, 0)))
    found = intervene(prompt=read_here(), changes=changes)
    shown = metrics(app)
    assert shown["ln p of negative"] == minus(f"{found.before:.2f} → {found.after:.2f}")
    random = intervene(prompt=read_here(), changes=changes, controls=N_CONTROLS).controls - found.before
    assert shown["19 random changes of equal size"] == minus(f"{random.min():+.3f} … {random.max():+.3f}")
    assert heads_in("encoder.0.1-encoder.3.0") == {("encoder", 0, 1), ("encoder", 3, 0)}


def test_with_all_heads_off_there_is_nothing_to_compare_with() -> None:
    app = lab("heads", lab_off="-".join(f"encoder.{layer}.{head}" for layer in range(4) for head in range(8)))
    assert metrics(app)["0 random changes of equal size"] == "–"


SHARES = [("encoder.0.0", "cannot be told apart"), ("all", "right less often")]


@pytest.mark.parametrize(("off", "said"), nightly_but(SHARES, SHARES[1:]))
def test_two_shares_on_built_in_texts_have_their_intervals_and_are_told_apart_by_their_texts(
    off: str, said: str
) -> None:
    heads = [(layer, head) for layer in range(4) for head in range(8)] if off == "all" else [(0, 0)]
    app = lab("heads", lab_off="-".join(f"encoder.{layer}.{head}" for layer, head in heads), lab_on_set="on")
    changes = tuple(("head", f"encoder.layer{layer}.self_attention", head, "zero") for layer, head in heads)
    found = intervene_on_set(bundle=load(ROOT / "assets/checkpoints/sentiment"), changes=changes)
    low, high = found.bounds[1]
    assert f"95%: {low:.1%} to {high:.1%}" in told(app)
    assert metrics(app)["right, changed"] == f"{found.accuracy[1]:.1%}"
    assert f"of 200 texts, {found.difference.worse} " in told(app)
    assert f"loss {-found.mean[1]:.3f} nats" in told(app)
    assert f"The loss of an answer changes by {signed_nats(found.loss.moved)} nats (95%: " in told(app)
    assert said in told(app)


PASTED = "A dull film.\tnegative\nI loved it.\tpositive\nNot my thing.\tnegative"


def test_a_pasted_set_is_what_all_three_measures_read_and_its_link_has_it() -> None:
    bundle = load(ROOT / "assets/checkpoints/sentiment")
    among = (("A dull film.", 0), ("I loved it.", 1), ("Not my thing.", 0))
    chosen = {"lab_set": "pasted", "lab_pasted": PASTED}
    app = lab("heads", lab_off="encoder.0.0", lab_on_set="on", lab_few="on", lab_on="set", shown="lab_orders", **chosen)
    changes = (("head", "encoder.layer0.self_attention", 0, "zero"),)
    found = intervene_on_set(bundle=bundle, changes=changes, among=among)
    assert metrics(app)["right, as it is"] == f"{found.accuracy[0]:.1%}"
    assert "3 of the 3 texts of your set" in told(app)
    few = few_heads(prompt=read_here(), on="set", among=among)
    assert f"at random {few.areas[2]:.3f}" in told(app)
    assert app.query_params["lab_pasted"] == PASTED
    app = lab("weights", lab_curve="on", lab_curve_operation="prune", shown="lab_breaks", **chosen)
    curve = weight_curve(
        prompt=read_here(), parameter=app.selectbox("lab_matrix@lab").value, operation="prune", among=among
    )
    assert curve.breaks < 0 or f"of {curve.whole:.1%} before" in told(app)


@pytest.mark.parametrize(
    ("chosen", "said"),
    [
        ({"lab_set": "file"}, "bring the file again"),
        ({"lab_set": "pasted"}, "must be pasted again"),
        ({"lab_set": "pasted", "lab_pasted": "好电影\t1\n很难看\t0"}, "% of the tokens of these texts are unknown to"),
        ({"lab_set": "pasted", "lab_pasted": "A dull film.\tdull"}, "is no class of"),
    ],
)
def test_a_set_that_is_not_there_or_cannot_be_read_is_told(chosen: dict[str, str], said: str) -> None:
    app = lab("heads", lab_off="encoder.0.0", lab_on_set="on", **chosen)
    assert said in told(app).replace("\\", "")
    assert "Give a set of texts that can be read first." in told(app)


def test_the_model_of_a_run_is_measured_and_steered_by_its_own_texts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("VITRINE_RUNS", str(tmp_path))
    rows = [{"text": f"{word} {number}", "label": label} for number in range(40) for label, word in enumerate("ab")]
    data = replace(SPECS["classifier"].data, source="table", file="data.jsonl", labels=("calm", "angry"), held_out=16)
    run = made_run(tmp_path, replace(SPECS["classifier"], data=data), data="\n".join(map(json.dumps, rows)).encode())
    app = lab("steer", f"run:{run.id}", text="a good day", lab_on_set="on")
    assert not app.exception
    shown = told(app)
    assert "16 texts that the run held out" in shown
    found = intervene_on_set(bundle=run.model(), changes=(("steer", SITE, 1.0, ("classes", "", "", 0, -1), -1),))
    assert metrics(app)["right, changed"] == f"{found.accuracy[1]:.1%}"
    labels = next(choice for choice in app.segmented_control if str(choice.key).startswith("lab_source")).options
    assert any("angry − calm" in str(label).replace("\\", "") for label in labels)


def test_weights_stack_and_each_can_be_switched_off() -> None:
    app = lab("weights", lab_weights=PRUNED)
    assert "1**" in told(app)
    before = metrics(app)["change, nats"]
    app.button(key="lab_add").click().run()
    assert "2**" in told(app)
    app.button(key="lab_turn_1").click().run()
    assert metrics(app)["change, nats"] == before
    app.button(key="lab_turn_0").click().run()
    assert metrics(app)["change, nats"] == "0"
    app.button(key="lab_drop_1").click().run()
    app.button(key="lab_drop_0").click().run()
    assert "lab_weights" not in app.query_params


@pytest.mark.nightly
def test_one_row_edits_every_matrix_of_a_kind() -> None:
    edits = [{"code": ["*attention", "round", 2, 0, []], "on": True}]
    app = lab("weights", lab_weights=json.dumps(edits), lab_matrix="*attention")
    model = load(ROOT / "assets/checkpoints/sentiment", device="cpu").model
    named = matrices_of(model, "*attention")
    assert len(named) == 16
    found = intervene(prompt=read_here(), changes=tuple(("weights", name, "round", 2, 0, ()) for name in named))
    assert metrics(app)["ln p of negative"] == minus(f"{found.before:.2f} → {found.after:.2f}")
    assert "attention: 16 matrices" in "".join(button.label for button in app.button).replace("\\", "")
    assert "the first is shown: encoder.layer0.self_attention.query_proj" in told(app)
    app.selectbox(key="lab_matrix@lab").set_value("*").run()
    app.button(key="lab_add").click().run()
    assert [one["code"][0] for one in json.loads(app.query_params["lab_weights"])] == ["*attention", "*"]
    assert not app.exception


@pytest.mark.parametrize("bad", [["*x", "zero", 0, 0, []], ["*", "paint", 0, 0, [[1.0, [[0, 0, 1, 1]]]]]])
def test_a_kind_that_is_none_or_is_painted_is_left_out(bad: list) -> None:
    app = lab("weights", lab_weights=json.dumps([{"code": bad, "on": True}]))
    assert not app.exception
    assert metrics(app)["change, nats"] == "0"
    assert STRANGE in told(app)


@pytest.mark.nightly
def test_the_table_says_what_turns_the_answer_alone_and_together() -> None:
    chosen = {"lab_set": "pasted", "lab_pasted": PASTED, "lab_table_operation": "round", "shown": "lab_flips"}
    app = lab("weights", lab_table="on", **chosen)
    among = (("A dull film.", 0), ("I loved it.", 1), ("Not my thing.", 0))
    found = weight_table(prompt=read_here(), operation="round", among=among)
    turned = [row for row, held in zip(found.rows, found.held, strict=True) if held < len(found.strengths)]
    alone = [row for row in turned if not row.startswith("*")]
    assert (len(turned), found.texts) == (len(alone) + 2, 3)  # all, attention
    said = told(app)
    assert f"Alone, {len(alone)} of 26 matrices turn" in said
    assert "Together (all 26 matrices), the answer turns first at round 3" in said


@pytest.mark.parametrize(
    ("together", "apart", "word"),
    [(-1.0, -0.9, "adds"), (-1.0, -0.89, "more"), (-0.89, -1.0, "less"), (0.0, 0.0, "adds"), (0.5, -0.4, "more")],
)
def test_effects_add_up_or_not_as_their_sum_says(together: float, apart: float, word: str) -> None:
    assert adds_up(together, apart) == word


def test_what_heads_do_together_stands_beside_the_sum_of_what_each_does() -> None:
    app = lab("heads", lab_off="encoder.0.0-encoder.0.2-encoder.1.7")
    change = head_boards(prompt=read_here()).change["encoder"]
    apart = float(change[0, 0] + change[0, 2] + change[1, 7])
    assert f"these 3 heads change the answer by {signed_nats(apart)} nats in all, together" in told(app)
    assert "in all, together" not in told(lab("heads", lab_off="encoder.0.0"))


def test_a_bert_is_asked_for_the_token_that_is_chosen_in_a_text_without_a_mask() -> None:
    app = lab("heads", "bert", text="The children are playing in the park.")
    assert not metrics(app)
    assert "the text has no [MASK]" in told(app).replace("\\", "")
    next(button for button in app.button if button.label == "playing").click().run()
    assert app.text_input[0].value == "The children are [MASK] in the park."
    bundle = load(ROOT / "assets/checkpoints/bert", device="cpu")
    found = intervene(prompt=Prompt(bundle, "The children are [MASK] in the park.", 128), changes=(), controls=0)
    assert minus(f"{found.before:.2f} → {found.before:.2f}") in metrics(app).values()


def test_any_token_of_the_vocabulary_is_measured_and_what_is_none_is_told() -> None:
    app = lab("heads", "gpt", text="Once upon a", lab_answer="typed", lab_typed=" dog")
    bundle = load(ROOT / "assets/checkpoints/gpt", device="cpu")
    found = intervene(prompt=Prompt(bundle, "Once upon a", 256), changes=(), answer=" dog")
    assert found.answer not in found.outcomes[:5]
    shown = metrics(app)
    assert next(value for name, value in shown.items() if "dog" in name) == minus(
        f"{found.before:.2f} → {found.before:.2f}"
    )
    app.text_input(key="lab_typed@lab").set_value(" dog sees a").run()
    assert not app.exception
    assert "it must be one token that" in told(app)
    assert metrics(app) == shown


def test_painted_strokes_are_one_edit_and_the_last_is_taken_back() -> None:
    app = lab("weights", lab_weights=PAINTED, lab_which="paint")
    assert "7,680 numbers painted, strokes: 2" in "".join(button.label for button in app.button).replace("\\", "")
    strokes = tuple((value, tuple(map(tuple, blocks))) for value, blocks in STROKES)
    for count in (2, 1):
        changes = (("weights", QUERY, "paint", 0.0, 0, strokes[:count]),)
        found = intervene(prompt=read_here(), changes=changes)
        assert metrics(app)["ln p of negative"] == minus(f"{found.before:.2f} → {found.after:.2f}")
        app.button(key="lab_undo").click().run()
    assert "lab_weights" not in app.query_params
    assert metrics(app)["change, nats"] == "0"


def test_a_stroke_over_a_summary_writes_all_that_each_cell_stands_for() -> None:
    table = np.arange(35.0).reshape(5, 7)
    whole = Window(0, 0, 5, 7, rows=2, cols=3)
    np.testing.assert_array_equal(whole.cells(table), [[9, 12, 13], [23, 26, 27], [30, 33, 34]])
    assert whole.labels() == (("0 …", "2 …", "4 …"), ("0 …", "3 …", "6 …"))
    assert whole.painted(((5, 1), (8, 1))) == ((2, 6, 3, 1),)
    part = Window(1, 2, 3, 4)
    np.testing.assert_array_equal(part.cells(table), table[1:4, 2:6])
    assert part.painted(((0, 2), (11, 40))) == ((1, 2, 1, 2), (3, 5, 1, 1))


STRANGE, BROKEN = "1 edit of this link is left out: this model has no such matrix", "edits of this link cannot be read"
LINKS = [("[", BROKEN), ("[1]", BROKEN), ('[{"code": 3}]', BROKEN), ("[" * 9_000, BROKEN), (OUTSIDE, STRANGE)]


@pytest.mark.parametrize(("given", "said"), [*LINKS, ('[{"code": ["x","zero",0,0,[]],"on":1}]', STRANGE)])
def test_a_broken_link_leaves_the_weights_alone_and_is_told(given: str, said: str) -> None:
    app = lab("weights", lab_weights=given)
    assert not app.exception
    assert metrics(app)["change, nats"] == "0"
    assert said in told(app)


@pytest.mark.parametrize(("count", "beyond"), [(MOST_EDITS, 0), (MOST_EDITS + 1, 1), (MOST_EDITS + 3, 3)])
def test_edits_beyond_the_bound_are_counted_in_words(count: int, beyond: int) -> None:
    edits = [{"code": [QUERY, "scale", 1.0, 0, []], "on": False}] * count
    app = lab("weights", lab_weights=json.dumps(edits))
    assert f"{MOST_EDITS}**" in told(app)
    assert ("left out" in told(app)) == (beyond > 0)
    if beyond:
        assert f"{beyond} {'edit' if beyond == 1 else 'edits'} of this link" in told(app)


def test_a_curve_over_strengths_is_drawn_of_the_set_and_of_the_text() -> None:
    app = lab("weights", lab_curve="on", lab_curve_operation="scale", shown="lab_breaks")
    charts = [json.loads(chart.proto.spec) for chart in app.get("vega_lite_chart")]
    assert any("this text: ln p of its answer" in json.dumps(chart) for chart in charts), len(charts)


def test_of_a_second_text_that_is_too_long_the_part_read_is_told() -> None:
    bundle = load(ROOT / "assets/checkpoints/sentiment")
    count = len(bundle.tokenizer.encode("good " * 126))
    assert count == 128
    for times, said in ((126, False), (127, True)):
        other = "good " * times
        for app in (lab("side", lab_other=other), first_screen("encoder", encoder_part="edit", encoder_other=other)):
            assert ("The first 128 of 129 tokens are read." in told(app)) == said


def test_two_texts_that_are_answered_alike_are_told() -> None:
    app = lab("patch", lab_other=TEXTS["sentiment"])
    assert "leaves no difference to bring back" in told(app)


def test_a_board_carries_what_its_clicks_mean_and_a_brush_its_number() -> None:
    words = {"layer": "layer", "head": "head", "on": "on", "alone": "alone", "quantity": "nats"}
    off = {("encoder", 0, 1), ("cross", 1, 0)}
    board = on_off_board(np.zeros((2, 2)), "encoder", off, words, {})
    header, arrays = unpack(board.to_bytes())
    names = ["cross.1.0", "encoder.0.1"]
    assert header["switches"] == {"panel": "on", "name": "lab_off", "of": "encoder", "off": names}
    assert arrays["on"].tolist() == [[1, 0], [1, 1]]
    sides = {"rows": {"matrix": numbered(2)}, "columns": {"matrix": numbered(3)}, "filename": "matrix"}
    words |= {"row": "row", "column": "column"}
    painted = tables({"matrix": np.ones((2, 3))}, words=words, brush=-0.5, **sides)
    assert unpack(painted.to_bytes(stamp=4))[0]["paint"] == {"panel": "0", "stamp": 4, "value": -0.5}
    with pytest.raises(ValueError, match="to be brushed"):
        replace(painted, detail="quantised")


def test_a_patch_is_measured_on_built_in_pairs_too() -> None:
    app = lab("patch", lab_pairs="on", lab_other="The film was very good.", pin_lab_patch_map="0.2.0")
    prompt = read_here()
    asked = {"other": prompt.with_text("The film was very good."), "stack": "encoder"}
    found = patch_on_pairs(prompt=prompt, place="residual", layer=2, position=0, **asked)
    assert f"**{found.shares.mean():.0%}** of the difference comes back on average over 48 pairs" in told(app)
    assert "where the answer is read" in told(app)


def test_a_bert_without_a_mask_is_told() -> None:
    assert "[MASK]" in told(lab("heads", "bert", text="the food was good")).replace("\\", "")


def test_lists_of_ones_own_steer_as_the_engine_says() -> None:
    first, second = "I loved it.\nWhat a great day!\nSo kind.", "I hated it.\nAwful."
    app = lab("steer", lab_source="texts", lab_first=first, lab_second=second)
    change = ("steer", "encoder.layer1.residual", 1.0, ("texts", first, second, 0, -1), -1)
    found = intervene(prompt=read_here(), changes=(change,))
    assert metrics(app)["ln p of negative"] == minus(f"{found.before:.2f} → {found.after:.2f}")
    assert "Mean stream of 3 on the left less that of 2" in told(app)


def logged(app: AppTest, part: str) -> AppTest:
    app.button(key=f"log_{part}").click().run()
    return app


def test_the_log_repeats_every_row_and_checks_it(tmp_path: Path) -> None:
    app = logged(lab("heads", lab_off="encoder.0.1-encoder.1.2"), "heads")
    for part, rest in (("weights", {"lab_weights": PRUNED}), ("steer", {"lab_source": "neuron"}), ("patch", {})):
        for name, value in rest.items():
            app.query_params[name] = value
        app.query_params["lab_part"] = part
        app.session_state["lab_part@lab"] = part
        app.run()
        logged(app, part)
    rows = app.session_state["lab_log"]
    assert [json.loads(row["changes"])[0][0] for row in rows] == ["head", "weights", "steer", "patch"]
    assert rows[0]["transformer_lens"].startswith("blocks.0.attn.hook_z")
    assert all(row["random_least"] <= row["random"] <= row["random_most"] for row in rows)
    for row, note in zip(
        rows, ("=1+1; 这部电影并不差，去掉这个头以后，模型几乎没有改变", "'=x", "＝x, y", ' a "b"\\'), strict=True
    ):
        row["note"] = note
    assert rows_from(json.dumps(rows).encode()) == rows
    table = list(csv.reader(io.StringIO(rows_csv(rows))))
    german = [[re.sub(r"^(-?\d+)\.(\d+)$", r"\1,\2", cell) for cell in row] for row in table]
    for again, delimiter, encoding in ((table, ",", "utf-8-sig"), (german, ";", "utf-8-sig"), (table, ",", "gb18030")):
        text = io.StringIO()
        csv.writer(text, delimiter=delimiter).writerows(again)
        assert rows_from(text.getvalue().encode(encoding)) == rows, encoding
    assert [json.loads(row["changes"]) for row in rows] == [
        json.loads(json.dumps([list(code) for code in json.loads(row["changes"])])) for row in rows
    ]
    assert all(changes_of(json.loads(row["changes"])) for row in rows)
    said, error = told_by(script_of(rows), tmp_path)
    assert not error
    assert said.count("ok") == len(rows)
    wrong = [dict(rows[0], after=rows[0]["after"] + 0.1)]
    _, error = told_by(script_of(wrong), tmp_path)
    assert "1 of 1 rows differ" in error


@pytest.mark.parametrize(
    "raw",
    [b"\xff\xfe", b"{", b"[1]", b'[{"changes": "[[1]]"}]', b"[" * 100_000, b'[{"before": "x"}]', b"[0]" + b" " * 9],
)
def test_a_broken_log_is_told(raw: bytes) -> None:
    with pytest.raises(ValueError, match=r"\w"):
        rows_from(raw)
