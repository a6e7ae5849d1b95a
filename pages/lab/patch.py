"""Patch: one activation of this text put into another one, everywhere in turn; exact, and by the gradient."""

import numpy as np
import streamlit as st

from pages.figures.curves import Side, curves
from pages.kit.asking import Answer, ask_once
from pages.kit.charts import show_chart
from pages.kit.controls import Choice, Text
from pages.kit.experiment import ask_first, experiment, options_of, say
from pages.kit.header import View, encoded_whole, part_read
from pages.kit.matrix import PIN, Picture, export_picture, show_picture
from pages.kit.number_format import minus
from pages.kit.refusals import read_or_last
from pages.kit.url import in_url
from pages.kit.waiting import awaited_or_why
from pages.lab.figures import head_scatter, numbered, patch_figure
from pages.lab.outcome import (
    MOST_AT_ONCE,
    N_CONTROLS,
    ask_effect,
    can_answer,
    measured,
    show_answer,
    show_effect,
)
from pages.language import joined, plain, strings, t
from pages.room import Part
from transformer_core.analysis.lab.heads_off import Boards, attentions, head_boards
from transformer_core.analysis.lab.intervention import intervene, written_with
from transformer_core.analysis.lab.minimal_pairs import PatchedPairs, minimal_pairs, patch_on_pairs
from transformer_core.analysis.lab.patching import (
    PARTS,
    HeadWays,
    PatchMap,
    compared_methods,
    head_ways,
    passes_needed,
    patch_map,
    patched_stacks,
    sites_of,
    two_methods,
)
from transformer_core.bundle import Bundle
from transformer_core.prompt import Prompt
from transformer_core.text import Encoding

MOST_EXACT = 6_000
BRIEF_PASSES = 250


def other_text(view: View) -> str:
    """Return the text with one word changed, as a suggestion."""
    words = view.encoding.text.split(" ")
    swaps = {"not": "very", "dull": "great", "good": "bad", "man": "woman", "masterpiece": "failure"}
    swaps |= {"good.": "bad.", "little": "big", "boy": "girl", "was": "is"}
    found = next((word for word in swaps if word in words), None)
    if found is not None:
        place = words.index(found)
        return " ".join([*words[:place], swaps[found], *words[place + 1 :]])
    return view.encoding.text.replace("好", "差", 1) if "好" in view.encoding.text else " ".join([*words[:-1], "dog"])


OTHER = Text[str]("lab_other", other_text, label="lab.other")
STACK = Choice("lab_stack", lambda view: patched_stacks(view.bundle), label="lab.stack", words="lab.stack_{}")
SHOWN = Choice("lab_shown", ("exact", "estimate"), label="lab.shown", words="lab.shown_{}")


def read_other(view: View, bundle: Bundle) -> Encoding:
    """Return the other text as a model reads it, and say so where that is not the one in the box, or not all of it.

    Raises:
        ValueError: neither that nor the suggested one can be read; in words for the page.
    """
    encoding, instead = read_or_last(
        OTHER.name, OTHER.read(view), other_text(view), lambda text: encoded_whole(bundle, text)
    )
    if said := instead or part_read(bundle, OTHER.read(view)):
        st.caption(said)
    return encoding


def _show(view: View) -> None:
    """Show the maps of one stack, what a clicked cell does, and how well the gradient foretells it."""
    if not can_answer(view):
        return
    other_place, answer_place, stack_place, shown_place = st.columns([4, 2.2, 2.2, 2.4], vertical_alignment="bottom")
    with other_place:
        OTHER.show(view)
    with answer_place:
        show_answer(view)
    stack, *others = patched_stacks(view.bundle)
    with stack_place:
        if others:
            stack = STACK.show(view)
    with shown_place:
        shown = SHOWN.show()
    try:
        second = View(view.bundle, read_other(view, view.bundle))
        needed = passes_needed(prompt=view.prompt, other=second.prompt, stack=stack)
    except ValueError as error:
        st.info(plain(str(error)), icon=":material/info:")
        return
    if needed > MOST_EXACT and not st.toggle(t("lab.many_passes", count=f"{needed:,}"), key="lab_many"):
        return
    _show_maps(view, second, stack, shown, needed)


