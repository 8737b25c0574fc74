"""A model that answers whatever fits, without a script."""

from __future__ import annotations

import json
import re
import warnings
from collections.abc import Collection, Iterator, Mapping
from typing import Any, cast

from effectful_agents.errors import EncodingError, OptionError
from effectful_agents.messages import Request, Response, ToolCall, ToolChoice
from effectful_agents.messages.telling import told
from effectful_agents.messages.text import text_for_reading
from effectful_agents.operations.loop import completion
from effectful_agents.operations.policy import callers
from effectful_agents.operations.steps import emit
from effectful_agents.runtime import ObjectInterpretation, implements, interpretation
from effectful_agents.testing.recorded import Forms
from effectful_agents.testing.replies import called, says
from effectful_agents.testing.samples import sample

__all__ = ["SchemaModel"]


class SchemaModel(ObjectInterpretation[Any, Any]):
    """Answer each request with a value that fits what it asks for, so that a program runs without a script.

    Handles `completion` and forwards nothing, as `ScriptedModel` does. What it answers makes no sense, but has the form
    that the request describes: numbers within their bounds, texts of a format or a pattern, one of several choices,
    lists and objects that come to an end. A rule that stands in no schema is not followed; when an answer is sent back,
    the next is another one. The same request always has the same reply.

    Args:
        seed: Another one gives other replies.
        calls_tools: Whether it calls the tools that it is offered, each once in a conversation and with arguments that
            fit, before it answers; or the names of those that it calls. A skill that is being called is not called
            once more inside, and a call that is nested in two others calls none, so that skills which offer each other
            come to an end. A tool that a request demands is called anyway.
        chunk_size: Characters in one piece of a stream; at least 1.

    Attributes:
        requests: The requests that came, in order; each keeps the messages that it had when it came.

    Raises:
        OptionError: `chunk_size` is less than 1, or `calls_tools` a text.
        EncodingError: From `completion`, when no value was found that fits.

    >>> from typing import Literal
    >>> from effectful_agents import NotHandled, Skill, handler, harness
    >>> @Skill.define
    ... def temperature(city: Literal["Oslo", "Rome"]) -> float:
    ...     '''The temperature in {city} in degrees.'''
    ...     raise NotHandled
    >>> with handler(SchemaModel()), handler(harness(system_prompt="brief")):
    ...     isinstance(temperature("Oslo"), float)
    True
    """

    requests: list[Request]

    def __init__(self, seed: int = 0, *, calls_tools: bool | Collection[str] = False, chunk_size: int = 8) -> None:
        if chunk_size < 1:
            raise OptionError(f"`chunk_size` is {chunk_size}; a piece has at least one character")
        if isinstance(calls_tools, str):
            raise OptionError(f"`calls_tools` is the text {calls_tools!r}; it is True, False or a list of names")
        self.seed = seed
        self.calls_tools = calls_tools
        self.requests = []
        self._chunk_size = chunk_size
        self._forms = Forms()

    @implements(completion)
    def completion(self, **request: Any) -> Response:
        request["messages"] = list(request.get("messages", ()))
        seen = cast(Request, request)
        self.requests.append(seen)
        response = self._reply(seen)
        if emit in interpretation():
            for event in told(response, self._chunk_size):
                emit(event)
        return response

    def _reply(self, request: Request) -> Response:
        seed = f"{self.seed} {self._forms.request(request).digest}"
        names = self._to_call(request)
        if calls := list(self._calls(request, names, seed)):
            return called(calls)
        form: Mapping[str, Any] = request.get("response_format") or {}
        if form.get("type") == "json_object":
            return says("{}")
        schema = form.get("json_schema", {}).get("schema")
        if schema is None:
            return says(sample({"type": "string", "minLength": 8, **_bounds_in_feedback(request)}, seed))
        value = sample(_with_moments(schema, _said_of_moments(request)), seed)
        return says(json.dumps(value, ensure_ascii=False))

    def _to_call(self, request: Request) -> list[str]:
        """The tools that this reply calls."""
        offered = [tool["function"]["name"] for tool in request.get("tools") or ()]
        choice = ToolChoice.from_wire(request.get("tool_choice"))
        if not offered or choice.mode == "none":
            return []
        if choice.mode == "named":
            return [choice.name] if choice.name in offered else []
        wanted = [name for name in offered if self.calls_tools is True or name in (self.calls_tools or ())]
        before, around = _called_in(request), callers()
        running = [skill.own_name for skill in around]
        names = [] if len(around) > _DEEPEST else [name for name in wanted if name not in {*before, *running}]
        if choice.mode == "required" and not names:
            names = [next((name for name in offered if name not in before), offered[0])]
        return names[:1] if request.get("parallel_tool_calls") is False else names

    def _calls(self, request: Request, names: Collection[str], seed: str) -> Iterator[ToolCall]:
        count = len(_called_in(request))
        for tool in request.get("tools") or ():
            function = tool["function"]
            name = function["name"]
            if name not in names:
                continue
            try:
                arguments = sample(function.get("parameters") or {"type": "object", "properties": {}}, f"{seed} {name}")
            except EncodingError as error:
                if self.calls_tools is True and ToolChoice.from_wire(request.get("tool_choice")).mode == "auto":
                    # Nothing that it could be called with.
                    warnings.warn(f"`SchemaModel` does not call the tool `{name}`: {error}", UserWarning, stacklevel=2)
                    continue
                raise
            count += 1
            text = json.dumps(arguments, ensure_ascii=False)
            yield {"id": f"call-{count}", "type": "function", "function": {"name": name, "arguments": text}}


