"""Evaluating: a table of cases is called and scored."""

from __future__ import annotations

import contextlib
import functools
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator
from typing import Any, TypedDict, Unpack, overload

from effectful_agents.errors import OptionError
from effectful_agents.handlers.loop import FollowedCall
from effectful_agents.runtime import Interpretation, bridged
from effectful_agents.runtime.bridge import named
from effectful_agents.testing.evaluation.cases import Case, Cases, read_cases, signature_of
from effectful_agents.testing.evaluation.copying import check_agents, prepared
from effectful_agents.testing.evaluation.evaluation import Evaluation
from effectful_agents.testing.evaluation.rows import Failure, Row
from effectful_agents.testing.evaluation.running import run_all
from effectful_agents.testing.evaluation.scoring import Scorers, scorings_of
from effectful_agents.testing.evaluation.showing import progress_bar
from effectful_agents.testing.evaluation.trials import Plan

__all__ = ["aevaluate", "evaluate"]

type Stack = Interpretation | Callable[[], Interpretation] | None


class _Options(TypedDict, total=False):
    stack: Stack
    repeat: int
    concurrency: int
    limit: int | None
    name: str | None
    progress: bool


@overload
def evaluate[T](
    skill: Callable[..., Coroutine[Any, Any, T]], cases: Cases, scorers: Scorers = (), **options: Unpack[_Options]
) -> Evaluation[T]: ...
@overload
def evaluate[T](
    skill: Callable[..., FollowedCall[Any, T]], cases: Cases, scorers: Scorers = (), **options: Unpack[_Options]
) -> Evaluation[T]: ...
@overload
def evaluate[T](
    skill: Callable[..., Iterator[T] | AsyncIterator[T]],
    cases: Cases,
    scorers: Scorers = (),
    **options: Unpack[_Options],
) -> Evaluation[list[T]]: ...
@overload
def evaluate[T](
    skill: Callable[..., T], cases: Cases, scorers: Scorers = (), **options: Unpack[_Options]
) -> Evaluation[T]: ...
def evaluate(
    skill: Callable[..., Any],
    cases: Cases,
    scorers: Scorers = (),
    *,
    stack: Stack = None,
    repeat: int = 1,
    concurrency: int = 8,
    limit: int | None = None,
    name: str | None = None,
    progress: bool = True,
) -> Evaluation[Any]:
    """Call a skill with a table of cases, several at once, and score what it returns.

    What fails at a case, in the skill or in a scorer, is written down there, and the rest goes on. A call that waits
    for somebody's decision is written down as `suspended`. What is wrong with the table itself, arguments that do not
    fit or a scorer that wants what there is not, is said before anything is asked.

    The handlers around hold for all calls. No case knows of another one: a method of an agent, skill or not, is called
    on a copy of the agent as it is now, each time, and nothing of these copies is kept; arguments are copied for each
    call too, and for each scorer, where they can be. An agent that a function has by a name of its own is shared. Calls
    run in threads; `await aevaluate(…)` runs them in tasks of the event loop. Where the order in which the model is
    asked matters, give `concurrency=1`. Under a `Journal` an evaluation that was interrupted goes on where it stopped.

    Args:
        skill: The skill, or a function that calls skills, `def` or `async def`. What one yields piece by piece makes a
            list; what `steps` and `stream` return, the value of their call.
        cases: `Case` objects; mappings with `input`, or `args` and `kwargs`, and with `expected`, `name`, `metadata`;
            tuples `(input, expected)`; or anything else, as the only argument. A path: a file of JSON lines with such
            mappings, in which the values are read as the skill's types. They are all read before the first is called.
        scorers: Functions or skills, in a list or by their names; each is called with what its parameters name (see
            `effectful_agents.testing.evaluation.scoring`).
        stack: Handlers for the calls of the skill, inside of those around; the scorers do not have them. A function
            that makes them makes new ones for each call.
        repeat: How often each case is called.
        concurrency: Calls at the same time.
        limit: How many of the cases; None for all. One that never ends needs it.
        name: What is evaluated; by default the name of the skill.
        progress: Whether a bar is shown while it runs, where standard error is a terminal.

    Raises:
        OptionError: A case, a scorer or an option is not what it has to be. Nothing has been asked.
        BaseException: What ends all of it, Ctrl-C or a cancellation. As its attribute `evaluation` it has the rows that
            are complete. `SystemExit` of a call is a failure of its case.

    >>> from effectful_agents import NotHandled, Skill, handler, harness
    >>> from effectful_agents.testing import Case, ScriptedModel, evaluate
    >>> from effectful_agents.testing.evaluation import exact
    >>> @Skill.define
    ... def capital(country: str) -> str:
    ...     '''The capital of {country}.'''
    ...     raise NotHandled
    >>> cases = [Case("France", expected="Paris"), Case("Italy", expected="Rome")]
    >>> with handler(harness()), handler(ScriptedModel("Paris", "Milan")):
    ...     print(evaluate(capital, cases, exact, concurrency=1))
    capital: 2 cases, 240 tokens
    <BLANKLINE>
    score  mean  ± error  cases
    -----  ----  -------  -----
    exact  0.5   0.5      2
    <BLANKLINE>
    case    output  exact
    ------  ------  -----
    France  Paris   yes
    Italy   Milan   no
    """
    called = prepared(skill)
    for option, value in (("repeat", repeat), ("concurrency", concurrency), ("limit", 1 if limit is None else limit)):
        if not isinstance(value, int) or value < (option != "limit"):
            raise OptionError(f"`{option}` is {value!r}; it is a whole number, at least {int(option != 'limit')}.")
    signature = signature_of(skill)
    table = read_cases(cases, skill, limit)
    check_agents(table)
    plan = Plan(called, signature, scorings_of(scorers, signature, table), stack)
    name = name or _name_of(skill)
    trials = [(case, trial) for case in table for trial in range(1, repeat + 1)]
    rows: list[Row[Any] | None] = [None] * len(trials)
    with progress_bar(name, len(trials), wanted=progress) as tell:

        def make(place: int, case: Case, trial: int) -> None:
            row = rows[place] = plan.row(case, trial)
            tell(row)

        try:
            run_all([functools.partial(make, place, *each) for place, each in enumerate(trials)], concurrency)
        except BaseException as error:
            # The rows that are complete have been paid for.
            with contextlib.suppress(AttributeError):
                error.evaluation = Evaluation(name, tuple(filter(None, rows)))  # ty: ignore
            raise
    made = zip(trials, rows, strict=True)
    return Evaluation(name, tuple(_lost(*trial) if row is None else row for trial, row in made))


