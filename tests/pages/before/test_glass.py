"""The box of tensors shows those of a recurrent model, as it does those of a Transformer."""

import pytest
from streamlit.testing.v1 import AppTest

from pages.kit.asking import ask
from pages.kit.models import open_bundle
from pages.language import plain
from tests.helpers.pages import repeats, run, told
from transformer_core.analysis.arithmetic import read_through, tensor_of
from transformer_core.analysis.before.alignments import words_read
from transformer_core.bundle import Bundle
from transformer_core.prompt import Prompt

MODEL, TEXT = "seq2seq-en-fr", "A man sleeps."


@pytest.fixture
def bundle() -> Bundle:
    """Return the shipped recurrent model."""
    return open_bundle(MODEL)


def before(**query: str) -> AppTest:
    """Open the page with the glass open."""
    return run("before", model=MODEL, text=TEXT, glass_open="true", **query)


def look_at(app: AppTest, name: str, cell: str | None = None) -> str:
    """Open a tensor of the page in the box and return all texts."""
    app.query_params["glass"] = name
    if cell is not None:
        app.query_params["glass_cell"] = cell
    assert not app.run().exception
    return told(app)


def test_every_part_of_the_model_lies_under_the_glass(bundle: Bundle) -> None:
    read = words_read(prompt=Prompt(bundle, TEXT, 32))
    trace = read_through(bundle, bundle.tokenizer.encode(TEXT), target_ids=read).trace
    last_of_each = {name.rpartition(".")[0]: name for name in trace}
    assert {"encoder", "encoder.forward", "encoder.backward", "decoder", "decoder.alignment", ""} == set(last_of_each)
    for name in last_of_each.values():
        found = look_at(before(before_part="vector"), name)
        assert f"`{name}`" in found
        assert "Recomputed in float64" in found


def test_the_target_stands_on_one_side_and_the_source_on_the_other(bundle: Bundle) -> None:
    found = look_at(before(before_part="look"), "decoder.alignment.weights", "1.2")
    encoding = bundle.tokenizer.encode(TEXT)
    asked = {"prompt": Prompt(bundle, TEXT, len(encoding))}
    read = ask(words_read, **asked)
    assert plain(bundle.tokenizer.labels_of(read.value)[1]) in found
    assert plain(encoding.labels[2]) in found
    tensor = ask(tensor_of, **asked, name="decoder.alignment.weights", target_ids=read.value)
    repeats(tensor.script, tensor.arrays)
