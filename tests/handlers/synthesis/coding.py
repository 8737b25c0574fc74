"""A stack in which a scripted model writes code, and what comes of it."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

from effectful_agents import handler, harness
from effectful_agents.testing import ScriptedModel, calls


@contextlib.contextmanager
def coding(*replies: Any, **options: Any) -> Iterator[ScriptedModel]:
    """The standard stack with a model that answers with these replies; nothing checks types."""
    settings = {"eval_provider": "builtin", "type_checker": "none", "system_prompt": "brief", **options}
    with handler(harness(**settings)), handler(ScriptedModel(*replies)) as model:
        yield model


def runs(code: str, **arguments: Any) -> Any:
    """A reply that runs code in the session."""
    return calls("exec_code", code=code, **arguments)


def submits(code: str, **arguments: Any) -> Any:
    """A reply that submits a body."""
    return calls("write_and_run_body", implementation={"code": code}, **arguments)


def results(model: ScriptedModel) -> list[Any]:
    """What the model was told of its tool calls, as far as the last request has it."""
    return [message["content"] for message in model.requests[-1]["messages"] if message["role"] == "tool"]


def tools(request: Any) -> dict[str, Any]:
    """The functions that a request offers, by name."""
    return {tool["function"]["name"]: tool["function"] for tool in request.get("tools", ())}


def roles(messages: Any) -> list[str]:
    return [message["role"] for message in messages]
