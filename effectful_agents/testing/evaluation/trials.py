"""One trial: a case is called and scored, and whatever goes wrong stays at it."""

from __future__ import annotations

import contextlib
import dataclasses
import inspect
import sys
import threading
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, MutableSequence, Sequence
from typing import Any

from effectful_agents.errors import Signal, Suspended, describe_exception
from effectful_agents.handlers.loop import FollowedCall
from effectful_agents.handlers.loop.run import completed
from effectful_agents.messages import Message, Response, Usage
from effectful_agents.operations.history import conversation
from effectful_agents.operations.journal import perform_step
from effectful_agents.operations.loop import completion
from effectful_agents.operations.prices import cost_of
from effectful_agents.operations.steps import ModelStep, StepEvent
from effectful_agents.operations.world import now
from effectful_agents.runtime import (
    Interpretation,
    ObjectInterpretation,
    SignalScope,
    fwd,
    handler,
    implements,
    wait,
)
from effectful_agents.testing.evaluation.cases import Case
from effectful_agents.testing.evaluation.copying import own_case, own_row, own_skill
from effectful_agents.testing.evaluation.rows import Failure, Row
from effectful_agents.testing.evaluation.running import settle
from effectful_agents.testing.evaluation.scoring import Scoring
from effectful_agents.types import Skill

__all__ = ["Plan"]


@dataclasses.dataclass(frozen=True)
class Plan:
    """What is done with each case.

    Attributes:
        skill: What is called.
        signature: What it takes; None where nobody knows.
        scorings: What is asked about its output.
        stack: What is installed around the call, or what makes that for each call.
    """

    skill: Callable[..., Any]
    signature: inspect.Signature | None
    scorings: Sequence[Scoring]
    stack: Interpretation | Callable[[], Interpretation] | None

    def row(self, case: Case, trial: int) -> Row[Any]:
        """Call the case, and score what it returns.

        Raises:
            BaseException: What ends the whole evaluation: it was cancelled, or somebody pressed Ctrl-C.
        """
        seen = _Seen()
        began = now()
        output, failure = _attempted(lambda: self._called(case, seen))
        row: Row[Any] = Row(
            case,
            output,
            failures=() if failure is None else (failure,),
            trial=trial,
            seconds=max(0.0, now() - began),
            usage=seen.usage,
            cost=seen.cost,
            messages=tuple(seen.messages or ()) if failure is None else (),
        )
        return row if failure is not None else self._scored(row)

    def _called(self, case: Case, seen: _Seen) -> Any:
        stack = self.stack
        if stack is not None and not isinstance(stack, Mapping):
            stack = stack()
        with contextlib.nullcontext() if stack is None else handler(stack), handler(seen):
            own = own_case(case)
            return _drained(completed(own_skill(self.skill), own.args, dict(own.kwargs)))

    def _scored(self, row: Row[Any]) -> Row[Any]:
        scores: dict[str, bool | float] = {}
        notes: dict[str, str] = {}
        failures: list[Failure] = []
        for scoring in self.scorings:
            if not scoring.applies_to(row.case):
                continue
            found, failure = _attempted(
                lambda scoring=scoring: scoring.score(own_row(row), self.signature), scoring.name
            )
            if failure is not None:
                failures.append(failure)
                continue
            for name, value in found.items():
                (notes if isinstance(value, str) else scores)[name] = value
        return dataclasses.replace(row, scores=scores, notes=notes, failures=tuple(failures))


class _Seen(ObjectInterpretation[Any, Any]):
    """What is seen of one call: its tokens, what they cost, and its conversation.

    A request that a journal answers is no `completion`, and is counted where its step is told again.
    """

    def __init__(self) -> None:
        self.usage = Usage()
        self.cost: float | None = 0.0
        self.messages: MutableSequence[Message] | None = None
        self._counting = threading.Lock()

    @implements(completion)
    def completion(self, **request: Any) -> Response:
        response: Response = fwd()
        self._count(request, response)
        return response

    @implements(perform_step)
    def perform_step(self, step: StepEvent, body: Callable[[], StepEvent]) -> Any:
        made = fwd()
        if isinstance(made, ModelStep) and made.replayed:
            self._count(made.request, made.response)
        return made

    @implements(conversation)
    def conversation(self, skill: Skill) -> MutableSequence[Message]:
        opened: MutableSequence[Message] = fwd()
        if self.messages is None:
            self.messages = opened
        return opened

    def _count(self, request: Mapping[str, Any], response: Any) -> None:
        response = response if isinstance(response, Mapping) else {}
        usage = Usage.from_wire(response.get("usage"))
        names = [str(name) for each in (response, request) if (name := each.get("model"))]
        cost = next((cost for name in names or [""] if (cost := cost_of(name, usage)) is not None), None)
        with self._counting:
            self.usage += usage
            self.cost = None if self.cost is None or cost is None else self.cost + cost


def _attempted(function: Callable[[], Any], scorer: str = "") -> tuple[Any, Failure | None]:
    """What a function returns, or what went wrong.

    `SystemExit` is nothing else than that: it says that what was called has ended, as a program whose arguments are
    wrong does. What ends a program from outside, `KeyboardInterrupt`, and what is no failure by its nature, is raised.
    """
    try:
        with SignalScope():
            found = function()
    except (Exception, Signal, SystemExit) as error:
        settle()  # what ends this from outside is nothing of the case
        return None, _failure(scorer, error)
    except BaseException as error:
        settle()
        if not _is_cancellation(error):
            raise
        return None, _failure(scorer, error)
    settle()
    return found, None


def _failure(scorer: str, error: BaseException) -> Failure:
    text = describe_exception(error, include_traceback=False)
    kind, _, message = text.partition(": ")
    return Failure(scorer, kind, message, describe_exception(error), isinstance(error, Suspended))


def _is_cancellation(error: BaseException) -> bool:
    """Whether it is that of a task of asyncio; one that comes from outside has been raised by `settle`."""
    asyncio = sys.modules.get("asyncio")
    return asyncio is not None and isinstance(error, asyncio.CancelledError)


# --- what is returned -------------------------------------------------------------------------------------------------


def _drained(value: Any) -> Any:
    """What a call returns; what it yields, where it yields things piece by piece."""
    if isinstance(value, FollowedCall):
        for _ in value:
            pass
        return value.value
    if isinstance(value, AsyncIterator):
        return wait(_collected(value))
    return list(value) if isinstance(value, Iterator) else value


async def _collected(values: AsyncIterator[Any]) -> list[Any]:
    return [each async for each in values]
