"""Beam search: the tree of scored continuations, the ranking at its end, and what a wider beam changes."""

from typing import Any

import streamlit as st

from pages.translation.figures.search import by_width_chart, tree_chart
from pages.translation.translated import shown_gap, slide_to_default, translated
from pages.ui.asking import Answer, ask_once
from pages.ui.charts import Drawing, show_chart, show_drawing
from pages.ui.experiment import as_old, ask_first, lazy_box, say
from pages.ui.header import View
from pages.ui.language import plain, section, strings, t
from pages.ui.live import Live, follow_finger
from pages.ui.number_format import markdown_table
from pages.ui.pickers import shown_word
from pages.ui.url import slid, slide
from pages.ui.waiting import awaited
from transformer_core.analysis.translation.beam_tree import BeamTree, Ranking, beam_tree, best_by_width

WIDEST = 5
WIDTH: dict[str, Any] = {"low": 1, "high": WIDEST, "name": "translation_width", "default": 3}
PENALTY: dict[str, Any] = {"low": 0.0, "high": 2.0, "name": "translation_penalty", "default": 0.6, "step": 0.1}
DEPTH = "translation_depth"
MOST_RANKED = 8
LEGEND = (
    '<div style="display:flex;flex-wrap:wrap;gap:4px 18px;font-size:0.9rem;align-items:center">'
    '<span><b style="background:#8a55d0;color:#fff;padding:1px 8px;border-radius:5px">{kept_mark}</b> {kept}</span>'
    '<span><b style="background:#2a9456;color:#fff;padding:1px 8px;border-radius:5px">■</b> {finished}</span>'
    '<span><b style="border:1px dashed #8d7a63;padding:0 8px;border-radius:5px">✕</b> {dropped}</span>'
    '<span><b style="border:3px solid #d97614;padding:0 8px;border-radius:5px">&nbsp;</b> {best}</span></div>'
)


def _show_ranking(tree: BeamTree, penalty: float) -> None:
    ranking: Ranking = tree.ranking
    st.subheader(t("translation.ranking"), anchor=False)
    score, target, source, length = (
        rf"\text{{{t(f'translation.formula_{name}')}}}" for name in ("score", "target", "source", "length")
    )
    st.latex(
        rf"{score}=\frac{{\ln P({target}\mid {source})}}{{\left(\frac{{5+{length}}}{{6}}\right)^{{\alpha}}}},"
        rf"\qquad \alpha={penalty:.1f}"
    )
    names = ("rank", "text", "log_prob", "length", "divisor", "score")
    head = tuple(t(f"translation.col_{name}") for name in names)
    rows = []
    for place, (text, ended) in enumerate(zip(ranking.texts[:MOST_RANKED], ranking.finished, strict=False)):
        shown = plain(text or "∅") if ended else f"{plain(text)} … ({t('translation.unfinished')})"
        rows.append(
            (
                str(place + 1),
                f"**{shown}**" if place == 0 else shown,
                f"{ranking.log_probs[place]:.3f}",
                str(ranking.lengths[place]),
                f"{ranking.penalties[place]:.3f}",
                f"**{ranking.scores[place]:.3f}**",
            )
        )
    st.markdown(markdown_table(head, rows, right=4))
    hidden = len(ranking.texts) - len(rows)
    more = f" {t('translation.ranking_more', count=hidden)}" if hidden > 0 else ""
    st.caption(t("translation.ranking_note", weighed=f"{tree.n_weighed:,}", nodes=len(tree.words)) + more)


def _show_best(answer: Answer) -> None:
    """Show the best translation of each width, and its score."""
    found = answer.value
    names = ("width", "text", "log_prob", "length", "score")
    head = tuple(t(f"translation.col_{name}") for name in names)
    rows = [
        (str(width), plain(text or "∅"), f"{log_prob:.3f}", str(length), f"{score:.3f}")
        for width, text, log_prob, length, score in zip(
            found.widths, found.texts, found.log_probs, found.lengths, found.scores, strict=True
        )
    ]
    say(markdown_table(head, rows, right=3))
    chart = by_width_chart(found.widths, {"score": found.scores}, strings("translation_widths"), percent=False)
    show_chart(chart, answer, key="translation_widths", stem="beam_widths", label=t("translation.try_width"))


