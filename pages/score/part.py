"""The part "Why this word?": a score as bars that add up to it; a tap opens a part, and each sum is checked beneath."""

import re
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import streamlit as st

from pages.kit.asking import Answer, ask, ask_once
from pages.kit.charts import Drawing, show_drawing
from pages.kit.controls import Choice, Control, Kept, Text, Values, show_in_columns
from pages.kit.experiment import ask_first, fragment, options_of, say
from pages.kit.header import View
from pages.kit.live import Live, show_formula
from pages.kit.number_format import significant_in_tex
from pages.language import joined, plain, section, strings, t
from pages.room import Part
from pages.score.effects import show_effect, try_each
from pages.score.figures import share_bars
from pages.score.names import answer_name, asked_name, by_stage, inner_names, kind_of, part_name
from transformer_core.analysis.lab.cases import answer_of
from transformer_core.analysis.stream.asked_score import ALONE, RUNNER_UP
from transformer_core.analysis.stream.opened_part import Opening
from transformer_core.analysis.stream.score_sum import ScoreSum, likeliest, score_sum

CODE = re.compile(r"layer\d{1,3}\.[a-z_]{1,20}(\.[a-z]{1,10}\d{0,6}){0,2}", re.ASCII)
AGAINST = {"runner": RUNNER_UP, "alone": ALONE}
OPENS = ("head", "feed_forward", "mixture")  # what lies in these can be opened as well
MOST_NAMED = 8  # layers that a question names one by one
INNER_FORMULAS = {
    "head": r"{\textstyle\sum_k}\,a_k\,(v_k\cdot u)",
    "token": r"a\,(v\cdot u)",
    "feed_forward": r"{\textstyle\sum_n}\,h_n\,(w_n\cdot u)",
    "mixture": r"{\textstyle\sum_e}\,g_e\,(E_e\cdot u)",
    "neuron": r"h\,(w\cdot u)",
}

Asked = dict[str, Any]


def _nothing(view: View) -> None:
    return None


def _no_drawings(view: View, values: Values) -> tuple[Drawing, ...]:
    return ()


