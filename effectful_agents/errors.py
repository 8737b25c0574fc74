"""Every error of the package, in one tree that answers "who can act on this?".

    AgentsError                    the root: `retryable`, `retry_after`
      ConfigurationError           the developer: something is missing, or two things contradict each other
        OptionError                an option has a value that it cannot have
        DefinitionError            a Skill, Tool or Agent is not defined rightly
        MissingHandlerError        an operation was performed that no installed handler gives a meaning
        MissingDependencyError     an optional package is not installed
        ModelAccessError           the model, or the key for it, is not known where it was asked
        EncodingError              a type or value has no form on the wire
        HistoryError               a message stands where no provider would accept it
        StateError                 what is kept of an agent does not fit its class
        SeamVersionError           the two ends of a seam have no version in common
        PromptError                a prompt cannot be read, or does not fit the skill that takes it
          UnknownPromptError       nothing that was asked has a prompt of this name
      DecodingError                the model: its reply does not fit; carries the text to send back
        ToolCallDecodingError      a tool call names no offered tool, or its arguments do not fit
        ResultDecodingError        the answer does not fit the return type
      ToolCallExecutionError       the model, or the author of the tool: the tool itself raised
      TypeCheckerError             the operator: a type checker could not run
      CodeStopped                  the model: code that it wrote reached one of its limits
      LimitExceeded                the operator: a limit was reached
      Denied                       the operator: a policy ended the run
      GovernanceRefused            the operator: a rule refused what was said, asked or drafted
      UncertainEffect              the operator: a crash left open whether an effect has happened
      ReplayDivergence             the operator: the program no longer asks what the journal recorded
      JournalError                 the operator: a journal cannot be written, read, or understood
        RunInUse                   the program: another process has the run
        LeaseLost                  the program: another process has taken the run from this one
      StorageError                 the operator: a file in which something is kept cannot be read or written
      ProviderError                the provider: `status`, `provider`
        RequestTimeoutError        no answer within the time allowed
        NetworkError               the way to the provider failed
        RefusalError               the model declined to answer
        ContextLengthError         the prompt is longer than the model can read

    Signal (a BaseException)       not failures: no `except Exception` may eat them
      Suspended                    the run waits for somebody's decision
      Cancelled                    the call was ended on purpose

Errors carry fields, not only text. `retryable` says whether the same request may succeed when it is simply made again.
"""

from __future__ import annotations

import abc
import difflib
from typing import TYPE_CHECKING, Any, override

from effectful_agents.tracebacks import describe_exception, summary

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from effectful_agents.messages import AssistantMessage, Message, ToolCall, ToolMessage, UserMessage

__all__ = [
    "AgentsError",
    "Cancelled",
    "CodeStopped",
    "ConfigurationError",
    "ContextLengthError",
    "DecodingError",
    "DefinitionError",
    "Denied",
    "EncodingError",
    "GovernanceRefused",
    "HistoryError",
    "JournalError",
    "LeaseLost",
    "LimitExceeded",
    "MissingDependencyError",
    "MissingHandlerError",
    "ModelAccessError",
    "NetworkError",
    "OptionError",
    "PromptError",
    "ProviderError",
    "RefusalError",
    "ReplayDivergence",
    "RequestTimeoutError",
    "ResultDecodingError",
    "RunInUse",
    "SeamVersionError",
    "Signal",
    "StateError",
    "StorageError",
    "Suspended",
    "ToolCallDecodingError",
    "ToolCallExecutionError",
    "TypeCheckerError",
    "UncertainEffect",
    "UnknownPromptError",
    "describe_exception",
    "retryable_for_status",
]


def retryable_for_status(status: int | None) -> bool:
    """Whether a request that ended with this HTTP status may succeed when it is made again.

    Args:
        status: The HTTP status, or None when no answer came at all.

    Returns:
        True for None (the way failed, not the request), 429 and 5xx; False for every other status.

    >>> [retryable_for_status(status) for status in (None, 429, 503, 400, 404)]
    [True, True, True, False, False]
    """
    return status is None or status == 429 or 500 <= status < 600


class AgentsError(Exception):
    """Anything that this package raises on purpose.

    Args:
        message: What was seen, and what would have worked.
        retryable: Whether the same request may succeed when repeated; None takes the default of the class.
        retry_after: Seconds to wait before a repetition, where somebody said so.

    Attributes:
        ends_call: Whether it ends the call of a skill when a tool raises it. Any other error of a tool is told to the
            model; about these it could do nothing.
    """

    ends_call: bool = False
    retryable: bool = False
    retry_after: float | None = None

    def __init__(self, message: str = "", *, retryable: bool | None = None, retry_after: float | None = None) -> None:
        super().__init__(message)
        if retryable is not None:
            self.retryable = retryable
        self.retry_after = retry_after

    def __reduce__(self) -> tuple[Any, ...]:
        # Exception pickles by calling the class with `args`; ours take other arguments, so the state is restored whole.
        return (_restore, (type(self), self.args, self.__dict__))


