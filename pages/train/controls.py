"""Controls of numbers, choices and switches that are known by name: kept from page to page, and in the URL as text."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import streamlit as st

from pages.ui.language import language, t, words
from pages.ui.url import chosen, held, keep, read_switch, written_switch

KINDS = ("classifier", "translation", "gpt", "bert")


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
        try:
            value = int(text) if isinstance(self.step, int) else float(text)
        except ValueError:
            return None
        return value if math.isfinite(value) and self.least <= value <= self.most else None

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
    """One of several options."""

    name: str
    options: Sequence[str]
    kinds: Sequence[str] = KINDS

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
        names = {option: value_word(self.name, option) for option in self.options}
        return st.selectbox(
            label_of(self.name),
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
    return _or_none(control, chosen(control.name, *_reading(control, default)))


def ask(control: Control, default: Any, *, disabled: bool = False) -> Any:
    """Show a setting's widget and return its value; the URL has it where it is not the default."""
    key, value = held(control.name, *_reading(control, default))
    shown = control.show(value, key, disabled)
    value = value if shown is None else shown
    keep(control.name, control.write(value), control.write(default))
    return _or_none(control, value)


def _or_none(control: Control, value: Any) -> Any:
    return None if isinstance(control, Number) and control.off is not None and value == control.off else value
