"""The handlers of the standard stack, in their order and with the reason for each place."""

from __future__ import annotations

import dataclasses
import difflib
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from types import TracebackType
from typing import Any, Literal, Self

import tenacity

from effectful_agents.errors import OptionError
from effectful_agents.handlers.durability import HistoryBuilder, Journal, SQLitePersister, TenacityRetryer
from effectful_agents.handlers.execution import BuiltinExecutor, RestrictedPythonExecutor
from effectful_agents.handlers.legibility import (
    DeferredTools,
    FrameworkDocumenter,
    ImplicitToolExtractor,
    LexicalToolExtractor,
    ToolOutputCap,
)
from effectful_agents.handlers.loop import AgentLoop
from effectful_agents.handlers.observability import SystemPromptDumper
from effectful_agents.handlers.provision import Fallback, Model, RateLimit
from effectful_agents.handlers.provision.litellm import LiteLLMConfigurer
from effectful_agents.handlers.provision.local import LocalModel
from effectful_agents.handlers.routing import ToolRouter
from effectful_agents.handlers.synthesis import (
    ExpressionToolCaller,
    FinalBodySynthesizer,
    MixedToolCaller,
    StatefulReplSynthesizer,
)
from effectful_agents.handlers.synthesis.body import SUBMISSION
from effectful_agents.handlers.validation import PydanticSkillArgValidator, TyTypeChecker
from effectful_agents.handlers.validation.mypy import MypyTypeChecker
from effectful_agents.messages import Request, ToolChoice
from effectful_agents.operations.records import Checkpointer
from effectful_agents.operations.session import exec_code
from effectful_agents.runtime import Interpretation, Layers, handler

__all__ = ["Harness", "Settings"]


@dataclasses.dataclass(frozen=True, kw_only=True)
class Settings:
    """The options of `effectful_agents.harness`, which explains them."""

    model: str | None
    num_retries: int
    langfuse: bool
    render: bool
    dump_system_prompt: str | os.PathLike[str] | None
    persist_db: str | os.PathLike[str] | None
    journal: str | os.PathLike[str] | Checkpointer | None
    run_id: str | None
    eval_provider: Literal["builtin", "restricted", "none"] | None
    type_checker: Literal["mypy", "ty", "none"] | None
    tool_calling: Literal["auto", "code", "json"] | None
    tool_collection: Literal["none", "explicit", "auto"]
    defer_tools: bool | int
    tool_router: ToolRouter | None
    check_contracts: bool
    system_prompt: Literal["full", "brief"] | None
    turns: int
    strict_tools: bool
    strict_decoding: bool
    fallback: Sequence[str | Model | Interpretation]
    requests_per_minute: int | None
    tokens_per_minute: int | None
    provider_config: Mapping[str, Any]

    @property
    def is_local(self) -> bool:
        return self.model is not None and self.model.startswith("local/")

    @property
    def is_brief(self) -> bool:
        return self.system_prompt == "brief" or (self.system_prompt is None and self.is_local)

    @property
    def executor(self) -> Literal["builtin", "restricted", "none"]:
        """What runs code of the model; where it is told little, nothing does unless somebody asks for it."""
        return self.eval_provider or ("none" if self.is_brief or self.is_local else "builtin")

    @property
    def checker(self) -> Literal["mypy", "ty", "none"]:
        """What checks such code; nothing where there is none."""
        return self.type_checker or ("none" if self.executor == "none" else "ty")

    @property
    def calling(self) -> Literal["auto", "code", "json"]:
        """How tools are called."""
        return self.tool_calling or ("json" if self.executor == "none" else "auto")


