"""Keeping many tools in a catalogue that the model searches, so that requests do not carry all of them."""

from __future__ import annotations

import functools
import json
import weakref
from collections.abc import Collection, Iterable, Mapping, MutableMapping, Sequence, Set
from typing import Any, NamedTuple

from effectful_agents.encoding import tool_codec
from effectful_agents.errors import ConfigurationError, OptionError
from effectful_agents.handlers.legibility.catalogue import Catalogue, Names, meant
from effectful_agents.handlers.legibility.catalogue import use_tool as _use_tool  # a tool in the scope of this module
from effectful_agents.messages import Message, Response, ToolChoice
from effectful_agents.operations.counting import estimate_tokens
from effectful_agents.operations.history import get_history
from effectful_agents.operations.loop import AssistantResult, call_assistant, completion
from effectful_agents.operations.templates import prompted_tools
from effectful_agents.runtime import ObjectInterpretation, fwd, implements
from effectful_agents.types import History, Scope, Tool
from effectful_agents.types.walk import ToolSet

__all__ = ["DeferredTools", "worth_deferring"]

_FURTHER_REQUEST = 2500
"""Tokens that the request for a search carries besides its tools, if nothing else is said."""


class DeferredTools(ObjectInterpretation[Any, Any]):
    """Offer two tools, to search the others and to use one, where there are many.

    Intercepts `call_assistant`: forwards with two tools in the place of the catalogue, and puts in the place of each
    call of `use_tool` the call that was meant. So `call_tool` and whoever handles it see the real tool. Where few tools
    are offered it changes nothing. It adds no section to the system message: that is written before anybody knows the
    tools, and what the model has to know stands in the descriptions of the two.

    It is decided once in a conversation, at the first turn that has tools to defer, and holds for the later calls of
    the same agent, so that the beginning of its requests stays the same while tools come and go. The tools of a request
    stay the same from turn to turn, also when the catalogue changes.

    Outside of the extractor, and of other handlers that offer tools or have them called otherwise: it defers what comes
    from further inside, each tool in the form in which it is called. `harness(defer_tools=…)` puts it there.

    Args:
        max_results: Tools that a search finds, at least 1. With more, a model chooses worse.
        threshold: Tokens that the definitions of the tools have to exceed for them to be deferred, 0 for always; None
            leaves it to `worth_deferring`.
        always: Names of tools that are offered as they are. Those of other handlers that end a call or are needed in
            every one belong here, and one that a `tool_choice` names: `harness` adds it.
        further_request: Tokens that the request for a search is reckoned to carry besides its tools, for
            `worth_deferring`.

    Raises:
        OptionError: An option has a value that it cannot have.
        ConfigurationError: From a call: `tool_choice` names a tool that is not offered beside the two.

    >>> from effectful_agents import NotHandled, Skill, handler, harness
    >>> from effectful_agents.testing import ScriptedModel, calls
    >>> @Tool.define
    ... def weather(city: str) -> str:
    ...     '''The weather in a city.'''
    ...     return "sunny"
    >>> @Skill.define
    ... def ask(question: str) -> str:
    ...     '''{question}'''
    ...     raise NotHandled
    >>> model = ScriptedModel(calls("use_tool", name="weather", arguments={"city": "Oslo"}), "It is sunny.")
    >>> with handler(harness(defer_tools=0, eval_provider="none")), handler(model):
    ...     ask("How is Oslo?")
    'It is sunny.'
    >>> [tool["function"]["name"] for tool in model.requests[0]["tools"]]
    ['search_tools', 'use_tool']
    """

    def __init__(
        self,
        max_results: int = 5,
        *,
        threshold: int | None = None,
        always: Collection[str] = (),
        further_request: int = _FURTHER_REQUEST,
    ) -> None:
        _check_number("max_results", max_results, 1)
        _check_number("further_request", further_request, 0)
        if threshold is not None:
            _check_number("threshold", threshold, 0)
        if isinstance(always, str) or not all(isinstance(name, str) for name in always):
            raise OptionError(f"`always` is {always!r}; it is a collection of names of tools.")
        self.max_results = max_results
        self.threshold = threshold
        self.always = frozenset(always)
        self.further_request = further_request

    def manifest(self) -> Mapping[str, object]:
        """What the manifest of a stack says of it."""
        return {"max_results": self.max_results, "threshold": self.threshold, "always": sorted(self.always)}

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
        catalogue = self._catalogue(tools, env)
        if catalogue is None:
            return fwd()
        env.memo[Catalogue] = catalogue  # for the decoding of `use_tool`
        message, tool_calls, answer = fwd(messages, response_type, env, catalogue.offered)
        return message, [meant(call) for call in tool_calls], answer

    @implements(completion)
    def completion(self, **request: Any) -> Response:
        choice = ToolChoice.from_wire(request.get("tool_choice"))
        if choice.mode == "named":
            offered = [tool["function"]["name"] for tool in request.get("tools", ())]
            if _use_tool.__name__ in offered and choice.name not in offered:
                raise ConfigurationError(
                    f"`tool_choice` names `{choice.name}`, and the request offers {', '.join(map(repr, offered))}. A "
                    f"tool that is named has to stay in view: `DeferredTools(always=[{choice.name!r}])`, outside of "
                    "the handler that sets `tool_choice`, or `harness(defer_tools=False)`."
                )
        return fwd()

    def _catalogue(self, tools: Set[Tool], env: Scope) -> Catalogue | None:
        """The catalogue of a turn, or None where nothing is deferred; the same for the same set of tools."""
        # By values and not by this handler, which the set, that of a module above all, may long outlive.
        key = DeferredTools, self.max_results, self.threshold, self.always, self.further_request
        history = get_history()
        decided = history.memo if isinstance(history, History) else env.memo
        if decided.get(key) is False or not tools or _use_tool in tools:  # one further inside has done it
            return None
        tools = prompted_tools(tools)
        kept = tools.memo if isinstance(tools, ToolSet) else {}
        made: _Choice | None = kept.get((key, env.skill))
        if made is None:
            made = kept[key, env.skill] = self._choice(tools, env.skill)
        if made.catalogue is None:
            return None
        if not decided.setdefault(key, made.pays):
            return None
        names: Names = decided.setdefault(Names, Names())
        return names.of(made.catalogue)

    def _choice(self, tools: Set[Tool], anchor: Tool) -> _Choice:
        # A skill is not offered to itself, unless it is recursive. The loop sees to that, but not to what is in here.
        usable = [tool for tool in tools if tool != anchor or getattr(tool, "recursive", False)]
        deferred = [tool for tool in usable if tool.__name__ not in self.always]
        if not deferred:
            return _Choice(None, pays=False)
        others = [tool for tool in usable if tool.__name__ in self.always]
        return _Choice(Catalogue(deferred, others, self.max_results), self._pays(deferred))

    def _pays(self, deferred: Sequence[Tool]) -> bool:
        if self.threshold is None:
            return worth_deferring(deferred, max_results=self.max_results, further_request=self.further_request)
        return sum(map(_tokens_of, deferred)) > self.threshold