def _show_maps(view: View, second: View, stack: str, shown: str, needed: int) -> None:
    place_of_effect = st.container()
    options = options_of("lab.patch_{}", ("changed", "last", "elsewhere"))
    cover = ask_first(t("lab.patch_ask"), options, name="lab_patch", about=view.bundle.name)
    with cover.picture():
        answer: Answer[PatchMap] | None = _ask_map(view, second.prompt, stack, needed)
        if answer is None:
            return
        found = answer.value
        picture = _picture(view, answer, stack, shown)
        show_picture(picture, on_cell=None)
        with st.container(horizontal=True, gap="small"):
            export_picture(picture)
            say(
                t("lab.patch_ends", first=f"{found.first:.2f}", second=f"{found.second:.2f}", passes=found.passes),
                small=True,
            )
        say(_agreement(found), small=True)
        if found.heads.size:
            heads = _heads_picture(view, answer, stack, shown)
            show_picture(heads, files=True)
            _show_methods(view, answer, stack)
            if len(attentions(view.bundle)) == 1:
                _show_ways(view, answer, stack)
    with place_of_effect:
        _show_cell(view, answer, second, stack)
    cover.judge(_where(found), t("lab.patch_measured", **_strongest(found)))
    if minimal_pairs(view.bundle):
        _show_on_pairs(view, found, second.prompt, stack)


def _ask_map(view: View, other: Prompt, stack: str, needed: int) -> Answer[PatchMap] | None:
    brief = needed <= BRIEF_PASSES and view.bundle.n_parameters <= MOST_AT_ONCE
    asked, words = {"other": other, "stack": stack, "answer": measured(view)}, t("lab.patching", count=f"{needed:,}")
    return awaited_or_why(patch_map, words, key="lab_patch", height=360, brief=brief, prompt=view.prompt, **asked)


def _maps(found: PatchMap, shown: str) -> dict[str, np.ndarray]:
    values = found.exact if shown == "exact" else found.estimate
    return {t(f"lab.place_{place}"): table for place, table in zip(found.places, values, strict=True)}


def _picture(view: View, answer: Answer[PatchMap], stack: str, shown: str) -> Picture:
    found = answer.value
    cell, panel = _pinned(found)
    figure = patch_figure(
        _maps(found, shown),
        found.labels,
        strings("lab_patch"),
        filename=f"lab_patch_{shown}",
        cell=cell,
        cell_panel=panel,
    )
    version = f"{shown}|{stack}|{view.encoding.text}|{answer.arguments['other'].text}"
    return Picture("lab_patch_map", figure, answer, {"shown": shown}, version=version)


def _heads_picture(view: View, answer: Answer[PatchMap], stack: str, shown: str) -> Picture:
    found = answer.value
    values = found.heads if shown == "exact" else found.heads_estimate
    figure = patch_figure(
        {t("lab.heads_map"): values},
        numbered(values.shape[1]),
        strings("lab_patch") | {"token": t("lab_heads.head")},
        filename=f"lab_patch_heads_{shown}",
        cell=_chosen_head(found),
        cell_panel=0,
    )
    version = f"heads|{shown}|{stack}|{view.encoding.text}|{answer.arguments['other'].text}"
    return Picture("lab_patch_heads", figure, answer, {"shown": shown}, version=version)


def _chosen_head(found: PatchMap) -> tuple[int, int]:
    """Return layer and number of the pinned head, by default of the one that brings back most."""
    pinned = PIN.fullmatch(in_url("pin_lab_patch_heads"))
    if pinned is not None:
        _, layer, head = map(int, pinned.groups())
        if layer < found.heads.shape[0] and head < found.heads.shape[1]:
            return layer, head
    layer, head = np.unravel_index(int(np.abs(found.heads).argmax()), found.heads.shape)
    return int(layer), int(head)


@experiment("lab_methods", "lab.methods", icon=":material/compare:")
def _show_methods(view: View, of: Answer[PatchMap], stack: str) -> None:
    """Show, in a box, each head by what the answer loses without it, and by what it brings into the other text."""
    options = options_of("lab.methods_{}", ("same", "differ"))
    cover = ask_first(t("lab.methods_ask"), options, name="lab_methods", about=view.bundle.name)
    with cover.picture():
        asked = {"prompt": view.prompt, "other": of.arguments["other"], "stack": stack, "answer": measured(view)}
        brief = view.bundle.n_parameters <= MOST_AT_ONCE
        lost = {
            "prompt": view.prompt,
            "answer": measured(view),
            "how": "zero",
            "draw": 0,
            "brief": brief,
        }  # as Heads asks
        boards: Answer[Boards] | None = awaited_or_why(head_boards, t("lab.reading_heads"), key="lab_methods", **lost)
        if boards is not None:
            found = compared_methods(of.value, boards.value, stack)
            answer = Answer(found, two_methods, asked)
            names = [f"{layer}.{head}" for layer, head in found.heads]
            chart = head_scatter(found.lost, found.back, names, strings("lab_methods"))
            show_chart(chart, answer, key="lab_methods_dots", stem="lab_two_methods", label=t("lab.methods"))
            say(t("lab.methods_note"), small=True)
    if boards is None:
        return
    lost, back = found.most_lost, found.most_back
    said = {
        "first": names[lost],
        "lost": minus(f"{found.lost[lost]:+.2f}"),
        "back": minus(f"{found.back[lost]:+.2f}"),
        "second": names[back],
        "second_lost": minus(f"{found.lost[back]:+.2f}"),
        "second_back": minus(f"{found.back[back]:+.2f}"),
        "r": minus(f"{found.r:+.2f}") if np.isfinite(found.r) else "–",
        "count": len(names),
    }
    outcome = "same" if lost == back else "differ"
    cover.judge(outcome, t(f"lab.methods_said_{outcome}", **said))


