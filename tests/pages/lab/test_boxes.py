"""What the boxes of Heads off, Patch and Steer say of heads and of steered texts is what the engine measures."""

import json
from collections.abc import Callable
from typing import Literal

import numpy as np
import pytest
import torch
from streamlit.testing.v1 import AppTest

from pages.lab import heads, steer
from pages.lab.outcome import signed_nats
from pages.lab.steer import moved_in_words
from pages.language import plain
from tests.helpers.engine import shipped
from tests.helpers.pages import first_screen, matrices, metrics, minus, told
from transformer_core.analysis.lab.heads_off import compare_ablations
from transformer_core.analysis.lab.intervention import JudgedTexts, intervene, resampled
from transformer_core.analysis.lab.patching import head_ways, two_methods
from transformer_core.bundle import Bundle
from transformer_core.probe import capture
from transformer_core.prompt import Prompt
from transformer_core.shares import Paired

TEXT = "The film was not good."


def lab(part: str, model: str = "sentiment", **query: str) -> AppTest:
    return first_screen("lab", lab_part=part, model=model, **({"text": TEXT} | query))


def read_here() -> Prompt:
    """Return the sentence as the classifier reads it, outside the app."""
    bundle = shipped("sentiment")
    return Prompt(bundle, TEXT, len(bundle.tokenizer.encode(TEXT)))


@pytest.mark.parametrize(("pin", "layer", "head"), [("0.1.3", 1, 3), ("0.3.0", 3, 0), ("0.9.9", 0, 6)])
def test_the_pinned_heads_ways_are_told_and_drawn(pin: str, layer: int, head: int) -> None:
    app = lab(
        "patch", lab_head_ways="on", lab_other="The film was very good.", pin_lab_patch_heads=pin, shown="lab_patch"
    )
    assert not app.exception
    prompt = read_here()
    other = Prompt(prompt.bundle, "The film was very good.", prompt.n_tokens)
    found = head_ways(prompt=prompt, other=other, stack="encoder", layer=layer, head=head)
    said = told(app)
    assert f"Head {layer}.{head} of the first text" in said
    assert minus(f"brings back **{found.total:.0%}** of the difference") in said
    assert minus(f"it is **{found.direct:.0%}**") in said
    assert ("No head comes after it." in said) == (layer == 3)
    if layer < 3:
        part, below, later = np.unravel_index(np.abs(found.ways).argmax(), found.ways.shape)
        way = f"head {layer + 1 + below}.{later}, which reads it by its {('query', 'key', 'value')[part]}"
        assert minus(f"{way}, brings back **{found.ways[part, below, later]:.0%}**") in said
    drawn = [arrays for header, arrays in matrices(app) if header["filename"] in ("lab_head_places", "lab_head_ways")]
    assert len(drawn) == 1 + (layer < 3)


@pytest.mark.parametrize("other", ["The film was very good.", "The play was not good."])
def test_what_two_methods_say_of_heads_is_judged(other: str) -> None:
    app = lab("patch", lab_methods="on", lab_other=other, shown="lab_patch+lab_methods")
    assert not app.exception
    prompt = read_here()
    found = two_methods(prompt=prompt, other=Prompt(prompt.bundle, other, prompt.n_tokens), stack="encoder")
    names = [f"{layer}.{head}" for layer, head in found.heads]
    lost, back = found.most_lost, found.most_back
    said = f"Both name head {names[lost]} first" if lost == back else f"head {names[back]} brings most"
    assert said in told(app)
    for value in (found.lost[lost], found.back[back], found.r):
        assert minus(f"{value:+.2f}") in told(app)


@pytest.mark.parametrize(("low", "high", "word"), [(0.01, 0.2, "moves"), (-0.2, -0.01, "moves"), (-0.01, 0.2, "not")])
def test_whether_steering_moves_a_judge_goes_by_the_interval(low: float, high: float, word: str) -> None:
    found = JudgedTexts(np.zeros((2, 2)), ((), ()), Paired(0.1, low, high, 1, 0, 1.0), None)
    assert moved_in_words(found) == word


