"""Offering a part of the tools, chosen for each call or turn."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping, Sequence, Set
from typing import Any, Literal

from effectful_agents.errors import ConfigurationError, OptionError
from effectful_agents.handlers.routing.choosing import ByFunction, BySkill, Router, choosing
from effectful_agents.handlers.routing.context import RoutingContext, check_known, names_of
from effectful_agents.handlers.routing.held import HeldCall
from effectful_agents.handlers.routing.keywords import KeywordRouter
from effectful_agents.messages import Message, Response, ToolChoice
from effectful_agents.operations.loop import AssistantResult, call_agent, call_assistant, completion
from effectful_agents.operations.steps import current_ids
from effectful_agents.runtime import ObjectInterpretation, Operation, fwd, handler, implements
from effectful_agents.types import Scope, Skill, Tool
from effectful_agents.types.walk import ToolSet, in_order, tools_in_scope

__all__ = ["ToolRouter"]


class ToolRouter(ObjectInterpretation[Any, Any]):
    """Offer a part of the tools, the *palette*, chosen for each call or each turn.

    Intercepts `call_assistant` and forwards with the tools of the palette in the order that they had. The model is told
    of no others, and a call of one that is not offered is answered as that of a tool which does not exist. The same
    holds for what code of the model calls: an argument that is written as an expression, a session, a body. A session
    of Python is one tool, `exec_code`, offered where the palette names it, as is every tool that another handler adds.

    Routing narrows an offer. It grants nothing, and a tool that was not there is not added; nor is it an authorization:
    the program itself and its tools call what they like. Who may do what is for a policy.

    Tools are chosen by their own names (`tool.__name__`); of several with one name all are in. A skill that chooses is
    called like any other, in a call nested in the one that is routed. It is offered no tools, and it is itself in no
    catalogue. An answer of it that names something else is refused like one that cannot be decoded.

    Where the palette changes from turn to turn or from call to call, so does the beginning of the requests, and the
    provider's cache of it is lost. With `per="call"` it stays while a call lasts.

    Where a run is resumed the palette is the same: that of `keyword_router` depends on the call alone, what a function
    gives is recorded, and so are the steps of a skill.

    Outside of the extractor and of all that adds tools further inside, since it sees only what they forward; inside of
    what defers tools or has them called otherwise (`DeferredTools`, `MixedToolCaller`): `harness(tool_router=…)` puts
    it there. Of two the palette is what both have.

    Args:
        entries_for: What chooses: a function from a `RoutingContext` to names, or tools; what `keyword_router` makes;
            or a skill with some of the parameters `text`, `tools`, `skill` and `turn` that returns a list of names.
        registered: Names of tools, or tools, that there are somewhere in the program. A name outside of them is an
            error, and one of them that the skill at hand does not see is passed over. None: those that the
            `keyword_router` was given, or else the tools that the skill sees.
        per: Whether the palette is chosen once in a call, or before each turn.
        always: Names of tools that are in every palette, where they are in the catalogue.

    Raises:
        OptionError: An option has a value that it cannot have.
        ConfigurationError: A name is not registered. From a call: what chooses raised, or named an unknown tool;
            `tool_choice` names one that is not in the palette; or a handler further out offers what is not in it.

    >>> from effectful_agents import NotHandled, harness
    >>> from effectful_agents.handlers.routing import keyword_router
    >>> from effectful_agents.testing import ScriptedModel
    >>> @Tool.define
    ... def weather(city: str) -> str:
    ...     '''The weather in a city.'''
    ...     return "sunny"
    >>> @Tool.define
    ... def send_mail(text: str) -> None:
    ...     '''Send a mail.'''
    >>> @Skill.define
    ... def ask(question: str) -> str:
    ...     '''{question}'''
    ...     raise NotHandled
    >>> router = ToolRouter(keyword_router({"weather": [weather], "mail": [send_mail]}))
    >>> with handler(harness(tool_router=router)), handler(ScriptedModel("Sunny.", "Which mail?")) as model:
    ...     _ = ask("How is the weather?"), ask("Send the mail.")
    >>> [[tool["function"]["name"] for tool in request["tools"]] for request in model.requests]
    [['weather'], ['send_mail']]
    """

    def __init__(
        self,
        entries_for: Router | Skill[..., Any],
        *,
        registered: Iterable[str | Tool] | None = None,
        per: Literal["call", "turn"] = "call",
        always: Iterable[str | Tool] = (),
    ) -> None:
        if not callable(entries_for) or isinstance(entries_for, type):
            raise OptionError(f"`entries_for` is {entries_for!r}; it is a function, or a skill, that names tools.")
        if per not in ("call", "turn"):
            raise OptionError(f"`per` is {per!r}; it can be 'call' or 'turn'.")
        self.choose: ByFunction | BySkill = (
            BySkill(entries_for) if isinstance(entries_for, Skill) else ByFunction(entries_for)
        )
        self.per = per
        self.always = names_of(always, "`always`")
        self.registered = None if registered is None else names_of(registered, "`registered`")
        if isinstance(entries_for, KeywordRouter):
            if self.registered is None:
                self.registered = entries_for.registered
            if self.registered is not None:
                mend = f"`registered` has {', '.join(map(repr, self.registered)) or 'none'}."
                check_known(entries_for.names, self.registered, "`keyword_router`", mend)

    @implements(call_agent)
    def call_agent(self, skill: Skill, /, *args: Any, **kwargs: Any) -> Any:
        return HeldCall.around(fwd)

    @implements(call_assistant)
    def call_assistant(
        self,
        messages: Sequence[Message],
        response_type: Any,
        env: Mapping[str, Any],
        tools: Set[Tool] = frozenset(),
    ) -> AssistantResult[Any]:
        if not isinstance(env, Scope):  # no call of a skill
            return fwd()
        choice = choosing()
        if choice is not None and choice.skill == env.skill:
            HeldCall.hold(self, ())
            message, tool_calls, answer = fwd(messages, choice.held(response_type), env, ToolSet())
            choice.check(message, answer)
            return message, tool_calls, answer
        if isinstance(self.choose, BySkill) and self.choose.skill == env.skill:  # the program called it
            return fwd()
        turns = env.memo.setdefault((ToolRouter, id(self)), _Turns())
        turns.begin(messages)
        catalogue = self._catalogue(tools, env.skill)
        palette = self._palette(turns, env, catalogue)
        kept = [tool for tool in catalogue if tool.__name__ in palette]
        offered = _narrowed(tools, kept)
        routed = _Routed(env, frozenset(tool.__name__ for tool in catalogue), palette, _depth())
        around: Any = _routed()
        HeldCall.hold(self, kept)
        with handler({_routed: lambda: {**around, id(self): routed}, completion: routed.completion}):
            result = fwd(messages, response_type, env, offered)
        turns.end(messages)
        return result

    @implements(completion)
    def completion(self, **request: Any) -> Response:
        # Here, and not where the request begins, since handlers further inside fill in `tool_choice`.
        routed = _routed().get(id(self))
        if routed is not None and routed.depth == _depth():
            routed.check_choice(ToolChoice.from_wire(request.get("tool_choice")))
        return fwd()

    def manifest(self) -> Mapping[str, object]:
        """What the manifest of a stack says of it."""
        chooses: dict[str, object] = {"by": self.choose.by, "router": self.choose.name, "per": self.per}
        if isinstance(self.choose, ByFunction) and isinstance(self.choose.function, KeywordRouter):
            chooses["table"] = self.choose.function.digest
        if isinstance(self.choose, BySkill):
            chooses["prompt"] = self.choose.skill.template.digest
        names = None if self.registered is None else sorted(self.registered)
        return {"stages": ["tools.routing"], "routing": {**chooses, "always": sorted(self.always), "registered": names}}

    def _catalogue(self, tools: Set[Tool], anchor: Skill) -> list[Tool]:
        # A skill is not offered to itself, unless it is recursive: the loop sees to that, but a router would be told of
        # it. One that chooses is a part of the machinery, and would be in view of every other.
        chooser = self.choose.skill if isinstance(self.choose, BySkill) else None
        order = tools.order if isinstance(tools, ToolSet) else in_order(tools)
        return [tool for tool in order if tool != chooser and (tool != anchor or getattr(tool, "recursive", False))]

    def _palette(self, turns: _Turns, env: Scope, catalogue: Sequence[Tool]) -> frozenset[str]:
        if not catalogue:
            return frozenset()
        if turns.palette is None or (self.per == "turn" and turns.chosen_in != turns.number):
            context = RoutingContext.of_turn(env, catalogue, turns.number)
            names = self.choose(context, (*context.names, *(self.registered or ())))
            turns.palette, turns.chosen_in = frozenset((*names, *self.always)), turns.number
        return turns.palette


class _Turns:
    """The turns of a call, and the palette that was chosen last."""

    def __init__(self) -> None:
        self.number = 1
        self.palette: frozenset[str] | None = None
        self.chosen_in = 0
        self._ended_with: Any = None

    def begin(self, messages: Sequence[Message]) -> None:
        """Count a turn, unless this is another attempt at the last one."""
        if self._ended_with is not None and self._ended_with is not _last(messages):
            self.number += 1
            self._ended_with = None

    def end(self, messages: Sequence[Message]) -> None:
        """Note that a turn came to its end: the next one has more messages."""
        self._ended_with = _last(messages)


def _last(messages: Sequence[Message]) -> Any:
    return messages[-1] if messages else None


@dataclasses.dataclass(frozen=True)
class _Routed:
    """What was forwarded in the turn that is under way."""

    env: Scope
    catalogue: frozenset[str]
    palette: frozenset[str]
    depth: int

    def completion(self, **request: Any) -> Response:
        """Refuse a request that offers more."""
        offered = [tool["function"]["name"] for tool in request.get("tools", ())]
        more = [name for name in offered if name not in self.palette]
        if more and self.depth == _depth():
            skill = self.env.skill
            seen = {tool.__name__ for tool in tools_in_scope(self.env.context, skill.receiver)}
            added = next((name for name in more if name in seen or name in self.catalogue), None)
            if added is not None:
                raise ConfigurationError(
                    f"the request of `{skill.__name__}` offers `{added}`, which is not in the palette: a handler "
                    "outside of `ToolRouter` adds tools. Put the router outside of it, or use "
                    "`harness(tool_router=…)`, which does."
                )
        return fwd()

    def check_choice(self, choice: ToolChoice) -> None:
        """Refuse a request that has to call what it does not offer."""
        if choice.mode == "named" and choice.name in self.catalogue - self.palette:
            raise ConfigurationError(
                f"`tool_choice` names `{choice.name}`, which is not in the palette of this turn. Name it in "
                f"`ToolRouter(always=[{choice.name!r}])`."
            )


@Operation.define
def _routed() -> Mapping[int, _Routed]:
    """What the routers of the stack have forwarded in the turn that is under way."""
    return {}


def _depth() -> int:
    ids = current_ids()
    return 0 if ids is None else ids.depth


def _narrowed(tools: Set[Tool], kept: Sequence[Tool]) -> Set[Tool]:
    """The tools that are kept; the same set for the same ones, by which others know it again."""
    if len(kept) == len(tools):
        return tools
    if not isinstance(tools, ToolSet):
        return ToolSet(kept)
    key = ToolRouter, tuple(kept)
    made = tools.memo.get(key)
    if made is None:
        made = tools.memo[key] = ToolSet(kept)
    return made
