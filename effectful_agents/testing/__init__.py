"""Doubles for the tests of this package and of its users: agents run for real, and only the model is played.

`ScriptedModel` answers with what was written down for it; `says`, `calls` and `batch` write replies down. `Cassette`
answers with what a real model said once, `ReplayModel` with bodies that a service once sent, which `split_sse` takes
apart, and `SchemaModel` with whatever fits. `evaluate` calls a skill with a table of cases and scores what it returns;
`compare` compares two such tables.
"""

from effectful_agents.testing.by_schema import SchemaModel
from effectful_agents.testing.cassette import Cassette, CassetteMode
from effectful_agents.testing.evaluation import Case, Evaluation, aevaluate, compare, evaluate
from effectful_agents.testing.replay import ReplayModel, split_sse
from effectful_agents.testing.replies import DEFAULT_USAGE, batch, calls, says
from effectful_agents.testing.scripted import ScriptedModel

__all__ = [  # noqa: RUF022 - as `sorted` has them
    "Case",
    "Cassette",
    "CassetteMode",
    "DEFAULT_USAGE",
    "Evaluation",
    "ReplayModel",
    "SchemaModel",
    "ScriptedModel",
    "aevaluate",
    "batch",
    "calls",
    "compare",
    "evaluate",
    "says",
    "split_sse",
]
