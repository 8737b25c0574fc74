"""What a server asks of whoever calls it: a model, or a person. Both are our own operations, and policies decide."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any

import mcp_types

from effectful_agents.encoding.handwritten import held_to
from effectful_agents.errors import AgentsError, Denied, EncodingError, MissingHandlerError
from effectful_agents.handlers.delegation.mcp.results import messages_of
from effectful_agents.messages.text import printable_lines
from effectful_agents.operations.asking import ask_person
from effectful_agents.operations.policy import Answer, Question
from effectful_agents.operations.telling import ask_aside

__all__ = ["Asked"]

_LONGEST_QUESTION = 4_000
_MOST_TOKENS = 8_192
"""Of a reply that a server has asked for."""
_STOPPED = {"stop": "endTurn", "length": "maxTokens", "tool_calls": "toolUse"}


class Asked:
    """Answers a server, by the model and the people of the call in which it asks.

    Args:
        peer: The server, as people are told.
        sampling: Whether it may have the model asked.
        elicitation: Whether it may have people asked.
    """

    def __init__(self, peer: str, sampling: bool, elicitation: bool) -> None:
        self._peer = peer
        self._sampling = sampling
        self._elicitation = elicitation

    # --- the model ----------------------------------------------------------------------------------------------------

    def sample(self, params: Any) -> Any:
        """A reply of the model that is in use, as `ask_aside` gets it."""
        if not self._sampling:
            return _refused("this program lends its model to nobody")
        if params.tools:
            return _refused("tools of a server are not offered to the model")
        try:
            reply: Any = ask_aside(_request(params))
        except Denied:  # the call ends, in which the server was asked for something
            raise
        except (AgentsError, ValueError) as error:
            return _refused(f"the model could not be asked ({type(error).__name__})")
        choice = reply["choices"][0]
        return mcp_types.CreateMessageResult(
            role="assistant",
            content=mcp_types.TextContent(type="text", text=_text_of(choice["message"].get("content"))),
            model=str(reply.get("model") or ""),
            stop_reason=_STOPPED.get(choice.get("finish_reason") or "stop", "endTurn"),
        )

    # --- a person -----------------------------------------------------------------------------------------------------

    def elicit(self, params: Any) -> Any:
        """What a person says, by the way on which approvals are asked for."""
        if not self._elicitation:
            return mcp_types.ElicitResult(action="decline")
        if params.mode == "url":
            question, read = f"{params.message} Open {params.url} for it?", _nothing
        else:
            question, read = _form(params.message, params.requested_schema)
        asked = f"The server `{self._peer}` asks: {printable_lines(question)}"[:_LONGEST_QUESTION]
        try:
            answer = ask_person(Question(text=asked, reason_code="elicitation"))
        except MissingHandlerError:  # there is nobody
            return mcp_types.ElicitResult(action="cancel")
        if answer.from_nobody:
            return mcp_types.ElicitResult(action="cancel")
        content = read(answer) if answer.approved else None
        if content is None:
            return mcp_types.ElicitResult(action="decline")
        return mcp_types.ElicitResult(action="accept", content=content or None)


def _refused(why: str) -> Any:
    return mcp_types.ErrorData(code=mcp_types.INVALID_REQUEST, message=why)


def _request(params: Any) -> Any:
    messages = messages_of(params.messages)
    if params.system_prompt:
        messages.insert(0, {"role": "system", "content": params.system_prompt})
    settings = {"temperature": params.temperature, "stop": params.stop_sequences}
    given = {name: value for name, value in settings.items() if value is not None}
    return {"messages": messages, "max_tokens": max(1, min(params.max_tokens, _MOST_TOKENS)), **given}


def _text_of(content: Any) -> str:
    if isinstance(content, list):
        return "".join(part.get("text", "") for part in content if isinstance(part, Mapping))
    return content or ""


type _Read = Callable[[Answer], dict[str, Any] | None]
"""What the answer of a person says, field by field; None where it cannot be used."""


def _nothing(answer: Answer) -> dict[str, Any] | None:
    return {}


def _form(message: str, schema: Mapping[str, Any]) -> tuple[str, _Read]:
    """The question that a form is, and how the answer is read: one text as it stands, anything else as JSON."""
    fields = schema.get("properties") or {}
    if not fields:
        return message, _nothing
    only = next(iter(fields.items())) if len(fields) == 1 else None
    if only is not None and isinstance(only[1], Mapping) and only[1].get("type") == "string":
        name, wanted = only
        return f"{message} ({_about(name, wanted)})", lambda answer: _fitting({name: answer.text}, schema)
    told = "; ".join(_about(name, wanted) for name, wanted in fields.items())
    question = f"{message} (Answer with a JSON object. {told})"

    def read(answer: Answer) -> dict[str, Any] | None:
        try:
            given = json.loads(answer.text)
        except (ValueError, RecursionError):
            return None
        return _fitting(given, schema) if isinstance(given, dict) else None

    return question, read


def _about(name: str, wanted: Any) -> str:
    described = wanted if isinstance(wanted, Mapping) else {}
    kind = described.get("type", "anything")
    choices = described.get("enum")
    told = described.get("description") or described.get("title") or ""
    among = f", one of {', '.join(map(str, choices))}" if isinstance(choices, list) else ""
    return f"{name}: {kind}{among}{f', {told}' if told else ''}"


def _fitting(given: dict[str, Any], schema: Mapping[str, Any]) -> dict[str, Any] | None:
    try:
        return None if held_to(dict(schema), "the form")(given) else given
    except EncodingError:  # the schema is none
        return None
