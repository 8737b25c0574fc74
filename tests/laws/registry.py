"""Every handler of the package: how a sample of it is made, and how each goes together with each other.

A new handler gets a sample here and, where it does not commute with another, an entry with the reason. What has no
entry claims to commute. `uv run python -m tests.laws.table` then writes the page of the documentation anew.
"""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import importlib
import io
import pkgutil
import types
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import tenacity
from langfuse import Langfuse
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import TracerProvider
from rich.console import Console

import effectful_agents.handlers
import effectful_agents.testing
from effectful_agents import ObjectInterpretation, Risk, Tool, implements
from effectful_agents.handlers.delegation import RemoteOperations, StackGateway
from effectful_agents.handlers.delegation.mcp import MCPTools
from effectful_agents.handlers.delegation.mcp.asked import Asked
from effectful_agents.handlers.delegation.mcp.connection import Reached
from effectful_agents.handlers.durability import (
    HistoryBuilder,
    Journal,
    MemoryCheckpointer,
    SQLitePersister,
    TenacityRetryer,
)
from effectful_agents.handlers.execution import BuiltinExecutor, RestrictedPythonExecutor
from effectful_agents.handlers.legibility import (
    DeferredTools,
    FrameworkDocumenter,
    HistoryCompactor,
    ImplicitToolExtractor,
    InMemoryPrompts,
    LexicalToolExtractor,
    PromptRegistry,
    ToolOutputCap,
)
from effectful_agents.handlers.loop import AgentLoop, CallControl, Deadline, PartialAnswers
from effectful_agents.handlers.memory import InMemoryStore, MemoryKeeper, MemoryTools, RecallPrompter
from effectful_agents.handlers.observability import SystemPromptDumper, UsageMeter
from effectful_agents.handlers.observability.langfuse import LangfuseTracer
from effectful_agents.handlers.observability.opentelemetry import OpenTelemetryTracer
from effectful_agents.handlers.observability.progress import ProgressDisplay
from effectful_agents.handlers.observability.rich import RichTerminalRenderer
from effectful_agents.handlers.observability.steps_log import StepLogger
from effectful_agents.handlers.policy import (
    AskInTerminal,
    DecisionLog,
    Governance,
    GrantEffects,
    HumanInteraction,
    Limits,
    MemoryLedger,
    Policy,
    RiskPolicy,
)
from effectful_agents.handlers.policy.rules import Redaction
from effectful_agents.handlers.provision import Fallback, RateLimit
from effectful_agents.handlers.provision.http import HttpModel
from effectful_agents.handlers.provision.litellm import LiteLLMConfigurer
from effectful_agents.handlers.provision.local import LocalModel
from effectful_agents.handlers.routing import ToolRouter
from effectful_agents.handlers.synthesis import (
    ExpressionToolCaller,
    FinalBodySynthesizer,
    MixedToolCaller,
    StatefulReplSynthesizer,
)
from effectful_agents.handlers.validation import PydanticSkillArgValidator, TyTypeChecker
from effectful_agents.handlers.validation.mypy import MypyTypeChecker
from effectful_agents.messages import PartialValue
from effectful_agents.operations.loop import DecodedToolCall, ToolResult, call_tool
from effectful_agents.operations.memory import Memory, MemoryScope, recalled
from effectful_agents.operations.policy import EffectKind
from effectful_agents.operations.steps import emit
from effectful_agents.testing import Cassette, ReplayModel, SchemaModel, ScriptedModel

ABSENT = "local/absent.gguf"
"""A local model that there is not: who is asked for it says so at once."""
BODY = Path(__file__).parents[1] / "recorded" / "openai" / "answer.sse"
NOWHERE = "http://127.0.0.1:9/v1"
"""An address at which nobody answers."""


class _Terse(Console):
    """A terminal on which can be seen that something was printed. To draw it takes longer than all else here."""

    def print(self, *objects: Any, **options: Any) -> None:
        self.file.write("something\n")


