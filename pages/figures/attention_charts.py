"""Attention as bars over the words of the text: entropy, where rollout leads, and what hiding each word does.

Arrays come from transformer_core.analysis. Read next: arcs.py.
"""

from collections.abc import Mapping

import altair as alt
import numpy as np

from pages.figures.charts import HUES, PALETTE, Chart, records

HEIGHT = 360
MOST_NAMED = 48


def _named(labels: tuple[str, ...]) -> list[str]:
    return [f"{label} {index}" for index, label in enumerate(labels)]


def _across(words: Mapping[str, str], labels: tuple[str, ...]) -> alt.X:
    overlap = "greedy" if len(labels) > MOST_NAMED else False
    axis = alt.Axis(labelAngle=-50, labelLimit=80, labelOverlap=overlap, ticks=False, titlePadding=2)
    return alt.X("token:N", scale=alt.Scale(domain=_named(labels)), title=words["token"], axis=axis)


def entropy_bars(nats: np.ndarray, bounds: np.ndarray, labels: tuple[str, ...], words: Mapping[str, str]) -> Chart:
    """Draw one head's entropy at each token, with each token's maximum as a line.

    Shapes:
        nats, bounds: (query_pos,)

    Args:
        words: token, nats, greatest.
    """
    greatest = float(bounds.max())
    bars = (
        alt.Chart(records(token=_named(labels), nats=nats))
        .mark_bar(color=HUES["weights"])
        .encode(
            x=_across(words, labels),
            y=alt.Y(
                "nats:Q", title=words["nats"], scale=alt.Scale(domain=[0, max(greatest, float(nats.max())) * 1.15])
            ),
            tooltip=["token:N", alt.Tooltip("nats:Q", format=".4f", title=words["nats"])],
        )
    )
    steps = (
        alt.Chart(records(token=_named(labels), bound=bounds))
        .mark_line(interpolate="step", strokeDash=[6, 3], color=HUES["residual"])
        .encode(x=_across(words, labels), y="bound:Q")
    )
    line = alt.Chart(records(greatest=[greatest], word=[words["greatest"]])).encode(y="greatest:Q")
    text = line.mark_text(align="left", baseline="bottom", dx=4, dy=-3).encode(x=alt.value(0), text="word:N")
    return alt.layer(bars, steps, text).properties(width="container", height=HEIGHT)


def led_bars(rollout: np.ndarray, last: np.ndarray, labels: tuple[str, ...], words: Mapping[str, str]) -> Chart:
    """Draw what the verdict rests on by rollout and by the last layer's weights, side by side at each token.

    Shapes:
        rollout, last: (pos,), each summing to 1

    Args:
        words: token, part, rollout, last.
    """
    names = [words["rollout"], words["last"]]
    data = records(
        token=_named(labels) * 2, share=np.concatenate([rollout, last]), by=np.repeat(names, len(labels)).tolist()
    )
    colour = alt.Color(
        "by:N",
        title=None,
        scale=alt.Scale(domain=names, range=[HUES["weights"], PALETTE[1]]),
        legend=alt.Legend(orient="top", direction="horizontal"),
    )
    return (
        alt.Chart(data)
        .mark_bar()
        .encode(
            x=_across(words, labels),
            xOffset=alt.XOffset("by:N", sort=names),
            y=alt.Y("share:Q", title=words["part"], axis=alt.Axis(minExtent=46, format=".2f")),
            color=colour,
            tooltip=["token:N", "by:N", alt.Tooltip("share:Q", format=".4f", title=words["part"])],
        )
        .properties(width="container", height=HEIGHT)
    )


def hidden_bars(change: np.ndarray, labels: tuple[str, ...], words: Mapping[str, str]) -> Chart:
    """Draw by how many points the winner's probability moves when each token is hidden; special tokens have no bar.

    Shapes:
        change: (pos,), as shares; not a number where a token was left in place

    Args:
        words: token, points, supports, opposes.
    """
    points = [100 * value if np.isfinite(value) else None for value in change.tolist()]
    does = [words["supports"] if (value or 0) < 0 else words["opposes"] for value in points]
    data = records(token=_named(labels), points=points, does=does)
    names = [words["supports"], words["opposes"]]
    bars = (
        alt.Chart(data)
        .mark_bar()
        .encode(
            x=_across(words, labels),
            y=alt.Y("points:Q", title=words["points"], axis=alt.Axis(minExtent=46)),
            color=alt.Color(
                "does:N",
                title=None,
                scale=alt.Scale(domain=names, range=[PALETTE[5], HUES["residual"]]),
                legend=alt.Legend(orient="top", direction="horizontal"),
            ),
            tooltip=["token:N", alt.Tooltip("points:Q", format="+.2f", title=words["points"])],
        )
    )
    zero = alt.Chart(records(zero=[0])).mark_rule(color=HUES["residual"]).encode(y="zero:Q")
    return alt.layer(bars, zero).properties(width="container", height=HEIGHT)
