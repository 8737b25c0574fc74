"""Following a call step by step, or piece by piece, and stopping it between two."""

from __future__ import annotations

import contextlib
import contextvars
import logging
import sys
import threading
from collections.abc import Callable, Coroutine, Generator
from typing import Any, Self, cast, get_args, overload

import greenlet

from effectful_agents.errors import ConfigurationError, Signal
from effectful_agents.handlers.loop.control import CallControl
from effectful_agents.handlers.loop.partial import PartialAnswers
from effectful_agents.handlers.loop.run import completed
from effectful_agents.messages import ContentPart, StreamEvent
from effectful_agents.operations.steps import Phase, StepEvent, StepIds, current_ids, emit
from effectful_agents.runtime import fwd, handler
from effectful_agents.runtime.bridge import Awaited, Driven, Handed
from effectful_agents.runtime.loops import current_task
from effectful_agents.types import Skill

__all__ = ["FollowedCall", "steps", "stream"]

_ANOTHER_THREAD = (
    "a call that is followed belongs to the thread that began it, and this is another one. It has not been touched, "
    "and can go on there. In a server that moves between threads write `async for`."
)


class FollowedCall[E, T]:
    """A call that goes on whenever the next of its events is asked for. `steps` and `stream` make it.

    It is an iterator, for `for` and for `async for` alike, and a context manager. Leaving the block of `with`, `close`,
    or dropping it before its end, ends the call: what it was about to do does not happen, and its history stays as it
    was. Dropped in another thread, as its garbage collector may, it ends when its own thread next begins to follow a
    call. What the call raises comes out of the iteration.

    With `for`, the call belongs to the thread that began it; there is no thread behind it. What happens inside an
    asynchronous tool, or in tools that run at the same time, cannot stop the call: these events come when the tools
    have ended, in the order of the calls.

    Attributes:
        control: With it the call can be cancelled, from anywhere.
    """

    control: CallControl

    def __init__(self, function: Callable[[], T], wanted: Callable[[Any], bool]) -> None:
        self._call: Driven | None = None
        self.control = CallControl()
        self._events = _Events[E](wanted)
        self._function = _under(function, self._events, self.control)
        self._context = contextvars.copy_context()
        self._going_on = self._ended = False
        self._thread = 0
        self._left: list[Driven] = []
        self._values: list[T] = []

    @property
    def value(self) -> T:
        """What the call returned; it is also the value of `yield from`.

        Raises:
            ConfigurationError: It has not ended, or not well.
        """
        if not self._values:
            raise ConfigurationError("the call has no value: it has one when the iteration has come to its end.")
        return self._values[0]

    def say(self, content: str | list[ContentPart]) -> None:
        """Add a user message to the conversation before the next turn (see `CallControl.say`)."""
        self.control.say(content)

    # --- in a plain loop ----------------------------------------------------------------------------------------------

    def __iter__(self) -> Self:
        return self

    def __next__(self) -> E:
        return self.throw()

    def throw(self, error: BaseException | None = None) -> E:
        """Go on with an exception, which is raised at the place where the call stopped."""
        call = self._begun(Driven)
        if self._ended:
            raise StopIteration
        with self._on_its_way():
            result = call.go_on(error=error)
        if not call.dead:
            return result.value
        self._values.append(result)
        raise StopIteration(result)

    def close(self) -> None:
        """End the call, if it has not ended.

        Raises:
            ConfigurationError: It is on its way to its next event, or belongs to another thread.
        """
        if self._call is not None and not self._ended:
            self._check_place()
            self._events.closed = True
            self._call.end()
        self._ended = True

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __del__(self, is_finalizing: Any = sys.is_finalizing) -> None:
        # Left in the middle. From another thread, where the garbage may be collected, it cannot be ended, and so it is
        # handed to its own. At the end of the program nothing can be ended, as modules are empty by then.
        if self._call is None or self._going_on or is_finalizing():
            return
        if threading.get_ident() == self._thread:
            self.close()
        elif not self._ended:
            self._events.closed = True
            self._left.append(self._call)

    def __reduce_ex__(self, protocol: Any) -> Any:
        raise TypeError("a call that is followed cannot be copied or pickled: it runs")

    # --- in an event loop ---------------------------------------------------------------------------------------------

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> E:
        call = self._begun(Awaited)
        if self._ended:
            raise StopAsyncIteration
        with self._on_its_way():
            result = await call.turns()
        if not call.dead:
            return result.value
        self._values.append(result)
        raise StopAsyncIteration

    async def aclose(self) -> None:
        """End the call, if it has not ended; what cleans up may await something meanwhile.

        Raises:
            ConfigurationError: As `close`.
        """
        call = self._call
        if isinstance(call, Awaited) and not self._ended:
            self._check_place()
            self._events.closed = True
            with self._on_its_way(), contextlib.suppress(GeneratorExit):
                await call.turns(ending=True)
        self.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.aclose()

    @contextlib.contextmanager
    def _on_its_way(self) -> Generator[None]:
        self._going_on = True
        try:
            yield
        finally:
            self._going_on = False
            self._ended = self._call is None or self._call.dead

    def _begun[D: Driven](self, kind: type[D]) -> D:
        if self._call is None:
            self._thread = threading.get_ident()
            self._left = _left_here()
            _end(self._left)
            self._call = self._events.call = kind(self._function, self._context)
        elif not self._ended:
            self._check_place()
            if type(self._call) is not kind:
                raise ConfigurationError("a call that was begun with `for` goes on with `for`; so with `async for`.")
        return cast(D, self._call)

    def _check_place(self) -> None:
        if threading.get_ident() != self._thread:
            raise ConfigurationError(_ANOTHER_THREAD)
        if self._going_on:
            raise ConfigurationError(
                "a call is on its way to its next event, and cannot be gone on with or closed meanwhile. To end it "
                "from outside use `control.cancel()`."
            )