def _name_of(skill: Any) -> str:
    while isinstance(skill, functools.partial):
        skill = skill.func
    return str(getattr(skill, "__name__", type(skill).__name__))


def _lost(case: Case, trial: int) -> Row[Any]:
    """The row of a call whose task somebody has ended: a case is never left out."""
    return Row(case, failures=(Failure("", "Cancelled", "its task was ended before there was a row"),), trial=trial)


@overload
def aevaluate[T](
    skill: Callable[..., Coroutine[Any, Any, T]], cases: Cases, scorers: Scorers = (), **options: Unpack[_Options]
) -> Coroutine[Any, Any, Evaluation[T]]: ...
@overload
def aevaluate[T](
    skill: Callable[..., FollowedCall[Any, T]], cases: Cases, scorers: Scorers = (), **options: Unpack[_Options]
) -> Coroutine[Any, Any, Evaluation[T]]: ...
@overload
def aevaluate[T](
    skill: Callable[..., Iterator[T] | AsyncIterator[T]],
    cases: Cases,
    scorers: Scorers = (),
    **options: Unpack[_Options],
) -> Coroutine[Any, Any, Evaluation[list[T]]]: ...
@overload
def aevaluate[T](
    skill: Callable[..., T], cases: Cases, scorers: Scorers = (), **options: Unpack[_Options]
) -> Coroutine[Any, Any, Evaluation[T]]: ...
def aevaluate(
    skill: Callable[..., Any], cases: Cases, scorers: Scorers = (), **options: Unpack[_Options]
) -> Coroutine[Any, Any, Evaluation[Any]]:
    """Evaluate in an event loop, of asyncio or trio: the calls are tasks, and no thread is needed.

    Args:
        skill: As for `evaluate`. A function that blocks, blocks the loop.
        cases: As for `evaluate`.
        scorers: As for `evaluate`.
        **options: As for `evaluate`.

    >>> import asyncio
    >>> async def double(number: int) -> int:
    ...     return 2 * number
    >>> async def program():
    ...     return await aevaluate(double, [(1, 2), (2, 5)], lambda output, expected: output - expected)
    >>> [row.scores for row in asyncio.run(program())]
    [{'scorer 1': 0.0}, {'scorer 1': -1.0}]
    """
    return named(bridged(evaluate, skill, cases, scorers, **options), "aevaluate")