class Score:
    """The part on one page.

    Args:
        page, name, group: of the part.
        asked: what the page asks of, as score_sum takes it: a prompt, and a place in what is read; None where there is
            nothing to ask. It reads the page's controls.
        above, below: show these controls, and what follows on the page.
        controls: of the page, that the picture depends on; beside: which of them stand beside the part's own.
        more: further drawings of the page, which it shows by itself.
    """

    def __init__(
        self,
        page: str,
        name: str,
        *,
        asked: Callable[[View], Asked | None],
        above: Callable[[View], object] = _nothing,
        below: Callable[[View], object] = _nothing,
        controls: tuple[Control[Any], ...] = (),
        beside: tuple[Control[Any], ...] = (),
        more: Callable[[View, Values], tuple[Drawing, ...]] = _no_drawings,
        group: str = "",
    ) -> None:
        self.asked, self.above, self.below, self.more, self.beside = asked, above, below, more, beside
        self.word = Choice("score_word", self._likeliest, label="score.word", kind=int, form="list")
        self.against = Choice("score_against", self._others, label="score.against", kind=_number_of, form="list")
        self.other = Text("score_other", "", label="score.other", parse=self._typed, most=40)
        self.opened = Kept("score_open", parse=self._code)
        own = (self.word, self.against, self.other, self.opened)
        self.part = Part(page, name, fragment(self._show), self._picture, (*controls, *own), group=group)

    def _likeliest(self, view: View) -> dict[str, str]:
        """Return the likeliest answers by their numbers."""
        asked = self.asked(view)
        if asked is None:
            return {"0": ""}
        found = ask_once(likeliest, **asked).value
        named = zip(found.numbers.tolist(), found.labels, strict=True)
        return {str(number): answer_name(view, label) for number, label in named}

    def _others(self, view: View) -> dict[str, str]:
        mine = str(self.word.read(view))
        others = {number: name for number, name in self._likeliest(view).items() if number != mine}
        runner = next(iter(others.values()), "")
        return {"runner": t("score.against_runner", name=runner), "alone": t("score.against_alone")} | others

    def _typed(self, view: View, text: str) -> int | None:
        """Return the token that a text is, with a blank before it or without; None of an empty text."""
        said = text.strip()
        if not said or view.bundle.kind == "classifier":
            return None
        for one in (f" {said}", said):
            try:
                found = answer_of(view.bundle, one)
            except ValueError:
                continue
            if found != self.word.read(view):
                return found
        raise ValueError(t("score.no_word", text=plain(said)))

    def _code(self, view: View, text: str) -> str:
        """Return the code of what is open; where this model or text has no such part, of what that lies in, or ""."""
        asked = self.asked(view) if CODE.fullmatch(text) else None
        if asked is None:
            return ""
        for code in (text, text.rpartition(".")[0]):
            try:
                ask_once(score_sum, **asked, opened=code)
            except ValueError:
                continue
            return code
        return ""

    def _asking(self, view: View, values: Values) -> Asked | None:
        asked, typed = self.asked(view), values[self.other]
        if asked is None:
            return None
        return asked | {"answer": values[self.word], "against": values[self.against] if typed is None else typed}

    def _picture(self, view: View, values: Values) -> Live:
        """Return the sum in numbers, its parts as bars, and each layer's sum, or the insides of what is open."""
        asking = self._asking(view, values)
        if asking is None:
            return Live(drawings=self.more(view, values))
        answer = ask(score_sum, **asking, opened=values[self.opened])
        found = answer.value
        formulas = {"score_sum": _formula(found)}
        formulas |= {f"score_open{depth}": _checked(opening) for depth, opening in enumerate(found.openings)}
        inner = [_inner(view, answer, depth) for depth, one in enumerate(found.openings) if len(one.values) > 1]
        drawings = (_parts(view, answer), *(inner if found.openings else [_stages(view, answer)]))
        return Live(drawings=(*drawings, *self.more(view, values)), formulas=formulas)

    def _show(self, view: View) -> None:
        """Show what is asked, the sum in numbers, its bars, and beside them each layer's sum or what is open."""
        self.above(view)
        if self.asked(view) is None:
            return
        typed = () if view.bundle.kind == "classifier" else (self.other,)
        show_in_columns(view, *self.beside, self.word, self.against, *typed, gap="large")
        values, live = self.part.values(view), self.part.live(view)
        by_key = {drawing.key: drawing for drawing in live.drawings}
        parts = by_key["score_parts"]
        found: ScoreSum = parts.answer.value
        asking = self._asking(view, values) or {}
        self.part.follow(view)
        bars, opened = st.columns(2, gap="large")
        with bars:
            show_drawing(parts, on_place=partial(self._tap, found.names))
            st.caption(_held(found))
        with opened:
            if found.openings:
                self._show_openings(view, asking, live, by_key)
            else:
                _ask_layer(view, by_key["score_stages"])
        show_formula("score_sum", live.formulas["score_sum"])
        try_each(view, found, asking)
        self.below(view)

    def _tap(self, names: Sequence[str], place: int) -> None:
        """Open a part; only in a callback."""
        if 0 <= place < len(names) and kind_of(names[place]) in OPENS:
            self.opened.set(names[place])

    def _show_openings(self, view: View, asking: Asked, live: Live, by_key: dict[str, Drawing]) -> None:
        """Show the way to what is open, its measured effect, and the inside of everything on that way."""
        found: ScoreSum = by_key["score_parts"].answer.value
        with st.container(horizontal=True, vertical_alignment="center", gap="small"):
            ways = ["", *(opening.code for opening in found.openings)]
            for code, way in enumerate(ways[:-1]):
                name = part_name(view, way) if way else t("score.all_parts")
                st.button(
                    name, icon=":material/arrow_back:", key=f"score_to{code}", on_click=self.opened.set, args=(way,)
                )
            st.markdown(f"**{plain(_way_name(view, found.openings))}**", width="content")
        show_effect(view, found, asking)
        for depth, opening in enumerate(found.openings):
            if (drawing := by_key.get(f"score_inner{depth}")) is not None:
                taps = opening.kind in OPENS
                names = opening.names
                show_drawing(
                    drawing, on_place=(lambda place, names=names: self._tap_inner(names, place)) if taps else None
                )
            show_formula(f"score_open{depth}", live.formulas[f"score_open{depth}"])
            st.caption(section("score", opening.kind))

    def _tap_inner(self, names: Sequence[str], place: int) -> None:
        """Open what lies in an open part; only in a callback."""
        if 0 <= place < len(names) and not names[place].endswith("bias"):
            self.opened.set(names[place])


def _number_of(option: str) -> int:
    return AGAINST[option] if option in AGAINST else int(option)


def _words() -> dict[str, str]:
    return strings("score_bars")


def _way_name(view: View, openings: Sequence[Opening]) -> str:
    """Return what people call the innermost open part."""
    if len(openings) == 1:
        return part_name(view, openings[0].code)
    outer, inner = openings[-2:]
    return inner_names(outer)[outer.names.index(inner.code)]


def _parts(view: View, answer: Answer[ScoreSum]) -> Drawing:
    found = answer.value
    chosen = found.names.index(found.openings[0].code) if found.openings else None
    names, kinds = [part_name(view, code) for code in found.names], [kind_of(code) for code in found.names]
    bars = share_bars(names, found.values, kinds, _words(), chosen=chosen)
    label = t("score.parts_label", name=asked_name(view, found))
    return Drawing("score_parts", bars, answer, "why_this_word", label)


