"""The settings of a run that a person may change: their controls, bounds and names, section by section.

The bounds are the server's own: whatever a browser sends is read against them again.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, get_args

import streamlit as st

from pages.kit.url import chosen, held, keep, read_number, read_switch, whole_number, written_switch
from pages.language import language, t, words
from transformer_core.config import (
    Activation,
    DropoutAt,
    Norm,
    NormOrder,
    PaddingMask,
    Pooling,
    Positions,
    QueryKeyNorm,
)
from transformer_core.text import KINDS as TOKENIZERS
from transformer_core.training.config import Optimizer, Precision, Schedule
from transformer_core.training.runs.settings import VOCABULARY
from transformer_core.training.spec import (
    BOUNDS,
    KIND_OF_SOURCE,
    RECURRENT_KINDS,
    AlignmentChoice,
    InitialWeights,
    Language,
    Network,
    Source,
    SummaryChoice,
)

TRANSFORMERS = ("classifier", "translation", "gpt", "bert")
RECURRENT = tuple(RECURRENT_KINDS.values())
KINDS = (*TRANSFORMERS, *RECURRENT)


@dataclass(frozen=True)
class Number:
    """A number within bounds.

    Args:
        name: of the setting.
        least, most, step: whole numbers make a control of whole numbers.
        kinds: of models that have the setting.
        off: the number that stands for None, where the setting may be None.
    """

    name: str
    least: float
    most: float
    step: float
    kinds: Sequence[str] = KINDS
    off: float | None = None

    @property
    def choices(self) -> str:
        """What may be chosen, in words."""
        return f"{self.least:g} … {self.most:g}"

    def read(self, text: str) -> float | None:
        """Return the number that a text writes, None where it is none or lies outside the bounds."""
        if isinstance(self.step, int):
            return whole_number(text, int(self.most), least=int(self.least))
        return read_number(text, self.least, self.most)

    def write(self, value: Any) -> str:
        """Return a value as text that read understands."""
        value = self.off if value is None else value
        return str(int(value)) if isinstance(self.step, int) else repr(float(value))

    def show(self, value: Any, key: str, disabled: bool) -> Any:
        """Show the widget, which begins with a value, and return its value."""
        whole = isinstance(self.step, int)
        return st.number_input(
            label_of(self.name),
            self.least,
            self.most,
            value,
            step=self.step,
            format="%d" if whole else "%g",
            key=key,
            help=help_of(self.name),
            disabled=disabled,
        )


@dataclass(frozen=True)
class Pick:
    """One of several options.

    Args:
        name: of the setting.
        options: that there are.
        kinds: of models that have the setting.
        words: name of its label and of the words of its options, where that is another one.
    """

    name: str
    options: Sequence[str]
    kinds: Sequence[str] = KINDS
    words: str = ""

    @property
    def choices(self) -> str:
        """What may be chosen, in words."""
        return ", ".join(self.options)

    def read(self, text: str) -> str | None:
        """Return the option that a text names, None where there is none."""
        return text if text in self.options else None

    def write(self, value: Any) -> str:
        """Return a value as text that read understands."""
        return str(value)

    def show(self, value: Any, key: str, disabled: bool) -> Any:
        """Show the widget, which begins with a value, and return its value."""
        said = self.words or self.name
        names = {option: value_word(said, option) for option in self.options}
        return st.selectbox(
            label_of(said),
            self.options,
            self.options.index(value),
            format_func=names.__getitem__,
            key=key,
            help=help_of(self.name),
            disabled=disabled,
        )


@dataclass(frozen=True)
class Flag:
    """On or off."""

    name: str
    kinds: Sequence[str] = KINDS
    choices = "on, off"

    def read(self, text: str) -> bool | None:
        """Return what a text means, None where it is neither."""
        return read_switch(text)

    def write(self, value: Any) -> str:
        """Return a value as text that read understands."""
        return written_switch(bool(value))

    def show(self, value: Any, key: str, disabled: bool) -> Any:
        """Show the widget, which begins with a value, and return its value."""
        return st.toggle(label_of(self.name), value, key=key, help=help_of(self.name), disabled=disabled)


Control = Number | Pick | Flag


def label_of(name: str) -> str:
    """Return what a setting is called."""
    return words(language()).get(f"setting.{name}", name)


def help_of(name: str) -> str | None:
    """Return a setting's explanation, None where it needs none."""
    return words(language()).get(f"setting_help.{name}")


