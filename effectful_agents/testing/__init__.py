"""Doubles for the tests of this package and of its users: agents run for real, and only the model is played.

`ScriptedModel` answers with what was written down for it; `says`, `calls` and `batch` write replies down. `ReplayModel`
answers with bodies that a service once sent; `split_sse` takes one apart.
"""

from effectful_agents.testing.replay import ReplayModel, split_sse
from effectful_agents.testing.replies import DEFAULT_USAGE, batch, calls, says
from effectful_agents.testing.scripted import ScriptedModel

__all__ = ["DEFAULT_USAGE", "ReplayModel", "ScriptedModel", "batch", "calls", "says", "split_sse"]