def test_steered_continuations_are_judged(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(steer, "CONTINUATIONS", 3)
    app = lab("steer", "gpt", lab_judged="on", lab_writing="off", lang="en")
    assert not app.exception
    assert "Of 3 texts each, sentiment gives “positive” a mean of" in told(app)
    assert "A random direction of the same length" in told(app)


@pytest.mark.parametrize(("how", "said_so"), [("mean", "its mean over texts"), ("resample", "itself on another text")])
def test_zero_is_compared_with_another_way_head_by_head(how: Literal["mean", "resample"], said_so: str) -> None:
    app = lab("heads", lab_ways="on", shown="lab_ways", lab_way=how)
    found = compare_ablations(prompt=read_here(), how=how)
    said = told(app)
    names = [f"{kind} {layer}.{head}" for kind, layer, head in found.heads]
    apart = int(np.abs(found.zero - found.other).argmax())
    assert minus(f"Over 32 heads the correlation is {found.r:+.2f}, without {names[found.most]}") in said
    assert minus(f"They differ most at {names[apart]}: {found.zero[apart]:+.2f} nats") in said
    assert minus(f"{found.other[apart]:+.2f} nats set to {said_so}.") in said
    charts = [json.loads(chart.proto.spec) for chart in app.get("vega_lite_chart")]
    assert any("change of ln p, set to zero" in json.dumps(chart) for chart in charts)


def test_a_sentence_encoder_is_read_side_by_side_and_answers_nothing(opened_odd: Callable[[str, str], Bundle]) -> None:
    bundle = opened_odd("encoder", "biased")
    other = "A dull film."
    app = lab("side", bundle.name, lab_other=other, lab_site="encoder.layer0.residual")
    first = next(figure for header, figure in matrices(app) if header["filename"] == "lab_side")
    ids = torch.tensor([bundle.tokenizer.encode(TEXT).ids])
    expected = capture(bundle.model, ids, sites=("encoder.layer0.residual",))[1]["encoder.layer0.residual"][0]
    np.testing.assert_allclose(first["0"], expected.numpy(), atol=1e-4)
    assert "ln p of the first" not in told(app)
    answering = lab("heads", bundle.name)
    assert "answers nothing that could be measured" in told(answering)


def test_another_text_of_somebodys_is_shown_as_text(monkeypatch: pytest.MonkeyPatch) -> None:
    odd = "a [link](https://example.org) and **bold** <b>markup</b>"
    monkeypatch.setattr(heads, "drawn_texts", lambda _: (odd,) * 24)
    app = lab("heads", lab_how="resample", lab_draw="7")
    assert plain(odd) in told(app)
    assert odd not in told(app)


def test_a_head_writes_for_another_text_and_all_such_texts_have_their_mean() -> None:
    off = ("head", "encoder.layer0.self_attention", 2, "resample", 6)
    app = lab("heads", lab_off="encoder.0.2", lab_how="resample", lab_draw="7")
    found = intervene(prompt=read_here(), changes=(off,), controls=0)
    assert metrics(app)["change, nats"] == signed_nats(found.after - found.before)
    every = resampled(prompt=read_here(), changes=(off,))
    said = told(app)
    assert f"Other text 7: “{plain(every.texts[6][:40])}" in said
    assert f"Over all 24 other texts these heads change the answer by {signed_nats(every.moved.moved)} nats" in said
    assert f"{signed_nats(every.moved.low)} to {signed_nats(every.moved.high)} with 95" in said
    app.slider(key="lab_draw@lab").set_value(8).run()
    other = intervene(prompt=read_here(), changes=((*off[:4], 7),), controls=0)
    assert metrics(app)["change, nats"] == signed_nats(other.after - other.before)
