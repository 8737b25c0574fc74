"""What is kept of an agent, as values: the fields that it declares, and a conversation that others continue too."""

from __future__ import annotations

import dataclasses
import functools
import json
import operator
import typing
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, cast

from effectful_agents.encoding import decode, encode, type_adapter
from effectful_agents.encoding.names import type_name
from effectful_agents.encoding.values import text_of, written_down
from effectful_agents.errors import EncodingError, StateError, StorageError
from effectful_agents.messages import Message
from effectful_agents.messages.conversation import Role
from effectful_agents.messages.mending import with_free_ids
from effectful_agents.types import Agent
from effectful_agents.types.history import taken_ids
from effectful_agents.types.local_types import names_beside

__all__ = [
    "Kept",
    "agent_id",
    "check_fields",
    "check_readable",
    "decoded_field",
    "encoded_fields",
    "is_continued",
    "known_again",
    "merged",
    "take_fields",
    "without_system",
]


@dataclasses.dataclass(frozen=True)
class Kept:
    """What an agent in this process has of what is kept of it, as it was when the two were last compared.

    Attributes:
        id: The identifier under which it is kept.
        key: The agent in the database; 0 where it was not there.
        version: Its version there; None where what others have saved was not taken over yet.
        messages: The messages, which are the very objects that the agent's history has.
        numbers: Their numbers in the database.
        fields: The fields of the object, as JSON text.
        stored: The fields in the database.
    """

    id: str
    key: int
    version: int | None
    messages: Sequence[Message]
    numbers: list[int]
    fields: Mapping[str, str]
    stored: Mapping[str, str]


def agent_id(agent: Agent) -> str:
    """The identifier of an agent that has one.

    Raises:
        StateError: It is no text.
    """
    id: Any = agent.__agent_id__
    if isinstance(id, str) and id:
        return id
    raise StateError(
        f"the `__agent_id__` of a `{type(agent).__name__}` is {id!r}; it is a text, the same in every process.",
        agent_id=str(id),
    )


# --- fields -----------------------------------------------------------------------------------------------------------

_PERSIST = "persist"  # `dataclasses.field(metadata={"persist": False})`


@functools.lru_cache(maxsize=256)
def _declared(cls: type) -> Mapping[str, Any]:
    """The fields of a class that are kept, with their types.

    An agent in a field has an identifier of its own, or is not kept at all.
    """
    if not dataclasses.is_dataclass(cls):
        return {}
    hints = typing.get_type_hints(cls, localns=names_beside(cls) or None, include_extras=True)
    return {
        field.name: hints.get(field.name, field.type)
        for field in dataclasses.fields(cls)
        if field.name != "__agent_id__"
        and field.metadata.get(_PERSIST, True)
        and not _is_agent(hints.get(field.name, field.type))
    }


def _is_agent(tp: Any) -> bool:
    return (isinstance(tp, type) and issubclass(tp, Agent)) or any(map(_is_agent, typing.get_args(tp)))


def check_fields(agent: Agent) -> None:
    """Make sure, before anything is asked, that the fields can be written and read again.

    Raises:
        StateError: The type of a field has no form as JSON.
    """
    id, cls = agent_id(agent), type(agent)
    try:
        declared = _declared(cls)
    except NameError as error:
        raise StateError(
            f"the fields of `{cls.__name__}` cannot be kept: an annotation names `{error.name}`, which is not defined "
            "in its module.",
            agent_id=id,
        ) from error
    for name, tp in declared.items():
        try:
            type_adapter(tp).check()
        except EncodingError as error:
            raise _not_kept(cls, id, name, tp, error) from error


def encoded_fields(agent: Agent) -> dict[str, str]:
    """The fields as JSON text, by their names; those that have no value are left out.

    Raises:
        StateError: A value cannot be written.
    """
    texts = {name: encoded_field(agent, name) for name in _declared(type(agent))}
    return {name: text for name, text in texts.items() if text is not None}


def encoded_field(agent: Agent, name: str) -> str | None:
    """A field as JSON text; None where it has no value, or an agent.

    Raises:
        StateError: Its value cannot be written.
    """
    tp = _declared(type(agent))[name]
    try:
        value = getattr(agent, name)
    except AttributeError:
        return None
    if isinstance(value, Agent):
        return None
    try:
        with written_down(value):
            return text_of(encode(value, tp))
    except EncodingError as error:
        raise _not_kept(type(agent), agent_id(agent), name, tp, error) from error


def check_readable(agent: Agent, name: str, text: str) -> None:
    """Make sure that a field which is about to be saved can be read again.

    Raises:
        StateError: It could not.
    """
    tp = _declared(type(agent))[name]
    try:
        decode(text, tp, strict=True)
    except (ValueError, EncodingError) as error:
        raise _not_kept(type(agent), agent_id(agent), name, tp, error) from error


