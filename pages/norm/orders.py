"""The page's part on two orders: the stream of a post-norm model beside a pre-norm one's, over the header's text."""

from functools import lru_cache, partial
from pathlib import Path

import streamlit as st

from pages.kit.asking import Answer, ask
from pages.kit.charts import show_chart
from pages.kit.controls import Choice
from pages.kit.experiment import ask_first, options_of, say
from pages.kit.exports import code_files, offer_files
from pages.kit.glossary import show_prose
from pages.kit.header import MOST_TOKENS, View
from pages.kit.models import READERS, model_folders, model_names, open_or_say
from pages.kit.number_format import markdown_table, minus, significant, significant_in_tex
from pages.language import is_foreign, plain, section, strings, t
from pages.norm.figures import name_of, order_chart, written_chart
from pages.room import Part
from transformer_core.analysis.arrays import arrays_of
from transformer_core.analysis.stream.orders import (
    SublayerSteps,
    TwoOrders,
    encoded_for,
    matching_token,
    sublayer_steps,
    two_orders,
)
from transformer_core.bundle import Bundle
from transformer_core.prompt import Prompt
from transformer_core.text import Encoding
from transformer_core.untrusted.bundle_files import BundleError
from transformer_core.untrusted.config_json import read_json

FIRST = {"post": "translation-en-de", "pre": "translation-en-fr"}
FORMULAS = {"post": r"x' = \mathrm{norm}\big(x + f(x)\big)", "pre": r"x' = x + f\big(\mathrm{norm}(x)\big)"}
MEAN = "mean"
LEFT_FREE = 1.1  # of an axis, beyond what is drawn
WIDEST_SCALE = 10_000


@lru_cache(maxsize=256)
def _order_in(folder: Path) -> str | None:
    """Return the norm order that a bundle's config names, without opening the model; None where it is not compared.

    RMSNorm, which takes no mean away, is not.
    """
    try:
        model = read_json(folder / "config.json").get("model")
    except (OSError, BundleError):
        return None
    compared = isinstance(model, dict) and model.get("norm") != "rms_norm" and model.get("first_attention_norm", True)
    return str(model.get("norm_order")) if compared else None


def _models_of(order: str, view: View) -> dict[str, str]:
    """Return what people call the models of a norm order, the best known one first and the header's among them."""
    folders = model_folders()
    names = model_names(view.bundle.name, (*READERS, "translation"))
    found = {name: called for name, called in names.items() if name in folders and _order_in(folders[name]) == order}
    config = view.bundle.config
    if config.norm_order == order and config.norm != "rms_norm" and config.first_attention_norm:
        found[view.bundle.name] = names.get(view.bundle.name, view.bundle.name)
    first = FIRST[order]
    return {first: found[first]} | found if first in found else found


MODELS = {
    order: Choice(f"norm_orders_{order}", partial(_models_of, order), label=f"norm.orders_{order}", form="list")
    for order in FIRST
}


def _choose_model(order: str, view: View) -> Bundle | None:
    if not MODELS[order].options_of(view):
        st.info(t(f"norm.orders_no_{order}"), icon=":material/info:")
        return None
    return open_or_say(MODELS[order].show(view))


def _read(bundle: Bundle, text: str) -> Encoding | None:
    try:
        return encoded_for(Prompt(bundle, text, MOST_TOKENS))
    except ValueError:
        st.info(t("norm.orders_unread", name=plain(bundle.name)), icon=":material/info:")
        return None


def _choose_token(encoding: Encoding) -> int | None:
    """Show the mean and the text's own tokens, special ones last; None for the mean."""
    order = sorted(range(len(encoding)), key=lambda place: not encoding.offsets[place][1])
    options = {MEAN: t("norm.mean_of_tokens")} | {str(place): f"{place} · {encoding.labels[place]}" for place in order}
    chosen = Choice("norm_orders_token", options, label="norm.token", form="list").show()
    return None if chosen == MEAN else int(chosen)


