"""The handlers that are installed, found again in an interpretation."""

import inspect
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from effectful.internals import runtime as effectful_runtime
from effectful.ops.syntax import ObjectInterpretation
from effectful.ops.types import Operation as EffectfulOperation

from effectful_agents.runtime.carrying import Interpretation, current
from effectful_agents.runtime.dispatch import _COMBINED, Chain, Function, _save_args, fwd
from effectful_agents.runtime.layers import Marker, layers_of

__all__ = ["installed"]


def installed(interpretation: Interpretation | None = None) -> list[Interpretation]:
    """The interpretations that are installed, outermost first, each with the operations that it handles.

    What `Layers` or a `coproduct` has put together is taken apart. What effectful's own `handler` installed is found
    too; among other layers it stands outermost, or innermost where it was installed over them.

    Args:
        interpretation: One that others were put together to; None for what is installed here.

    >>> from effectful_agents.runtime import Operation, handler
    >>> greet = Operation.define(str, name="greet")
    >>> with handler({greet: lambda: "Hi"}) as outer, handler({greet: lambda: "Hello"}) as inner:
    ...     installed() == [outer, inner]
    True
    """
    if interpretation is not None:
        return [part for layer in layers_of(interpretation) for part in _parts(layer)]
    here = {operation: entry for operation, entry in current.get().items() if operation not in _NO_EFFECTS}
    markers: set[Marker] = set()
    outside: list[tuple[EffectfulOperation, Function]] = []
    inside: list[tuple[EffectfulOperation, Function]] = []
    for operation, entry in here.items():
        functions = list(_functions(entry))
        ours = [place for place, (_, layer) in enumerate(functions) if isinstance(layer, Marker)]
        markers.update(layer for _, layer in functions if isinstance(layer, Marker))
        for place, (function, layer) in enumerate(functions):
            if not isinstance(layer, Marker):
                (inside if ours and place > ours[-1] else outside).append((operation, function))
    layers = [layer for marker in sorted(markers, key=lambda one: one.serial) for layer in marker.layers]
    return [*_grouped(outside), *(part for layer in layers for part in _parts(layer)), *_grouped(inside)]


_NO_EFFECTS = (fwd, effectful_runtime._get_args)
"""What the library keeps in an interpretation for its own use."""


def _parts(layer: Interpretation) -> Iterator[Interpretation]:
    """What a layer was put together of; most are one thing."""
    if isinstance(layer, ObjectInterpretation):
        if layer.implementations:
            yield layer
        return
    yield from _grouped(
        (operation, function)
        for operation, entry in layer.items()
        if operation not in _NO_EFFECTS
        for function, _ in _functions(entry)
    )


def _grouped(pairs: Iterable[tuple[EffectfulOperation, Function]]) -> Iterator[Interpretation]:
    """Functions by the objects that they are methods of; those of none stand together."""
    groups: list[Interpretation] = []
    for operation, function in pairs:
        owner = getattr(function, "__self__", None) if inspect.ismethod(function) else None
        if isinstance(owner, ObjectInterpretation):
            if not any(one is owner for one in groups):
                groups.append(owner)
            continue
        free: Any = next((one for one in groups if isinstance(one, dict) and operation not in one), None)
        if free is None:
            free = {}
            groups.append(free)
        free[operation] = function
    yield from groups


def _functions(entry: Function) -> Iterator[tuple[Function, object]]:
    """The functions that an interpretation has for an operation, outermost first, each with what it came with."""
    if type(entry) is Chain:
        links = []
        link: Chain | None = entry
        while link is not None:
            links.append(link)
            link = link.below
        for one in reversed(links):
            # Of what the library has put together, and was installed by us, all parts came with the same layer.
            yield from ((function, layer or one.layer) for function, layer in _functions(one.function))
        return
    code = getattr(entry, "__code__", None)
    if code is _COMBINED:
        closed_over = _closure(entry)
        yield from _functions(closed_over["cont"])
        yield from _functions(closed_over["body"])
    elif code in _WRAPPING:
        yield from _functions(entry.__wrapped__)  # ty: ignore[missing-attribute]  # `functools.wraps` made it
    else:
        yield entry, None


def _closure(function: Any) -> Mapping[str, Any]:
    cells = zip(function.__code__.co_freevars, function.__closure__, strict=True)
    return {name: cell.cell_contents for name, cell in cells}


def _one_parameter(argument: Any) -> Any:
    return argument


_WRAPPING: Any = (
    _save_args(_one_parameter).__code__,  # ty: ignore[missing-attribute]
    effectful_runtime._restore_args(_one_parameter).__code__,  # ty: ignore[missing-attribute]
)
"""What the library puts around functions that it combines."""
