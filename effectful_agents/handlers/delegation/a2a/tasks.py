"""Cards, tasks and artifacts of other agents, as plain data. What they say is theirs, and not believed further."""

from __future__ import annotations

import base64
import dataclasses
import enum
import json
from collections.abc import Iterable
from typing import Any

from a2a import types as wire
from google.protobuf import json_format

from effectful_agents.messages import ContentPart
from effectful_agents.messages.text import printable_lines, printable_text, safe_text

__all__ = ["AgentCard", "Artifact", "OfferedSkill", "Task", "TaskState", "card_of", "task_of", "text_of"]

_LONGEST_NAME, _LONGEST_TEXT, _MOST_SKILLS = 200, 4_000, 100


class TaskState(enum.StrEnum):
    """What has become of a task. Three kinds of states: some are final, some wait for somebody, and the rest go on."""

    SUBMITTED = "submitted"
    WORKING = "working"
    COMPLETED = "completed"
    FAILED = "failed"
    CANCELED = "canceled"
    REJECTED = "rejected"
    INPUT_REQUIRED = "input_required"
    AUTH_REQUIRED = "auth_required"

    @property
    def is_final(self) -> bool:
        """Whether the task takes no more messages.

        >>> [state.value for state in TaskState if state.is_final]
        ['completed', 'failed', 'canceled', 'rejected']
        """
        return self in (TaskState.COMPLETED, TaskState.FAILED, TaskState.CANCELED, TaskState.REJECTED)

    @property
    def waits(self) -> bool:
        """Whether the task waits for somebody here.

        >>> [state.value for state in TaskState if state.waits]
        ['input_required', 'auth_required']
        """
        return self in (TaskState.INPUT_REQUIRED, TaskState.AUTH_REQUIRED)


@dataclasses.dataclass(frozen=True, slots=True)
class OfferedSkill:
    """Something that an agent says it can do.

    Attributes:
        name: Its name.
        description: What the agent says of it.
    """

    name: str
    description: str = ""


@dataclasses.dataclass(frozen=True, slots=True)
class AgentCard:
    """What an agent publishes about itself. It says what it can do, and nothing of what it could break.

    Attributes:
        name: Its name.
        description: What it is for.
        version: Its version.
        skills: What it can do.
        url: Where it is asked.
        streams: Whether it can tell of a task while it goes on.
    """

    name: str
    description: str = ""
    version: str = ""
    skills: tuple[OfferedSkill, ...] = ()
    url: str = ""
    streams: bool = False


@dataclasses.dataclass(frozen=True, slots=True)
class Artifact:
    """Something that a task has made; what is only said about it is a message.

    Attributes:
        artifact_id: Identifies it in its task.
        name: Its name.
        description: What the agent says of it.
        parts: What is in it: texts, pictures, documents. Data is text in JSON.
    """

    artifact_id: str
    name: str = ""
    description: str = ""
    parts: tuple[ContentPart, ...] = ()


@dataclasses.dataclass(frozen=True, slots=True)
class Task:
    """A piece of work at another agent.

    Attributes:
        task_id: The agent's name for it; empty for an answer that it gave at once, without a task.
        context_id: Our name for what it belongs to, by which it is found again.
        state: What has become of it.
        message: What the agent last said about it.
        artifacts: What it has made.
    """

    task_id: str
    context_id: str
    state: TaskState
    message: str = ""
    artifacts: tuple[Artifact, ...] = ()


_STATES = {
    wire.TaskState.TASK_STATE_SUBMITTED: TaskState.SUBMITTED,
    wire.TaskState.TASK_STATE_WORKING: TaskState.WORKING,
    wire.TaskState.TASK_STATE_COMPLETED: TaskState.COMPLETED,
    wire.TaskState.TASK_STATE_FAILED: TaskState.FAILED,
    wire.TaskState.TASK_STATE_CANCELED: TaskState.CANCELED,
    wire.TaskState.TASK_STATE_REJECTED: TaskState.REJECTED,
    wire.TaskState.TASK_STATE_INPUT_REQUIRED: TaskState.INPUT_REQUIRED,
    wire.TaskState.TASK_STATE_AUTH_REQUIRED: TaskState.AUTH_REQUIRED,
}


def card_of(card: Any, url: str) -> AgentCard:
    """A card as plain data, of bounded length.

    Args:
        card: As it is on the wire.
        url: Where the agent is asked.
    """
    skills = tuple(
        OfferedSkill(_short(skill.name or skill.id), _long(skill.description)) for skill in card.skills[:_MOST_SKILLS]
    )
    streams = bool(card.capabilities.streaming)
    return AgentCard(_short(card.name), _long(card.description), _short(card.version), skills, url, streams)


def task_of(task: Any) -> Task:
    """A task as plain data. A state that is not known counts as one that goes on."""
    state = _STATES.get(task.status.state, TaskState.WORKING)
    artifacts = tuple(
        Artifact(one.artifact_id, _short(one.name), _long(one.description), tuple(parts_of(one.parts)))
        for one in task.artifacts
    )
    said = text_of(parts_of(task.status.message.parts)) if task.status.HasField("message") else ""
    return Task(task.id, task.context_id, state, _long(said), artifacts)


def answer_of(message: Any) -> Task:
    """What an agent answered at once, as a task that is completed."""
    artifact = Artifact(message.message_id, parts=tuple(parts_of(message.parts)))
    return Task("", message.context_id, TaskState.COMPLETED, artifacts=(artifact,))


def parts_of(parts: Iterable[Any]) -> list[ContentPart]:
    """Parts of a message or an artifact as ours. What stands at an address is not fetched."""
    return [_part(part) for part in parts]


def _part(part: Any) -> ContentPart:
    kind = part.WhichOneof("content")
    if kind == "raw":
        media_type = part.media_type or "application/octet-stream"
        data = f"data:{media_type};base64,{base64.b64encode(part.raw).decode()}"
        if media_type.startswith("image/"):
            return {"type": "image_url", "image_url": {"url": data}}
        return {"type": "file", "file": {"file_data": data, "filename": _short(part.filename) or "file"}}
    if kind == "data":
        return {"type": "text", "text": json.dumps(json_format.MessageToDict(part.data), ensure_ascii=False)}
    return {"type": "text", "text": safe_text(part.url if kind == "url" else part.text)}


def text_of(parts: Iterable[ContentPart]) -> str:
    """The texts of parts."""
    return "\n".join(part["text"] for part in parts if part["type"] == "text")


def _short(text: str) -> str:
    return printable_text(text)[:_LONGEST_NAME]


def _long(text: str) -> str:
    return printable_lines(text)[:_LONGEST_TEXT]
