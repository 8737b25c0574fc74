"""What the program has to mend that installs the stack."""

from __future__ import annotations

import difflib
from typing import TYPE_CHECKING

from effectful_agents.errors.base import AgentsError

if TYPE_CHECKING:
    from collections.abc import Iterable

__all__ = [
    "ConfigurationError",
    "DefinitionError",
    "EncodingError",
    "HistoryError",
    "MissingDependencyError",
    "MissingHandlerError",
    "ModelAccessError",
    "ModelForbidden",
    "OptionError",
    "PromptError",
    "SeamVersionError",
    "StateError",
    "UnknownPromptError",
]


class ConfigurationError(AgentsError):
    """Something is missing, or two things contradict each other; repeating does not help."""

    ends_call = True


class OptionError(ConfigurationError, ValueError):
    """An option has a value that it cannot have, or does not go together with another one."""


class DefinitionError(ConfigurationError, TypeError):
    """A Skill, Tool or Agent is defined in a way that could never be called.

    Raised while the decorator runs, or when the types of the definition are first needed.
    """


class MissingHandlerError(ConfigurationError):
    """An operation was performed that no installed handler gives a meaning.

    Attributes:
        operation: Name of the operation.
    """

    def __init__(self, operation: str, advice: str) -> None:
        super().__init__(f"nothing handles `{operation}` here. {advice}")
        self.operation = operation


class MissingDependencyError(ConfigurationError, ImportError):
    """An optional package is not installed; the message has the command that installs it."""


class ModelAccessError(ConfigurationError):
    """A model cannot be asked: its key is missing or refused, or there is no such model or address.

    Repeating does not help; another model may.
    """


class ModelForbidden(ConfigurationError):
    """A model would have been asked where that is forbidden, as in a test.

    Not by a policy of the program: see `effectful_agents.operations.loop.completion`.
    """


class EncodingError(ConfigurationError, TypeError):
    """A type has no JSON schema, or a value cannot be written as its type says."""


class HistoryError(ConfigurationError):
    """A message was added where no provider would accept it."""


class StateError(ConfigurationError):
    """What is kept of an agent does not fit its class, or what the class declares cannot be kept.

    What is kept stays as it is.

    Attributes:
        agent_id: The agent, by its `__agent_id__`.
        field: The field, where it is about one.
    """

    def __init__(self, message: str, *, agent_id: str, field: str | None = None) -> None:
        super().__init__(message)
        self.agent_id = agent_id
        self.field = field


class SeamVersionError(ConfigurationError):
    """The two ends of a seam speak no version in common."""


class PromptError(ConfigurationError):
    """A prompt that is kept as data cannot be read, or does not fit the skill that takes it.

    The message names the prompt, or the file and the place in it.
    """


class UnknownPromptError(PromptError, LookupError):
    """Nothing that was asked has a prompt of this name.

    Attributes:
        name: The name.
        available: The names that there are, sorted.
        skill: The skill that asks for it; empty where none does.
    """

    def __init__(self, name: str, available: Iterable[str] = (), *, skill: str = "") -> None:
        self.name = name
        self.available = tuple(sorted(set(available)))
        self.skill = skill
        asking = f", which the skill `{skill}` asks for" if skill else ""
        super().__init__(f"there is no prompt `{name}`{asking}. {self._advice()}")

    def _advice(self) -> str:
        if not self.available:
            return "No prompts are installed: `with handler(PromptRegistry(FilePrompts(…))):`."
        near = difflib.get_close_matches(self.name, self.available)
        meant = f"Is {' or '.join(f'`{one}`' for one in near)} meant? " if near else ""
        return f"{meant}There are: {', '.join(f'`{one}`' for one in self.available)}."
