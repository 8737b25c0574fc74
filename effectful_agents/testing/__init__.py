"""Doubles for the tests of this package and of its users: agents run for real, and only the model is played.

`ScriptedModel` answers with what was written down for it; `says`, `calls` and `batch` write replies down. `ReplayModel`
answers with bodies that a service once sent; `split_sse` takes one apart. `evaluate` calls a skill with a table of
cases and scores what it returns; `compare` compares two such tables.
"""

from effectful_agents.testing.evaluation import Case, Evaluation, aevaluate, compare, evaluate
from effectful_agents.testing.replay import ReplayModel, split_sse
from effectful_agents.testing.replies import DEFAULT_USAGE, batch, calls, says
from effectful_agents.testing.scripted import ScriptedModel

__all__ = [  # noqa: RUF022 - as `sorted` has them
    "Case",
    "DEFAULT_USAGE",
    "Evaluation",
    "ReplayModel",
    "ScriptedModel",
    "aevaluate",
    "batch",
    "calls",
    "compare",
    "evaluate",
    "says",
    "split_sse",
]
