"""How a handled operation runs: chains of handler functions, and the `fwd` that walks down a chain.

An interpretation holds for each operation a `Chain`, the functions of its handlers from the innermost to the outermost.
While one of them runs, a `Frame` in a context variable says which comes next, so `fwd` needs no further handler. The
library's own way, a new interpretation and an inspected signature for each step, takes thirty times as long.

Both ways mix, in any order. A chain is a function like any other for the library's `handler`; functions that its
`coproduct` has made are recognised here and given the `fwd` that they look for.
"""

import contextvars
import functools
import inspect
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from typing import Any, Protocol, cast

from effectful.internals import runtime as effectful_runtime
from effectful.ops import semantics
from effectful.ops.types import Operation as EffectfulOperation

from effectful_agents.runtime.carrying import Interpretation, current

type Function = Callable[..., Any]

_library_handler: Callable[[Any], AbstractContextManager[Any]] = semantics.handler

_OUTSIDE = "`fwd` should only be called in the context of a handler"
_WRAPPERS = 64
"""How many `__wrapped__` are followed. Some objects, such as `unittest.mock.call`, have one without end."""


class Beyond(Protocol):
    """What `fwd` reaches after the last function of a chain."""

    def forward_past(self, args: tuple, kwargs: dict[str, Any], /) -> Any:
        """Go on past the chain with these arguments."""

    def handled_past(self, interpretation: Interpretation, /) -> bool:
        """Whether another handler comes there, and not the default rule."""


class Chain:
    """The functions that handle one operation, the innermost handler's first.

    Args:
        function: The innermost handler's function.
        below: Where its `fwd` goes; None for what lies beyond the chain.
        layer: The installation that the function came with, so that leaving it can find it again.
    """

    __slots__ = ("below", "foreign", "function", "layer")

    def __init__(self, function: Function, below: "Chain | None", layer: object = None) -> None:
        self.function = function
        self.below = below
        self.layer = layer
        self.foreign = _looks_for_fwd(function)

    @property
    def __signature__(self) -> inspect.Signature:
        # The library's `handler` asks for it. A property, as ours never does and inspecting is slow.
        return inspect.signature(self.function)

    def __call__(self, /, *args: Any, **kwargs: Any) -> Any:
        """Run as a handler function of the library's own operations, which have set the `fwd` to end at."""
        interpretation = current.get()
        return perform(self, _Library(interpretation.get(fwd)), interpretation, args, kwargs)


class Frame:
    """One running handler function: its arguments, and where its `fwd` goes."""

    __slots__ = ("args", "below", "beyond", "interpretation", "kwargs")

    def __init__(
        self, below: Chain | None, beyond: Beyond, interpretation: Interpretation, args: tuple, kwargs: dict[str, Any]
    ) -> None:
        self.below = below
        self.beyond = beyond
        self.interpretation = interpretation
        self.args = args
        self.kwargs = kwargs

    def forward(self, interpretation: Interpretation, args: tuple, kwargs: dict[str, Any]) -> Any:
        """Run the next function down, or what lies beyond the chain."""
        if self.below is not None:
            return perform(self.below, self.beyond, interpretation, args, kwargs)
        outer = _frame.get()
        # A default rule has nothing to forward to, least of all the handler that called it.
        _frame.set(Frame(None, _NOTHING, interpretation, args, kwargs))
        try:
            return self.beyond.forward_past(args, kwargs)
        finally:
            _frame.set(outer)

    def reaches_handler(self, interpretation: Interpretation) -> bool:
        """Whether `forward` would come to another handler's function."""
        return self.below is not None or self.beyond.handled_past(interpretation)


_frame: contextvars.ContextVar[Frame | None] = contextvars.ContextVar("effectful_agents_frame", default=None)


def perform(
    entry: Function, beyond: Beyond, interpretation: Interpretation, args: tuple, kwargs: dict[str, Any]
) -> Any:
    """Handle an operation.

    Args:
        entry: What the interpretation holds for it: a chain, or any function, which the library's own ways install.
        beyond: What comes after the chain's last function.
        interpretation: The current one.
        args: For the innermost function.
        kwargs: For the innermost function.

    Returns:
        What the innermost function returns.
    """
    chain = entry if type(entry) is Chain else Chain(entry, None)
    frame = Frame(chain.below, beyond, interpretation, args, kwargs)
    outer = _frame.get()
    _frame.set(frame)
    try:
        if chain.foreign:
            with _library_handler({fwd: effectful_runtime._restore_args(_Rest(frame))}):
                return chain.function(*args, **kwargs)
        return chain.function(*args, **kwargs)
    finally:
        # Not a token's `reset`: it raises where a greenlet was given another context meanwhile.
        _frame.set(outer)


class _Rest:
    """The rest of a chain, as the function under `fwd` that the library's own combinations look for."""

    def __init__(self, frame: Frame) -> None:
        self.frame = frame

    def __call__(self, /, *args: Any, **kwargs: Any) -> Any:
        return self.frame.forward(current.get(), args, kwargs)


