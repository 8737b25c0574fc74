"""Types as they are written, for errors and for names on the wire."""

from __future__ import annotations

import re
import threading
import types
import typing
from collections.abc import Callable, Iterable
from typing import Annotated, Any, Literal, TypeAliasType

from effectful_agents.encoding.registry import on_change

__all__ = ["TypeCache", "full_name", "plain_type", "type_name", "without_addresses"]


class TypeCache[V]:
    """What `build` makes of a type, made once.

    Python's own equality of types is too coarse for a key: `int | str == str | int`, though their schemas differ. So
    a type is looked up by its identity, then by its structure in the order in which it is written. Both tables are
    bounded: what is derived from a class holds the class, so a weak table would never let go of a class made in a
    function. They are emptied when a codec is registered, and what was begun before that is not kept.

    Args:
        build: Makes the value; an exception is not remembered.
        size: How many types are kept; beyond it the oldest is forgotten, and made again when it is needed.
    """

    __slots__ = ("_build", "_by_identity", "_by_structure", "_generation", "_lock", "_size")

    def __init__(self, build: Callable[[Any], V], size: int = 1024) -> None:
        self._build = build
        self._size = size
        # The entries hold the type itself: while one is there, no other object can have the identities in its key.
        self._by_identity: dict[int, tuple[Any, V]] = {}
        self._by_structure: dict[Any, tuple[Any, V]] = {}
        self._generation = 0
        self._lock = threading.Lock()
        on_change(self._forget)

    def __call__(self, tp: Any) -> V:
        entry = self._by_identity.get(id(tp))
        if entry is not None and entry[0] is tp:
            return entry[1]
        begun = self._generation
        key = _structure(tp)
        try:
            found = self._by_structure.get(key) or (tp, self._build(tp))
        except TypeError:
            if _is_hashable(key):
                raise
            return self._build(tp)  # a Literal of a list, which is refused there
        with self._lock:
            if begun == self._generation:
                self._keep(self._by_structure, key, found)
                self._keep(self._by_identity, id(tp), (tp, found[1]))
        return found[1]

    def _keep(self, table: dict[Any, tuple[Any, V]], key: Any, entry: tuple[Any, V]) -> None:
        while len(table) >= self._size and key not in table:
            del table[next(iter(table))]
        table[key] = entry

    def _forget(self) -> None:
        with self._lock:
            self._generation += 1
            self._by_identity.clear()
            self._by_structure.clear()


def _structure(tp: Any) -> Any:
    """A key for a type: equal for two types only if they are written alike, the order of alternatives included."""
    if isinstance(tp, list):  # the parameters of a Callable
        return tuple(map(_structure, tp))
    origin = typing.get_origin(tp)
    if origin is None:
        return id(tp)
    if origin is Literal:
        return (Literal, *((type(value), value) for value in typing.get_args(tp)))
    if origin is Annotated:
        # Metadata need not be hashable, and 1 equals True.
        return (Annotated, _structure(tp.__origin__), *map(id, tp.__metadata__))
    return (id(origin), getattr(tp, "__unpacked__", False), *map(_structure, typing.get_args(tp)))


def _is_hashable(key: Any) -> bool:
    try:
        hash(key)
    except TypeError:
        return False
    return True


def plain_type(tp: Any) -> Any:
    """A type without the names and metadata around it: `str` for `Encodable[Annotated[str, MaxLen(3)]]`."""
    for _ in range(_MOST_NAMES):
        origin = typing.get_origin(tp)
        if isinstance(tp, TypeAliasType):
            tp = tp.__value__
        elif isinstance(origin, TypeAliasType):
            tp = origin.__value__[typing.get_args(tp)]
        elif origin is Annotated:
            tp = tp.__origin__
        elif isinstance(tp, typing.NewType):
            tp = tp.__supertype__
        else:
            break
    return tp


_MOST_NAMES = 100
"""More names around a type never end: `type A = A`."""


def full_name(kind: Any) -> str:
    """A class with its module, where it is not a builtin: `socket.socket`; local classes by their own name only."""
    name = type_name(kind)
    module = getattr(kind, "__module__", "builtins")
    local = "<locals>" in getattr(kind, "__qualname__", "")
    return name if local or module in ("builtins", "__main__") or not isinstance(kind, type) else f"{module}.{name}"


def type_name(tp: Any, *, metadata: bool = False) -> str:
    """A type as a person writes it, the same in every process.

    Args:
        tp: The type.
        metadata: Whether what stands behind it in `Annotated` is written as well, as its `repr`.

    >>> type_name(dict[str, int | None]), type_name(tuple[int, ...])
    ('dict[str, int | None]', 'tuple[int, ...]')
    """

    def written(parts: Iterable[Any], between: str = ", ") -> str:
        return between.join([type_name(part, metadata=metadata) for part in parts])

    origin, arguments = typing.get_origin(tp), typing.get_args(tp)
    if tp is None or tp is type(None):
        return "None"
    if tp is ...:
        return "..."
    if origin is Annotated:
        plain = written([tp.__origin__])
        return f"Annotated[{', '.join([plain, *map(repr, tp.__metadata__)])}]" if metadata else plain
    if origin in (typing.Union, types.UnionType):
        return written(arguments, " | ")
    if origin is Literal:
        return f"Literal[{', '.join(map(_literal_name, arguments))}]"
    if origin is not None and origin is not tp:  # `Generic` is its own
        empty = origin is tuple and type(tp) is types.GenericAlias
        return f"{written([origin])}[{written(arguments) or '()'}]" if arguments or empty else written([origin])
    if isinstance(tp, list | tuple):  # the parameters of a function
        return f"[{written(tp)}]"
    if isinstance(tp, str):
        return tp
    name = getattr(tp, "__qualname__", None) or getattr(tp, "__name__", None)
    return name.rpartition("<locals>.")[2] if isinstance(name, str) else without_addresses(str(tp))


def _literal_name(value: Any) -> str:
    # An enum member's own repr may hold anything.
    return repr(value) if type(value) in (str, int, bool, bytes, type(None)) else str(value)


_ADDRESS = re.compile(r" at 0x[0-9a-fA-F]{6,}")


def without_addresses(text: str) -> str:
    """A text without the addresses that Python's default `repr` puts in."""
    return _ADDRESS.sub("", text)