def _stages(view: View, answer: Answer[ScoreSum]) -> Drawing:
    names, sums, kinds = by_stage(view, answer.value)
    bars = share_bars(names, sums, kinds, _words() | {"feed_forward": t("score_bars.layer")})
    label = t("score.stages_label", name=asked_name(view, answer.value))
    return Drawing("score_stages", bars, answer, "why_this_word_by_layer", label)


def _inner(view: View, answer: Answer[ScoreSum], depth: int) -> Drawing:
    openings = answer.value.openings
    opening, names = openings[depth], inner_names(openings[depth])
    inside = openings[depth + 1].code if depth + 1 < len(openings) else ""
    chosen = opening.names.index(inside) if inside in opening.names else None
    whole = {"head": "head", "token": "head"}.get(opening.kind, "feed_forward")
    kinds = ["bias" if code.endswith("bias") else whole for code in opening.names]
    left, right = ([f"{one:+.4f}" for one in row] for row in opening.factors.tolist())
    about = {t(f"score.{opening.kind}_left"): left, t(f"score.{opening.kind}_right"): right}
    by_size = opening.kind not in ("head", "neuron")
    bars = share_bars(names, opening.values, kinds, _words(), chosen=chosen, about=about, by_size=by_size)
    label = t("score.inner_label", name=_way_name(view, openings[: depth + 1]))
    return Drawing(f"score_inner{depth}", bars, answer, f"why_{opening.kind}", label, {"part": opening.code})


def _signed(number: float) -> str:
    return f"{number:+.4f}"


def _check(total: float, model: float, difference: float, word: str) -> str:
    apart = significant_in_tex(difference, 1, sign=True)
    return (
        rf"{_signed(total)}\qquad \text{{{t(word)}}}\ {_signed(model)}"
        rf"\qquad \text{{{t('score.apart')}}}\ {apart}"
    )


def _formula(found: ScoreSum) -> str:
    """Return the sum by kinds of parts, what it comes to, and what the model computed."""
    sums: dict[str, float] = {"embedding": 0.0, "head": 0.0, "feed_forward": 0.0, "bias": 0.0}
    for code, value in zip(found.names, found.values.tolist(), strict=True):
        sums[kind_of(code)] += value
    parts = "".join(
        rf"\underset{{\text{{{t(f'score.sum_{kind}')}}}}}{{{_signed(value)}}}\," for kind, value in sums.items()
    )
    return f"z={parts}={_check(found.total, found.score, found.difference, 'score.model_says')}"


def _checked(opening: Opening) -> str:
    """Return an opened part's sum, with the numbers of one neuron or one token, beside its bar."""
    numbers, above, written = opening.numbers, "", ""
    if opening.kind == "token" and numbers:
        written = rf"={numbers['weight']:.4f}\cdot({_signed(numbers['towards'])})"
    elif opening.kind == "neuron" and len(opening.values) == 1:
        act = rf"\varphi({_signed(numbers['pre_activation'])})"
        if "gate" in numbers:
            act = rf"{act}\cdot({_signed(numbers['up'])})"
        above = rf"h&={act}={_signed(numbers['activation'])}\\ "
        written = rf"&={_signed(numbers['activation'])}\cdot({_signed(numbers['written'])})"
    check = _check(float(opening.values.sum()), opening.share, opening.difference, "score.bar_says")
    line = f"{INNER_FORMULAS[opening.kind]}{written}={check}"
    return rf"\begin{{aligned}}{above}{line}\end{{aligned}}" if above else line


def _held(found: ScoreSum) -> str:
    """Return in words what is held fixed on the way, and whether the score is one before a cap."""
    held = t("score.held_one") if found.norms == 1 else t("score.held_many", norms=found.norms) if found.norms else ""
    gates = t("score.held_gates", count=found.gates) if found.gates else ""
    cap = ""
    if found.cap is not None:
        cap = t("score.before_cap", cap=f"{found.cap:g}", score=_signed(found.score), logit=_signed(found.logit))
    return joined(t("score.tap"), held, gates, cap)


def _ask_layer(view: View, drawing: Drawing) -> None:
    """Ask which layer wrote the word, then show what each layer wrote."""
    found: ScoreSum = drawing.answer.value
    names, sums, _ = by_stage(view, found)
    layers = len(sums) - 2
    most = int(sums[:-1].argmax())
    if layers <= MOST_NAMED:
        options, outcome = {str(place): name for place, name in enumerate(names[:-1])}, str(most)
    else:
        options = options_of("score.layers_{}", ("embedding", "first", "middle", "last"))
        outcome = ("first", "middle", "last")[3 * (most - 1) // layers] if most else "embedding"
    name = asked_name(view, found)
    cover = ask_first(t("score.try_layer", name=plain(name)), options, name="score_layer", about=f"{view.name} {name}")
    measured = t("score.layer_measured", value=_signed(sums[most]), total=_signed(found.total))
    cover.judge(outcome, measured)
    with cover.picture():
        show_drawing(drawing)
        say(t("score.layer_note"), small=True)