_here = threading.local()
_log = logging.getLogger(__name__)


def _left_here() -> list[Driven]:
    """The calls of this thread that another one has dropped."""
    _here.left = getattr(_here, "left", [])  # a dict by the numbers of threads would mix those of earlier ones in
    return _here.left


def _end(left: list[Driven]) -> None:
    while left:
        try:
            left.pop().end()
        except Exception:
            _log.warning("the end of a call that had been dropped in another thread raised", exc_info=True)


class _Events[E]:
    """Takes the events of a call, inside of it, and hands them out.

    It does not know the `FollowedCall`, which ends the call as soon as nobody holds it.

    Args:
        wanted: Whether an event is one of those asked for.

    Attributes:
        call: The call, when it has begun.
        closed: Whether nobody wants events any more.
    """

    call: Driven
    closed = False

    def __init__(self, wanted: Callable[[Any], bool]) -> None:
        self._wanted = wanted
        self._kept: list[E] = []

    def take(self, event: Any) -> None:
        """Tell others of an event, and hand it out if it is wanted, now or as soon as that can be."""
        fwd()
        if not self._wanted(event):
            return
        self._kept.append(event)
        if self._can_hand_out():
            self.hand_out()

    def hand_out(self) -> None:
        """Hand out what is kept."""
        kept, self._kept = self._kept, []
        if len(kept) > 1 and all(isinstance(event, StepEvent) for event in kept):
            kept.sort(key=cast(Any, _place))
        for event in kept:
            if not self.closed:
                self.call.hand_out(Handed(event))

    def _can_hand_out(self) -> bool:
        # Not from another task or thread; and not in the middle of something awaited: scopes of the event loop that
        # are open there would stay open in the task that follows the call.
        here: greenlet.greenlet | None = greenlet.getcurrent()
        while here is not None and not (isinstance(here, Driven) and here.waits):
            if here is self.call:
                return self.call.task is current_task()
            here = here.parent
        return False


def _under[T](function: Callable[[], T], events: _Events[Any], control: CallControl) -> Callable[[], T]:
    def call() -> T:
        try:
            with handler({emit: events.take}), handler(control):
                value = function()
        except (StopIteration, StopAsyncIteration) as error:
            raise RuntimeError(f"a call that is followed raised {type(error).__name__}") from error
        except (Exception, Signal):
            events.hand_out()  # what was kept happened before
            raise
        events.hand_out()
        return value

    return call


def _place(event: StepEvent) -> tuple[str, ...]:
    """Where an event stands among others: what is nested in a step stands between its two events."""
    place = tuple(event.step_id.split("/"))
    return place if event.phase is Phase.ATTEMPTED else (*place, "~")


# --- what users write -------------------------------------------------------------------------------------------------