def value_word(name: str, value: Any) -> str:
    """Return a setting's value in words."""
    if value is None:
        return t("option.off")
    if isinstance(value, bool):
        return t("option.yes") if value else t("option.no")
    if isinstance(value, tuple):
        return ", ".join(map(str, value))
    if isinstance(value, float):
        return f"{value:g}"
    known = words(language())
    return known.get(f"option.{name}.{value}", known.get(f"option.{value}", str(value)))


def _reading(control: Control, default: Any) -> tuple[Any, Callable[[Any], Any], str]:
    """Return what url.held and url.chosen are asked of a setting."""
    usual = control.read(control.write(default))
    return usual, lambda asked: control.read(asked if isinstance(asked, str) else control.write(asked)), control.choices


def value_of(control: Control, default: Any) -> Any:
    """Return a setting's value without its widget: what was chosen, else what the URL has, else the default."""
    return or_none(control, chosen(control.name, *_reading(control, default)))


def ask(control: Control, default: Any, *, disabled: bool = False) -> Any:
    """Show a setting's widget and return its value; the URL has it where it is not the default."""
    key, value = held(control.name, *_reading(control, default))
    shown = control.show(value, key, disabled)
    value = value if shown is None else shown
    keep(control.name, control.write(value), control.write(default))
    return or_none(control, value)


def or_none(control: Control, value: Any) -> Any:
    """Return a setting's value, None for the number at which it is off."""
    return None if isinstance(control, Number) and control.off is not None and value == control.off else value


COLUMNS = 4
LARGEST_SEED = 2**31 - 1
LARGEST_PASSAGE = 2_000_000
CLASSIFIERS = ("classifier", "recurrent_classifier")
WRITERS = ("translation", "seq2seq")
TEXTS = (*CLASSIFIERS, "bert")
BROUGHT = ("table", "imdb")
LETTERS = ("copy", "reverse", "sort")
OF_LETTERS, OF_WORDS = ("symbols", "length"), ("tokenizer", "vocab_size", "language")


def _bounded(name: str, step: int, *kinds: str) -> Number:
    return Number(name, *BOUNDS[name], step, kinds) if kinds else Number(name, *BOUNDS[name], step)


SOURCE = Pick("source", get_args(Source))
LANGUAGE = Pick("language", get_args(Language), (*TEXTS, *WRITERS, "gpt", "lm"))
INTO = replace(LANGUAGE, words="into")  # of sentences to translate
NETWORK = Pick("network", get_args(Network), tuple(kind for kind in KINDS if kind != "bert"))
LEARN: tuple[Control, ...] = (
    _bounded("symbols", 1, *WRITERS),
    _bounded("length", 1, *WRITERS),
    _bounded("examples", 100),
    _bounded("held_out", 100, *CLASSIFIERS, *WRITERS),
    Pick("tokenizer", tuple(TOKENIZERS), (*TEXTS, *WRITERS)),
    _bounded("vocab_size", 100, *TEXTS, *WRITERS),
    _bounded("max_len", 8),
)
MODEL: tuple[Control, ...] = (
    _bounded("n_layers", 1, *TRANSFORMERS),
    _bounded("d_model", 8),
    _bounded("n_heads", 1, *TRANSFORMERS),
    _bounded("d_ff", 8, *TRANSFORMERS),
    Number("dropout", 0.0, 0.9, 0.05),
    Pick("dropout_at", get_args(DropoutAt), TRANSFORMERS),
    Pick("positions", get_args(Positions), TRANSFORMERS),
    Pick("norm_order", get_args(NormOrder), TRANSFORMERS),
    Pick("activation", get_args(Activation), TRANSFORMERS),
    Pick("pooling", get_args(Pooling), ("classifier",)),
    Pick("padding_mask", get_args(PaddingMask), ("classifier",)),
    Flag("residual", TRANSFORMERS),
    Flag("scale_scores", TRANSFORMERS),
    Flag("scale_embeddings", TRANSFORMERS),
    Flag("causal", ("gpt", "translation")),
    Pick("alignment", get_args(AlignmentChoice), ("seq2seq",)),
    Pick("summary", get_args(SummaryChoice), ("recurrent_classifier",)),
    Flag("bidirectional", ("recurrent_classifier", "seq2seq")),
    Flag("one_hot", ("lm",)),
    Pick("initial", get_args(InitialWeights)),
)
MODERN: tuple[Control, ...] = (
    Pick("norm", get_args(Norm), TRANSFORMERS),
    Flag("gated", TRANSFORMERS),
    Number("n_kv_heads", 0, BOUNDS["n_heads"][1], 1, TRANSFORMERS, off=0),
    Flag("bias", TRANSFORMERS),
    Pick("query_key_norm", get_args(QueryKeyNorm), TRANSFORMERS),
    Flag("parallel", ("classifier", "gpt", "bert")),
    _bounded("n_experts", 1, *TRANSFORMERS),
    Number("n_active_experts", *BOUNDS["n_experts"], 1, TRANSFORMERS),
)
OPTIMISER: tuple[Control, ...] = (
    Pick("optimizer", get_args(Optimizer)),
    Number("learning_rate", 1e-6, 10.0, 1e-4),
    Pick("schedule", get_args(Schedule)),
    Number("warm_up", 0.0, 0.95, 0.05),
    Number("weight_decay", 0.0, 1.0, 0.01),
    Number("clip_norm", 0.0, 1_000.0, 0.5, off=0.0),
    Number("label_smoothing", 0.0, 0.9, 0.05, tuple(kind for kind in KINDS if kind != "bert")),
    Flag("softmax_before_loss", CLASSIFIERS),
    Flag("range_test"),
    Number("range_from", 1e-8, 1.0, 1e-6),
    Number("range_to", 1e-6, 1_000.0, 1.0),
)
RUN: tuple[Control, ...] = (
    _bounded("epochs", 1),
    _bounded("batch_size", 4),
    Number("patience", 0, BOUNDS["frames"][1], 1, off=0),
    Number("min_improvement", 0.0, 10.0, 0.01),
    Number("seed", 0, LARGEST_SEED, 1),
    _bounded("frames", 1),
    _bounded("points", 20, *CLASSIFIERS),
    _bounded("threads", 1),
    Pick("precision", get_args(Precision)),
)
WITHOUT_RANGE_TEST = ("learning_rate", "schedule", "warm_up", "patience", "min_improvement")
WITH_RANGE_TEST = ("range_from", "range_to")
SECTIONS = {"learn": LEARN, "model": MODEL, "modern": MODERN, "optimiser": OPTIMISER, "run": RUN}
ALL: tuple[Control, ...] = (SOURCE, NETWORK, LANGUAGE, *LEARN, *MODEL, *MODERN, *OPTIMISER, *RUN)