@experiment("lab_head_ways", "lab.head_ways", icon=":material/route:")
def _show_ways(view: View, of: Answer[PatchMap], stack: str) -> None:
    """Show, in a box, at which tokens the chosen head matters, and which later heads read it."""
    layer, head = _chosen_head(of.value)
    asked = {"other": of.arguments["other"], "stack": stack, "layer": layer, "head": head, "answer": measured(view)}
    asked |= {"prompt": view.prompt, "brief": view.bundle.n_parameters <= MOST_AT_ONCE}
    answer = awaited_or_why(head_ways, t("lab.head_ways_reading"), key="lab_head_ways", height=360, **asked)
    if answer is None:
        return
    found, rest = answer.value, np.delete(of.value.heads[layer], head)
    said = {"head": f"{layer}.{head}", "total": f"{found.total:.0%}", "direct": f"{found.direct:.0%}"}
    spread = {"least": f"{rest.min():.0%}", "most": f"{rest.max():.0%}"} if rest.size else {}
    others = t("lab.head_ways_others", **spread) if spread else ""
    say(joined(t("lab.head_ways_total", **said), others, _through(found, layer)))
    version = f"{layer}.{head}|{view.encoding.text}|{asked['other'].text}"
    about = {"cell": None, "cell_panel": None, "beside": found.total}
    head_words = {"token": t("lab_heads.head")}
    maps = {t("lab.head_ways_places", layer=layer): found.by_position}
    places = patch_figure(
        maps,
        found.labels,
        strings("lab_patch") | {"layer": t("lab_heads.head")},
        filename="lab_head_places",
        **about,
    )
    pictures = [Picture("lab_head_places", places, answer, version=version)]
    if found.ways.shape[1]:
        ways = patch_figure(
            {t(f"lab.head_ways_{part}"): shares for part, shares in zip(PARTS, found.ways, strict=True)},
            numbered(found.ways.shape[2]),
            strings("lab_patch") | head_words,
            filename="lab_head_ways",
            first=layer + 1,
            **about,
        )
        pictures.append(Picture("lab_head_ways", ways, answer, version=version))
    for picture in pictures:
        show_picture(picture, files=True)


def _through(found: HeadWays, layer: int) -> str:
    """Return in words which later head reads most of a head, or that none comes after it."""
    if not found.ways.size:
        return t("lab.head_ways_last")
    part, below, head = np.unravel_index(int(np.abs(found.ways).argmax()), found.ways.shape)
    share, whole = found.ways[part, below, head], found.direct + found.ways.sum()
    said = {"head": f"{layer + 1 + below}.{head}", "share": f"{share:.0%}", "whole": f"{whole:.0%}"}
    return t("lab.head_ways_most", part=t(f"lab.head_ways_{PARTS[part]}"), **said)


def _pinned(found: PatchMap) -> tuple[tuple[int, int], int]:
    """Return the cell that is patched: the pinned one, or the stream of layer 0 where the texts first differ."""
    panel, row, col = _chosen(found)
    return (row, col), panel


def _chosen(found: PatchMap) -> tuple[int, int, int]:
    pinned = PIN.fullmatch(in_url("pin_lab_patch_map"))
    if pinned is not None:
        panel, row, col = map(int, pinned.groups())
        if panel < found.exact.shape[0] and row < found.exact.shape[1] and col < found.exact.shape[2]:
            return panel, row, col
    return 0, 0, next((pair for pair, differs in enumerate(found.changed) if differs), 0)


