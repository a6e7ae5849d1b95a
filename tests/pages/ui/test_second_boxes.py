"""A box that a part has besides the header's: emptied, it leaves the last picture and says whose that is."""

import pytest

from pages.ui.language import words
from tests.helpers.pages import note, run

PICTURES = ("vega_lite_chart", "bidi_component")
BOXES = [
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


@pytest.mark.parametrize(("page", "query", "box", "text"), BOXES)
def test_an_emptied_box_leaves_its_last_picture(page: str, query: dict[str, str], box: str, text: str) -> None:
    app = run(page, **query, **{box: text})
    assert not app.exception
    pictures = {kind: len(app.get(kind)) for kind in PICTURES}
    assert sum(pictures.values())
    written = [each for each in [*app.text_input, *app.text_area] if each.key == f"{box}@{page}"]
    written[0].set_value("").run()
    assert not app.exception
    assert {kind: len(app.get(kind)) for kind in PICTURES} == pictures
    assert words("en")["text.still"].partition("}")[2].partition("{")[0] in note(app)