@dataclasses.dataclass
class Surroundings:
    """What samples write to, and what a program's model replies."""

    folder: Path
    replies: tuple[Any, ...] = ()
    terminal: io.StringIO = dataclasses.field(default_factory=io.StringIO)

    @property
    def console(self) -> Console:
        return _Terse(file=self.terminal, force_terminal=True)

    @property
    def dump(self) -> Path:
        return self.folder / "prompt.md"


class _NoTools(Reached):
    """A server without tools."""

    def connect(self, on_change: Callable[[], None]) -> Any:
        return types.SimpleNamespace(perform=lambda ask, **how: ([], self.peer), close=lambda: None)


type Make = Callable[[Surroundings], ObjectInterpretation[Any, Any]]


# Both look around the machine when they are made, which takes longer than a program of the laws.
@functools.cache
def _provider() -> TracerProvider:
    return TracerProvider(resource=Resource({}), shutdown_on_exit=False)


@functools.cache
def _client() -> Langfuse:
    return Langfuse(tracing_enabled=False)


def _all_but(*names: str) -> ToolRouter:
    return ToolRouter(lambda context: [name for name in context.names if name not in names])


SAMPLES: Mapping[type, Make] = {
    # In the order in which they stand in a stack, outermost first.
    # Outside of the script, which the programs are written for.
    SchemaModel: lambda around: SchemaModel(),
    # Of streams: what came whole is marked where somebody listens.
    ReplayModel: lambda around: ReplayModel(*[BODY] * 50),
    ScriptedModel: lambda around: ScriptedModel(*around.replies),
    Cassette: lambda around: Cassette(around.folder / "cassette.json", "rewrite"),
    AgentLoop: lambda around: AgentLoop(turns=5),
    DeferredTools: lambda around: DeferredTools(threshold=0, always=["measure", "break_down"]),
    ExpressionToolCaller: lambda around: ExpressionToolCaller(),
    MixedToolCaller: lambda around: MixedToolCaller(),
    ToolRouter: lambda around: _all_but("find"),
    LexicalToolExtractor: lambda around: LexicalToolExtractor(),
    ImplicitToolExtractor: lambda around: ImplicitToolExtractor(),
    RateLimit: lambda around: RateLimit(requests_per_minute=1_000, tokens_per_minute=1_000_000, concurrent=10),
    LiteLLMConfigurer: lambda around: LiteLLMConfigurer("scripted", temperature=0),
    LocalModel: lambda around: LocalModel(None),
    HttpModel: lambda around: HttpModel(NOWHERE, model="absent"),
    RemoteOperations: lambda around: RemoteOperations(StackGateway(), model="absent"),
    MCPTools: lambda around: MCPTools(_NoTools("empty", contextlib.nullcontext, 1.0, Asked("empty", False, False))),
    # Of one model: what another makes of an error is not for the law that errors pass.
    Fallback: lambda around: Fallback("scripted"),
    ProgressDisplay: lambda around: ProgressDisplay(around.console),
    PromptRegistry: lambda around: PromptRegistry(
        InMemoryPrompts({"find": "Go {count} steps.", "Guide.tell": "{text}!"})
    ),
    FrameworkDocumenter: lambda around: FrameworkDocumenter(),
    HistoryBuilder: lambda around: HistoryBuilder(),
    RichTerminalRenderer: lambda around: RichTerminalRenderer(around.console),
    SystemPromptDumper: lambda around: SystemPromptDumper(around.dump),
    CallControl: lambda around: CallControl(),
    Deadline: lambda around: Deadline(3600),
    Limits: lambda around: Limits(turns=1_000, tool_calls=1_000, tokens=10_000_000, seconds=3600),
    GrantEffects: lambda around: GrantEffects(*EffectKind),
    RiskPolicy: lambda around: RiskPolicy(allow=Risk.DESTRUCTIVE),
    Policy: lambda around: Policy(lambda effect: None),
    Governance: lambda around: Governance([Redaction()]),
    DecisionLog: lambda around: DecisionLog(),
    UsageMeter: lambda around: UsageMeter(),
    PartialAnswers: lambda around: PartialAnswers(),
    TyTypeChecker: lambda around: TyTypeChecker(),
    MypyTypeChecker: lambda around: MypyTypeChecker(),
    BuiltinExecutor: lambda around: BuiltinExecutor(),
    RestrictedPythonExecutor: lambda around: RestrictedPythonExecutor(),
    StatefulReplSynthesizer: lambda around: StatefulReplSynthesizer(),
    FinalBodySynthesizer: lambda around: FinalBodySynthesizer(),
    PydanticSkillArgValidator: lambda around: PydanticSkillArgValidator(),
    TenacityRetryer: lambda around: TenacityRetryer(stop=tenacity.stop_after_attempt(3)),
    ToolOutputCap: lambda around: ToolOutputCap(),
    Journal: lambda around: Journal(None, MemoryCheckpointer()),
    HistoryCompactor: lambda around: HistoryCompactor(limit=100_000),
    SQLitePersister: lambda around: SQLitePersister(around.folder / "agents.db"),
    MemoryTools: lambda around: MemoryTools(),
    RecallPrompter: lambda around: RecallPrompter(),
    MemoryKeeper: lambda around: MemoryKeeper(InMemoryStore(), MemoryScope("acme")),
    OpenTelemetryTracer: lambda around: OpenTelemetryTracer(_provider(), content=True),
    LangfuseTracer: lambda around: LangfuseTracer(_client()),
    StepLogger: lambda around: StepLogger(),
    AskInTerminal: lambda around: AskInTerminal(io.StringIO("y\n" * 9), around.terminal),
    HumanInteraction: lambda around: HumanInteraction(bytes(32), binding="ann", consumption=MemoryLedger()),
}