def _show(view: View) -> View:
    """Show both streams, what the sublayers write, and one token's way through a sublayer of each.

    Returns:
        What the glass shall show: the post-norm model, or the pre-norm one where a person chose that.
    """
    text, bundles = view.encoding.text, {}
    places = st.columns([1.2, 1.2, 1], gap="medium")
    for order, place in zip(FIRST, places, strict=False):
        with place:
            bundles[order] = _choose_model(order, view)
    post, pre = bundles["post"], bundles["pre"]
    if post is None or pre is None:
        return view
    encodings = {"post": _read(post, text), "pre": _read(pre, text)}
    own, other = encodings["post"], encodings["pre"]
    if own is None or other is None:
        return view
    with places[2]:
        token = _choose_token(own)
    tokens = {"post": token, "pre": None if token is None else matching_token(own, token, other)}
    answer = ask(two_orders, post=post, pre=pre, text=text, n_tokens=MOST_TOKENS)
    _streams(answer, tokens)
    _foreign_or_cut({order: bundle for order, bundle in bundles.items() if bundle is not None}, encodings, text)
    _written(answer)
    _steps(post, pre, own, other, 0 if token is None else token, text, picked=token is not None)
    seen = Choice("norm_orders_glass", {"post": post.name, "pre": pre.name}, label="norm.orders_glass")
    return View(post, own) if seen.show() == "post" else View(pre, other)


def _title(order: str, name: str) -> str:
    return f"**{plain(name)}** · {t(f'norm.stack_{order}')}"


def _foreign_or_cut(bundles: dict[str, Bundle], encodings: dict[str, Encoding | None], text: str) -> None:
    """Say which model was trained on another language than the text's, and which one reads a part of it alone."""
    foreign = [bundle.name for bundle in bundles.values() if is_foreign(text, bundle.reads)]
    if foreign:
        st.caption(t("norm.orders_foreign", names=plain(", ".join(foreign))))
    for order, encoding in encodings.items():
        if encoding is not None and encoding.truncated:
            st.caption(t("norm.orders_cut", name=plain(bundles[order].name), count=len(encoding)))


def _ends(found: TwoOrders) -> tuple[float, float]:
    """Return where the axis of lengths ends, which both models share."""
    lengths = [(s.growth.lengths, s.sums, s.handed_on[None]) for s in (found.post, found.pre)]
    every = [float(end) for arrays in lengths for values in arrays for end in (values.min(), values.max())]
    most = LEFT_FREE * max(*every, found.post.level, found.pre.level)
    least = min(*every, found.post.level, found.pre.level)
    return max(least / LEFT_FREE, most / WIDEST_SCALE), most


def _streams(answer: Answer[TwoOrders], tokens: dict[str, int | None]) -> None:
    found = answer.value
    streams = {"post": found.post, "pre": found.pre}
    options = options_of("norm.orders_in_{}", ("post", "pre", "both", "neither"))
    cover = ask_first(
        section("norm", "try_orders"), options, name="norm_orders", about=f"{found.post.model} {found.pre.model}"
    )
    numbers = {
        f"{order}_{name}": f"{getattr(stream, name):.2f}"
        for order, stream in streams.items()
        for name in ("first", "last", "grown")
    }
    names = {order: plain(stream.model) for order, stream in streams.items()}
    cover.judge(found.outcome, t("norm.orders_measured", **names, **numbers))
    ends = _ends(found)
    with cover.picture():
        for place, (order, stream) in zip(st.columns(2, gap="large"), streams.items(), strict=True):
            with place:
                say(_title(order, stream.model))
                show_chart(
                    order_chart(arrays_of(stream), strings("norm"), order=order, token=tokens[order], ends=ends),
                    answer,
                    key=f"norm_orders_{order}",
                    stem=f"norm_stream_{order}",
                    label=t("norm.orders_label", name=plain(stream.model)),
                    of={"model": stream.model} | ({} if tokens[order] is None else {"token": tokens[order]}),
                )
        say(
            t(
                "norm.orders_set_back",
                **names,
                inside=found.post.inside,
                level=f"{found.post.level:.2f}",
                off=significant(found.post.off),
                least=f"{found.post.least:.2f}",
                most=f"{found.post.most:.2f}",
                handed=f"{found.pre.handed_on.mean():.2f}",
            )
        )


def _written(answer: Answer[TwoOrders]) -> None:
    found = answer.value
    streams = {"post": found.post, "pre": found.pre}
    st.subheader(t("norm.written"), anchor=False)
    most = LEFT_FREE * max(float(stream.growth.written.max()) for stream in streams.values())
    for place, (order, stream) in zip(st.columns(2, gap="large"), streams.items(), strict=True):
        growth = stream.growth
        with place:
            st.markdown(_title(order, stream.model))
            show_chart(
                written_chart(
                    growth.sublayers, growth.written, stream.tokens, strings("norm"), measure="written", most=most
                ),
                answer,
                key=f"norm_orders_written_{order}",
                stem=f"norm_written_{order}",
                label=t("norm.orders_written_label", name=plain(stream.model)),
                of={"model": stream.model},
            )
    names = {order: plain(stream.model) for order, stream in streams.items()}
    added = {f"{order}_added": f"{stream.added:.2f}" for order, stream in streams.items()}
    st.markdown(t("norm.orders_added", **names, **added))


