"""The texts in what a model wrote, and in values."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any

from effectful_agents.errors import GovernanceRefused
from effectful_agents.messages import Response

__all__ = ["governed", "mapped", "with_texts"]

type Change = Callable[[str], str]


def governed(response: Response, change: Change, check: Callable[[str], None]) -> Response:
    """A reply with every text in it changed, whatever form it has.

    Reasoning whose text is changed is left out: a provider takes it back to the letter only.

    Args:
        response: The reply; one that is malformed is for whoever reads it to refuse.
        change: What becomes of a text.
        check: Raises at a text in the arguments of a tool call that must not pass. They are not changed here.
    """
    choices = response.get("choices")
    if not isinstance(choices, list):
        return response
    return {**response, "choices": [_choice(choice, change, check) for choice in choices]}


def _choice(choice: Any, change: Change, check: Callable[[str], None]) -> Any:
    message = choice.get("message") if isinstance(choice, Mapping) else None
    if not isinstance(message, Mapping):
        return choice
    for call in message.get("tool_calls") or ():
        _check_call(call, check)
    kept = {name: value for name, value in message.items() if name in _NO_TEXT}
    rest = {name: _part(name, value, change) for name, value in message.items() if name not in _NO_TEXT}
    rest = {name: value for name, value in rest.items() if value is not _LEFT_OUT}
    return {**choice, "message": {name: (kept | rest)[name] for name in message if name in kept or name in rest}}


_NO_TEXT = frozenset({"role", "tool_calls", "name", "tool_call_id"})
_NAMES = frozenset({"type", "id", "signature", "role", "name", "format"})
"""What names a thing, or must stay to the letter, in the parts of a message."""
_LEFT_OUT: Any = object()


def _part(name: str, value: Any, change: Change) -> Any:
    if name == "content":
        return _content(value, change)
    if name == "thinking_blocks" and isinstance(value, list):
        blocks = [block for block in value if _leaves(block, change) == block]
        return blocks or _LEFT_OUT
    return _leaves(value, change)


def _content(content: Any, change: Change) -> Any:
    if isinstance(content, str):
        return _of_answer(content, change)
    if isinstance(content, tuple):
        content = list(content)
    if not isinstance(content, list):
        return _leaves(content, change)
    texts = [part["text"] for part in content if _is_text(part)]
    whole = "".join(texts)
    passed = change(whole) if len(texts) > 1 else whole
    if passed != whole:  # a text may be spread over parts
        others = [_leaves(part, change) for part in content if not _is_text(part)]
        return [{"type": "text", "text": passed}, *others]
    return [_leaves(part, change) for part in content]


def _is_text(part: Any) -> bool:
    return isinstance(part, Mapping) and part.get("type") == "text" and isinstance(part.get("text"), str)


def _of_answer(text: str, change: Change) -> str:
    """A text that may be the JSON of an answer, in which characters are written in other ways."""
    passed = change(text)
    if passed != text or not text.lstrip().startswith(("{", "[", '"')):
        return passed
    try:
        data = json.loads(text)
    except (ValueError, RecursionError):
        return text
    amended = mapped(data, change, names=True)
    return text if amended == data else json.dumps(amended, ensure_ascii=False)


def _check_call(call: Any, check: Callable[[str], None]) -> None:
    function = call.get("function") if isinstance(call, Mapping) else None
    arguments = function.get("arguments") if isinstance(function, Mapping) else None

    def checked(text: str) -> str:
        check(text)
        return text

    data = arguments
    for _ in range(2):  # they may be JSON of their JSON
        if isinstance(data, str):
            check(data)
            try:
                data = json.loads(data)
            except (ValueError, RecursionError):
                return
    mapped(data, checked, names=True)


def _leaves(data: Any, change: Change) -> Any:
    if isinstance(data, str):
        return change(data)
    if isinstance(data, list | tuple):
        return [_leaves(one, change) for one in data]
    if isinstance(data, Mapping):
        return {name: one if name in _NAMES else _leaves(one, change) for name, one in data.items()}
    return change(data.decode("utf-8", "replace")) if isinstance(data, bytes) else data


def mapped(data: Any, change: Change, *, names: bool = False) -> Any:
    """Plain JSON with its texts changed.

    Args:
        data: The JSON.
        change: What becomes of a text.
        names: Whether names are texts as well: those of a dictionary are data.

    Raises:
        GovernanceRefused: Two names would become one.
    """
    if isinstance(data, str):
        return change(data)
    if isinstance(data, list):
        return [mapped(one, change, names=names) for one in data]
    if not isinstance(data, dict):
        return data
    made = {change(name) if names else name: mapped(one, change, names=names) for name, one in data.items()}
    if len(made) != len(data):
        raise GovernanceRefused("governance", "Two names in it would become one.")
    return made


def with_texts(message: Mapping[str, Any], key: str, change: Change) -> Any:
    """A message with its texts changed; what is no text stays, and one that does not change is the same object."""
    content = message.get(key)
    if isinstance(content, str):
        changed: Any = change(content)
    elif isinstance(content, list):
        changed = [with_texts(part, "text", change) if part.get("type") == "text" else part for part in content]
    else:
        return message
    return message if changed == content else {**message, key: changed}