def _standard_stack(settings: Settings) -> Iterator[Interpretation]:
    """The handlers, outermost first."""
    brief = settings.is_brief
    # The terminal rule of the call_* operations: everything else is inside it.
    yield AgentLoop(
        turns=settings.turns,
        system_prompt="brief" if brief else "full",
        strict_tools=settings.strict_tools,
        strict_decoding=settings.strict_decoding,
    )
    # Outside of whatever offers tools, and of what has some of them called otherwise: it defers what comes from further
    # inside, each in the form in which it would be called, and so with a schema for a catalogue to show.
    if settings.defer_tools is not False:
        threshold = None if settings.defer_tools is True else settings.defer_tools
        yield DeferredTools(threshold=threshold, always=_in_view(settings))
    # Right outside of what collects the tools: it has some of them, or all, called by writing Python.
    if settings.calling == "auto":
        yield MixedToolCaller()
    elif settings.calling == "code":
        yield ExpressionToolCaller()
    # Outside of all that adds tools, since it chooses among what they forward. Inside of these: it deals in the tools
    # themselves, and a search is to find no others.
    if settings.tool_router is not None:
        yield settings.tool_router
    # Next to the loop, or to these: what adds or changes tools on the way to a request comes further inside.
    json_only = settings.calling == "json"
    if settings.tool_collection == "explicit":
        yield LexicalToolExtractor(json_only)
    elif settings.tool_collection == "auto":
        yield ImplicitToolExtractor(json_only=json_only)
    # Outside of what names the model, each of which has its limit, and of the fallback, whose attempts count.
    if settings.requests_per_minute is not None or settings.tokens_per_minute is not None:
        yield RateLimit(requests_per_minute=settings.requests_per_minute, tokens_per_minute=settings.tokens_per_minute)
    # It is asked for the models that no handler further inside takes.
    model = None if settings.is_local else settings.model
    yield LiteLLMConfigurer(model, num_retries=settings.num_retries, **_of_requests(settings))
    # Inside LiteLLM's: it takes requests for local models, and those that name none where the stack is for one.
    yield LocalModel(settings.model if settings.is_local else None, **_local_options(settings))
    # Inside of LiteLLM's, which says what the first model is, and fills in the settings for each.
    if settings.fallback:
        yield Fallback(None, *settings.fallback)
    # Its section goes to the front of the prompt wherever it stands.
    if not brief:
        yield FrameworkDocumenter()
    # Inside the loop, and outside of what repeats a turn: it records the failed attempts, which the next one reads.
    yield HistoryBuilder()
    # Inside of what asks the model, and next to the history, whose messages it knows again: it stands outside of
    # whatever may change them on their way.
    if settings.render:
        yield _renderer()
    # Sees the finished message, and all of its sections, wherever it stands.
    if settings.dump_system_prompt is not None:
        yield SystemPromptDumper(settings.dump_system_prompt, settings.model)
    # What checks and runs code is asked by the two that follow, and by whoever decodes what a model wrote.
    yield from _of_code(settings)
    # Outside of the retrying: a wrong argument stays wrong. Inside of a session, which has the arguments as they are
    # checked.
    if settings.check_contracts:
        yield PydanticSkillArgValidator()
    # Near the inner end: it catches what anything further out could not make sense of.
    if settings.num_retries:
        yield TenacityRetryer(stop=tenacity.stop_after_attempt(settings.num_retries))
    # Inside of the retrying, which writes the messages about tools that raised: they may be long too.
    yield ToolOutputCap()
    # Inside of all these: it saves what a call has come to when all others are done with it. `HistoryBuilder` has then
    # written the messages back, and a call that anything here makes raise saves nothing.
    if settings.persist_db is not None:
        yield SQLitePersister(settings.persist_db)
    # Inside of these: a call that is answered from the journal of a run is not to open a session or a history, nor to
    # save anything. What it writes down is what a step has come to when all others have seen it, wherever it stands.
    if settings.journal is not None:
        yield Journal(settings.run_id, settings.journal)
    # Innermost of all: it sees what comes from the journal, and its times are those of everything further out.
    if settings.langfuse:
        yield _langfuse_tracer()


def _of_code(settings: Settings) -> Iterator[Interpretation]:
    """The handlers for code that the model writes; those that offer it tools for that only where something runs it."""
    if settings.checker != "none":
        yield TyTypeChecker() if settings.checker == "ty" else MypyTypeChecker()
    if settings.executor == "none":
        return
    yield BuiltinExecutor() if settings.executor == "builtin" else RestrictedPythonExecutor()
    # Outside of the retrying, so that they see whether what was submitted failed.
    yield StatefulReplSynthesizer()
    yield FinalBodySynthesizer()


def _renderer() -> Interpretation:
    from effectful_agents.handlers.observability.rich import RichTerminalRenderer  # noqa: PLC0415 - loads rich

    return RichTerminalRenderer()


def _langfuse_tracer() -> Interpretation:
    from effectful_agents.handlers.observability.langfuse import LangfuseTracer  # noqa: PLC0415 - optional

    return LangfuseTracer()


