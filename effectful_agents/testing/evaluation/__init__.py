"""Evaluation: a table of cases is called and scored, and two such tables are compared.

`evaluate` takes cases and scorers, and gives an `Evaluation`; `compare` takes two of these.

    cases       `Case`: a call, and what is expected of it
    scoring     how scorers are called, and what they may return
    scorers     scorers that are ready
    copying     what each call gets for its own
    trials      one case is called and scored
    running     many at once
    evaluating  `evaluate`, `aevaluate`
    rows        `Row`: what came of a case
    evaluation  `Evaluation`: all rows, and their summary
    comparing   `compare`: two evaluations, case by case
    pairing     which cases of two evaluations are the same
    paired      the statistics of that
    files       rows as JSON lines
    tables      both as tables
    showing     a progress bar
"""

from effectful_agents.testing.evaluation.cases import Case
from effectful_agents.testing.evaluation.comparing import Comparison, Difference, compare
from effectful_agents.testing.evaluation.evaluating import aevaluate, evaluate
from effectful_agents.testing.evaluation.evaluation import Evaluation, Summary
from effectful_agents.testing.evaluation.rows import Failure, Row
from effectful_agents.testing.evaluation.scorers import close, contains, exact, matches, similar
from effectful_agents.testing.evaluation.scoring import Score, Scorer

__all__ = [
    "Case",
    "Comparison",
    "Difference",
    "Evaluation",
    "Failure",
    "Row",
    "Score",
    "Scorer",
    "Summary",
    "aevaluate",
    "close",
    "compare",
    "contains",
    "evaluate",
    "exact",
    "matches",
    "similar",
]