NEEDED = (ScriptedModel, AgentLoop, LexicalToolExtractor, HistoryBuilder, BuiltinExecutor, TenacityRetryer)
"""Without these no call comes to an end; whatever else is tried is tried among them."""


@dataclasses.dataclass(frozen=True)
class Sections:
    """Two orders differ in nothing but the order of sections in the system message: the inner one's comes first."""


@dataclasses.dataclass(frozen=True)
class Ordered:
    """One has to stand outside of the other.

    Attributes:
        outer: The one.
        inner: The other.
        reason: What is different the other way round.
        samples: Samples that show it, where the usual ones do not.
    """

    outer: type
    inner: type
    reason: str
    samples: Mapping[type, Make] = dataclasses.field(default_factory=dict)


def _with_something_said() -> CallControl:
    control = CallControl()
    control.say("Be brief.")
    return control


class _PartialAnswersOnTerminal(PartialAnswers):
    """Writes to the terminal what it tells."""

    def __init__(self, terminal: io.StringIO) -> None:
        self._terminal = terminal

    @implements(emit)
    def emit(self, event: Any) -> None:
        if isinstance(event, PartialValue):
            self._terminal.write(repr(event.value))
        super().emit(event)


class _NotedCap(ToolOutputCap):
    """Leaves a note in results that are short, too."""

    @implements(call_tool)
    def call_tool(self, tool_call: DecodedToolCall[Any]) -> ToolResult[Any]:
        message, value, is_final = super().call_tool(tool_call)
        return {**message, "content": f"{message['content']} (all of it)"}, value, is_final


class _MeasuringByExpression(MixedToolCaller):
    """Takes a tool of the programs for one that JSON cannot say; they have no other."""

    def wraps(self, tool: Tool) -> bool:
        return tool.__name__ == "measure"


def _measuring_by_expression(_: Surroundings) -> MixedToolCaller:
    return _MeasuringByExpression()


