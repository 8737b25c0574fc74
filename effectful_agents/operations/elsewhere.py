"""Operations that another process performs: what crosses the seam between the two, as plain data.

On one side is the program, with its loop, its history and its own tools. On the other is a *gateway*: it holds the keys
and the policy, asks models, decides, and runs tools of its own. `handlers.delegation.RemoteOperations` is the program's
side, and `handlers.delegation.Gateway` what the other one has to be.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any

from effectful_agents.messages import ContentPart, ToolDefinition
from effectful_agents.operations.call_context import CallContext
from effectful_agents.operations.policy import Decision
from effectful_agents.types import Risk

__all__ = [
    "CallContext",
    "DescribedCall",
    "DescribedEffect",
    "Hello",
    "PermittedDecision",
    "ToolDeclaration",
    "ToolOutcome",
    "Welcome",
]


@dataclasses.dataclass(frozen=True, kw_only=True)
class ToolDeclaration:
    """A tool as the two sides describe it to each other.

    Attributes:
        definition: What a model is shown of it, exactly.
        risk: What it can do to the world.
        effect: What a repetition of a call does, as `Tool.define` has it.
        concurrent: Whether it may run beside other calls.
        timeout: Seconds that a call may take, or None.
    """

    definition: ToolDefinition
    risk: Risk = Risk.READ
    effect: str = "once"
    concurrent: bool = False
    timeout: float | None = None

    @property
    def name(self) -> str:
        """The name that a model calls it by."""
        return self.definition["function"]["name"]


@dataclasses.dataclass(frozen=True, kw_only=True)
class Hello:
    """What the program opens with; said again where it has more tools, and where the gateway was started anew.

    Attributes:
        versions: The versions of the seam that it speaks, the newest first.
        tools: Tools that its requests will name. Each name is there once.
    """

    versions: tuple[str, ...]
    tools: tuple[ToolDefinition, ...] = ()


@dataclasses.dataclass(frozen=True, kw_only=True)
class Welcome:
    """What the gateway answers.

    Attributes:
        version: The version that both speak from now on.
        tool_refs: For each tool of the greeting, by its name, the reference that stands for it in requests.
        tools: The tools that the gateway holds, and runs where it is.
        model: The model that answers requests which name none; empty where it does not say.
        decides: Whether it has to be asked about effects of the program, tool calls above all.
    """

    version: str
    tool_refs: Mapping[str, str] = dataclasses.field(default_factory=dict)
    tools: tuple[ToolDeclaration, ...] = ()
    model: str = ""
    decides: bool = False


@dataclasses.dataclass(frozen=True, kw_only=True)
class DescribedEffect:
    """An effect in the program, as the gateway is asked about it: a `ProposedEffect` without objects.

    Attributes:
        kind: An `EffectKind`.
        name: The tool, skill or module.
        arguments: The arguments, as JSON.
        ref: The reference of a tool that the gateway holds; empty for those of the program.
        risk: What it can do to the world, as the program says.
        receiver: Whose method it is, in words.
        by_code: Whether code calls it.
        again: Whether it was asked about before, with other arguments.
        step_id: Its place in the run or call.
        run_id: The run.
    """

    kind: str
    name: str = ""
    arguments: Mapping[str, Any] = dataclasses.field(default_factory=dict)
    ref: str = ""
    risk: Risk = Risk.READ
    receiver: str = ""
    by_code: bool = False
    again: bool = False
    step_id: str = ""
    run_id: str = ""


@dataclasses.dataclass(frozen=True)
class PermittedDecision(Decision):
    """A decision of a gateway, with what shows later that it was asked.

    Attributes:
        permit: Sent along with the same call or request, once: it is then not decided about a second time. One that
            comes with `REQUIRE_APPROVAL` says that a person of the program has approved.
    """

    _: dataclasses.KW_ONLY
    permit: str = ""


@dataclasses.dataclass(frozen=True, kw_only=True)
class DescribedCall:
    """A call of a tool that the gateway holds.

    Attributes:
        ref: The tool, by the reference of what the program was told about it.
        arguments: The arguments, as JSON.
        permit: From the decision about it; empty where nobody was asked.
        run_id: The run.
    """

    ref: str
    arguments: Mapping[str, Any] = dataclasses.field(default_factory=dict)
    permit: str = ""
    run_id: str = ""


@dataclasses.dataclass(frozen=True, kw_only=True)
class ToolOutcome:
    """What became of a call of a tool that the gateway holds.

    Attributes:
        content: What the model is told of the result.
        error: What the tool raised, in one text, without a traceback; empty where it succeeded.
    """

    content: str | list[ContentPart] = ""
    error: str = ""
