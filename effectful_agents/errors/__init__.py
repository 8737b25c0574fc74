"""Every error of the package, in one tree that answers "who can act on this?".

    AgentsError                    the root: `retryable`, `retry_after`
      ConfigurationError           the developer: something is missing, or two things contradict each other
        OptionError                an option has a value that it cannot have
        DefinitionError            a Skill, Tool or Agent is not defined rightly
        MissingHandlerError        an operation was performed that no installed handler gives a meaning
        MissingDependencyError     an optional package is not installed
        ModelAccessError           the model, or the key for it, is not known where it was asked
        ModelForbidden             a model would have been asked in a test that forbids it
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
      PeerError                    the operator: a server or agent of somebody else failed or cannot be reached: `peer`
      Denied                       the operator: a policy ended the run
      StepDenied                   the model: a policy, or a person, did not allow one step
      GovernanceRefused            the operator: a rule refused what was said, asked or drafted
      UncertainEffect              the operator: a crash left open whether an effect has happened
      ReplayDivergence             the operator: the program no longer asks what the journal recorded
      JournalError                 the operator: a journal cannot be written, read, or understood
        RunInUse                   the program: another block, here or in another process, has the run
        LeaseLost                  the program: another process has taken the run from this one
      TokenError                   whoever redeems a token: nothing was done with it
        TokenTampered              it was changed, cut, or made with another key
        TokenScopeMismatch         it is for somebody else
        TokenExpired               its time is over
        TokenUsed                  its question has been answered
        TokenUnknown               the ledger has no question for it
        QuestionChanged            the run asks something else by now
      AnswerError                  whoever answers a question: what they said does not fit it
      StorageError                 the operator: a file in which something is kept cannot be read or written
      CassetteError                the author of the test: recorded replies cannot be read or written
        UnrecordedRequest          the author of the test: nothing is recorded for a request
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

from effectful_agents.errors.approvals import (
    AnswerError,
    QuestionChanged,
    TokenError,
    TokenExpired,
    TokenScopeMismatch,
    TokenTampered,
    TokenUnknown,
    TokenUsed,
)
from effectful_agents.errors.base import AgentsError, retryable_for_status
from effectful_agents.errors.cassettes import CassetteError, UnrecordedRequest
from effectful_agents.errors.configuration import (
    ConfigurationError,
    DefinitionError,
    EncodingError,
    HistoryError,
    MissingDependencyError,
    MissingHandlerError,
    ModelAccessError,
    ModelForbidden,
    OptionError,
    PromptError,
    SeamVersionError,
    StateError,
    UnknownPromptError,
)
from effectful_agents.errors.durability import (
    JournalError,
    LeaseLost,
    ReplayDivergence,
    RunInUse,
    StorageError,
    UncertainEffect,
)
from effectful_agents.errors.provider import (
    ContextLengthError,
    NetworkError,
    ProviderError,
    RefusalError,
    RequestTimeoutError,
)
from effectful_agents.errors.replies import (
    DecodingError,
    ResultDecodingError,
    ToolCallDecodingError,
    ToolCallExecutionError,
)
from effectful_agents.errors.running import (
    CodeStopped,
    Denied,
    GovernanceRefused,
    LimitExceeded,
    PeerError,
    StepDenied,
    TypeCheckerError,
)
from effectful_agents.errors.signals import Cancelled, Signal, Suspended
from effectful_agents.tracebacks import describe_exception

__all__ = [
    "AgentsError",
    "AnswerError",
    "Cancelled",
    "CassetteError",
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
    "ModelForbidden",
    "NetworkError",
    "OptionError",
    "PeerError",
    "PromptError",
    "ProviderError",
    "QuestionChanged",
    "RefusalError",
    "ReplayDivergence",
    "RequestTimeoutError",
    "ResultDecodingError",
    "RunInUse",
    "SeamVersionError",
    "Signal",
    "StateError",
    "StepDenied",
    "StorageError",
    "Suspended",
    "TokenError",
    "TokenExpired",
    "TokenScopeMismatch",
    "TokenTampered",
    "TokenUnknown",
    "TokenUsed",
    "ToolCallDecodingError",
    "ToolCallExecutionError",
    "TypeCheckerError",
    "UncertainEffect",
    "UnknownPromptError",
    "UnrecordedRequest",
    "describe_exception",
    "retryable_for_status",
]

# Tracebacks tell where a class is imported from, not in which file of this package it stands.
for _name in __all__:
    if isinstance(globals()[_name], type):
        globals()[_name].__module__ = __name__
