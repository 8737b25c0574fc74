"""The agent loop, and running calls with it."""

from effectful_agents.handlers.loop.agent_loop import AgentLoop
from effectful_agents.handlers.loop.control import CallControl
from effectful_agents.handlers.loop.deadline import Deadline
from effectful_agents.handlers.loop.following import FollowedCall, steps, stream
from effectful_agents.handlers.loop.partial import PartialAnswers
from effectful_agents.handlers.loop.run import CallResult, acall, run

__all__ = [
    "AgentLoop",
    "CallControl",
    "CallResult",
    "Deadline",
    "FollowedCall",
    "PartialAnswers",
    "acall",
    "run",
    "steps",
    "stream",
]