def apply(controls: tuple[Control, ...], source: str, network: str = "transformer") -> list[Control]:
    """Return the settings that a kind of model has; the language is that of texts that come with the app.

    Args:
        source: of the data.
        network: what learns them; a Transformer where no recurrent network can.
    """
    kind = KIND_OF_SOURCE[source]
    kind = kind if network == "transformer" else RECURRENT_KINDS.get(kind, kind)
    without = {"translation": OF_WORDS if source in LETTERS else OF_LETTERS}.get(KIND_OF_SOURCE[source], ())
    without = (*without, "language") if source in BROUGHT else without
    return [one for one in controls if kind in one.kinds and one.name not in without]


def network_of(source: str, usual: Mapping[str, Any]) -> str:
    """Return the network that was chosen, a Transformer where no other can learn from the source."""
    can = KIND_OF_SOURCE[source] in RECURRENT_KINDS
    return value_of(NETWORK, usual["network"]) if can else "transformer"


def read_settings(source: str, usual: Mapping[str, Any]) -> dict[str, Any]:
    """Return every setting without showing a widget."""
    network = network_of(source, usual)
    return {one.name: value_of(one, usual[one.name]) for one in apply(ALL[1:], source, network)}


def counts(name: str, read: Callable[[str], Any]) -> bool:
    """Return whether a setting makes a difference beside the others, each of which `read` returns by its name."""
    if name == "min_improvement" and read("patience") is None:
        return False
    return read("range_test") if name in WITH_RANGE_TEST else name not in WITHOUT_RANGE_TEST or not read("range_test")


def show_settings(section: str, source: str, usual: Mapping[str, Any], *, frozen: bool) -> None:
    """Show one section's widgets.

    Args:
        usual: what each setting is where nothing else was chosen.
        frozen: what the vocabulary follows from cannot be changed, since the weights are taken over.
    """
    by_name = {one.name: one for one in ALL}
    controls = apply(SECTIONS[section], source, network_of(source, usual))
    for start in range(0, len(controls), COLUMNS):
        for place, one in zip(st.columns(COLUMNS, vertical_alignment="bottom"), controls[start:], strict=False):
            with place:
                idle = not counts(one.name, lambda name: value_of(by_name[name], usual[name]))
                fixed = frozen and one.name in VOCABULARY
                ask(one, usual[one.name], disabled=idle or fixed)
