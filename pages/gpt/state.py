"""What a person did to the writing: how many tokens were asked for, and which of them are the person's own."""

import re

import streamlit as st

from pages.ui.language import t
from pages.ui.url import chosen, forget, keep
from transformer_core.analysis.gpt.continuation import MOST_STEPS

STEPS, STEP, CHOICES = "gpt_steps", "gpt_step", "gpt_choices"
USUAL_STEPS = 24
TARGET = "gpt_target"
MOST_CHOICES = 32
PATTERN = re.compile(r"[0-9]{1,3}\.[0-9]{1,6}(_[0-9]{1,3}\.[0-9]{1,6})*")

Choices = tuple[tuple[int, int], ...]


def steps_asked() -> int:
    """Return how many tokens shall be written, as kept or as in the URL."""

    def read(asked: str) -> int | None:
        return int(asked) if re.fullmatch("[0-9]{1,3}", asked) and int(asked) <= MOST_STEPS else None

    return chosen(STEPS, USUAL_STEPS, read, f"0 … {MOST_STEPS}")


def keep_steps(steps: int) -> None:
    """Keep how many tokens have been written."""
    keep(STEPS, str(steps), str(USUAL_STEPS))


def choices_asked(vocab: int) -> Choices:
    """Return the tokens that a person put in place of the model's, as kept or as in the URL."""

    def read(asked: str) -> Choices | None:
        if not PATTERN.fullmatch(asked):
            return None
        pairs = {int(step): int(id_) for step, _, id_ in (pair.partition(".") for pair in asked.split("_"))}
        fits = len(pairs) <= MOST_CHOICES and all(step < MOST_STEPS and id_ < vocab for step, id_ in pairs.items())
        return tuple(sorted(pairs.items())) if fits else None

    return chosen(CHOICES, (), read, t("gpt.choices_form", most=MOST_CHOICES))


def put(choices: Choices, step: int, token_id: int) -> None:
    """Put a token at a step and let go of those that were put after it; only in a callback."""
    kept = [pair for pair in choices if pair[0] < step][-(MOST_CHOICES - 1) :]
    keep(CHOICES, "_".join(f"{at}.{id_}" for at, id_ in [*kept, (step, token_id)]), "")


def look_at(step: int) -> None:
    """Move the scrubber to a step; only in a callback."""
    forget(STEP)
    keep(STEP, str(step), "")


def ask_for(steps: int) -> None:
    """Ask for tokens to be written one by one; only in a callback."""
    st.session_state[TARGET] = min(steps, MOST_STEPS)
    forget(STEP)


def start_over() -> None:
    """Let go of all that was written; only in a callback."""
    forget(STEP, CHOICES)
    keep_steps(0)
