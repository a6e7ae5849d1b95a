"""The page's part on the masking recipe: which tokens are chosen, what each becomes, and what that is for."""

from html import escape

import streamlit as st

from pages.bert.figures.recipe import HUES_OF_FATES, shares_chart, ways_chart
from pages.bert.hidden_words import prompt_of
from pages.kit.asking import ask_once
from pages.kit.charts import show_chart
from pages.kit.controls import Seed, Slider
from pages.kit.experiment import ask_first, experiment, options_of, say
from pages.kit.glossary import show_prose
from pages.kit.header import View
from pages.kit.live import show_lines
from pages.kit.waiting import awaited
from pages.language import plain, section, strings, t
from pages.room import Part
from transformer_core.analysis.bert.masked_words import encode_masks
from transformer_core.analysis.bert.masking_recipe import Recipe, choosable_places, masking_recipe, three_ways
from transformer_core.training.objectives import MASKED, RANDOM

PERCENT = Slider("bert_percent", 5, 60, 15, step=5, label="bert.probability", format="%d%%")
SEED = Seed("bert_seed", 5)  # with 11 tokens of a sentence, two are masked and one is exchanged
COPIES = 2_000
EXCHANGES = 4
NEAR, FAR = 1.5, 10.0


def _show(view: View) -> View:
    """Show the sentence as in training, the shares over many draws, and what the head makes of each kind of token."""
    prompt = prompt_of(view)
    if view.bundle.tokenizer.mask_id is None:
        st.info(t("bert.no_mask_token", name=plain(view.bundle.name)), icon=":material/info:")
        return view
    if not choosable_places(encode_masks(prompt)):
        st.info(t("bert.nothing_to_choose"), icon=":material/info:")
        return view
    share, again = st.columns([3, 1], vertical_alignment="bottom", gap="large")
    with share:
        percent = PERCENT.show()
    with again:
        st.button(t("bert.draw_again"), icon=":material/casino:", on_click=SEED.next, key="bert_draw_again")
    seed = SEED.read()
    answer = ask_once(masking_recipe, prompt=prompt, probability=percent / 100, seed=seed, copies=COPIES)
    found = answer.value
    _sentence(found)
    st.caption(t("bert.recipe_note", seed=seed, chosen=int(found.chosen.sum()), tokens=found.tokens))
    chosen = found.shares[1:].sum()
    if chosen > 0:
        show_chart(
            shares_chart(
                found.names[1:],
                found.shares[1:] / chosen,
                [MASKED, RANDOM, 1 - MASKED - RANDOM],
                strings("bert"),
            ),
            answer,
            key="bert_shares",
            stem="bert_masking_shares",
            label=t("bert.shares_label"),
        )
    counted = {"copies": f"{found.copies:,}", "share": f"{chosen:.2%}", "asked": f"{percent}%"}
    st.caption(t("bert.shares_note", **counted))
    show_prose(section("bert", "recipe_why"))
    _ways(view, seed)
    return view


def _sentence(found: Recipe) -> None:
    cells = []
    for label, read, fate in zip(found.labels, found.read_labels, found.fates.tolist(), strict=True):
        name = found.names[fate]
        hue = HUES_OF_FATES[name]
        frame = f"2px solid {hue}" if fate else "1px solid rgba(128,128,128,0.35)"
        said = escape(t(f"bert.short_{name}")) if fate else "&nbsp;"
        cells.append(
            f'<div style="border:{frame};border-radius:8px;padding:0.15em 0.5em;text-align:center;min-width:2.2em">'
            f'<div style="font-size:0.8rem;opacity:0.7">{escape(label)}</div>'
            f'<div style="font-size:1.1rem;font-weight:{650 if fate else 400}">{escape(read)}</div>'
            f'<div style="font-size:0.72rem;color:color-mix(in srgb, {hue} 70%, currentColor)">{said}</div></div>'
        )
    words = f'<div class="masked-words" dir="auto" style="display:flex;flex-wrap:wrap;gap:6px">{"".join(cells)}</div>'
    show_lines("bert_recipe", words)


@experiment("bert_ways_open", "bert.try_ways")
def _ways(view: View, seed: int) -> None:
    options = options_of("bert.ways_{}", ("less", "near", "more", "far"))
    cover = ask_first(section("bert", "try_ways"), options, name="bert_ways", about=view.name)
    asked = {"prompt": prompt_of(view), "seed": seed, "exchanges": EXCHANGES}
    with cover.picture():
        answer = awaited(three_ways, t("bert.hiding_each"), key="bert_ways", **asked)
        if answer is None:
            return
        found = answer.value
        show_chart(
            ways_chart(found.ways, found.labels, found.places.tolist(), found.probabilities, strings("bert")),
            answer,
            key="bert_ways",
            stem="bert_three_ways",
            label=t("bert.ways_label"),
        )
        say(section("bert", "ways_after"))
    masked, exchanged, kept = (float(mean) for mean in found.means)
    times = kept / max(masked, 1e-12)
    outcome = "less" if times < 1 else "near" if times < NEAR else "more" if times < FAR else "far"
    measured = t(
        "bert.ways_measured",
        masked=f"{masked:.1%}",
        exchanged=f"{exchanged:.1%}",
        kept=f"{kept:.1%}",
        exchanges=found.exchanges,
        seed=seed,
    )
    cover.judge(outcome, measured)


RECIPE = Part("bert", "recipe", _show, group="gap")