def _restore(cls: type[AgentsError], args: tuple[Any, ...], state: dict[str, Any]) -> AgentsError:
    error = cls.__new__(cls, *args)
    error.args = args
    error.__dict__.update(state)
    return error


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


class DecodingError[E: BaseException](AgentsError, abc.ABC):
    """A reply of the model that cannot be turned into what was asked for.

    Attributes:
        original_error: What went wrong while decoding.
    """

    original_error: E
    # The model samples: asked again, it often gets it right.
    retryable = True

    @abc.abstractmethod
    def to_feedback_message(self, *, include_traceback: bool = True) -> Message:
        """The message that tells the model what was wrong with its reply."""


class ToolCallDecodingError[E: BaseException](DecodingError[E]):
    """A tool call that names no offered tool, or whose arguments do not fit.

    Attributes:
        original_error: What went wrong.
        raw_message: The assistant message that holds the call.
        raw_tool_call: The call itself.
        others: Errors of the other calls in the same message, when none of its calls could be decoded.
    """

    def __init__(
        self,
        original_error: E,
        raw_message: AssistantMessage,
        raw_tool_call: ToolCall,
        others: Sequence[ToolCallDecodingError] = (),
    ) -> None:
        name = raw_tool_call["function"]["name"]
        super().__init__(f"the model's call of `{name}` cannot be decoded: {summary(original_error)}")
        self.original_error = original_error
        self.raw_message = raw_message
        self.raw_tool_call = raw_tool_call
        self.others = tuple(others)

    @override
    def to_feedback_message(self, *, include_traceback: bool = True) -> ToolMessage:
        """The result of the call that could not be made: what was wrong with it."""
        problem = _misfit(self.original_error)
        return _tool_message(self.raw_tool_call["id"], f"This call was not made, it could not be decoded.\n{problem}")


class ResultDecodingError[E: BaseException](DecodingError[E]):
    """An answer that does not fit the declared return type.

    Attributes:
        original_error: What went wrong.
        raw_message: The assistant message that holds the answer.
    """

    def __init__(self, original_error: E, raw_message: AssistantMessage) -> None:
        super().__init__(f"the model's answer cannot be decoded: {summary(original_error)}")
        self.original_error = original_error
        self.raw_message = raw_message

    @override
    def to_feedback_message(self, *, include_traceback: bool = True) -> UserMessage:
        """A user message that says it is still the same call, and what to mend."""
        problem = _misfit(self.original_error)
        return {"role": "user", "content": f"Could not be decoded. Mend it, same call:\n{problem}"}


class ToolCallExecutionError[E: BaseException](AgentsError):
    """A tool was called rightly and raised.

    Attributes:
        original_error: What the tool raised.
        raw_tool_call: The decoded call (an `effectful_agents.operations.loop.DecodedToolCall`).
    """

    def __init__(self, original_error: E, raw_tool_call: Any) -> None:
        super().__init__(f"the tool `{raw_tool_call.name}` raised {summary(original_error)}")
        self.original_error = original_error
        self.raw_tool_call = raw_tool_call

    def to_feedback_message(self, *, include_traceback: bool = True) -> ToolMessage:
        """The result of the failed call: the exception, and where in the user's code it arose."""
        problem = describe_exception(self.original_error, include_traceback=include_traceback)
        return _tool_message(self.raw_tool_call.id, f"The tool raised an exception.\n{problem}")


class TypeCheckerError(AgentsError, RuntimeError):
    """A type checker could not run, or broke off; it says nothing about the code that it was given."""


class CodeStopped(AgentsError):
    """Code that a model wrote reached one of the limits that it was run under; whatever ran it goes on.

    Attributes:
        limit: Name of the limit, as it is set.
        value: The value at which it was reached.
    """

    def __init__(self, limit: str, value: float, advice: str = "") -> None:
        super().__init__(f"the limit `{limit}` of {value:,} was reached{'. ' if advice else ''}{advice}")
        self.limit = limit
        self.value = value


class LimitExceeded(AgentsError):
    """A limit was reached.

    Attributes:
        limit: Name of the limit, as it is set.
        value: The value at which it was reached.
        messages: The conversation so far, where the limit stopped a call.
    """

    def __init__(self, limit: str, value: float, *, messages: Sequence[Message] = (), advice: str = "") -> None:
        super().__init__(f"the limit `{limit}` of {value} was reached{'. ' if advice else ''}{advice}")
        self.limit = limit
        self.value = value
        self.messages = tuple(messages)


