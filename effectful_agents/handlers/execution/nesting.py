"""How deep values lie in each other, where the interpreter follows them in C and looks at no limit.

To free an iterator, C frees the iterator that it takes from, and so on; to hash a tuple, it hashes those within. A few
ten thousand levels use up the stack, and the process ends. There are too many kinds of values, and ways to make one, to
count at each of them. But whatever is made is young, and the collector knows the young: before each of its rounds they
are looked at, and what they hold is followed down. Lists, dictionaries, sets, functions and objects of classes that are
written in Python are freed with care, and are not followed.
"""

from __future__ import annotations

import builtins
import collections
import gc
import time
import types
import typing
from collections.abc import Callable, Iterable, Iterator
from typing import Any

__all__ = ["DEPTH", "Nesting"]

DEPTH = 5_000
"""Levels of values in values. Between two rounds of the collector there are some thousand more; it takes 35,000 to do
harm in a stack of 8 MB."""

_DEEPEST = 20_000
"""Levels that are too many, whoever made them."""

_MOST = 200_000
"""Values that are followed in one round. What has more parts than this is not known to be flat."""

_HEAP_TYPE, _IMMUTABLE_TYPE = 1 << 9, 1 << 8
_CAREFUL = frozenset(
    {
        *(list, dict, set, frozenset, type, object, str, bytes, int, float, bool, complex, type(None)),
        *(types.FunctionType, types.BuiltinFunctionType, types.MethodWrapperType, types.ModuleType, types.CodeType),
        *(types.FrameType, types.TracebackType),
    }
)


def _is_followed(kind: type) -> bool:
    """Whether values of a kind are followed in C without an end."""
    if kind in _CAREFUL:
        return False
    # A class that is written in Python frees its objects with care. Tuples of such a class are hashed like any other.
    return issubclass(kind, tuple) if kind.__flags__ & (_HEAP_TYPE | _IMMUTABLE_TYPE) == _HEAP_TYPE else True


class Nesting:
    """Looks at what is new before each round of the collector, as long as it is watched.

    Args:
        is_watched: Whether anything runs whose values are to be looked at.
        stop: Is called when something lies too deep.
    """

    def __init__(self, is_watched: Callable[[], bool], stop: Callable[[], None]) -> None:
        self._is_watched = is_watched
        self._stop = stop
        self._waiting: list[Any] = []
        self._pause = 0
        self._before = 0
        self._is_deep = self._was_deep = False
        self._has_looked = False
        self.rounds = 0
        """Rounds of the collector that it was called at, and had room in the stack to do what it does."""
        self.next_look = 0.0
        """Before this time `look_at_all` is not to be called again."""
        self.changeable = 0
        """How many values have been made that may be put into each other later on, when nothing new is made."""

    def __call__(self, phase: str, info: dict[str, int]) -> None:
        """What the collector calls."""
        if phase == "start":
            self._has_looked = False
            if self._is_watched():
                self._look()
            self._has_looked = True
            return
        # Not before the round: what is raised in a thread would come up at this call, and be thrown away.
        if self._is_deep:
            self._is_deep = False
            self._stop()
        self.rounds += self._has_looked

    def _look(self) -> None:
        kinds = _Kinds()
        young = [value for value in gc.get_objects(generation=0) if kinds[type(value)]]
        self.changeable += sum(type(value) in _CHANGEABLE for value in young)
        if not _are_flat(young, kinds):
            self._waiting += [value for value in young if not _is_unfinished(value)]
        # To follow takes time where there is much that is old: then it is done more rarely.
        self._pause -= 1
        if self._waiting and (self._pause <= 0 or len(self._waiting) > _CHANCE):
            waiting, self._waiting = self._waiting, []
            self._is_deep = self._lie_too_deep(waiting, kinds, DEPTH)

    def begin(self) -> None:
        """Begin to watch: what lies deep already was not made by what is watched from now on."""
        if self._was_deep:
            self._was_deep = False
            gc.collect()  # what was stopped is still there, with all that it made, until it is collected
            self._found_changeable()
        self._before = 0
        if self.changeable > DEPTH:
            self._before = _depth(self._found_changeable(), _Kinds(), _DEEPEST)[0]

    def forget(self) -> None:
        """Let go of what waits to be looked at: nothing is watched any more."""
        self._waiting.clear()

    def look_at_all(self) -> None:
        """Look at every value that may have been put into another one since it was made."""
        began = time.monotonic()
        found = self._found_changeable()
        if self.changeable > DEPTH and self._lie_too_deep(found, _Kinds(), min(self._before + DEPTH, _DEEPEST)):
            self._stop()
        # In a large program it takes a while, and the program has many such values of its own.
        now = time.monotonic()
        self.next_look = now + (now - began)

    def _found_changeable(self) -> list[Any]:
        found = [value for value in gc.get_objects() if type(value) in _CHANGEABLE]
        self.changeable = len(found)
        return found

    def _lie_too_deep(self, values: Iterable[Any], kinds: _Kinds, most: int) -> bool:
        depth, followed = _depth(values, kinds, most)
        self._pause = followed // 2000
        is_deep = depth > most or followed > _MOST
        self._was_deep = self._was_deep or is_deep
        return is_deep


