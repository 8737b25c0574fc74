"""What happens in a call, told to whoever listens: its steps, and the pieces of a reply on its way.

A *step* is one thing that costs something or has an effect: a request to the model, a tool call, a delegation, a
question to a person, and at last the end. It is told twice, before it happens (`Phase.ATTEMPTED`) and after
(`Phase.COMPLETED`); one that was interrupted has no second event.
"""

from __future__ import annotations

import contextvars
import dataclasses
import itertools
from typing import Any, Self, override

from effectful_agents.messages import Request, Response, StreamEvent, ToolMessage
from effectful_agents.operations.loop import DecodedToolCall
from effectful_agents.operations.records import Checkpointer, Durability, Phase, RunState
from effectful_agents.runtime import Operation
from effectful_agents.types import PromptVersion, Skill

__all__ = [
    "ApprovalStep",
    "Checkpointer",
    "DelegateStep",
    "Durability",
    "FinalStep",
    "ModelStep",
    "Phase",
    "RunState",
    "StepEvent",
    "StepIds",
    "ToolStep",
    "current_ids",
    "emit",
    "idempotency_key",
    "ids_of_call",
    "make_step_id",
]


@dataclasses.dataclass(frozen=True, kw_only=True)
class StepEvent:
    """One half of a step.

    Attributes:
        step_id: Which step of its run it is: see `make_step_id`.
        phase: Which half.
        skill: The skill in whose call it happens.
        prompt: Which prompt that call was opened with: the name, the version and the digest, not the text.
        run_id: The run that it belongs to; empty where there is none.
        attempt: 1, and one more for each time that the step is made again in its run.
        depth: How many calls its call is nested in: 0 in one that the program made.
        error: What it failed with, if it did.
        replayed: Whether it did not happen now, and is told again from the journal of its run.
    """

    step_id: str
    phase: Phase
    skill: Skill[..., Any]
    prompt: PromptVersion | None = None
    run_id: str = ""
    attempt: int = 1
    depth: int = 0
    error: BaseException | None = None
    replayed: bool = False

    @property
    def durability(self) -> Durability:
        """How soon a journal has to have written it."""
        return Durability.DURABLE


@dataclasses.dataclass(frozen=True, kw_only=True)
class ModelStep(StepEvent):
    """A request to the model. It is always durable: it costs money, and the same reply never comes again.

    Attributes:
        request: What is sent.
        response: The reply, when it has come.
    """

    request: Request
    response: Response | None = None


@dataclasses.dataclass(frozen=True, kw_only=True)
class ToolStep(StepEvent):
    """A tool call. It is durable unless the tool is declared `idempotent`: then it can be made again.

    Attributes:
        tool_call: The call, with its arguments.
        message: The result as the model is told it, when there is one.
        value: The result as a Python value; None where a journal gives the result again, and nobody needs the value.
        is_final: Whether the value is the answer of the whole call.
        denied: The decision (an `operations.policy.Decision`) by which the call may not be made; the model is told so.
    """

    tool_call: DecodedToolCall[Any]
    message: ToolMessage | None = None
    value: Any = None
    is_final: bool = False
    denied: Any = None

    @property
    @override
    def durability(self) -> Durability:
        harmless = self.tool_call.tool.idempotent or self.denied is not None
        return Durability.DEFERRABLE if harmless else Durability.DURABLE


@dataclasses.dataclass(frozen=True, kw_only=True)
class DelegateStep(ToolStep):
    """A tool call whose tool `delegates`, as skills do: a call with a history of its own, of which the value returns.

    The steps of that call have ids below its own.
    """


@dataclasses.dataclass(frozen=True, kw_only=True)
class ApprovalStep(StepEvent):
    """A question to a person. It is always durable: nobody is asked twice because a process ended.

    Attributes:
        question: What they are asked: an `operations.policy.Question`.
        decision: What they said, when they have: an `operations.policy.Answer`.
    """

    question: Any
    decision: Any = None


@dataclasses.dataclass(frozen=True, kw_only=True)
class FinalStep(StepEvent):
    """The end of a call that the program made; calls inside it end with the step that they belong to.

    Attributes:
        value: What the call returns.
    """

    value: Any = None


@Operation.define
def emit(event: StreamEvent | StepEvent) -> None:
    """Tell that something has happened; by default nobody listens.

    A handler that listens forwards with `fwd()`, so that others hear it too. It must not raise: what it observes goes
    on in any case.
    """


# --- identifiers ------------------------------------------------------------------------------------------------------


def make_step_id(seq: int, kind: str) -> str:
    """The identifier of a step, made of its position and never of a clock, so that a replay makes the same again.

    The position has a fixed width: sorted as text, steps are in the order in which they happen.

    Args:
        seq: Its position among its siblings, from 1.
        kind: What it is: `model`, `tool`, `delegate`, `record`, `approval`, `final`, or `call` for a call nested in a
            step or a run.

    Raises:
        ValueError: The position is not from 1 to 999999.

    >>> make_step_id(12, "tool")
    '000012-tool'
    """
    if not 0 < seq < 1_000_000:
        raise ValueError(f"a step has a position from 1 to 999999; this is {seq}")
    return f"{seq:06}-{kind}"