class _Reminding(RecallPrompter):
    """Recalls something itself."""

    @implements(recalled)
    def recalled(self) -> Any:
        return [Memory("1", "It rained.", MemoryScope("acme"))]


def _keeper_that_tells(around: Surroundings) -> MemoryKeeper:
    def tell(_: str, answer: str) -> None:
        around.terminal.write(answer)

    return MemoryKeeper(InMemoryStore(), MemoryScope("acme"), extractor=tell)


def _with_ask_user(_: Surroundings) -> HumanInteraction:
    return HumanInteraction(bytes(32), binding="ann", consumption=MemoryLedger(), ask_user=True)


_SHORT: Mapping[type, Make] = {
    ToolOutputCap: lambda around: _NotedCap(150),
    HistoryCompactor: lambda around: HistoryCompactor(limit=30),
}
"""Limits that the programs reach."""

_TERMINAL = "the loop forwards nothing, so what stands outside of it and handles the same operations is never asked"
_ANSWERS = "it answers without forwarding, so what handles `completion` outside of it is never asked"

ORDERED: tuple[Ordered, ...] = (
    *(
        Ordered(AgentLoop, inner, _TERMINAL)
        for inner in (
            *(DeferredTools, ToolRouter, LexicalToolExtractor, ImplicitToolExtractor, FrameworkDocumenter),
            *(HistoryBuilder, SystemPromptDumper, PydanticSkillArgValidator, TenacityRetryer),
            *(TyTypeChecker, MypyTypeChecker),
            *(ExpressionToolCaller, MixedToolCaller, BuiltinExecutor, RestrictedPythonExecutor),
            *(StatefulReplSynthesizer, FinalBodySynthesizer, SQLitePersister, MemoryTools),
        )
    ),
    Ordered(AgentLoop, RecallPrompter, _TERMINAL, {RecallPrompter: lambda around: _Reminding()}),
    Ordered(AgentLoop, MemoryKeeper, _TERMINAL, {MemoryKeeper: _keeper_that_tells}),
    Ordered(AgentLoop, CallControl, _TERMINAL, {CallControl: lambda around: _with_something_said()}),
    Ordered(AgentLoop, Deadline, _TERMINAL, {Deadline: lambda around: Deadline(1e-9)}),
    Ordered(
        AgentLoop,
        PartialAnswers,
        _TERMINAL,
        {PartialAnswers: lambda around: _PartialAnswersOnTerminal(around.terminal)},
    ),
    *(Ordered(AgentLoop, inner, _TERMINAL, _SHORT) for inner in (ToolOutputCap, HistoryCompactor)),
    Ordered(ScriptedModel, HistoryCompactor, _ANSWERS, {HistoryCompactor: lambda around: HistoryCompactor(limit=120)}),
    *(
        Ordered(ScriptedModel, inner, _ANSWERS)
        for inner in (LiteLLMConfigurer, Fallback, ProgressDisplay, RichTerminalRenderer)
    ),
    *(
        Ordered(ReplayModel, inner, _ANSWERS)
        for inner in (ScriptedModel, LiteLLMConfigurer, Fallback, ProgressDisplay, RichTerminalRenderer)
    ),
    *(
        Ordered(SchemaModel, inner, _ANSWERS)
        for inner in (LiteLLMConfigurer, Fallback, ProgressDisplay, RichTerminalRenderer)
    ),
    *(Ordered(SchemaModel, inner, _ANSWERS) for inner in (ReplayModel, ScriptedModel)),
    Ordered(
        LiteLLMConfigurer,
        Fallback,
        "a request that names its model already is meant for that one, and the others come after it",
        {Fallback: lambda around: Fallback("other")},
    ),
    *(
        Ordered(DeferredTools, inner, "it defers what is offered further inside, and the loop gets the rest as it is")
        for inner in (
            *(LexicalToolExtractor, ImplicitToolExtractor, StatefulReplSynthesizer, FinalBodySynthesizer),
            MemoryTools,
        )
    ),
    *(
        Ordered(
            DeferredTools,
            caller,
            "it defers each tool in the form in which it is called, and weighs it in that",
            {DeferredTools: lambda around: DeferredTools(threshold=210), MixedToolCaller: _measuring_by_expression},
        )
        for caller in (ExpressionToolCaller, MixedToolCaller)
    ),
    Ordered(DeferredTools, ToolRouter, "it chooses among the tools themselves, and a search is to find no others"),
    *(
        Ordered(
            ToolRouter,
            inner,
            "it chooses among what is offered further inside, and refuses a request that offers more",
            {ToolRouter: lambda around: _all_but("find", "exec_code", "write_and_run_body")},
        )
        for inner in (LexicalToolExtractor, ImplicitToolExtractor, StatefulReplSynthesizer, FinalBodySynthesizer)
    ),
    *(
        Ordered(
            caller,
            extractor,
            "it has called by expressions what is collected further inside",
            {MixedToolCaller: _measuring_by_expression},
        )
        for caller in (ExpressionToolCaller, MixedToolCaller)
        for extractor in (LexicalToolExtractor, ImplicitToolExtractor)
    ),
    Ordered(AgentLoop, HumanInteraction, _TERMINAL, {HumanInteraction: _with_ask_user}),
    Ordered(
        DeferredTools,
        HumanInteraction,
        "it defers what is offered further inside, `ask_user` too",
        {HumanInteraction: _with_ask_user},
    ),
    Ordered(
        HistoryBuilder,
        TenacityRetryer,
        "the history records each attempt, and the next one reads what was wrong with it",
    ),
    Ordered(HistoryBuilder, SQLitePersister, "it saves a history to which the messages of the call have been added"),
    Ordered(TenacityRetryer, ToolOutputCap, "it writes the messages about tools that raised, which are long", _SHORT),
    Ordered(
        TenacityRetryer,
        HistoryCompactor,
        "it takes back what it recorded of failed attempts, and the history must not be rewritten meanwhile",
        _SHORT,
    ),
)

