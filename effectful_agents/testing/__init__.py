"""Doubles for the tests of this package and of its users: agents run for real, and only the model is played.

`ScriptedModel` answers with what was written down for it; `says`, `calls` and `batch` write replies down. `Cassette`
answers with what a real model said once, `SchemaModel` with whatever fits.
"""

from effectful_agents.testing.by_schema import SchemaModel
from effectful_agents.testing.cassette import Cassette, CassetteMode
from effectful_agents.testing.replies import DEFAULT_USAGE, batch, calls, says
from effectful_agents.testing.scripted import ScriptedModel

__all__ = [  # noqa: RUF022 - in the order that tests/test_layout.py asks for
    "Cassette",
    "CassetteMode",
    "DEFAULT_USAGE",
    "SchemaModel",
    "ScriptedModel",
    "batch",
    "calls",
    "says",
]
