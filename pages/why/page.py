"""Why?: the questions that every learner asks, each a runnable experiment with a measured answer."""

import streamlit as st

from pages.glass.box import under_the_glass
from pages.ui.glossary import begin_page, offer_glossary
from pages.ui.header import View, header
from pages.ui.language import t
from pages.ui.model_page import model_page, title
from pages.ui.url import choose
from pages.why.frame import show_question
from pages.why.gates import GATES
from pages.why.heads import HEADS
from pages.why.query_key import PROJECTIONS, SYMMETRY
from pages.why.residuals import RESIDUALS
from pages.why.scaling import SCALING
from pages.why.times import COST, SCORINGS
from pages.why.trials import POSITIONS, VALUES

QUESTIONS = (HEADS, SCALING, PROJECTIONS, SYMMETRY, VALUES, SCORINGS, COST, POSITIONS, RESIDUALS, GATES)


@st.fragment
def explore(view: View) -> None:
    """Let a person pick a question, and show it; only that one is computed."""
    begin_page()
    names = {question.name: t(f"why.{question.name}.short") for question in QUESTIONS}
    with title("why"):
        chosen = choose(t("why.pick"), names, name="why", default=QUESTIONS[0].name, collapsed=True)
        offer_glossary("why")
    with st.container(key="picture"):
        show_question(next(question for question in QUESTIONS if question.name == chosen), view)
        under_the_glass(view, sites=("*self_attention*",))


model_page("why", header, explore)
