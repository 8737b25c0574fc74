"""Texts as vectors: likeness of meaning, where somebody gives an embedder."""

from __future__ import annotations

import array
import inspect
import math
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from typing import Any

from effectful_agents.errors import ConfigurationError
from effectful_agents.runtime import wait

__all__ = ["Embedder", "Vectors", "fused"]

type Embedder = Callable[[Sequence[str]], Sequence[Sequence[float]] | Awaitable[Sequence[Sequence[float]]]]
"""Makes a vector of each text; those of one embedder all have the same length. It may be `async def`."""

_RANK = 60
"""What a rank is added to before its share is taken: the usual value, with which no single list decides alone."""


class Vectors:
    """Makes vectors of texts, and compares them.

    Args:
        embedder: What makes them.

    >>> vectors = Vectors(lambda texts: [[len(text), 1.0] for text in texts])
    >>> one, other = vectors.of(["tea", "tee"])
    >>> [(name, round(cosine, 3)) for name, cosine in vectors.alike(one, {"other": other})]
    [('other', 1.0)]
    """

    def __init__(self, embedder: Embedder) -> None:
        self._embedder = embedder

    def of(self, texts: Sequence[str]) -> list[bytes]:
        """The vectors of texts, each of length 1, as they are kept: 4 bytes a number.

        Raises:
            ConfigurationError: The embedder did not give a vector of finite numbers for each.
        """
        if not texts:
            return []
        given: Any = self._embedder(texts)
        if inspect.isawaitable(given):
            given = wait(given)
        made = [[float(number) for number in vector] for vector in given]
        if len(made) != len(texts):
            raise ConfigurationError(
                f"the embedder gave {len(made)} vectors for {len(texts)} texts; it gives one each."
            )
        if len({len(vector) for vector in made}) > 1 or not made[0]:
            raise ConfigurationError("the embedder gave vectors of different lengths, or empty ones.")
        return [_kept(vector) for vector in made]

    def alike(self, wanted: bytes, others: Mapping[str, bytes], least: float = 0.0) -> list[tuple[str, float]]:
        """Those that are like a vector, the most alike first, with the cosine of the angle between the two.

        Args:
            wanted: The vector.
            others: Vectors by their names; those of another length count for nothing.
            least: The cosine that one has to exceed.
        """
        query = array.array("f", wanted)
        found = [
            (name, math.sumprod(query, array.array("f", other)))
            for name, other in others.items()
            if len(other) == len(wanted)
        ]
        return sorted((pair for pair in found if pair[1] > least), key=lambda pair: -pair[1])


def _kept(vector: list[float]) -> bytes:
    length = math.hypot(*vector)
    if not math.isfinite(length):
        raise ConfigurationError("the embedder gave a vector with a number that is not finite.")
    return array.array("f", [number / length if length else 0.0 for number in vector]).tobytes()


def fused(*lists: Iterable[str]) -> list[str]:
    """One list of several, by reciprocal rank fusion: what stands far in front in some, or in many, comes first.

    >>> fused(["a", "b", "c"], ["b", "d"])
    ['b', 'a', 'd', 'c']
    """
    total: dict[str, float] = {}
    for each in lists:
        for place, name in enumerate(each, 1):
            total[name] = total.get(name, 0.0) + 1 / (_RANK + place)
    return sorted(total, key=lambda name: -total[name])