class Denied(AgentsError):
    """A policy ended the run.

    Attributes:
        decision: The decision that was taken, or its reason as text.
    """

    ends_call = True

    def __init__(self, decision: Any) -> None:
        message = decision if isinstance(decision, str) else getattr(decision, "message", "")
        super().__init__(message or "a policy ended the run")
        self.decision = decision


class GovernanceRefused(AgentsError):
    """A rule refused what a user said, a tool call asked, or a draft contained.

    Attributes:
        rule: Name of the rule.
    """

    def __init__(self, rule: str, message: str = "") -> None:
        super().__init__(message or f"the rule `{rule}` refused it")
        self.rule = rule


class UncertainEffect(AgentsError):
    """A step was attempted before a crash and its outcome is not known.

    Attributes:
        step_id: The step, as the journal names it.
        detail: What is known about it.
    """

    ends_call = True

    def __init__(self, step_id: str, *, detail: str = "") -> None:
        super().__init__(f"the step `{step_id}` was attempted, and whether it happened is not known. {detail}".rstrip())
        self.step_id = step_id
        self.detail = detail


class ReplayDivergence(AgentsError):
    """A resumed program asked for something else than its journal recorded at that step."""

    ends_call = True


class JournalError(AgentsError):
    """The journal of a run cannot be written, read, or understood."""

    ends_call = True


class RunInUse(JournalError):
    """A run was asked for that somebody else has."""

    retryable = True


class LeaseLost(JournalError):
    """A run was taken over by another process, since this one had not been heard of for too long."""


class StorageError(AgentsError):
    """A file in which something is kept cannot be opened, read or written, or is not what it should be.

    Attributes:
        path: The file.
    """

    ends_call = True

    def __init__(self, message: str, *, path: str, retryable: bool | None = None) -> None:
        super().__init__(message, retryable=retryable)
        self.path = path


class ProviderError(AgentsError):
    """A model service answered with an error.

    Attributes:
        status: The HTTP status, or None where no answer came.
        provider: Name of the service.
    """

    def __init__(
        self,
        message: str = "",
        *,
        status: int | None = None,
        provider: str = "",
        retryable: bool | None = None,
        retry_after: float | None = None,
    ) -> None:
        if retryable is None:
            retryable = self._default_retryable(status)
        super().__init__(message, retryable=retryable, retry_after=retry_after)
        self.status = status
        self.provider = provider

    @classmethod
    def _default_retryable(cls, status: int | None) -> bool:
        return retryable_for_status(status)


class RequestTimeoutError(ProviderError):
    """No answer came within the time allowed."""


class NetworkError(ProviderError):
    """The way to the provider failed, not the provider."""


class RefusalError(ProviderError):
    """The model, or the filter of its provider, declined to answer; asking the same again does not help."""

    @classmethod
    @override
    def _default_retryable(cls, status: int | None) -> bool:
        return False


class ContextLengthError(ProviderError):
    """The prompt is longer than the model can read.

    Attributes:
        prompt_tokens: Tokens of the prompt, where they were counted.
        limit: Tokens that the model can read, prompt and reply together.
    """

    def __init__(
        self, message: str = "", *, prompt_tokens: int | None = None, limit: int | None = None, provider: str = ""
    ) -> None:
        super().__init__(message, provider=provider)
        self.prompt_tokens = prompt_tokens
        self.limit = limit

    @classmethod
    @override
    def _default_retryable(cls, status: int | None) -> bool:
        return False


class Signal(BaseException):
    """Something that ends a call and is not a failure.

    It derives from BaseException so that no `except Exception` in a tool or in user code can eat it. Should a bare
    `except` do so, it is raised again at the next operation.

    Attributes:
        ends: The part of the program (a `runtime.StopScope`) that it ends; None: every call that it passes through.
    """

    ends: Any = None


class Suspended(Signal):
    """The run waits for somebody's decision and can be resumed."""


class Cancelled(Signal):
    """The call was ended on purpose, by the program that made it: with `CallControl.cancel`, say.

    A cancellation that comes from the event loop, or from whoever pressed Ctrl-C, keeps its own type.
    """


def _misfit(error: BaseException) -> str:
    # That what does not fit is a ValueError says nothing that the text does not.
    return describe_exception(error, include_traceback=False).removeprefix("ValueError: ")


def _tool_message(tool_call_id: str, content: str) -> ToolMessage:
    return {"role": "tool", "tool_call_id": tool_call_id, "content": content}
