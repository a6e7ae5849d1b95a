"""Why?: the questions that every learner asks, each a runnable experiment with a measured answer."""

from pages.kit.header import header
from pages.room import Page
from pages.why.gates import GATES
from pages.why.heads import HEADS
from pages.why.query_key import PROJECTIONS, SYMMETRY
from pages.why.residuals import RESIDUALS
from pages.why.scaling import SCALING
from pages.why.slips import SLIPS
from pages.why.times import COST, SCORINGS
from pages.why.trials import POSITIONS, VALUES

QUESTIONS = (HEADS, SCALING, SCORINGS, COST, PROJECTIONS, SYMMETRY, VALUES, POSITIONS, RESIDUALS, GATES, SLIPS)
WHY = Page("why", header, QUESTIONS, story="why.honest")

if __name__ == "__main__":
    WHY.show()
