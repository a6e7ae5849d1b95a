"""Beyond the trained length: quality by place of each scheme, computed against learned positions, and both live."""

import numpy as np
import streamlit as st

from pages.figures.charts import HUES, PALETTE
from pages.figures.curves import Side, bars, curves
from pages.kit.asking import Answer, ask, ask_once
from pages.kit.charts import show_chart
from pages.kit.controls import Choice
from pages.kit.experiment import ask_first, experiment, say
from pages.kit.exports import one_export
from pages.kit.header import View
from pages.kit.number_format import markdown_table
from pages.kit.waiting import awaited
from pages.language import joined, language, language_of, section, t
from pages.room import Part
from transformer_core.analysis.positions.beyond import LIVE_WIDTHS, SCHEMES, Beyond, beyond_live
from transformer_core.analysis.positions.beyond_measured import beyond_measured, beyond_shipped
from transformer_core.analysis.positions.data_and_length import DataAndLength, data_and_length

WIDTH = 64
WIDTH_HERE = Choice(
    "positions_beyond_width", LIVE_WIDTHS, label="positions.beyond_width", default=16, kind=int, form="steps"
)
COLOURS = (HUES["query"], HUES["positions"], HUES["weights"], HUES["value"], PALETTE[4])
SEED = 0
FAR = 0.5  # nats


def _named(scheme: str) -> str:
    own = {"learned": "positions.beyond_learned", "alibi": "positions.beyond_alibi"}
    return t(own.get(scheme, f"positions.scheme_{scheme}"))


def _show_curves(answer: Answer[Beyond], key: str) -> None:
    """Show the curves, and what each scheme has where it learned, at the end, and without the distant past."""
    found = answer.value
    schemes = [scheme for scheme in SCHEMES if scheme in found.schemes]
    chart = curves(
        found.ends,
        {_named(scheme): found.mean(scheme, found.nats) for scheme in schemes},
        across=Side(t("positions.beyond_places"), log=True),
        up=Side(t("positions.beyond_nats"), format=".1f"),
        at=float(found.width),
        hues=COLOURS,
        height=330,
    )
    show_chart(chart, answer, key=key, label=t("positions.beyond_label", width=found.width))
    head = [t(f"positions.beyond_head_{name}", width=found.width) for name in ("scheme", "within", "last", "short")]
    rows = [
        (
            _named(scheme),
            f"{found.mean(scheme, found.within):.2f}",
            f"{found.mean(scheme, found.nats)[-1]:.2f}",
            f"{found.mean(scheme, found.forgetful):.2f}",
        )
        for scheme in schemes
    ]
    say(markdown_table(head, rows, right=3))


def _steadiest(found: Beyond) -> str:
    return min(SCHEMES, key=found.lost)


@one_export
def _show(view: View) -> None:
    """Ask which scheme holds beyond its length, show all, then data and length, then models trained here."""
    answer = ask_once(beyond_shipped, width=WIDTH)
    found = answer.value
    longest = int(found.ends[-1])
    question = section("positions", "try_beyond").format(width=found.width, longest=f"{longest:,}")
    cover = ask_first(question, {scheme: _named(scheme) for scheme in SCHEMES}, name="positions_beyond")
    lost = "; ".join(f"{_named(scheme)} **{found.lost(scheme):+.2f}**" for scheme in SCHEMES)
    cover.judge(_steadiest(found), t("positions.beyond_measured", lost=lost))
    with cover.picture():
        _show_curves(answer, "positions_beyond")
        say(section("positions", "beyond_after"))
    _show_data_and_length()
    _train_here(view)
    _how_measured(found)


def _show_data_and_length() -> None:
    st.subheader(t("positions.data_heading"), anchor=False)
    answer = ask(data_and_length)
    found = answer.value
    cases = _cases(found)
    question = section("positions", "try_data").format(
        few=f"{found.stories.min()}", many=f"{found.stories.max()}", short=found.widths.min(), long=found.widths.max()
    )
    options = {str(place): case for place, case in enumerate(cases)}
    cover = ask_first(question, options, name="positions_data")
    gaps = "; ".join(f"{case}: **{gap:+.2f}**" for case, gap in zip(cases, found.gaps, strict=True))
    cover.judge(str(int(found.gaps.argmax())), t("positions.data_measured", gaps=gaps))
    with cover.picture():
        series = {_named(scheme): row for scheme, row in zip(found.schemes, found.nats, strict=True)}
        up = Side(t("positions.beyond_nats"), format=".1f")
        hues = (HUES["query"], HUES["positions"])
        chart = bars(cases, series, across=t("positions.data_case"), up=up, hues=hues, height=280)
        label = t("positions.data_heading")
        show_chart(chart, answer, key="positions_data", label=label)
        apart = float((found.high - found.low).max())
        few = np.flatnonzero(found.stories == found.stories.min())
        trained, other = found.learned.mean(0)[few], found.nats.mean(0)[few]  # means of both schemes
        losses = [
            t("positions.data_few", width=width, trained=f"{one:.2f}", other=f"{two:.2f}")
            for width, one, two in zip(found.widths[few], trained, other, strict=True)
        ]
        spread = t("positions.data_spread", seeds=found.seeds, apart=f"{apart:.2f}")
        say(joined(spread, t(f"positions.data_{by_heart(trained, other)}", losses="; ".join(losses))))
        say(section("positions", "data_after"))


def by_heart(trained: np.ndarray, other: np.ndarray) -> str:
    """Return whether losses in training lie far below those on other texts: in "all" cases, in "some" or in "none".

    Shapes:
        trained, other: (case,), nats
    """
    far = other - trained >= FAR
    return "all" if far.all() else "some" if far.any() else "none"


def _cases(found: DataAndLength) -> list[str]:
    sizes = zip(found.widths.tolist(), found.stories.tolist(), strict=True)
    return [t("positions.data_of", width=width, stories=f"{stories:,}") for width, stories in sizes]


@experiment("positions_beyond_open", "positions.beyond_live")
def _train_here(view: View) -> None:
    """Train all five here, on the built-in text of the language of the typed one, where a person asks for it."""
    reads = language_of(view.encoding.text) or language()
    asked = {"width": WIDTH_HERE.show(view), "language": reads, "seed": SEED}
    answer = awaited(beyond_live, t("positions.beyond_training"), key="positions_beyond_live", height=420, **asked)
    if answer is None:
        return
    _show_curves(answer, "positions_beyond_live")
    found = answer.value
    trained = {"steps": found.steps, "characters": f"{found.characters:,}", "seed": SEED}
    say(t("positions.beyond_live_note", **trained), small=True)


def _how_measured(found: Beyond) -> None:
    measured = beyond_measured()
    with st.expander(t("positions.beyond_measured_by"), icon=":material/terminal:"):
        st.code(measured.command, language="bash")
        said = {"files": ", ".join(measured.files), "steps": f"{measured.steps:,}", "batch": f"{measured.batch:,}"}
        say(
            t(
                "positions.beyond_measured_with",
                seeds=len(set(found.seeds.tolist())),
                apart=f"{found.spread:.2f}",
                **said,
            ),
            small=True,
        )


BEYOND = Part("positions", "beyond", _show)
