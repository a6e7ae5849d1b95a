"""The toy batch of many tutorials: ids, masks, weights, logits, all shapes, and what other conventions change."""

import streamlit as st

from pages.kit.asking import Answer, ask_once
from pages.kit.controls import Choice, Switch, show_in_columns
from pages.kit.device import show_processor
from pages.kit.experiment import ask_first, experiment, options_of
from pages.kit.exports import export_matrix
from pages.kit.header import View
from pages.kit.matrix import show_matrix
from pages.kit.number_format import markdown_table, minus, percent, significant
from pages.kit.waiting import awaited
from pages.language import section, strings, t
from pages.room import Part
from pages.translation.figures.matrices import ATTENTIONS, toy_attentions, toy_ids, toy_logits
from pages.translation.search import SEED
from transformer_core.analysis.translation.toy_batch import (
    CHANGES,
    CONFIG,
    SENTENCES,
    Convention,
    Source,
    ToyBatch,
    convention_changes,
    toy_batch,
)

SOURCE = Choice[Source](
    "translation_toy_source",
    ("listing", "random", "ones", "padded", "all_padding"),
    label="translation.toy_source",
    words="translation.toy_{}",
)
CONVENTION = Choice[Convention](
    "translation_toy_convention",
    tuple(CHANGES),
    label="translation.toy_conventions",
    words="translation.toy_convention_{}",
    default="listing",
)
SENTENCE = Choice(
    "translation_sentence", range(SENTENCES), label="translation.sentence", default=SENTENCES - 1, kind=int
)
LAYER = Choice("translation_toy_layer", range(CONFIG.n_layers), label="translation.layer", kind=int)
HEAD = Choice("translation_toy_head", range(CONFIG.n_heads), label="translation.head", kind=int)
WHERE = {"sentence": SENTENCE, "layer": LAYER, "head": HEAD, "seed": SEED}
FILLED = Switch("translation_toy_filled", False, label="translation.toy_filled")
ONE_SOURCE = ("listing", "ones")  # four times the same sentence
CODE = """import torch
from transformer_core import (
    ModelConfig, Translation, capture
)

config = ModelConfig(
    vocab_size=5, d_model=128, d_ff=256,
    n_heads=8, d_head=64, n_layers=4,
    max_len=16, pad_id=0,
    norm_order="{norm_order}",
    activation="{activation}",
    tied_output={tied_output},
)
source = torch.tensor({source})
target = torch.tensor({target})
torch.manual_seed({seed})
model = Translation(config).eval()
logits, trace = capture(model, source, target)
print(logits)"""


def _program(found: ToyBatch, seed: int, convention: Convention) -> str:
    """Return the program that computes what is shown; it runs where transformer_core can be imported."""
    named = {name: getattr(CONFIG, name) for name in CHANGES["ours"]} | CHANGES[convention]
    rows = {name: getattr(found, f"{name}_ids").tolist() for name in ("source", "target")}
    return CODE.format(
        seed=seed, **named, **{name: str(lists).replace("], ", "],\n  ") for name, lists in rows.items()}
    )


def _show_batch(answer: Answer[ToyBatch], sentence: int, filled: bool, program: str, version: str) -> None:
    found, words = answer.value, strings("translation_toy")
    ids_place, attended_place = st.columns([2, 3], gap="large")
    with ids_place:
        ids = toy_ids(found.source_ids, found.target_ids, words)
        show_matrix(ids, answer, key="translation_toy_ids", version=f"ids {version}")
        st.caption(t("translation.toy_parameters", count=f"{found.parameters:,}"))
        st.caption(t("translation.own_data"))
        st.code(program, language="python", wrap_lines=True)
    with attended_place:
        figure = toy_attentions(
            answer.arrays,
            found.source_ids[sentence],
            found.target_ids[sentence],
            words,
            filled=filled,
            note=section("translation", "toy_note"),
        )
        show_matrix(figure, answer, key="translation_toy", files=True, version=version)


def _show_logits(answer: Answer[ToyBatch], one_source: bool, version: str) -> None:
    found = answer.value
    figure = toy_logits(found.logits, found.target_ids, strings("translation_toy"))
    show_matrix(figure, answer, key="translation_toy_logits", version=version)
    if one_source:
        st.caption(t("translation.toy_first", apart=significant(found.first_difference)))
    export_matrix(figure, answer, key="translation_toy_logits")