def _show_cell(view: View, answer: Answer[PatchMap], second: View, stack: str) -> None:
    """Show the outcome with the chosen activation put into the other text."""
    found = answer.value
    place, layer, pair = _chosen(found)
    site = sites_of(view.bundle, stack)[found.places[place]][layer]
    here, there = found.pairs[pair].tolist()
    changes = (("patch", site, view.encoding.text, there, here, -1),)
    own = measured(view)
    effect = ask_once(
        intervene,
        prompt=second.prompt,
        changes=changes,
        answer=_own_answer(view) if own is None else own,
        controls=N_CONTROLS,
    )
    what = t("lab.what_patch", place=t(f"lab.place_{found.places[place]}"), layer=layer, token=found.labels[pair])
    say(what)
    show_effect(view, effect, what=what, part="patch")


@experiment("lab_pairs", "lab.pairs", icon=":material/dataset:")
def _show_on_pairs(view: View, found: PatchMap, other: Prompt, stack: str) -> None:
    """Show, in a box, what the same place brings back on built-in pairs, beside random places."""
    place, layer, pair = _chosen(found)
    position, words = int(found.pairs[pair][0]), t("lab.reading_pairs")
    asked = {"other": other, "stack": stack, "place": found.places[place], "layer": layer, "position": position}
    asked |= {"prompt": view.prompt, "brief": view.bundle.n_parameters <= MOST_AT_ONCE}
    answer = awaited_or_why(patch_on_pairs, words, key="lab_pairs", height=300, **asked)
    if answer is not None:
        _draw_pairs(answer, t(f"lab.place_{found.places[place]}"), layer)


def _draw_pairs(answer: Answer[PatchedPairs], place: str, layer: int) -> None:
    measured = answer.value
    role = "read" if measured.offset is None else "changed" if measured.offset == 0 else "away"
    where = t(f"lab.role_{role}", offset=f"{measured.offset or 0:+d}")
    text, other = measured.pairs[0]
    counts = {"used": len(measured.pairs), "left_out": measured.left_out, "text": plain(text), "other": plain(other)}
    means = measured.random.mean(1)
    shares = {
        "share": f"{measured.shares.mean():.0%}",
        "random": f"{means.mean():.0%}",
        "least": f"{means.min():.0%}",
        "most": f"{means.max():.0%}",
    }
    say(t("lab.pairs_found", place=place, layer=layer, where=where, **shares, **counts))
    series = {t("lab.pairs_here"): np.sort(measured.shares)[::-1]}
    series[t("lab.pairs_random")] = np.sort(measured.random.mean(0))[::-1]
    up = Side(t("lab.pairs_up"), format=".0%")
    chart = curves(
        np.arange(1, len(measured.shares) + 1), series, across=Side(t("lab.pairs_across")), up=up, height=240
    )
    show_chart(chart, answer, key="lab_pairs_curves", stem="lab_patched_pairs", label=t("lab.pairs"))
    say(t("lab.pairs_note", **counts), small=True)


def _own_answer(view: View) -> int | str | None:
    """Return the answer of the text that is patched from, as the other text is asked for it."""
    if view.bundle.reader.asks == "words":
        return ask_once(written_with, prompt=view.prompt, changes=()).value.before
    return ask_effect(view, (), None, controls=0).value.answer


def _agreement(found: PatchMap) -> str:
    return t(
        "lab.patch_agreement",
        correlation=f"{found.correlation:+.2f}",
        rho=f"{found.agreement.rho:+.2f}",
        count=found.agreement.count,
        left_out=found.exact.size + found.heads.size - found.agreement.count,
        unpaired=found.unpaired,
    )


def _inner(found: PatchMap) -> np.ndarray:
    """Return the residual stream's map without its last layer, where the place that is read has everything."""
    stream = found.exact[0]
    return stream[:-1] if len(stream) > 1 else stream


def _where(found: PatchMap) -> str:
    """Return where most comes back in the stream below the last layer: at a changed token, at the last, elsewhere."""
    pair = int(np.unravel_index(int(_inner(found).argmax()), _inner(found).shape)[1])
    if found.changed[pair]:
        return "changed"
    return "last" if pair == len(found.labels) - 1 else "elsewhere"


def _strongest(found: PatchMap) -> dict[str, str]:
    layer, pair = np.unravel_index(int(_inner(found).argmax()), _inner(found).shape)
    return {
        "layer": str(layer),
        "token": plain(found.labels[int(pair)]),
        "share": f"{_inner(found)[layer, pair]:.0%}",
    }


PATCH = Part("lab", "patch", _show, sites=None)
