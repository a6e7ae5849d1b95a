"""What a model is: sizes, kind and family, the pages that show it, its card, its parameters by part; its removal."""

from collections import Counter

import streamlit as st

from pages.kit.asking import ask, forget_answers
from pages.kit.charts import show_chart
from pages.kit.experiment import ask_first, say
from pages.kit.glossary import show_prose
from pages.kit.models import KINDS_OF_PAGE, LONGEST_CARD, forget_models, opened_models, show_card_text
from pages.kit.navigation import ICONS, page_path
from pages.kit.number_format import markdown_table
from pages.kit.url import forget
from pages.kit.verdict import class_word
from pages.language import plain, section, strings, t
from pages.my_model.figures import parts_chart
from pages.serving.limits import limits
from pages.serving.owners import is_home, may_change
from transformer_core.analysis.parameter_counts import count_parts
from transformer_core.bundle import LABELLED, Bundle
from transformer_core.config import ModelConfig
from transformer_core.open_checkpoints.load import architecture_of, family_of
from transformer_core.open_checkpoints.sentence_modules import SentenceModules, read_modules
from transformer_core.untrusted.bundle_files import BundleError
from transformer_core.untrusted.config_json import ConfigJson
from transformer_core.user_models.hub import forget_fetched
from transformer_core.user_models.store import Opened

SIZES = (
    *("n_layers", "n_heads", "d_model", "d_head", "d_hidden", "d_ff", "max_len", "n_classes"),
    *("positions", "norm", "norm_order", "activation", "unit", "attention"),
)
OPTIONS = (  # shown where a model has them
    *("n_kv_heads", "windows", "shared_layers", "gated", "parallel", "query_key_norm", "score_cap", "logit_cap"),
    *("rotary_base", "rotary_scaling", "embedding_width", "n_experts", "n_active_experts", "shared_d_ff"),
)
MOST_CLASSES, LONGEST_CLASS = 24, 80


def _family(bundle: Bundle) -> str:
    if bundle.source is None:
        return t("my_model.own_family")
    try:
        settings = ConfigJson.read(bundle.source)
        family = family_of(settings)
        return f"{family.model_type} · {architecture_of(family, settings)}"
    except (BundleError, OSError):
        return "–"


def _sentence_modules(bundle: Bundle) -> SentenceModules:
    try:
        return SentenceModules() if bundle.source is None else read_modules(bundle.source)
    except (BundleError, OSError):
        return SentenceModules()


def show_identity(bundle: Bundle) -> None:
    """Show the number of parameters, the vocabulary and the memory."""
    numbers = {
        "my_model.parameters": f"{bundle.n_parameters:,}",
        "my_model.vocabulary": f"{bundle.tokenizer.vocab_size:,}",
        "my_model.bytes": f"{sum(p.numel() * p.element_size() for p in bundle.model.parameters()) / 1e6:,.2f} MB",
    }
    for place, (key, value) in zip(st.columns(len(numbers)), numbers.items(), strict=True):
        place.metric(t(key), value)


def _class(label: str) -> str:
    return class_word(" ".join(label.split())[:LONGEST_CLASS])


def _precision(bundle: Bundle) -> str:
    """Return in words which type of numbers the file had, and which all that is shown is computed in."""
    computed = str(next(bundle.model.parameters()).dtype).removeprefix("torch.")
    kinds = ", ".join(f"{plain(kind)} × {count:,}" for kind, count in bundle.stored)
    return t("my_model.precision_of_both", kinds=kinds, computed=computed) if kinds else computed


def _options(config: ModelConfig) -> dict[str, str]:
    """Return in words each of OPTIONS that a model has otherwise than the paper's."""
    if not isinstance(config, ModelConfig):
        return {}
    usual, turns = ModelConfig(vocab_size=1), ("rotary_base",) if config.positions == "rotary" else ()
    found = {name: getattr(config, name) for name in OPTIONS}
    own = {name: value for name, value in found.items() if value != getattr(usual, name) or name in turns}
    said = {name: t("my_model.yes") if value is True else plain(f"{value}") for name, value in own.items()}
    if sizes := Counter(window for window in config.windows if window is not None):
        counted = ({"window": f"{window:,}", "count": count} for window, count in sizes.items())
        said["windows"] = "; ".join(t("my_model.windows_in", **one, all=config.n_layers) for one in counted)
    return said


