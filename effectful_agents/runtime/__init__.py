"""The effect system: operations, handlers, and how both are carried over tasks and threads.

This package is the only one that touches effectful's private names. Take `handler`, `fwd` and `Operation` from here;
effectful's own mix with them in any order.
"""

from effectful.ops.syntax import ObjectInterpretation, implements
from effectful.ops.types import NotHandled, Term

from effectful_agents.runtime.bridge import bridged, can_wait, wait
from effectful_agents.runtime.carrying import Interpretation, carried, interpretation
from effectful_agents.runtime.dispatch import can_forward, fwd
from effectful_agents.runtime.handling import handler
from effectful_agents.runtime.layers import Layers, coproduct
from effectful_agents.runtime.operation import Operation

__all__ = [
    "Interpretation",
    "Layers",
    "NotHandled",
    "ObjectInterpretation",
    "Operation",
    "Term",
    "bridged",
    "can_forward",
    "can_wait",
    "carried",
    "coproduct",
    "fwd",
    "handler",
    "implements",
    "interpretation",
    "wait",
]