def idempotency_key(event: StepEvent) -> tuple[str, str, str]:
    """What makes two events the same event, so that a journal writes it once: run, step with its attempt, phase."""
    return event.run_id, f"{event.step_id}.{event.attempt}", event.phase.value


class _Places:
    """Counts, for several threads at once."""

    __slots__ = ("_count", "given")

    def __init__(self) -> None:
        self._count = itertools.count(1)
        self.given = 0

    def next(self) -> int:
        self.given = place = next(self._count)
        return place


class StepIds:
    """Gives out the identifiers of the steps of one call, or of the calls nested in one step, in order.

    As a context manager, which is entered once, it has what begins in the block get its identifiers from here.

    Args:
        skill: The skill that is called, or whose step it is; None for a program that calls several.
        prefix: The identifier of what they are nested in, and `/`; empty for the first.
        depth: How many calls of skills they are nested in.
        run_id: The run that they belong to; empty where there is none.
        root: Gives out the first identifiers of the run, or of the outermost call; by default this itself.

    >>> ids = StepIds()
    >>> ids.next("model"), ids.below(ids.next("tool")).next("call")
    ('000001-model', '000002-tool/000001-call')
    """

    __slots__ = ("__weakref__", "_asides", "_outer", "_places", "_root", "depth", "opens", "prefix", "run_id", "skill")

    def __init__(
        self,
        skill: Skill[..., Any] | None = None,
        prefix: str = "",
        depth: int = 0,
        run_id: str = "",
        root: StepIds | None = None,
    ) -> None:
        self._root = root
        self.skill = skill
        self.prefix = prefix
        self.depth = depth
        self.run_id = run_id
        self.opens = False
        self._places = _Places()
        self._asides = _Places()

    def __enter__(self) -> Self:
        self._outer = _ids.get()
        _ids.set(self)
        return self

    def __exit__(self, *_: object) -> None:
        _ids.set(self._outer)

    @property
    def root(self) -> StepIds:
        """What gives out the first identifiers: another one in each run, also where two have one name."""
        return self if self._root is None else self._root

    @property
    def depth_inside(self) -> int:
        """How many calls of skills a call that begins here is nested in."""
        return self.depth + (self.skill is not None)

    def next(self, kind: str) -> str:
        """The identifier of the next step; in a context that has reserved one of this kind, that one."""
        reserved = _reserved.get()
        if reserved is not None and reserved[0] is self and reserved[1] == kind:
            _reserved.set(None)
            return reserved[2]
        return self.prefix + make_step_id(self._places.next(), kind)

    def reserve(self, kind: str) -> str:
        """Take the identifier of the next step for this context, which may have to wait before it makes the step."""
        step_id = self.next(kind)
        _reserved.set((self, kind, step_id))
        return step_id

    def coming(self, kind: str) -> str:
        """The identifier that the next step gets if it is of this kind."""
        return self.prefix + make_step_id(self._places.given + 1, kind)

    def aside(self, kind: str) -> str:
        """An identifier for what is counted by itself, so that the steps have their places whether it happens or not.

        >>> ids = StepIds()
        >>> ids.next("model"), ids.aside("approval"), ids.next("tool")
        ('000001-model', 'aside/000001-approval', '000002-tool')
        """
        return f"{self.prefix}aside/{make_step_id(self._asides.next(), kind)}"

    def below(self, step_id: str) -> StepIds:
        """Identifiers for what is nested in a step."""
        return StepIds(self.skill, f"{step_id}/", self.depth, self.run_id, self.root)

    def opening(self, step_id: str) -> StepIds:
        """Identifiers for the call that begins next, which has this identifier already."""
        ids = self.below(step_id)
        ids.opens = True
        return ids

    def of_call(self, skill: Skill[..., Any] | None) -> StepIds:
        """Identifiers for a call that begins now, nested in what has these."""
        opens, self.opens = self.opens, False
        prefix = self.prefix if opens else f"{self.next('call')}/"
        ids = StepIds(skill, prefix, self.depth_inside, self.run_id, self.root)
        if opens:
            # What handlers do around the call has its places among the steps of it.
            ids._places, ids._asides = self._places, self._asides
        return ids


_ids: contextvars.ContextVar[StepIds | None] = contextvars.ContextVar("effectful_agents_step_ids", default=None)


_reserved: contextvars.ContextVar[tuple[StepIds, str, str] | None] = contextvars.ContextVar(
    "effectful_agents_reserved_step", default=None
)


def current_ids() -> StepIds | None:
    """Where the steps and calls that begin here get their identifiers from; None outside of calls."""
    return _ids.get()


def ids_of_call(skill: Skill[..., Any] | None) -> StepIds:
    """The identifiers for a call that begins now: nested in what runs here, or else the first of all."""
    outer = _ids.get()
    return StepIds(skill) if outer is None else outer.of_call(skill)
