"""What is different in a request that was not recorded, from the one that is most like it."""

from __future__ import annotations

import difflib
import itertools
import json
import re
from collections.abc import Iterator, Sequence
from typing import Any

from effectful_agents.messages.text import text_for_reading
from effectful_agents.testing.recorded import RecordedRequest

__all__ = ["differences", "nearest"]

_COMPARED = 2000
"""Characters of a message by which it is judged how much two are alike."""
_WORDS_AROUND = 6
_MOST_WORDS = 600
_MOST_SHOWN = 4
_LONGEST = 160


def nearest(request: RecordedRequest, recorded: Sequence[RecordedRequest]) -> RecordedRequest | None:
    """The recorded request that is most like one; None where nothing was recorded."""
    if not recorded:
        return None
    same = [_same(request.marks, each.marks) for each in recorded]
    most = max(same)
    candidates = [each for each, count in zip(recorded, same, strict=True) if count == most]
    return candidates[0] if len(candidates) == 1 else max(candidates, key=lambda each: _likeness(request, each, most))


def _same(ones: Sequence[str], others: Sequence[str]) -> int:
    """How many messages at the beginning are the same."""
    pairs = zip(ones, others, strict=False)
    return sum(1 for _ in itertools.takewhile(lambda pair: pair[0] == pair[1], pairs))


def _likeness(request: RecordedRequest, other: RecordedRequest, place: int) -> tuple[float, ...]:
    ones, others = request.messages[place:], other.messages[place:]
    length = -abs(len(ones) - len(others))
    shared = len({*request.marks[place:]} & {*other.marks[place:]})
    settings = sum(other.settings.get(name) == value for name, value in request.settings.items())
    alike = 0.0
    if ones and others:
        texts = [_words_of(messages[0])[:_COMPARED] for messages in (ones, others)]
        alike = difflib.SequenceMatcher(None, *texts, autojunk=False).quick_ratio()
    return shared, length, alike, settings


def differences(recorded: RecordedRequest, asked: RecordedRequest) -> list[str]:
    """Where a request differs from a recorded one, a line each: its settings, and its messages by their words."""
    found = [*_of_settings(recorded, asked), *_of_messages(recorded, asked)]
    left = len(found) - _MOST_SHOWN
    return found if left <= 0 else [*found[:_MOST_SHOWN], f"and in {left} more place{'s' * (left > 1)}"]


def _of_settings(recorded: RecordedRequest, asked: RecordedRequest) -> Iterator[str]:
    for name in dict.fromkeys([*recorded.settings, *asked.settings]):
        if name not in asked.settings:
            yield f"`{name}` was {_short(recorded.settings[name])}, and is not set"
        elif name not in recorded.settings:
            yield f"`{name}` was not set, and is {_short(asked.settings[name])}"
        elif recorded.settings[name] != asked.settings[name]:
            yield from _of_setting(name, recorded.settings[name], asked.settings[name])


def _of_setting(name: str, was: Any, now: Any) -> Iterator[str]:
    if name == "tools":
        ones, others = _by_name(was), _by_name(now)
        for tool in dict.fromkeys([*ones, *others]):
            if tool not in others:
                yield f"the tool `{tool}` is not offered any more"
            elif tool not in ones:
                yield f"the tool `{tool}` was not offered"
            elif ones[tool] != others[tool]:
                yield f"the tool `{tool}`: {_in_words(ones[tool], others[tool])}"
        if ones == others:
            yield "the tools stand in another order"
    else:
        yield f"`{name}`: {_in_words(was, now)}"


def _by_name(tools: Any) -> dict[str, Any]:
    try:
        return {tool["function"]["name"]: tool for tool in tools}
    except (TypeError, KeyError):
        return {"": tools}


def _of_messages(recorded: RecordedRequest, asked: RecordedRequest) -> Iterator[str]:
    matcher = difflib.SequenceMatcher(None, recorded.marks, asked.marks, autojunk=False)
    for tag, begin, end, start, stop in matcher.get_opcodes():
        if tag == "equal":
            continue
        pairs = list(zip(range(begin, end), range(start, stop), strict=False))
        for was, now in pairs:
            yield f"{_name(asked, now)}: {_of_message(recorded.messages[was], asked.messages[now])}"
        for was in range(begin + len(pairs), end):
            yield f"{_name(recorded, was)} of the recorded ones is missing: {_short(_words_of(recorded.messages[was]))}"
        for now in range(start + len(pairs), stop):
            yield f"{_name(asked, now)} is new: {_short(_words_of(asked.messages[now]))}"


def _name(request: RecordedRequest, place: int) -> str:
    role = request.messages[place].get("role", "?")
    return f"message {place + 1} ({role})"


def _of_message(was: Any, now: Any) -> str:
    if was.get("role") != now.get("role"):
        return f"it was of the role `{was.get('role')}`: {_short(_words_of(was))}"
    texts = [text_for_reading(message.get("content")) for message in (was, now)]
    rest = [{name: value for name, value in message.items() if name != "content"} for message in (was, now)]
    return _in_words(*texts) if rest[0] == rest[1] and texts[0] != texts[1] else _in_words(was, now)


def _words_of(message: Any) -> str:
    text = text_for_reading(message.get("content"))
    calls = "".join(f" {json.dumps(call, ensure_ascii=False)}" for call in message.get("tool_calls", ()))
    return text + calls


def _in_words(was: Any, now: Any) -> str:
    """Where two texts, or pieces of JSON, differ: what is gone as `[-this-]`, and what came as `{+this+}`."""
    old, new = (re.findall(r"\s+|\w+|[^\w\s]", _text(value)) for value in (was, now))
    begin = _same(old, new)
    end = min(_same(old[begin:][::-1], new[begin:][::-1]), len(old) - begin, len(new) - begin)
    before, after = old[:begin], old[len(old) - end :]
    old, new = old[begin : len(old) - end], new[begin : len(new) - end]
    if max(len(old), len(new)) > _MOST_WORDS:
        parts = [_gone(old[:_WORDS_AROUND]), _new(new[:_WORDS_AROUND]), " …"]
    else:
        parts = list(_changes(old, new))
    lead = ("…" if len(before) > 2 * _WORDS_AROUND else "") + "".join(before[-2 * _WORDS_AROUND :])
    trail = "".join(after[: 2 * _WORDS_AROUND]) + ("…" if len(after) > 2 * _WORDS_AROUND else "")
    return f"{lead}{''.join(parts)}{trail}"


def _changes(old: list[str], new: list[str]) -> Iterator[str]:
    for tag, begin, end, start, stop in difflib.SequenceMatcher(None, old, new, autojunk=False).get_opcodes():
        if tag == "equal":
            words = old[begin:end]
            if len(words) > 4 * _WORDS_AROUND:
                words = [*words[: 2 * _WORDS_AROUND], " … ", *words[-2 * _WORDS_AROUND :]]
            yield "".join(words)
        else:
            yield _gone(old[begin:end]) + _new(new[start:stop])


def _gone(words: list[str]) -> str:
    return f"[-{_cut(''.join(words))}-]" if words else ""


def _new(words: list[str]) -> str:
    return f"{{+{_cut(''.join(words))}+}}" if words else ""


def _text(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, sort_keys=True)


def _short(value: Any) -> str:
    return repr(_cut(value)) if isinstance(value, str) else _cut(_text(value))


def _cut(text: str) -> str:
    return text if len(text) <= _LONGEST else text[: _LONGEST - 1] + "…"