_DEEPEST = 2
"""In how many calls one may be nested that calls tools: the last one among them answers, the others call."""


def _called_in(request: Request) -> list[str]:
    """The tools that were called in a conversation, by their names."""
    messages = request["messages"]
    return [call["function"]["name"] for message in messages for call in message.get("tool_calls") or ()]


_BOUNDS = (
    ("minLength", re.compile(r"should have at least (\d+) character")),
    ("maxLength", re.compile(r"should have at most (\d+) character")),
    ("pattern", re.compile(r"should match pattern '(.*)'; it is ")),
)


def _feedback(request: Request) -> list[str]:
    """What was said of answers that were sent back."""
    return [text_for_reading(message.get("content")) for message in request["messages"] if message["role"] == "user"][
        1:
    ]


_MOMENTS = (
    (" of the future", re.compile(r"should be in the future|should be greater than (or equal to )?\d{4}-\d\d-\d\d")),
    (" of no zone", re.compile(r"should not have timezone info")),
)


def _said_of_moments(request: Request) -> str:
    """What dates and times have to be, of which no schema speaks: the rest of a name in `text_of_format`."""
    said = _feedback(request)
    return "".join(name for name, words in _MOMENTS if any(words.search(text) for text in said))


def _with_moments(schema: Any, rest: str) -> Any:
    """A schema whose dates and times are of that kind."""
    if not rest:
        return schema
    if isinstance(schema, list):
        return [_with_moments(part, rest) for part in schema]
    if not isinstance(schema, Mapping):
        return schema
    changed = {name: _with_moments(part, rest) for name, part in schema.items()}
    match schema.get("format"):
        case "date-time":
            changed["format"] = f"date-time{rest}"
        case "date" if "future" in rest:
            changed["format"] = "date of the future"
    return changed


def _bounds_in_feedback(request: Request) -> dict[str, Any]:
    """What a text has to be, of which no schema speaks, as it is said when an answer is sent back."""
    said = _feedback(request)
    if any("Base64 decoding error" in text or "'utf-8' codec can't decode" in text for text in said):
        return {"minLength": 0, "format": "byte"}
    found = [(name, match[1]) for text in said for name, bound in _BOUNDS if (match := bound.search(text))]
    bounds = {name: value if name == "pattern" else int(value) for name, value in found}
    return {"minLength": 0, **bounds} if bounds else {}
