"""The effect system: operations, handlers, and how both are carried over tasks and threads.

This package is the only one that touches effectful's private names. Take `handler`, `fwd` and `Operation` from here;
effectful's own mix with them in any order.
"""

from effectful.ops.syntax import ObjectInterpretation, implements
from effectful.ops.types import NotHandled, Term

from effectful_agents.runtime.bridge import bridged, can_wait, together, wait
from effectful_agents.runtime.carrying import Interpretation, interpretation
from effectful_agents.runtime.dispatch import can_forward, forward_through, fwd
from effectful_agents.runtime.handling import handler
from effectful_agents.runtime.helper_loop import in_helper_loop
from effectful_agents.runtime.installed import installed
from effectful_agents.runtime.layers import Layers, coproduct
from effectful_agents.runtime.loops import in_event_loop
from effectful_agents.runtime.operation import Operation
from effectful_agents.runtime.propagating import propagate
from effectful_agents.runtime.several import in_tasks, in_threads
from effectful_agents.runtime.stopping import (
    SignalScope,
    StopScope,
    check_stopped,
    entered_scopes,
    pause,
    shielded,
    time_left,
)
from effectful_agents.runtime.threads import InThread

__all__ = [
    "InThread",
    "Interpretation",
    "Layers",
    "NotHandled",
    "ObjectInterpretation",
    "Operation",
    "SignalScope",
    "StopScope",
    "Term",
    "bridged",
    "can_forward",
    "can_wait",
    "check_stopped",
    "coproduct",
    "entered_scopes",
    "forward_through",
    "fwd",
    "handler",
    "implements",
    "in_event_loop",
    "in_helper_loop",
    "in_tasks",
    "in_threads",
    "installed",
    "interpretation",
    "pause",
    "propagate",
    "shielded",
    "time_left",
    "together",
    "wait",
]