@overload
def steps[**P, T](
    skill: Callable[P, Coroutine[Any, Any, T]], /, *args: P.args, **kwargs: P.kwargs
) -> FollowedCall[StepEvent, T]: ...
@overload
def steps[**P, T](skill: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> FollowedCall[StepEvent, T]: ...
def steps(skill: Callable[..., Any], /, *args: Any, **kwargs: Any) -> FollowedCall[StepEvent, Any]:
    """Call a skill step by step: each request to the model and each tool call, before it happens and after.

    Between two steps the caller may look, ask somebody, and go on or stop. Stopped before a tool call, the tool is
    not called, and the history of the call's agent stays as it was.

    Args:
        skill: The skill, or any function that calls skills; each of its calls then has a place of its own.
        args: Its arguments.
        kwargs: Its arguments by keyword.

    Returns:
        The events, to be iterated over with `for` or `async for`; its `value` is then what the skill returned.

    >>> from effectful_agents import NotHandled, Skill, Tool, handler, harness
    >>> from effectful_agents.testing import ScriptedModel, calls
    >>> @Tool.define
    ... def delete(path: str) -> str:
    ...     '''Delete a file.'''
    ...     return "deleted"
    >>> @Skill.define
    ... def tidy() -> str:
    ...     '''Tidy up.'''
    ...     raise NotHandled
    >>> with handler(harness()), handler(ScriptedModel(calls("delete", path="a.txt"), "Done.")):
    ...     run = steps(tidy)
    >>> for step in run:
    ...     print(step.step_id, step.phase)
    000001-model attempted
    000001-model completed
    000002-tool attempted
    000002-tool completed
    000003-model attempted
    000003-model completed
    000004-final completed
    >>> run.value
    'Done.'
    """
    return FollowedCall(_call_of(skill, args, kwargs), lambda event: isinstance(event, StepEvent))


@overload
def stream[T](
    skill: Callable[..., Coroutine[Any, Any, T]], /, *args: Any, partial: bool = False, **kwargs: Any
) -> FollowedCall[StreamEvent, T]: ...
@overload
def stream[T](
    skill: Callable[..., T], /, *args: Any, partial: bool = False, **kwargs: Any
) -> FollowedCall[StreamEvent, T]: ...
def stream(
    skill: Callable[..., Any], /, *args: Any, partial: bool = False, **kwargs: Any
) -> FollowedCall[StreamEvent, Any]:
    """Call a skill, and get the model's replies piece by piece as they come.

    Args:
        skill: The skill, or any function that calls skills. The replies of calls nested in that one are left out.
        args: Its arguments.
        partial: Whether a `PartialValue` comes whenever the answer, as far as it has come, makes another value.
        kwargs: Its arguments by keyword; one that is called `partial` has to be given by position.

    Returns:
        The events, to be iterated over with `for` or `async for`; its `value` is then what the skill returned.

    >>> from effectful_agents import NotHandled, Skill, handler, harness
    >>> from effectful_agents.messages import TextDelta
    >>> from effectful_agents.testing import ScriptedModel
    >>> @Skill.define
    ... def greet(name: str) -> str:
    ...     '''Greet {name}.'''
    ...     raise NotHandled
    >>> with handler(harness()), handler(ScriptedModel("Good morning, Ann.", chunk_size=5)):
    ...     run = stream(greet, "Ann")
    >>> for event in run:
    ...     if isinstance(event, TextDelta):
    ...         print(event.text, end="|")
    Good |morni|ng, A|nn.|
    >>> run.value
    'Good morning, Ann.'
    """
    outer = current_ids()
    depth = 0 if outer is None else outer.depth_inside
    kinds = get_args(StreamEvent.__value__)

    call = _call_of(skill, args, kwargs)

    def wanted(event: Any) -> bool:
        ids = current_ids()
        return isinstance(event, kinds) and ids is not None and ids.depth == depth

    def partially() -> Any:
        with handler(PartialAnswers()):
            return call()

    return FollowedCall(partially if partial else call, wanted)


def _call_of(skill: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Callable[[], Any]:
    def call() -> Any:
        if isinstance(skill, Skill) or current_ids() is not None:
            return completed(skill, args, kwargs)
        # A program that may call several skills: each has its place in it.
        with StepIds():
            return completed(skill, args, kwargs)

    return call