class _Forward(EffectfulOperation):
    """The class of `fwd`."""

    def __call__(self, /, *args: Any, **kwargs: Any) -> Any:
        frame = _frame.get()
        if frame is not None:
            interpretation = current.get()
            if _is_innermost(frame, interpretation):
                if not args and not kwargs:
                    args, kwargs = frame.args, frame.kwargs
                return frame.forward(interpretation, args, kwargs)
        return EffectfulOperation.__call__(self, *args, **kwargs)


def _is_innermost(frame: Frame, interpretation: Interpretation) -> bool:
    """Whether no handler run by the library is more inner than our frame; it would have set another `fwd`."""
    started_in = frame.interpretation
    return interpretation is started_in or interpretation.get(fwd) is started_in.get(fwd)


# The library's own object with another class: whoever imported it, from wherever, has this one.
fwd = semantics.fwd
fwd.__class__ = _Forward


def forward_through(functions: Sequence[Function], /, *args: Any, **kwargs: Any) -> Any:
    """Forward as `fwd` does, through more functions first: as if their handlers stood right outside of this one.

    Args:
        functions: The innermost first; at least one. The `fwd` of the last goes where that of the caller would.
        args: Arguments for the first of them.
        kwargs: Arguments for the first of them.
    """
    interpretation = current.get()
    frame = _frame.get()
    below, beyond = None, cast(Beyond, _Library(interpretation.get(fwd)))
    if frame is not None and _is_innermost(frame, interpretation):
        below, beyond = frame.below, frame.beyond
    for function in reversed(functions):
        below = Chain(function, below)
    assert below is not None
    return perform(below, beyond, interpretation, args, kwargs)


def can_forward() -> bool:
    """Whether `fwd` would reach another handler of the operation being handled, and not its default rule.

    A handler of an `__apply__` of the operation's classes counts where `fwd` goes there. False outside of handlers.
    """
    interpretation = current.get()
    frame = _frame.get()
    if frame is not None and _is_innermost(frame, interpretation):
        return frame.reaches_handler(interpretation)
    return _Library(interpretation.get(fwd)).handled_past(interpretation)


class _Library:
    """Beyond a chain that the library called: the `fwd` that it had set before.

    Args:
        entry: What the interpretation held for `fwd`. Taken when the chain is entered, as the library replaces it
            whenever it is used.
    """

    def __init__(self, entry: Function | None) -> None:
        self.entry = entry

    def forward_past(self, args: tuple, kwargs: dict[str, Any], /) -> Any:
        if self.entry is None:
            raise RuntimeError(_OUTSIDE)
        # The arguments are saved, or without any the entry would take those saved last: another operation's, perhaps.
        saved = {effectful_runtime._get_args: lambda: (args, kwargs), fwd: fwd.__default_rule__}
        with _library_handler(saved):
            return self.entry(*args, **kwargs)

    def handled_past(self, interpretation: Interpretation, /) -> bool:
        if self.entry is None:
            return False
        function = inspect.unwrap(self.entry)
        if isinstance(function, _Rest):
            return function.frame.reaches_handler(interpretation)
        return getattr(function, "__name__", None) != "__default_rule__"


class _Nothing:
    """Beyond a default rule."""

    def forward_past(self, args: tuple, kwargs: dict[str, Any], /) -> Any:
        raise RuntimeError(_OUTSIDE)

    def handled_past(self, interpretation: Interpretation, /) -> bool:
        return False


_NOTHING = _Nothing()


def _save_args(function: Function) -> Function:
    """Save the arguments of each call for a `fwd()` without arguments.

    The library's own leaves out functions without parameters. A `now()` that is forwarded inside of a handler then gets
    the arguments of the operation handled there.
    """
    if isinstance(function, EffectfulOperation) and not inspect.signature(function).parameters:
        return function  # `evaluate` renames a variable by finding the new variable itself here

    @functools.wraps(function)
    def saving(*args: Any, **kwargs: Any) -> Any:
        with _library_handler({effectful_runtime._get_args: lambda: (args, kwargs)}):
            return function(*args, **kwargs)

    return saving


effectful_runtime._save_args = _save_args  # ty: ignore[invalid-assignment]  # it was generic

_combined: Any = effectful_runtime._set_prompt(fwd, fwd, fwd)
_COMBINED = _combined.__code__


def _looks_for_fwd(function: Any) -> bool:
    """Whether a function finds its continuation under `fwd` in the interpretation.

    Such are those made by the library's `coproduct` and `handler`, and chains inside of their wrappers.
    """
    for _ in range(_WRAPPERS):
        if getattr(function, "__code__", None) is _COMBINED or type(function) is Chain:
            return True
        function = getattr(function, "__wrapped__", None)
        if function is None:
            return False
    return False
