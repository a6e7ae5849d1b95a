"""Beam search: the tree of scored continuations, the ranking at its end, and what a wider beam changes."""

import streamlit as st

from pages.kit.asking import Answer, ask_once
from pages.kit.charts import Drawing, show_chart, show_drawing
from pages.kit.controls import Slider, Values, show_in_columns
from pages.kit.experiment import ask_first, experiment, options_of, say
from pages.kit.header import View, shown_word
from pages.kit.live import Live
from pages.kit.number_format import markdown_table
from pages.kit.waiting import awaited
from pages.language import plain, section, strings, t
from pages.room import Part
from pages.translation.figures.search import by_width_chart, tree_chart
from pages.translation.translated import shown_gap, translated
from transformer_core.analysis.translation.beam_tree import BeamTree, Ranking, beam_tree, best_by_width

WIDEST = 5
MOST_RANKED = 8
LEGEND = (
    '<div style="display:flex;flex-wrap:wrap;gap:4px 18px;font-size:0.9rem;align-items:center">'
    '<span><b style="background:#8a55d0;color:#fff;padding:1px 8px;border-radius:5px">{kept_mark}</b> {kept}</span>'
    '<span><b style="background:#2a9456;color:#fff;padding:1px 8px;border-radius:5px">■</b> {finished}</span>'
    '<span><b style="border:1px dashed #8d7a63;padding:0 8px;border-radius:5px">✕</b> {dropped}</span>'
    '<span><b style="border:3px solid #d97614;padding:0 8px;border-radius:5px">&nbsp;</b> {best}</span></div>'
)


def _searched(view: View, width: int, penalty: float) -> Answer[BeamTree]:
    return ask_once(beam_tree, prompt=view.prompt, width=width, length_penalty=penalty)


def _deepest(view: View) -> int:
    return int(_searched(view, WIDTH.read(), PENALTY.read()).value.depths.max())


WIDTH = Slider("translation_width", 1, WIDEST, 3, label="translation.width")
PENALTY = Slider("translation_penalty", 0.0, 2.0, 0.6, step=0.1, label="translation.penalty", kind=float, format="%.1f")
DEPTH = Slider("translation_depth", 1, _deepest, _deepest, label="translation.depth")


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


@experiment("translation_width_open", "translation.try_width")
def _width_experiment(view: View, penalty: float) -> None:
    """Ask whether a wider beam changes the translation, then try every width."""
    options = options_of("translation.wider_{}", ("same", "better", "worse"))
    question = section("translation", "try_width").format(widest=WIDEST)
    cover = ask_first(question, options, name="translation_width", about=f"{view.name} {penalty}")
    searching, asked = t("translation.searching"), {"prompt": view.prompt, "widest": WIDEST, "length_penalty": penalty}
    with cover.picture():
        answer = awaited(best_by_width, searching, key="translation_width", height=420, stays=True, **asked)
        if answer is None:
            return
        _show_best(answer)
    found = answer.value
    first, last = float(found.scores[0]), float(found.scores[-1])
    outcome = "same" if found.texts[0] == found.texts[-1] else "better" if last > first else "worse"
    gained, different = f"{shown_gap(last, first):+.3f}", len(set(found.texts))
    measured = t("translation.width_measured", widest=WIDEST, gained=gained, different=different)
    cover.judge(outcome, measured, of=answer)


def _picture(view: View, values: Values) -> Live:
    """Return the tree down to the chosen depth."""
    answer, depth = _searched(view, values[WIDTH], values[PENALTY]), values[DEPTH]
    tree = answer.value
    start, whole = shown_word(translated(view).value.read[0]), depth == int(tree.depths.max())
    chart = tree_chart(tree, strings("translation_tree"), depth=depth, start=start, whole=whole)
    return Live(drawings=(Drawing("translation_tree", chart, answer, "beam_search", t("translation.tree_label")),))


def _show(view: View) -> None:
    """Show the controls, the tree down to a depth, and the ranking."""
    _, penalty, depth = show_in_columns(view, WIDTH, PENALTY, DEPTH, widths=[2, 2, 3], gap="medium")
    deepest = _deepest(view)
    whole = depth == deepest
    words = strings("translation_tree")
    st.html(LEGEND.format(kept_mark="a", **{name: words[name] for name in ("kept", "finished", "dropped", "best")}))
    (drawing,) = BEAM.live(view).drawings
    tree: BeamTree = drawing.answer.value
    show_drawing(drawing)
    BEAM.follow(view)
    if whole:
        place = "behind" if tree.behind else "ahead"
        st.markdown(t(f"translation.{place}", depths=", ".join(map(str, tree.behind)), count=int(tree.on_best.sum())))
        _show_ranking(tree, penalty)
    else:
        st.caption(t("translation.depth_note", depth=depth, deepest=deepest))
    _width_experiment(view, penalty)


BEAM = Part("translation", "beam", _show, _picture, (WIDTH, PENALTY, DEPTH))