_CHANCE = 4_000
"""Values that wait to be followed."""

_CHANGEABLE: frozenset[type] = frozenset(
    {
        *(types.GeneratorType, collections.deque, collections.defaultdict, typing.TypeVar, typing.TypeAliasType),
        *(kind for kind in vars(builtins).values() if isinstance(kind, type) and issubclass(kind, BaseException)),
    }
)


class _Kinds(dict[type, bool]):
    """Which kinds are followed, for one round: to keep it would keep the classes of the code."""

    def __missing__(self, kind: type) -> bool:
        known = self[kind] = _is_followed(kind)
        return known


def _is_unfinished(value: Any) -> bool:
    """Whether a tuple is just being filled: C goes on with it only as long as nobody else keeps it."""
    return type(value) is tuple and len(gc.get_referents(value)) < len(value)


def _are_flat(values: list[Any], kinds: _Kinds) -> bool:
    """Whether values lie but a few levels deep in each other, as nearly all do: that is seen quickly."""
    level = values
    for _ in range(8):
        level = [one for one in gc.get_referents(*level) if kinds[type(one)]]
        if not level:
            return True
        if len(level) > 4 * len(values) + 1000:
            break
    return False


def _depth(values: Iterable[Any], kinds: _Kinds, most: int) -> tuple[int, int]:
    """How deep values lie in each other, and how many there were to follow, up to where it is too deep or too many."""
    found = 0
    depths: dict[int, int] = {}
    for value in values:
        if id(value) in depths:
            continue
        # Each entry: a value, what is left of what it holds, and how deep that has been found to be.
        path: list[tuple[Any, Iterator[Any], list[int]]] = [(value, _parts(value, kinds), [0])]
        depths[id(value)] = 0  # while it is followed: what comes back to itself lies no deeper for that
        while path:
            holder, parts, deepest = path[-1]
            for part in parts:
                known = depths.get(id(part))
                if known is None:
                    depths[id(part)] = 0
                    path.append((part, _parts(part, kinds), [0]))
                    break
                deepest[0] = max(deepest[0], known)
            else:
                path.pop()
                depths[id(holder)] = depth = deepest[0] + 1
                if path:
                    path[-1][2][0] = max(path[-1][2][0], depth)
                found = max(found, depth)
            if found > most or len(path) > most or len(depths) > _MOST:
                return max(found, len(path)), len(depths)
    return found, len(depths)


def _parts(value: Any, kinds: _Kinds) -> Iterator[Any]:
    return iter([one for one in gc.get_referents(value) if kinds[type(one)]])