def _show_changes(source: Source, seed: int, shown: Convention) -> None:
    st.markdown(f"**{t('translation.toy_changes')}**")
    answer = awaited(
        convention_changes, t("translation.toy_changing"), key="toy_changes", height=260, source=source, seed=seed
    )
    if answer is None:
        return
    found = answer.value
    head = ("", *(t(f"translation.toy_col_{name}") for name in ("parameters", "logits", "likeliest")))
    rows = []
    for name, parameters, moved, likeliest in zip(
        found.conventions, found.parameters, found.logits_moved, found.likeliest_moved, strict=True
    ):
        more = parameters - found.parameters[0]
        count = f"{parameters:,}" + (minus(f" ({more:+,})") if more else "")
        said = t(f"translation.toy_change_{name}")
        rows.append((f"**{said}**" if name == shown else said, count, significant(moved), percent(likeliest)))
    st.markdown(markdown_table(head, rows, right=3))
    st.caption(t("translation.toy_same_weights"))


def _show_sums(found: ToyBatch) -> None:
    words = strings("translation_toy")
    head = ("", *(words[name] for name in ATTENTIONS))
    each = [getattr(found, name) for name in ATTENTIONS]
    rows = [
        (t("translation.toy_on_hidden"), *(significant(one.on_hidden) for one in each)),
        (t("translation.toy_empty"), *(str(one.empty_rows) for one in each)),
        (t("translation.toy_fill_empty"), *(f"{one.filled_on_hidden:.4f}" for one in each)),
    ]
    st.markdown(markdown_table(head, rows, right=3))
    st.caption(t("translation.toy_sums", off=significant(found.row_sums)))


@experiment("translation_toy_open")
def _padding_experiment() -> None:
    options = options_of("translation.row_{}", ("nan", "uniform", "zero"))
    cover = ask_first(section("translation", "try_toy"), options, name="translation_toy_padding")
    found = ask_once(toy_batch, source="all_padding", seed=0, sentence=SENTENCES - 1, layer=0, head=0).value
    row = found.cross.weights[0]
    outcome = "zero" if not row.any() else "uniform" if float(row.max() - row.min()) < 1e-6 else "nan"
    shown, other = (" ".join(f"{value:.3f}" for value in one[0]) for one in (found.cross.weights, found.cross.filled))
    infinite = sum(not ok for name, ok in zip(found.names, found.finite, strict=True) if "masked_scores" not in name)
    measured = t("translation.toy_measured", ours=shown, filled=other, infinite=infinite, count=len(found.names))
    cover.judge(outcome, measured)


def _shapes_heading(found: ToyBatch) -> str:
    return t("translation.toy_shapes", count=len(found.names))


@experiment("translation_shapes", _shapes_heading, icon=":material/table:")
def _show_shapes(found: ToyBatch) -> None:
    head = tuple(t(f"translation.col_{name}") for name in ("tensor", "shape", "least", "greatest", "finite"))
    rows = [
        (f"`{name}`", shape, f"{least:.3f}", f"{greatest:.3f}", t("translation.yes") if ok else "−∞")
        for name, shape, least, greatest, ok in zip(
            found.names, found.shapes, found.least, found.greatest, found.finite, strict=True
        )
    ]
    with st.container(height=420):
        st.markdown(markdown_table(head, rows, right=3))
    st.caption(t("translation.toy_infinite"))


def _show(_: View) -> None:
    """Show the batch, one head of its three attentions, its logits, what conventions change, and every shape."""
    show_processor()
    source, convention = show_in_columns(None, SOURCE, CONVENTION, widths=[1.1, 1], gap="medium")
    options_place, filled_place = st.columns([8.4, 2.2], gap="small", vertical_alignment="bottom")
    with options_place:
        chosen = show_in_columns(None, *WHERE.values(), widths=[1.7, 1.7, 3.4, 1.6], gap="small")
    where = dict(zip(WHERE, chosen, strict=True))
    with filled_place:
        filled = FILLED.show()
    answer = ask_once(toy_batch, source=source, convention=convention, **where)
    version = f"toy {source} {convention} {' '.join(map(str, where.values()))} {filled}"
    program = _program(answer.value, where["seed"], convention)
    _show_batch(answer, where["sentence"], filled, program, version)
    _show_logits(answer, source in ONE_SOURCE, f"logits {version}")
    _show_changes(source, where["seed"], convention)
    _show_sums(answer.value)
    _padding_experiment()
    _show_shapes(answer.value)


TOY = Part("translation", "toy", _show)
