"""The figure of two orders: every length stands in it, in both languages and on one scale."""

import numpy as np
import pytest

from pages.figures.charts import rows_of, specification
from pages.norm.figures import order_chart, written_chart
from tests.helpers.pages import strings

STAGES = np.array(["embedding", "0.self_attention", "0.feed_forward"])
FOUND = {
    "growth.stages": STAGES,
    "growth.lengths": np.array([[3.0, 5.0], [4.0, 8.0], [2.0, 9.0]]),
    "sums": np.array([[6.0, 7.0], [5.0, 11.0]]),
    "handed_on": np.array([1.5, 2.5]),
    "tokens": np.array(["I", "I"]),
    "level": np.array(4.0),
    "inside": np.array(16),
}
ENDS = (1.0, 20.0)


@pytest.mark.parametrize("language", ["en", "zh"])
@pytest.mark.parametrize("token", [None, 1])
@pytest.mark.parametrize("order", ["post", "pre"])
def test_the_figure_has_every_token_and_the_bold_one(order: str, token: int | None, language: str) -> None:
    words = strings("norm", language)
    chart = order_chart(FOUND, words, order=order, token=token, ends=ENDS)
    chart.to_dict()  # checked against the schema
    rows = rows_of(chart)

    def one(values: np.ndarray) -> list[float]:
        return (values.mean(-1) if token is None else values[..., token]).tolist()

    stream = [row["length"] for row in rows if row.get("kind") == words["stream_kind"]]
    assert stream == one(FOUND["growth.lengths"])
    beside = words["sum_kind"] if order == "post" else words["final_kind"]
    expected = one(FOUND["sums"]) if order == "post" else one(FOUND["handed_on"][None])
    assert [row["length"] for row in rows if row.get("kind") == beside] == expected
    thin = {(row["token"], row["length"]) for row in rows if "token" in row}
    lengths = FOUND["growth.lengths"]
    assert thin == {(f"{place} · I", float(length)) for place in (0, 1) for length in lengths[:, place]}
    assert any(row.get("label") == "√16 = 4.00" for row in rows)


def test_both_charts_have_one_scale() -> None:
    words = strings("norm")
    specs = [specification(order_chart(FOUND, words, order=o, token=None, ends=ENDS)) for o in ("post", "pre")]
    for layer in [layer for spec in specs for layer in spec["layer"]]:
        assert layer["encoding"]["y"]["scale"]["domain"] == list(ENDS)
    values = FOUND["sums"] / 10
    chart = written_chart(STAGES[1:].tolist(), values, ["I", "I"], words, measure="written", most=2.0)
    assert specification(chart)["layer"][0]["encoding"]["x"]["scale"]["domain"] == [0, 2.0]
