"""The page's part on the last sum: a class's score as what every part of the encoder adds to it."""

from pages.encoder.padding import OPEN, PADS, drawn_means, try_padding
from pages.kit.charts import Drawing
from pages.kit.controls import Values
from pages.kit.header import View
from pages.score.part import Asked, Score


def _asked(view: View) -> Asked:
    return {"prompt": view.prompt}


def _padding(view: View, values: Values) -> tuple[Drawing, ...]:
    opened = values[OPEN] and view.bundle.config.pad_id is not None
    return (drawn_means(view, values[PADS]),) if opened else ()


SUM = Score("encoder", "sum", asked=_asked, below=try_padding, controls=(OPEN, PADS), more=_padding).part
