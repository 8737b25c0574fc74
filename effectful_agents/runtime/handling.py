"""`handler`: install an interpretation for the time of a block or of each call of a function."""

import contextlib
import functools
import inspect
from collections.abc import Callable, Sequence
from types import TracebackType
from typing import Any

from effectful.ops.types import Operation as EffectfulOperation

from effectful_agents.runtime.carrying import Interpretation, current, evaluated
from effectful_agents.runtime.layers import Marker, extended, layers_of, without


def handler(interpretation: Interpretation) -> "Installer":
    """Install an interpretation over the current one.

    >>> from effectful_agents.runtime import Operation, fwd, handler
    >>> @Operation.define
    ... def greeting(name: str) -> str:
    ...     return f"Hello {name}"
    >>> with handler({greeting: lambda name: fwd(name.title()) + "!"}):
    ...     greeting("ann")
    'Hello Ann!'

    As a decorator it installs for the time of each call; of an `async def`, while its coroutine runs.

    An interpretation that has to begin and end something has a method `while_installed`, which returns a context
    manager: it is entered when the handlers are there, and left, with the exception that leaves the block, before they
    go.

    Args:
        interpretation: A dictionary from operations to functions, an `ObjectInterpretation`, `Layers`, or what a
            `coproduct` made.

    Returns:
        A context manager that gives the interpretation, and a decorator. It may be used again, also while it is in use.

    Raises:
        TypeError: `interpretation` is not a mapping, or the decorated function is a generator function, whose body
            would run when the handlers are gone.
    """
    return Installer(interpretation)


class Installer:
    """What `handler` returns."""

    __slots__ = ("_installed", "_interpretation", "_lasting", "_layers")

    def __init__(self, interpretation: Interpretation) -> None:
        self._interpretation = interpretation
        self._layers = layers_of(interpretation)
        self._lasting = [layer for layer in self._layers if hasattr(type(layer), "while_installed")]
        self._installed: dict[int, _Installation] = {}

    def __enter__(self) -> Any:
        installation = _Installation(self._layers, self._lasting)
        self._installed[id(installation.installed)] = installation
        return self._interpretation

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        # One object may be entered in several contexts at once. Each finds its own by the interpretation that it
        # stands in, or, leaving out of order, takes the latest.
        installation = self._installed.pop(id(current.get()), None)
        if installation is None:
            _, installation = self._installed.popitem()
        installation.leave(error)

    def __call__[**P, T](self, function: Callable[P, T]) -> Callable[P, T]:
        if isinstance(function, staticmethod | classmethod):
            wrap: Any = type(function)
            return wrap(self(function.__func__))
        body = _body(function)
        if inspect.isgeneratorfunction(body) or inspect.isasyncgenfunction(body):
            name = getattr(function, "__qualname__", repr(function))
            raise TypeError(
                f"`handler` cannot decorate the generator function `{name}`: its body runs after the call, "
                "when the handlers are gone; write `with handler(...)` around the loop over it"
            )
        return self._around_coroutine(function) if inspect.iscoroutinefunction(body) else self._around_call(function)

    def _around_call[**P, T](self, function: Callable[P, T]) -> Callable[P, T]:
        @functools.wraps(function)
        def call(*args: P.args, **kwargs: P.kwargs) -> T:
            installation = _Installation(self._layers, self._lasting)
            try:
                value = function(*args, **kwargs)
            except BaseException as error:
                installation.leave(error)
                raise
            installation.leave()
            return value

        return call

    def _around_coroutine(self, function: Callable[..., Any]) -> Any:
        @functools.wraps(function)
        async def call(*args: Any, **kwargs: Any) -> Any:
            installation = _Installation(self._layers, self._lasting)
            try:
                value = await function(*args, **kwargs)
            except BaseException as error:
                installation.leave(error)
                raise
            installation.leave()
            return value

        return call


def _body(function: Callable[..., Any]) -> Callable[..., Any]:
    """What says whether a callable is a coroutine function or a generator function."""
    if isinstance(function, EffectfulOperation):
        return function.__default__
    if isinstance(function, type) or inspect.isroutine(function) or isinstance(function, functools.partial):
        return function
    return function.__call__


class _Installation:
    """Layers installed once, until `leave`."""

    __slots__ = ("_evaluated", "_lasting", "_layer", "_outer", "installed")

    def __init__(self, layers: tuple[Interpretation, ...], lasting: Sequence[Any] = ()) -> None:
        self._outer = current.get()
        # Not this object itself: every installation would be a reference cycle, for the collector to find.
        self._layer = Marker(layers)
        self.installed = extended(self._outer, layers, self._layer)
        current.set(self.installed)
        self._evaluated = evaluated.get()
        if self._evaluated is not None:
            evaluated.set(None)
        self._lasting: contextlib.ExitStack | None = None
        if lasting:
            self._begin(lasting)

    def _begin(self, lasting: Sequence[Any]) -> None:
        self._lasting = contextlib.ExitStack()
        try:
            for layer in lasting:
                self._lasting.enter_context(layer.while_installed())
        except BaseException as error:
            self.leave(error)
            raise

    def leave(self, error: BaseException | None = None) -> None:
        """End what lasts as long as the layers are there, told what leaves the block, and take them out."""
        try:
            if self._lasting is not None:
                self._lasting.__exit__(None if error is None else type(error), error, None)
        finally:
            self._take_out()

    def _take_out(self) -> None:
        """Restore what was there. Should others have come or gone since, take out only these layers."""
        here = current.get()
        if here is self.installed:
            current.set(self._outer)
            if self._evaluated is not None:
                evaluated.set(self._evaluated)
        else:
            current.set(without(here, self._layer))
            evaluated.set(None)
