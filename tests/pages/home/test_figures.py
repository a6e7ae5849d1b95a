"""The diagram shows the sizes of the model and the sentence, escapes every text, and opens pages."""

import base64
import io
from xml.etree import ElementTree

import numpy as np
import pytest
from PIL import Image

from pages.home.diagram import PLACES
from pages.home.figures import Architecture, Thumbnail, architecture_svg, pictures_of, side_by_side_sheet, summarised
from pages.kit.navigation import page_path
from pages.language import words
from tests.helpers.pages import strings
from transformer_core.config import ModelConfig

SIZES: dict = {"vocab_size": 8000, "d_model": 128, "n_heads": 8, "d_ff": 512, "n_layers": 4, "n_classes": 2}
SIZES |= {"positions": "learned", "norm_order": "pre", "pooling": "cls", "n_segments": 0}


def drawn(
    language: str = "en", pages: tuple[str, ...] = ("attention",), kind: str = "classifier", **changes: object
) -> ElementTree.Element:
    """Draw a diagram and parse it."""
    model = Architecture(ModelConfig(**SIZES | changes), kind, 12)
    start = "diagram."
    strings = {key.removeprefix(start): word for key, word in words(language).items() if key.startswith(start)}
    return ElementTree.fromstring(architecture_svg(model, strings, dict.fromkeys(pages, "<b>&")))


@pytest.mark.parametrize("language", ["en", "zh"])
def test_shapes_are_those_of_model_and_sentence(language: str) -> None:
    text = " ".join(drawn(language).itertext())
    for shape in ("(1, 12)", "(1, 12, 128)", "(12, 128)", "8,000 × 128", "(1, 8, 12, 12)", "128 → 512 → 128", "(1, 2)"):
        assert shape in text
    assert words(language)["diagram.layers"].format(count=4) in text


def test_a_model_without_position_vectors_has_no_such_box() -> None:
    assert "(12, 128)" not in " ".join(drawn(positions="rotary").itertext()).replace("(1, 12, 128)", "")


def test_post_norm_has_no_final_norm_and_mean_pooling_is_named() -> None:
    pre = " ".join(drawn().itertext()).count(words("en")["diagram.norm"])
    post = " ".join(drawn(norm_order="post", pooling="mean").itertext())
    assert post.count(words("en")["diagram.norm"]) == pre - 1
    assert words("en")["diagram.mean"] in post


@pytest.mark.parametrize("language", ["en", "zh"])
def test_a_norm_that_the_first_layer_lacks_is_said_to_begin_later(language: str) -> None:
    said = words(language)["diagram.norm_from_second"]
    assert said not in " ".join(drawn(language).itertext())
    assert " ".join(drawn(language, first_attention_norm=False).itertext()).count(said) == 1


def test_only_parts_with_a_page_are_buttons() -> None:
    buttons = [node for node in drawn().iter() if node.get("role") == "button"]
    assert [node.get("data-part") for node in buttons] == ["attention"]
    assert buttons[0].get("tabindex") == "0"
    assert "<b>&" in buttons[0].get("aria-label")


@pytest.mark.parametrize("kind", list(PLACES))
def test_every_name_in_the_diagram_opens_a_page(kind: str) -> None:
    places, changes = PLACES[kind], {"bert": {"n_segments": 2}, "encoder": {"pooling": "mean"}}.get(kind, {})
    svg = drawn(pages=tuple(places), kind=kind, target_vocab_size=90, **changes)
    named = [node for node in svg.iter() if node.get("class", "").partition(" ")[0] in ("box", "pill", "caption")]
    assert len(named) >= 9
    for node in named:
        page, part = places[node.get("data-part", "nothing")]
        assert page_path(page).exists()
        assert not part or f"{page}.part_{part}" in words("en")


def pixels(picture: Thumbnail) -> np.ndarray:
    """Return the cells of a picture, (row, column, 4), from its data URI."""
    kind, _, data = picture.uri.partition(",")
    assert kind == "data:image/png;base64"
    return np.asarray(Image.open(io.BytesIO(base64.b64decode(data))))


def test_a_picture_has_a_cell_for_each_number_and_says_its_range() -> None:
    values = np.array([[0.0, -4.0], [1.0, 4.0]])
    picture = pictures_of({"embedding": values}, "{shape}: {low} to {high}")["embedding"]
    assert picture.title == "2 × 2: -4 to 4"
    cells = pixels(picture)
    assert cells[..., 3].tolist() == [[0, 255], [128, 255]]
    assert cells[0, 1, :3].tolist() != cells[1, 1, :3].tolist() == cells[1, 0, :3].tolist()


def test_where_there_are_more_numbers_than_room_the_greatest_is_kept() -> None:
    values = np.zeros((40, 5_000))
    values[7, 4_321] = -3.0
    values[20, 3] = 2.0
    cells = summarised(values, 20, 256)
    assert cells.shape == (20, 256)
    assert (cells.min(), cells.max(), np.count_nonzero(cells)) == (-3.0, 2.0, 2)


def test_all_heads_are_beside_each_other_in_two_rows() -> None:
    heads = np.arange(1.0, 6.0)[:, None, None] * np.ones((5, 3, 3))
    sheet = side_by_side_sheet(heads)
    assert sheet.shape == (7, 11)
    assert sheet[0, ::4].tolist() == [1.0, 2.0, 3.0]
    assert sheet[4, ::4].tolist() == [4.0, 5.0, 0.0]
    assert not sheet[3].any()


def test_pictures_stand_in_the_diagram_and_nothing_in_their_words_is_markup() -> None:
    pictures = {part: Thumbnail("data:image/png;base64,AAAA", "<b>") for part in ("tokens", "attention", "pooled")}
    model = Architecture(ModelConfig(**SIZES), "classifier", 12)
    svg = architecture_svg(model, strings("diagram"), {}, pictures)
    assert svg.count("<image ") == 3
    assert "<b>" not in svg
    assert "&lt;b&gt;" in svg