def show_sizes(bundle: Bundle) -> None:
    """Show the kind, the family and every size in two tables."""
    config = bundle.config
    rows = {
        t("my_model.kind"): t(f"kind.{bundle.kind}"),
        t("my_model.family"): plain(_family(bundle)),
        t("my_model.tokenizer"): bundle.tokenizer.kind,
        t("my_model.precision"): _precision(bundle),
    }
    if bundle.labels:
        rows[t("my_model.labels")] = ", ".join(_class(label) for label in bundle.labels[:MOST_CLASSES])
    sizes = {name: getattr(config, name, None) for name in SIZES if name != "n_classes" or bundle.kind in LABELLED}
    rows |= {t(f"my_model.size_{name}"): plain(f"{value}") for name, value in sizes.items() if value is not None}
    rows |= {t(f"my_model.size_{name}"): value for name, value in _options(config).items()}
    modules = _sentence_modules(bundle) if bundle.kind == "encoder" else SentenceModules()
    if modules.max_seq_length is not None:
        rows[t("my_model.max_seq_length")] = f"{modules.max_seq_length:,}"
    lines, half = list(rows.items()), (len(rows) + 1) // 2
    for place, part in zip(st.columns(2), (lines[:half], lines[half:]), strict=True):
        place.markdown(markdown_table((t("my_model.choice"), t("my_model.value")), part))
    if modules.left_out:
        st.info(t("my_model.modules_left_out", modules=plain(", ".join(modules.left_out))), icon=":material/info:")


def show_pages(bundle: Bundle) -> None:
    """Show links that open the pages of this kind of model with it."""
    st.markdown(t("my_model.pages"))
    kept = {name: value for name, value in st.query_params.items() if name in ("lang", "text")}
    pages = [name for name in ICONS if bundle.kind in KINDS_OF_PAGE.get(name, ())]
    with st.container(horizontal=True):
        for name in pages:
            st.page_link(
                page_path(name), label=t(f"nav.{name}"), icon=ICONS[name], query_params={**kept, "model": bundle.name}
            )


def show_card(bundle: Bundle) -> None:
    """Show the card, and the checkpoint's own README as plain text."""
    with st.expander(t("my_model.card"), icon=":material/description:"):
        show_card_text(bundle)
        readme = None if bundle.source is None else bundle.source / "README.md"
        if readme is not None and readme.is_file() and not readme.is_symlink():
            with readme.open(encoding="utf-8", errors="replace") as file:
                st.code(file.read(LONGEST_CARD), language=None, wrap_lines=True)


def show_parts(bundle: Bundle) -> None:
    """Ask which part has most parameters, and show all parts once the question is answered."""
    st.subheader(t("my_model.parts"), anchor=False)
    show_prose(section("my_model", "parts"))
    answer = ask(count_parts, bundle=bundle)
    options = {part: t(f"my_model.part_{part}") for part in sorted(answer.value.parts)}
    cover = ask_first(t("my_model.guess", name=plain(bundle.name)), options, name="my_model_parts", about=bundle.name)
    cover.judge(answer.value.parts[0])
    with cover.picture():
        chart = parts_chart(answer.value.parts, answer.value.counts, strings("my_model"))
        show_chart(chart, answer, key="my_model_parts", stem="parameters", label=t("my_model.parts"))
        everything, active = int(answer.value.counts.sum()), int(answer.value.active.sum())
        if active < everything:
            say(t("my_model.active", all=f"{everything:,}", active=f"{active:,}"), small=True)


def _remove(model: Opened) -> None:
    if not may_change(model.owner):
        return
    try:
        opened_models().remove(model.name)
    except BundleError as error:
        st.toast(plain(str(error)), icon=":material/error:")
        return
    forget_fetched(model)
    forget_models()
    forget_answers()
    st.session_state.models = [other for other in st.session_state.get("models", []) if other != model.name]
    forget("model")


def _share(model: Opened, key: str) -> None:
    if not may_change(model.owner):
        return
    try:
        opened_models().share(model.name, shared=st.session_state[key])
    except BundleError as error:
        st.toast(plain(str(error)), icon=":material/error:")


def show_removal(name: str) -> None:
    """Show where an opened model comes from and what was left out, and offer to share or to remove it."""
    model = opened_models().all().get(name)
    if model is None:
        return
    st.caption(t(f"my_model.origin_{model.origin}", asked=plain(model.asked[:200])))
    if model.left_out:
        st.caption(t("my_model.left_out", names=plain(", ".join(model.left_out))))
    if not may_change(model.owner):
        st.caption(t("my_model.of_another"))
        return
    if limits().read_only:
        return
    if not is_home():
        key = f"share {name}"
        st.toggle(t("my_model.share"), model.shared, key=key, on_change=_share, args=(model, key))
    sure = st.checkbox(t("my_model.sure"), key=f"sure {name}")
    st.button(
        t("my_model.remove", name=plain(name)),
        icon=":material/delete:",
        key="remove",
        disabled=not sure,
        on_click=_remove,
        args=(model,),
    )
