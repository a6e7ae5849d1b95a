"""The figures of the attention page are tested on their data, and on what a hostile token does to them."""

import base64
import html
import json
import re
import struct
from typing import Any

import numpy as np
import pytest

from pages.attention.figures import (
    ArcsFigure,
    effect_board,
    entropy_bars,
    entropy_board,
    flow_matrices,
    hidden_bars,
    led_bars,
    tendency_board,
)
from pages.figures.charts import rows_of
from pages.figures.standalone import component_page
from pages.language import strings
from tests.helpers.figures import ATTACK

LABELS = ("[CLS]", "good", "good", "[SEP]")
RNG = np.random.default_rng(0)
WEIGHTS = RNG.dirichlet(np.ones(4), 4)
ANY = {name: name for name in ("layer", "head", "nats", "share", "query", "key", "rollout", "last", "token", "part")}
ANY |= {name: name for name in ("heads", "tendency", "excess", "here", "sample", "broad", "here_short", "sample_short")}
ANY |= {
    name: name for name in ("strongest", "change", "greatest", "points", "supports", "opposes", "row_top", "col_top")
}


def arcs(**changes) -> ArcsFigure:
    """Return a text of four tokens with arcs."""
    given: dict[str, Any] = {"labels": LABELS, "glued": (False,) * 4, "weights": WEIGHTS, "source": 1}
    given |= {"direction": "from", "strings": strings("attention_arcs", "en")} | changes
    return ArcsFigure(**given)


def test_arcs_carry_their_weights_as_they_are() -> None:
    raw = arcs().to_bytes()
    (length,) = struct.unpack_from("<I", raw)
    header = json.loads(raw[4 : 4 + length])
    assert tuple(header["labels"]) == LABELS
    assert header["source"] == 1
    start = -(-(4 + length) // 8) * 8
    np.testing.assert_array_equal(np.frombuffer(raw, "<f4", 16, start).reshape(4, 4), WEIGHTS.astype("<f4"))


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"source": 4}, "source=4 must be from 0 to 3"),
        ({"weights": WEIGHTS[:3]}, r"weights of shape \(3, 4\)"),
        ({"glued": (True,)}, "1 of glued"),
    ],
)
def test_arcs_that_do_not_fit_are_refused(changes: dict, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        arcs(**changes)


def test_the_page_of_arcs_needs_no_network_and_no_token_becomes_markup() -> None:
    page = component_page("arcs", arcs(labels=(ATTACK, *LABELS[1:])).to_bytes(), title=f"A title {ATTACK}")
    assert ATTACK not in page
    assert page.count(html.escape(ATTACK)) == 2
    assert set(re.findall(r"https?://[^\s\"'`)]+", page)) <= {"http://www.w3.org/2000/svg"}
    payload = re.search(r'data-payload="([^"]+)"', page)
    assert payload is not None
    assert base64.b64decode(payload[1]) == arcs(labels=(ATTACK, *LABELS[1:])).to_bytes()


def test_boards_show_the_arrays_they_are_given() -> None:
    board, scores = RNG.random((2, 3)), RNG.random((2, 3, 7)) - 0.5
    entropy = entropy_board(board, board / 2, 2.0, ANY, chosen=(1, 2))
    np.testing.assert_array_equal(entropy.panels[0].values, board)
    assert entropy.panels[0].scale.high == 2.0
    assert entropy.cell == (1, 2)
    flow = flow_matrices(WEIGHTS, WEIGHTS.T, LABELS, ANY)
    assert flow.panels[0].scale == flow.panels[1].scale
    names = [f"t{place}" for place in range(7)]
    scores[..., -1] += 0.5
    tendency = tendency_board(scores, scores / 2, names, ANY, chosen=(1, 0))
    assert tendency.rows.labels == ("0.0", "0.1", "0.2", "1.0", "1.1", "1.2")
    assert tendency.cell is not None
    assert tendency.cell[0] == 3
    assert tendency.panels[0].values.shape == (6, 6)
    assert tendency.panels[2].values.shape == (6, 2)
    assert len(effect_board(board, None, ANY, chosen=(0, 0)).panels) == 1
    effect = effect_board(board, board - 0.5, ANY, chosen=(0, 0))
    np.testing.assert_array_equal(effect.panels[1].values, board - 0.5)
    assert effect.panels[1].scale.low == -effect.panels[1].scale.high


def test_bars_tell_equal_words_apart_and_leave_out_what_was_not_hidden() -> None:
    bars = rows_of(hidden_bars(np.array([np.nan, -0.2, 0.1, np.nan]), LABELS, ANY))
    rows = [row for row in bars if "token" in row]
    assert [row["token"] for row in rows] == ["[CLS] 0", "good 1", "good 2", "[SEP] 3"]
    assert [row["points"] for row in rows] == [None, -20.0, 10.0, None]
    assert rows[1]["does"] == "supports"
    led = rows_of(led_bars(WEIGHTS[0], WEIGHTS[1], LABELS, ANY))
    np.testing.assert_allclose([row["share"] for row in led], np.concatenate([WEIGHTS[0], WEIGHTS[1]]))
    nats = [row["nats"] for row in rows_of(entropy_bars(WEIGHTS[2], np.full(4, 1.4), LABELS, ANY)) if "nats" in row]
    np.testing.assert_allclose(nats, WEIGHTS[2])
