"""What a rule of `Governance` is."""

from __future__ import annotations

import contextlib
import dataclasses
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from effectful_agents.errors import OptionError
from effectful_agents.handlers.policy.rules.options import plain_function
from effectful_agents.handlers.policy.rules.settings import named
from effectful_agents.messages import Message
from effectful_agents.operations.policy import Decision, Disposition, ProposedEffect

__all__ = ["Refuse", "Rule"]


@dataclasses.dataclass(frozen=True)
class Refuse:
    """What a rule returns that does not let a text pass.

    Attributes:
        message: Why, for whoever is refused.
    """

    message: str = ""


type OfText = Callable[[str], str | Refuse | None]
type OfEffect = Callable[[ProposedEffect], Decision | Disposition | Refuse | None]


class Rule:
    """A precondition: it lets something pass (None), amends it, or refuses it.

    A rule is made of functions, one for each stage that it has to do with, or is a class with methods of these names.
    What one amends, the next rule and whatever comes after it sees. One that raises refuses. None of them is `async`.

    Args:
        name: What refusals and the decision log call it.
        ingress: Of a text that enters a conversation from the program or its user: the same text amended, or `Refuse`.
        tool_call: Of a tool call or delegation that is about to happen: a `Decision`, which may amend the arguments, a
            `Disposition`, or `Refuse`. Code of a model that runs for another reason is one named `code`, with no tool.
        tool_result: Of a text that a tool gives the model: amended, or `Refuse`, and the model is told that instead.
        egress: Of a text that a model wrote, and of texts in the value that leaves a call.

    Raises:
        OptionError: There is nothing that it does, or something is no function, or is an `async def`.

    >>> Rule("no names", egress=lambda text: text.replace("Smith", "…")).egress("Mr Smith")
    'Mr …'
    """

    def __init__(
        self,
        name: str = "",
        *,
        ingress: OfText | None = None,
        tool_call: OfEffect | None = None,
        tool_result: OfText | None = None,
        egress: OfText | None = None,
    ) -> None:
        self.name = name or type(self).__name__
        given = {"ingress": ingress, "tool_call": tool_call, "tool_result": tool_result, "egress": egress}
        self._functions: dict[str, Any] = {stage: function for stage, function in given.items() if function is not None}
        if not self.stages:
            raise OptionError(f"the rule `{self.name}` does nothing; give it one of {', '.join(given)}.")
        for stage in (*self.stages, "leaving", "call", "shown", "begin"):
            plain_function(self._functions.get(stage, getattr(self, stage)), f"`{stage}` of the rule `{self.name}`")

    def ingress(self, text: str, /) -> str | Refuse | None:
        """What becomes of a text that enters a conversation."""
        return self._functions["ingress"](text)

    def tool_call(self, effect: ProposedEffect, /) -> Decision | Disposition | Refuse | None:
        """What becomes of a tool call."""
        return self._functions["tool_call"](effect)

    def tool_result(self, text: str, /) -> str | Refuse | None:
        """What becomes of a text that a tool gives the model."""
        return self._functions["tool_result"](text)

    def egress(self, text: str, /) -> str | Refuse | None:
        """What becomes of a text that a model wrote."""
        return self._functions["egress"](text)

    def leaving(self, text: str, /) -> str | Refuse | None:
        """What becomes of a text in the value that leaves a call: by default, as of any that a model wrote."""
        return self.egress(text)

    def attachment(self, stage: str, text: str, /) -> str | Refuse | None:
        """What becomes of a text that stands beside others, at `ingress` or as a `tool_result`; by default, as there.

        That is the name of a file, the text of a document that is text, or the address of a picture.
        """
        return getattr(self, stage)(text)

    def parts(self, stage: str, parts: Sequence[Any], /) -> Sequence[Any]:
        """What becomes of the parts of a message that is not only text, after the texts in it."""
        return parts

    def call(self) -> contextlib.AbstractContextManager[None]:
        """Entered around each call that the program makes."""
        return contextlib.nullcontext()

    def shown(self, messages: Iterable[Message], /) -> None:
        """Told what a model is about to read."""

    @property
    def stages(self) -> tuple[str, ...]:
        """What it has to do with."""
        return tuple(
            stage
            for stage in ("ingress", "tool_call", "tool_result", "egress")
            if stage in self._functions or getattr(type(self), stage) is not getattr(Rule, stage)
        )

    def settings(self) -> Mapping[str, Any]:
        """What it is made with, without secrets: the manifest of a stack has a digest of it.

        A class with settings of its own adds them: `return {**super().settings(), "limit": self.limit}`.
        """
        return {"rule": named(type(self)), "functions": {name: named(one) for name, one in self._functions.items()}}

    def begin(self) -> None:
        """Forget what it remembers: a block of `with handler(…)` begins."""
