"""Exports hold the numbers of the screen."""

import csv
import io
import zipfile

import numpy as np
import pandas as pd

from pages.figures.matrix import Panel, Scale
from pages.kit.exports import panels_csv, rows_csv, tables_of, tables_zip, to_csv, to_npz
from tests.helpers.figures import attention, figure
from transformer_core.untrusted.tables.delimited import inert, unmarked


def test_csv_reads_back_exactly_and_no_label_is_a_formula() -> None:
    values = np.array([[0.1, 1 / 3], [np.float32(0.7), -np.inf]])
    rows = list(csv.reader(io.StringIO(to_csv(values, ["=1+1", 'a "b",\n'], ["@x", "＝好"]))))
    assert rows[0] == ["", "'@x", "'＝好"]
    assert [row[0] for row in rows[1:]] == ["'=1+1", 'a "b",\n']
    assert [[float(cell) for cell in row[1:]] for row in rows[1:]] == values.tolist()


def test_npz_reads_back_without_pickle() -> None:
    arrays = {"weights": np.eye(3, dtype=np.float32), "token_ids": np.array([1, 2, 3])}
    loaded = np.load(io.BytesIO(to_npz(arrays)), allow_pickle=False)
    for name, array in arrays.items():
        np.testing.assert_array_equal(loaded[name], array)


def test_many_panels_become_lines_that_name_panel_row_and_column() -> None:
    weights = attention().weights
    scale = Scale.of("probability")
    drawn = figure(
        Panel("0.0", "Head 0", weights, scale, row_heading="Layer 0"), Panel("0.1", "Head 1", weights, scale)
    )
    rows = list(csv.DictReader(io.StringIO(panels_csv(drawn))))
    assert rows[0].keys() == {"panel", "query position", "key position", "value"}
    assert rows[0]["panel"] == "Layer 0 Head 0"
    assert [float(row["value"]) for row in rows] == [float(v) for panel in drawn.panels for v in panel.values.ravel()]


def test_rows_that_lack_a_column_leave_it_empty_and_no_word_is_a_formula() -> None:
    rows = list(csv.DictReader(io.StringIO(rows_csv([{"x": 0.1, "name": "=1"}, {"x": None, "y": 2}]))))
    assert rows == [{"x": "0.1", "name": "'=1", "y": ""}, {"x": "", "name": "", "y": "2"}]
    assert rows_csv([{"name": "＝1"}, {"name": "'=1"}]).split() == ["name", "'＝1", "''=1"]
    assert [unmarked(inert(text)) for text in ("=1", "'=1", "'a", "a", "")] == ["=1", "'=1", "'a", "a", ""]
    assert [inert(f"{sign}1") for sign in "＝＋－＠-1"] == ["'＝1", "'＋1", "'－1", "'＠1", "'-1", "11"]


def test_numbers_of_a_table_are_numbers_in_pandas_and_in_a_spreadsheet() -> None:
    values = [-7.0, -1e-20, 1 / 3, float("inf"), None]
    rows = [{"value": value, "place": -place, "word": "-7"} for place, value in enumerate(values)]
    table = pd.read_csv(io.StringIO(rows_csv(rows)))
    assert table["value"].tolist()[:-1] == values[:-1]
    assert np.isnan(table["value"].iloc[-1])
    assert table["place"].tolist() == [0, -1, -2, -3, -4]
    assert set(table["word"]) == {"'-7"}, "text stays text"


def test_tables_of_other_columns_are_files_of_their_own() -> None:
    rows = [{"x": 1, "y": -2.0}, {"name": "a", "share": 0.5}, {"x": 3, "y": -4.0}]
    tables = tables_of(rows)
    assert tables == [[rows[0], rows[2]], [rows[1]]]
    with zipfile.ZipFile(io.BytesIO(tables_zip(tables, "stem"))) as archive:
        assert archive.namelist() == ["stem_0.csv", "stem_1.csv"]
        assert pd.read_csv(archive.open("stem_0.csv"))["y"].tolist() == [-2.0, -4.0]