def _steps(post: Bundle, pre: Bundle, own: Encoding, other: Encoding, token: int, text: str, *, picked: bool) -> None:
    """Show the formula of each order, and below it the numbers of one token."""
    st.subheader(t("norm.orders_steps"), anchor=False)
    show_prose(section("norm", "orders_steps"))
    names = strings("norm")
    layers = range(min(post.config.n_layers, pre.config.n_layers))
    places = [f"{layer}.{sublayer}" for layer in layers for sublayer in ("self_attention", "feed_forward")]
    with st.columns([1, 2])[0]:
        options = {place: name_of(place, names) for place in places}
        chosen = Choice("norm_orders_sublayer", options, label="norm.orders_sublayer", form="list").show()
    layer, _, sublayer = chosen.partition(".")
    if not picked:
        token = next(iter(own.own), 0)
    both = (("post", post, own, token), ("pre", pre, other, matching_token(own, token, other)))
    for place, (order, bundle, encoding, there) in zip(st.columns(2, gap="large"), both, strict=True):
        answer = ask(
            sublayer_steps,
            prompt=Prompt(bundle, text, MOST_TOKENS),
            layer=int(layer),
            sublayer=sublayer,
            token=there,
        )
        found = answer.value
        with place:
            called = f"{there} · {encoding.labels[there]}".replace("`", "'")
            st.markdown(f"{_title(order, bundle.name)} · {t('norm.one_token', token=f'`{called}`')}")
            st.latex(FORMULAS[order])
            st.markdown(_table(order, found))
            st.latex(_first_dimension(order, found, bundle))
            differences = {"added": significant(found.added), "recomputed": significant(found.recomputed)}
            st.caption(t("norm.orders_recomputed", **differences))
            _offer(answer, order)


def _offer(answer: Answer[SublayerSteps], order: str) -> None:
    offer_files(
        lambda: code_files(answer), key=f"norm_steps_{order}", stem=f"norm_steps_{order}", note=t("norm.orders_files")
    )


def _table(order: str, found: SublayerSteps) -> str:
    head = [t("norm.orders_step"), t("norm.orders_length"), "μ", "σ", t("norm.orders_entry")]
    rows = [
        [
            t(f"norm.step_{order}_{step}"),
            f"{found.lengths[row]:.3f}",
            *(
                minus(f"{value:.4f}".replace("-0.0000", "0.0000"))
                for value in (found.means[row], found.deviations[row], found.vectors[row, 0])
            ),
        ]
        for row, step in enumerate(found.steps)
    ]
    return markdown_table(head, [*rows[:-1], [f"**{cell}**" for cell in rows[-1]]], right=4)


def _first_dimension(order: str, found: SublayerSteps, bundle: Bundle) -> str:
    """Return the formula of the first dimension in TeX, with its numbers."""
    entry = dict(zip(found.steps, found.vectors[:, 0], strict=True))
    source, into = ("s_0", entry["sum"]) if order == "post" else ("x_0", entry["input"])
    goal = "x'_0" if order == "post" else "n_0"
    eps = significant_in_tex(bundle.config.norm_eps)
    unbiased = bundle.config.norm == "unbiased"
    divisor = rf"\sqrt{{\tfrac{{d}}{{d-1}}}}\,\sigma+{eps}" if unbiased else rf"\sqrt{{\sigma^2+{eps}}}"
    normed = (
        rf"{goal} &= g_0\tfrac{{{source}-\mu}}{{{divisor}}}+b_0"
        rf" = {found.gain[0]:.4f}\cdot\tfrac{{{into:.4f}-({found.normed_mean:.4f})}}{{{found.normed_deviation:.4f}}}"
        rf"+({found.bias[0]:.4f}) = {entry['normed']:.4f}"
    )
    name = "s_0" if order == "post" else "x'_0"
    left, before = ("x_0 + ", f"{entry['input']:.4f} + ") if found.residual else ("", "")
    added = rf"{name} &= {left}f_0 = {before}({entry['written']:.4f}) = {entry['sum']:.4f}"
    lines = (added, normed) if order == "post" else (normed, added)
    return rf"\begin{{aligned}}{lines[0]}\\{lines[1]}\end{{aligned}}"


ORDERS = Part("norm", "orders", _show)
