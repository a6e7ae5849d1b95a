"""Two side by side: two texts, two models, or two moments of a run; any site of both, and their difference."""

import numpy as np
import streamlit as st

from pages.figures.curves import Side, bars
from pages.kit.asking import Answer, ask_once
from pages.kit.charts import show_chart
from pages.kit.controls import Choice, Slider
from pages.kit.experiment import say
from pages.kit.header import View
from pages.kit.models import KINDS_OF_PAGE, model_names, open_or_say
from pages.kit.url import current
from pages.lab.figures import numbered
from pages.lab.patch import OTHER, read_other
from pages.lab.table import show_tables
from pages.language import plain, strings, t
from pages.room import Part
from transformer_core.analysis.lab.changes import streams
from transformer_core.analysis.lab.side_by_side import SideBySide, side_by_side, sites_in
from transformer_core.sites import site_of


def _seconds(view: View) -> dict[str, str]:
    """Return the models that can stand beside the one in the header, which is the first."""
    names = model_names(str(current("lab_model") or view.bundle.name), KINDS_OF_PAGE["lab"])
    return {view.bundle.name: names.get(view.bundle.name, view.bundle.name)} | names


SECOND = Choice("lab_model", _seconds, label="lab.second_model", form="list")


def _show(view: View) -> None:
    """Show one site of both readings with their difference, and all layers compared."""
    text_place, model_place, site_place, head_place = st.columns([4, 2, 2.6, 1.4], vertical_alignment="bottom")
    with text_place:
        OTHER.show(view)
    with model_place:
        bundle = open_or_say(SECOND.show(view))
    if bundle is None:
        return
    try:
        second = View(bundle, read_other(view, bundle))
        sites = _common_sites(view, second)
    except ValueError as error:
        st.info(plain(str(error)), icon=":material/info:")
        return
    if not sites:
        st.info(t("lab.no_common_site"), icon=":material/info:")
        return
    with site_place:
        site = Choice("lab_site", sites, label="lab.site", form="list").show()
    kept = {"head": "n_heads", "kv_head": "kv_heads", "each_expert": "n_experts"}
    counted = next((kept[axis] for axis in site_of(site).axes if axis in kept), "")
    heads = min(getattr(one.config, counted, 1) for one in (view.bundle, bundle))
    with head_place:
        head = Slider("lab_side_head", 0, heads - 1, 0, label="lab.head").show()
    answer = ask_once(side_by_side, prompt=view.prompt, second=second.prompt, site=site, head=head)
    _show_tables(answer, site)
    _show_layers(answer)
    _show_cka(answer, site)


def _common_sites(view: View, other: View) -> list[str]:
    """Return the sites that both readings have, the streams between layers first."""
    mine, theirs = (ask_once(sites_in, prompt=one.prompt).value.names for one in (view, other))
    first = [site for sites in streams(view.bundle).values() for site in sites]
    common = [site for site in mine if site in theirs]
    return [*(site for site in first if site in common), *(site for site in common if site not in first)]


def _show_tables(answer: Answer[SideBySide], site: str) -> None:
    found = answer.value
    shown = {t("lab.reading_first"): found.first, t("lab.reading_second"): found.second}
    rows = dict(zip(shown, found.rows, strict=True))
    columns = {
        name: found.columns[place] or numbered(table.shape[1]) for place, (name, table) in enumerate(shown.items())
    }
    if found.difference.size:
        name = t("lab.difference")
        shown[name] = found.difference
        rows[name] = found.pair_labels
        square = found.columns[0] and found.difference.shape[1] == len(found.pair_labels)
        columns[name] = found.pair_labels if square else numbered(found.difference.shape[1])
    kind = "probability" if site.endswith(".weights") else "signed"
    clean = {name: np.where(np.isfinite(table), table, np.nan) for name, table in shown.items()}
    first, second = (f"{answered:.3f}" if answered == answered else "–" for answered in found.answers)
    show_tables(
        "lab_side",
        clean,
        rows,
        columns,
        answer,
        version=f"{site}|{answer.arguments['head']}|{answer.arguments['prompt'].text}|{answer.arguments['second'].text}",
        words=strings("lab_side"),
        kind=kind,
        said="" if first == "–" else t("lab.side_answers", first=first, second=second),  # of a model without answers
    )


def _show_layers(answer: Answer[SideBySide]) -> None:
    found = answer.value
    measures = {"cosine": found.cosine, "distance": found.distance}
    series = {t(f"lab.layer_{name}"): values for name, values in measures.items() if (values == values).any()}
    if not series or len(found.cosine) < 2:
        if not found.cka.size:
            say(t("lab.no_layers"), small=True)
        return
    names = numbered(len(found.cosine))
    chart = bars(names, series, across=t("lab.layer"), up=Side(t("lab.layer_up")), height=260)
    show_chart(chart, answer, key="lab_layers", label=t("lab.layers_compared"))


def _show_cka(answer: Answer[SideBySide], site: str) -> None:
    """Show CKA of every layer of one reading with every layer of the other, beside that of shuffled positions."""
    found = answer.value
    if not np.isfinite(found.cka).all() or not found.cka.size:
        return
    shown = {t("lab.cka"): found.cka.clip(0, 1), t("lab.cka_shuffled"): found.cka_shuffled.clip(0, 1)}
    rows, columns = (dict.fromkeys(shown, numbered(count)) for count in found.cka.shape)
    arguments = answer.arguments
    best = ", ".join(f"{layer} → {int(row.argmax())}" for layer, row in enumerate(found.cka))
    show_tables(
        "lab_cka",
        shown,
        rows,
        columns,
        answer,
        version=f"{site}|{arguments['prompt'].text}|{arguments['second'].text}|{arguments['second'].bundle.name}",
        words=strings("lab_cka"),
        said=t("lab.cka_note", pairs=len(found.pairs), best=best),
    )


SIDE = Part("lab", "side", _show, sites=None)
