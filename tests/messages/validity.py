"""What a provider asks of a conversation, said a second time and apart from the code that sees to it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any


def faults(messages: Sequence[Any]) -> list[str]:
    """What a provider would refuse in a conversation; empty where it would accept all of it."""
    found: list[str] = []
    taken: set[str] = set()
    waiting: list[str] = []
    for place, message in enumerate(messages):
        role = message["role"]
        if waiting and (role != "tool" or message.get("tool_call_id") != waiting[0]):
            found.append(f"{place}: a result of {waiting[0]!r} is due, not {role} {message.get('tool_call_id', '')}")
            waiting = []
        elif waiting:
            waiting.pop(0)
            continue
        if role == "tool":
            found.append(f"{place}: a result that no call waits for")
        if role not in ("system", "user", "assistant", "tool"):
            found.append(f"{place}: a {role} message")
        if role == "system" and place:
            found.append(f"{place}: a system message that is not the first message")
        if "tool_calls" in message:
            calls = message["tool_calls"]
            if role != "assistant" or not calls:
                found.append(f"{place}: {role} with calls {calls!r}")
            for call in calls or ():
                if not isinstance(call.get("id"), str) or not call["id"] or call["id"] in taken:
                    found.append(f"{place}: the identifier {call.get('id')!r} is none, or taken")
                taken.add(call.get("id"))
                waiting.append(call.get("id"))
    if waiting:
        found.append(f"end: no result for {waiting}")
    return found
