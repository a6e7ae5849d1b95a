"""The article's choices one at a time: what is shipped is whole, and the command that measured it runs."""

import csv
import gzip
import io
import json
from pathlib import Path

import pytest

from transformer_core.evaluation.article_differences import CHOICES, FILE, article_measured
from transformer_core.recipes.article import FILE as REVIEWS
from transformer_core.recipes.article import main, spec_of
from transformer_core.training.runs.presets import ARTICLE, IMDB
from transformer_core.training.runs.settings import differences, settings


def test_what_is_shipped_has_every_choice_from_every_seed() -> None:
    found = article_measured()
    for choice in ("ours", *CHOICES, "all"):
        assert [row.seed for row in found.of(choice)] == [0, 1, 2]
    assert found.examples == ARTICLE.data.examples
    assert found.mean("ours")[1] > found.mean("all")[1] + 0.1


def test_each_choice_takes_over_its_settings_and_no_others() -> None:
    ours, theirs = settings(spec_of("ours", 0)), settings(ARTICLE)
    for choice, names in CHOICES.items():
        apart = differences(spec_of("ours", 0), spec_of(choice, 0))
        assert apart.keys() <= set(names)
        assert apart
        assert all(after == theirs[name] for name, (_, after) in apart.items())
    named = {name for names in CHOICES.values() for name in names}
    left = {name for name in differences(IMDB, ARTICLE) if name not in named}
    sizes = {"examples", "held_out", "d_model", "d_ff", "n_layers", "max_len", "epochs", "frames", "points"}
    assert left <= sizes, ours


def test_the_command_measures_and_writes_what_is_read_back(tmp_path: Path) -> None:
    rows = [
        (f"a {word} film number {n}, {word} all over", label)
        for n in range(60)
        for label, word in enumerate(("bad", "fine"))
    ]
    text = io.StringIO()
    csv.writer(text).writerows([("text", "label"), *rows])
    (tmp_path / REVIEWS).write_bytes(gzip.compress(text.getvalue().encode()))
    out = tmp_path / "out.json"
    assert main(["--data", str(tmp_path), "--out", str(out), "--quick"]) == 0
    found = article_measured(out)
    assert len(found.rows) == len(CHOICES) + 2
    assert all(0 <= row.held_out <= 1 for row in found.rows)
    assert main(["--data", str(tmp_path / "nowhere"), "--out", str(out)]) == 2


@pytest.mark.parametrize("change", [{"rows": []}, {"rows": [{"choice": "x"}]}, {"epochs": 0}, {"command": 3}])
def test_a_damaged_file_is_refused_by_its_name(tmp_path: Path, change: dict) -> None:
    path = tmp_path / "article.json"
    path.write_text(json.dumps(json.loads(FILE.read_text()) | change))
    with pytest.raises(ValueError, match=r"^article.json: "):
        article_measured(path)
