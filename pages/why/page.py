"""Why?: the questions that every learner asks, each a runnable experiment with a measured answer."""

from functools import partial

from pages.ui.header import header
from pages.ui.page_layout import parts_page
from pages.why.frame import show_question
from pages.why.gates import GATES
from pages.why.heads import HEADS
from pages.why.query_key import PROJECTIONS, SYMMETRY
from pages.why.residuals import RESIDUALS
from pages.why.scaling import SCALING
from pages.why.times import COST, SCORINGS
from pages.why.trials import POSITIONS, VALUES

QUESTIONS = {
    "attention": (HEADS, SCALING, SCORINGS, COST),
    "projections": (PROJECTIONS, SYMMETRY, VALUES),
    "rest": (POSITIONS, RESIDUALS, GATES),
}
PARTS = {
    group: {question.name: partial(show_question, question) for question in asked} for group, asked in QUESTIONS.items()
}

<<<<<<< HEAD
parts_page("why", header, PARTS, choice="why", sites=("*self_attention*",), story="why.honest")
=======

PARTS = {question.name: partial(show_question, question) for question in QUESTIONS}

parts_page("why", header, PARTS, sites=("*self_attention*",))
>>>>>>> h-readers