def _width_experiment(view: View, penalty: float) -> None:
    """Ask whether a wider beam changes the translation, then try every width."""
    box = lazy_box(t("translation.try_width"), icon=":material/science:", key="translation_width_open")
    if box is None:
        return
    with box:
        options = {name: t(f"translation.wider_{name}") for name in ("same", "better", "worse")}
        question = section("translation", "try_width").format(widest=WIDEST)
        cover = ask_first(
            question, options, name="translation_width", about=f"{view.bundle.name} {view.encoding.text} {penalty}"
        )
        judgement, asked = st.container(), {**view.asked, "widest": WIDEST, "length_penalty": penalty}
        with cover.picture():
            answer = awaited(
                best_by_width, t("translation.searching"), key="translation_width", height=420, stays=True, **asked
            )
            if answer is None:
                return
            _show_best(answer)
        found = answer.value
        first, last = float(found.scores[0]), float(found.scores[-1])
        outcome = "same" if found.texts[0] == found.texts[-1] else "better" if last > first else "worse"
        gained, different = f"{shown_gap(last, first):+.3f}", len(set(found.texts))
        measured = t("translation.width_measured", widest=WIDEST, gained=gained, different=different)
        with judgement, as_old(answer, key="translation_width"):
            cover.judge(outcome, measured)


def live_beam(view: View) -> Live:
    """Return the tree down to the chosen depth."""
    width, penalty = int(slid(**WIDTH)), float(slid(**PENALTY))
    answer = ask_once(beam_tree, **view.asked, width=width, length_penalty=penalty)
    deepest = int(answer.value.depths.max())
    depth = int(slid(1, deepest, name=DEPTH, default=deepest)) if deepest > 1 else deepest
    return _drawn(view, answer, depth)


def _drawn(view: View, answer: Answer[BeamTree], depth: int) -> Live:
    tree = answer.value
    start, whole = shown_word(translated(view).value.read[0]), depth == int(tree.depths.max())
    chart = tree_chart(tree, strings("translation_tree"), depth=depth, start=start, whole=whole)
    return Live(drawings=(Drawing("translation_tree", chart, answer, "beam_search", t("translation.tree_label")),))


def show_beam(view: View) -> None:
    """Show the controls, the tree down to a depth, and the ranking."""
    width_place, penalty_place, depth_place = st.columns([2, 2, 3], gap="medium")
    with width_place:
        width = int(slide(t("translation.width"), **WIDTH))
    with penalty_place:
        penalty = slide(t("translation.penalty"), **PENALTY, format="%.1f")
    answer = ask_once(beam_tree, **view.asked, width=width, length_penalty=penalty)
    tree = answer.value
    deepest = int(tree.depths.max())
    with depth_place:
        depth = deepest
        if deepest > 1:
            depth = slide_to_default(t("translation.depth"), 1, deepest, name=DEPTH, default=deepest)
    whole = depth == deepest
    words = strings("translation_tree")
    st.html(LEGEND.format(kept_mark="a", **{name: words[name] for name in ("kept", "finished", "dropped", "best")}))
    (drawing,) = _drawn(view, answer, depth).drawings
    show_drawing(drawing)
    sliders = {WIDTH["name"]: width, PENALTY["name"]: penalty, DEPTH: "" if whole else depth}
    follow_finger("translation", "beam", view, sliders=sliders)
    if whole:
        place = "behind" if tree.behind else "ahead"
        st.markdown(t(f"translation.{place}", depths=", ".join(map(str, tree.behind)), count=int(tree.on_best.sum())))
        _show_ranking(tree, penalty)
    else:
        st.caption(t("translation.depth_note", depth=depth, deepest=deepest))
    _width_experiment(view, penalty)
