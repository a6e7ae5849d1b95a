"""The toy batch of the translation page: its program makes what is shown, its masks hide, padding gets nothing."""

import numpy as np
import pytest
from streamlit.testing.v1 import AppTest

from pages.ui.language import words
from tests.pages.running import asks, run, told
from transformer_core.analysis.translation.toy_batch import toy_batch


def toy(**query: str) -> AppTest:
    """Open the part with the shipped translator, which it does not read."""
    return run("translation", translation_part="toy", **query)


def answered(app: AppTest, choice: str) -> AppTest:
    """Answer the page's question."""
    return asks(app)[0].set_value(choice).run()


@pytest.mark.parametrize(("source", "seed"), [("padded", 0), ("ones", 3)])
def test_the_toy_batchs_program_computes_what_is_shown(source: str, seed: int) -> None:
    app = toy(translation_toy_source=source, translation_seed=str(seed))
    names: dict = {}
    exec(compile(app.code[0].value, "toy", "exec"), names)
    found = toy_batch(source=source, seed=seed, sentence=3, layer=0, head=0)  # type: ignore[arg-type]
    assert names["source"].tolist() == found.source_ids.tolist()
    weights = names["trace"]["decoder.layer0.cross_attention.weights"][3, 0]
    assert np.allclose(weights.detach(), found.cross.weights, atol=1e-6)


def test_the_toy_batch_begins_with_masks_that_hide_something() -> None:
    app = toy()
    assert app.session_state["translation_toy_source@translation"] == "padded"
    found = toy_batch(source="padded", seed=0, sentence=3, layer=0, head=0)
    assert all(not one.mask.all() for one in (found.encoder_self, found.decoder_self, found.cross))


def test_the_toy_batch_tells_what_padding_gets() -> None:
    app = toy(translation_toy_source="padded", translation_shapes="true")
    found = toy_batch(source="padded", seed=0, sentence=3, layer=0, head=0)
    assert f"{found.parameters:,}" in told(app)
    assert all(f"`{name}`" in told(app) for name in found.names[:40])
    app = answered(toy(translation_toy_open="true"), "nan")
    assert words("en")["translation.row_zero"] in told(app)
    assert not app.exception
