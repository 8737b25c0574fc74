"""Agents as Python functions whose bodies a language model supplies, run by handlers that you compose."""

from typing import TYPE_CHECKING, Any

from effectful_agents.encoding import Encodable
from effectful_agents.handlers.loop import CallControl, Deadline, acall, run, steps, stream
from effectful_agents.harness import harness
from effectful_agents.operations.journal import record
from effectful_agents.runtime import (
    NotHandled,
    ObjectInterpretation,
    coproduct,
    fwd,
    handler,
    implements,
    propagate,
)
from effectful_agents.types import Agent, Risk, Skill, Tool

if TYPE_CHECKING:
    from effectful_agents.handlers.observability.usage import usage

__version__ = "0.1.0"

__all__ = [
    "Agent",
    "CallControl",
    "Deadline",
    "Encodable",
    "NotHandled",
    "ObjectInterpretation",
    "Risk",
    "Skill",
    "Tool",
    "acall",
    "coproduct",
    "fwd",
    "handler",
    "harness",
    "implements",
    "propagate",
    "record",
    "run",
    "steps",
    "stream",
    "usage",
]


def __getattr__(name: str) -> Any:
    # The family of handlers that it is from is loaded when it is used.
    if name == "usage":
        from effectful_agents.handlers.observability import usage  # noqa: PLC0415 - see above

        return usage
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