def _not_kept(cls: type, id: str, name: str, tp: Any, error: Exception) -> StateError:
    return StateError(
        f"the field `{name}` of `{cls.__name__}` (the agent `{id}`), a `{type_name(tp)}`, cannot be kept: {error} Give "
        f"it a value and an annotation that can, or leave it out: `{name}: … = field(metadata={{'persist': False}})`.",
        agent_id=id,
        field=name,
    )


def decoded_field(agent: Agent, name: str, text: str) -> Any:
    """The value of a field that was kept.

    Raises:
        StateError: It is not what the annotation says.
    """
    tp, id, cls = _declared(type(agent))[name], agent_id(agent), type(agent).__name__
    try:
        return decode(text, tp, strict=True)
    except (ValueError, EncodingError) as error:
        raise StateError(
            f"the field `{name}` that is kept of the agent `{id}` is no `{type_name(tp)}`, as `{cls}` declares it: "
            f"{error}. Declare it as it was; or give the new field another name, the kept one then stays beside it; "
            f"or delete what is kept: `SQLitePersister(…).forget({id!r}, {name!r})`. Nothing was changed.",
            agent_id=id,
            field=name,
        ) from error


def take_fields(agent: Agent, kept: Kept | None, stored: Mapping[str, str]) -> dict[str, str]:
    """Set the fields that somebody else has saved since, and that were not changed here; all where nothing is known.

    Returns:
        Those that were set, as JSON text.

    Raises:
        StateError: One of them cannot be decoded; then none is set.
    """
    new = {
        name: decoded_field(agent, name, text)
        for name, text in stored.items()
        if name in _declared(type(agent))
        and (kept is None or (text != kept.stored.get(name) and not _is_changed(agent, kept, name)))
    }
    for name, value in new.items():
        _set_field(agent, name, value)
    texts = {name: encoded_field(agent, name) for name in new}
    return {name: text for name, text in texts.items() if text is not None}


def _is_changed(agent: Agent, kept: Kept, name: str) -> bool:
    try:
        return encoded_field(agent, name) != kept.fields.get(name)
    except StateError:
        return True  # to something that cannot be written


def _set_field(agent: Agent, name: str, value: Any) -> None:
    cls: Any = type(agent)
    if cls.__dataclass_params__.frozen:
        object.__setattr__(agent, name, value)
    else:
        setattr(agent, name, value)


# --- conversations ----------------------------------------------------------------------------------------------------


def known_again(kept: Kept | None, rows: Mapping[int, str], path: str) -> list[Message]:
    """The messages that were read; those that are known already are the same objects as before.

    Raises:
        StorageError: One of them is no JSON, or no message: the file, which is `path`, is damaged, or somebody else
            has written into it.
    """
    known = dict(zip(kept.numbers, kept.messages, strict=True)) if kept else {}
    return [known[number] if number in known else _message(text, path) for number, text in rows.items()]


_ROLES = frozenset(typing.get_args(Role.__value__))


def _message(text: str, path: str) -> Message:
    try:
        message = json.loads(text)
    except ValueError as error:
        raise StorageError(f"a message in the database `{path}` is no JSON: {error}.", path=path) from error
    if not isinstance(message, dict) or message.get("role") not in _ROLES:
        raise StorageError(f"what stands for a message in the database `{path}` is none: {text}", path=path)
    return cast(Message, message)


def without_system(history: Sequence[Message]) -> list[Message]:
    """A conversation without its system message, which is not kept: the present one is written at its head."""
    return list(history[1:] if history and history[0]["role"] == "system" else history)


def is_continued(kept: Kept, mine: Sequence[Message]) -> bool:
    """Whether messages have been added to those that were kept, and nothing else has happened."""
    return len(mine) >= len(kept.messages) and all(map(operator.is_, kept.messages, mine))


def merged(kept: Kept | None, mine: Sequence[Message], theirs: Sequence[Message]) -> list[Message]:
    """The conversation of an agent that went on here, and was saved by somebody else meanwhile.

    What was added here comes behind what they have. Where messages that both knew were rewritten here (a compaction),
    what they added comes behind that.

    Args:
        kept: What both began with; None where nothing is known of it.
        mine: The conversation here.
        theirs: The conversation in the database.
    """
    if kept is None:
        # Messages made before there was a handler to keep them, or a copy of what is kept.
        same = 0
        while same < min(len(mine), len(theirs)) and mine[same] == theirs[same]:
            same += 1
        return [*theirs, *_with_free_ids(mine[same:], theirs)]
    if is_continued(kept, mine):
        return [*theirs, *_with_free_ids(mine[len(kept.messages) :], theirs)]
    known = set(map(id, kept.messages))
    return [*mine, *_with_free_ids([message for message in theirs if id(message) not in known], mine)]


def _with_free_ids(added: Sequence[Message], before: Sequence[Message]) -> Iterable[Message]:
    return with_free_ids(added, taken_ids(before)) if added else ()