class _Choice(NamedTuple):
    """What could be done with a set of tools: its catalogue, if there is anything in it, and whether that pays."""

    catalogue: Catalogue | None
    pays: bool


def _check_number(name: str, value: Any, least: int) -> None:
    if not isinstance(value, int) or isinstance(value, bool) or value < least:
        raise OptionError(f"`{name}` is {value!r}; it is a number, at least {least}.")


def worth_deferring(tools: Iterable[Tool], *, max_results: int = 5, further_request: int = _FURTHER_REQUEST) -> bool:
    """Whether a catalogue of tools costs more in the requests of a call than searching it would.

    It is measured on the call for which deferral does least: one that uses a tool and answers. It takes two requests
    with the whole catalogue, or three with the two tools of `DeferredTools`, two of which carry what was found, and the
    third of which is paid for besides.

    The tokens are those of `estimate_tokens`, the same in any process: what a request offers must not depend on which
    tokenizers happen to be loaded.

    Args:
        tools: The tools.
        max_results: Tools that a search finds.
        further_request: Tokens that the third request carries besides its tools: the system message and the
            conversation. 2,500 are those of a short conversation under the standard stack without tools that run code;
            with these it is about 4,000. Where the provider has the beginning of a request in its cache, take what the
            tokens that it reads from there cost of it, a tenth, say.

    >>> @Tool.define
    ... def weather(city: str) -> str:
    ...     '''The weather in a city.'''
    ...     return "sunny"
    >>> worth_deferring([weather])
    False
    >>> worth_deferring(weather.named(f"weather_in_country_{number}") for number in range(100))
    True
    >>> worth_deferring((weather.named(f"weather_in_country_{number}") for number in range(20)), further_request=250)
    True
    """
    costs = [_tokens_of(tool) for tool in tools]
    if not costs:
        return False
    found = sum(costs) / len(costs) * min(max_results, len(costs))
    return 2 * sum(costs) > 3 * _tokens_of_the_two() + 2 * found + further_request


def _tokens_of(tool: Tool) -> int:
    sizes = _sizes.setdefault(tool.function, {})
    shown = tool.__name__, tool.description
    if shown not in sizes:
        sizes[shown] = estimate_tokens(json.dumps(tool_codec(tool).definition(), ensure_ascii=False))
    return sizes[shown]


# By what one tool is shown with: it is measured for each set that it is in, and sets are made anew.
_sizes: MutableMapping[Tool, dict[tuple[str, str], int]] = weakref.WeakKeyDictionary()


@functools.cache
def _tokens_of_the_two() -> int:
    return sum(map(_tokens_of, Catalogue([]).offered))
