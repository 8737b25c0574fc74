"""Interpretations put together: one over the other, several as one, one taken out again."""

import itertools
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from effectful.internals.runtime import _get_args
from effectful.ops.types import Operation as EffectfulOperation

from effectful_agents.runtime.carrying import Interpretation
from effectful_agents.runtime.dispatch import Chain, Function, fwd


class Layers(Mapping[EffectfulOperation, Callable[..., Any]]):
    """Several interpretations as one, the outermost first.

    `handler(Layers(a, b))` does what `with handler(a), handler(b)` does, with one installation. It is an interpretation
    for effectful's own `handler` and `coproduct` too.

    Args:
        interpretations: Outermost first. Layers among them are taken apart.
    """

    __slots__ = ("layers",)

    layers: tuple[Interpretation, ...]

    def __init__(self, *interpretations: Interpretation) -> None:
        self.layers = tuple(layer for given in interpretations for layer in layers_of(given))

    def __getitem__(self, operation: EffectfulOperation) -> Callable[..., Any]:
        entry = None
        for layer in self.layers:
            function = layer.get(operation)
            if function is not None:
                entry = function if entry is None else _over(entry, operation, function, None)
        if entry is None:
            raise KeyError(operation)
        return entry

    def __iter__(self) -> Iterator[EffectfulOperation]:
        return iter(dict.fromkeys(operation for layer in self.layers for operation in layer))

    def __len__(self) -> int:
        return sum(1 for _ in self)

    def __repr__(self) -> str:
        return f"Layers({', '.join(map(repr, self.layers))})"


class Marker:
    """What `without` finds layers by that were installed together, and `installed` the layers themselves.

    Args:
        layers: Outermost first.

    Attributes:
        serial: Higher for what was installed later.
    """

    __slots__ = ("layers", "serial")

    _serials = itertools.count()

    def __init__(self, layers: tuple[Interpretation, ...]) -> None:
        self.layers = layers
        self.serial = next(self._serials)


def layers_of(interpretation: Interpretation) -> tuple[Interpretation, ...]:
    """The layers of an interpretation; most have one.

    Raises:
        TypeError: It is not a mapping.
    """
    if isinstance(interpretation, Layers):
        return interpretation.layers
    if isinstance(interpretation, Mapping):
        return (interpretation,)
    hint = "; make an instance of it" if isinstance(interpretation, type) else ""
    raise TypeError(f"an interpretation is a mapping from operations to functions, not {interpretation!r}{hint}")


def coproduct(outer: Interpretation, inner: Interpretation) -> Interpretation:
    """Combine two interpretations into one that handles what either does.

    Where both handle an operation, `inner` answers and its `fwd` goes to `outer`.
    """
    return extended(outer, layers_of(inner), None)


def extended(outer: Interpretation, layers: Iterable[Interpretation], layer: object) -> dict[EffectfulOperation, Any]:
    """An interpretation with layers put over it.

    Args:
        outer: Stays as it is.
        layers: Outermost first.
        layer: What `without` finds them by; None for layers that are never taken out.
    """
    result: dict[EffectfulOperation, Any] = dict(outer)
    for given in layers:
        for operation, function in given.items():
            result[operation] = _over(result.get(operation), operation, function, layer)
    return result


def _over(entry: Function | None, operation: EffectfulOperation, function: Function, layer: object) -> Function:
    """What an interpretation holds for an operation, after one more function."""
    if operation is fwd or operation is _get_args:
        return function  # never called by a handler's `fwd`, only replaced
    below = entry if entry is None or type(entry) is Chain else Chain(entry, None)
    for each in reversed(list(_links(function))):
        below = Chain(each, below, layer)
    assert below is not None
    return below


def _links(function: Function) -> Iterator[Function]:
    """The functions of a chain, or the one function."""
    if type(function) is not Chain:
        yield function
        return
    link: Chain | None = function
    while link is not None:
        yield link.function
        link = link.below


def without(interpretation: Interpretation, layer: object) -> Interpretation:
    """An interpretation without what came with one layer."""
    result = {}
    for operation, entry in interpretation.items():
        kept = _chain_without(entry, layer) if type(entry) is Chain else entry
        if kept is not None:
            result[operation] = kept
    return result


def _chain_without(chain: Chain, layer: object) -> Chain | None:
    links = []
    link: Chain | None = chain
    while link is not None:
        links.append(link)
        link = link.below
    if all(link.layer is not layer for link in links):
        return chain
    below = None
    for link in reversed(links):
        if link.layer is not layer:
            below = Chain(link.function, below, link.layer)
    return below