def _in_view(settings: Settings) -> tuple[str, ...]:
    """The tools that are not deferred: the one that every request has to name, and those for code.

    The latter are few, and whether an answer is written as code is not to depend on a search.
    """
    named = ToolChoice.from_wire(settings.provider_config.get("tool_choice")).name
    for_code = () if settings.executor == "none" else (exec_code.__name__, SUBMISSION)
    return for_code if named is None else (named, *for_code)


# What a local model is loaded and asked with, and no request says.
_OF_THE_MODEL = frozenset({"context", "threads", "repeat"})


def _of_requests(settings: Settings) -> dict[str, Any]:
    left_out = _OF_THE_MODEL if settings.is_local else frozenset()
    return {name: value for name, value in settings.provider_config.items() if name not in left_out}


def _local_options(settings: Settings) -> dict[str, Any]:
    # Those of requests too: it knows which settings there are, and names one that is misspelled.
    return dict(settings.provider_config) if settings.is_local else {}


class Harness(Layers):
    """The standard stack: an interpretation, a context manager and a decorator.

    Args:
        settings: The options.

    Raises:
        OptionError: An option has a value that it cannot have.
        MissingDependencyError: An option asks for a part whose library is not installed.
    """

    settings: Settings

    def __init__(self, settings: Settings) -> None:
        _check(settings)
        super().__init__(*_standard_stack(settings))
        self.settings = settings
        self._installer = handler(self)

    def __enter__(self) -> Self:
        self._installer.__enter__()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._installer.__exit__(kind, error, traceback)

    def __call__[**P, T](self, function: Callable[P, T]) -> Callable[P, T]:
        return self._installer(function)


_CHOICES: Mapping[str, tuple[str, ...]] = {
    "eval_provider": ("builtin", "restricted", "none"),
    "type_checker": ("mypy", "ty", "none"),
    "tool_calling": ("auto", "code", "json"),
    "tool_collection": ("none", "explicit", "auto"),
    "system_prompt": ("full", "brief"),
}

_OPTIONS = frozenset(field.name for field in dataclasses.fields(Settings)) - {"provider_config"}


def _check(settings: Settings) -> None:
    if settings.model is not None and not isinstance(settings.model, str):
        raise OptionError(f"`model` is {settings.model!r}; it is the name of a model.")
    for name, choices in _CHOICES.items():
        value = getattr(settings, name)
        if value is not None and value not in choices:
            raise OptionError(f"`{name}` is {value!r}; it can be {', '.join(map(repr, choices))}.")
    if not isinstance(settings.num_retries, int) or settings.num_retries < 0:
        raise OptionError(f"`num_retries` is {settings.num_retries!r}; it is a number of attempts, 0 for none.")
    if not isinstance(settings.defer_tools, int) or settings.defer_tools < 0:
        raise OptionError(
            f"`defer_tools` is {settings.defer_tools!r}; it is True, False, or a number of tokens, 0 for always."
        )
    if settings.tool_router is not None and not isinstance(settings.tool_router, ToolRouter):
        raise OptionError(f"`tool_router` is {settings.tool_router!r}; it is a `ToolRouter`, or None.")
    if isinstance(settings.fallback, str | Mapping) or not isinstance(settings.fallback, Sequence):
        raise OptionError(f"`fallback` is {settings.fallback!r}; it is a list of models.")
    if settings.model is not None and settings.model in settings.fallback:
        raise OptionError(f"`fallback` names `{settings.model}`, the model that it is for; leave it out there.")
    if settings.calling != "json" and settings.executor == "none":
        why = "is 'none'" if settings.eval_provider == "none" else "names none, which is 'none' for local models"
        raise OptionError(
            f"`tool_calling={settings.tool_calling!r}` has the model write Python, and nothing would run it: "
            f"`eval_provider` {why}. Use `tool_calling='json'`, or `eval_provider='restricted'`."
        )
    for name in settings.provider_config:
        meant = difflib.get_close_matches(name, sorted(_OPTIONS), 1, 0.8)
        if meant and name not in Request.__annotations__:
            raise OptionError(f"`{name}` is no option; was `{meant[0]}` meant? Anything else is a setting of requests.")
    if settings.run_id is not None and settings.journal is None:
        raise OptionError(f"`run_id={settings.run_id!r}` names a run, and no `journal` keeps it. Say where it is kept.")