WITH_SECTIONS = (
    *(FrameworkDocumenter, LexicalToolExtractor, ImplicitToolExtractor, BuiltinExecutor, RestrictedPythonExecutor),
    *(PydanticSkillArgValidator, TenacityRetryer, TyTypeChecker, MypyTypeChecker),
    *(ExpressionToolCaller, MixedToolCaller, StatefulReplSynthesizer, FinalBodySynthesizer, SQLitePersister),
    MemoryTools,
)

EXCLUSIVE: Mapping[type, str] = {
    HistoryBuilder: "each of the two records every message of a call",
}
"""Those of which a stack can have only one, with what goes wrong with two of them."""

type Verdict = Sections | Ordered | None


def verdict(one: type, other: type) -> Verdict:
    """What is claimed of two handlers; None says that they commute."""
    for entry in ORDERED:
        if {entry.outer, entry.inner} == {one, other}:
            return entry
    return Sections() if one in WITH_SECTIONS and other in WITH_SECTIONS else None


def pairs() -> Iterator[tuple[type, type]]:
    """Every two handlers, the one that usually stands outside first."""
    order = list(SAMPLES)
    return ((one, other) for place, one in enumerate(order) for other in order[place + 1 :])


def handlers_of_the_package() -> set[type]:
    """Every public handler class below `effectful_agents.handlers` and `effectful_agents.testing`."""
    return {
        value
        for package in (effectful_agents.handlers, effectful_agents.testing)
        for module in _modules(package)
        for name, value in vars(module).items()
        if isinstance(value, type) and issubclass(value, ObjectInterpretation) and not name.startswith("_")
        if value.__module__ == module.__name__
    }


def _modules(package: types.ModuleType) -> Iterator[types.ModuleType]:
    yield package
    for found in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
        yield importlib.import_module(found.name)
