"""Statistics of pairs: what the differences between two measurements of the same cases show.

All of it is exact, or drawn with a fixed seed: the same numbers give the same result in every process, and two
measurements that change places give the same probability and the opposite difference.
"""

from __future__ import annotations

import bisect
import itertools
import math
import random
from collections.abc import Sequence

__all__ = ["bootstrap_interval", "permutation_test", "rank_direction", "sign_test", "wilcoxon_test"]

_EXACT = 14
"""Differences of which all signs are tried."""

_SEED = 20_261_201


def sign_test(better: int, worse: int) -> float:
    """The probability of a split as uneven as this one, or more so, if both directions were equally likely.

    For True and False this is the exact form of McNemar's test.

    >>> sign_test(6, 0), sign_test(2, 2), sign_test(0, 0)
    (0.03125, 1.0, 1.0)
    """
    count = better + worse
    ways = sum(math.comb(count, few) for few in range(min(better, worse) + 1))
    return min(1.0, 2 * ways / 2**count)


def permutation_test(differences: Sequence[float]) -> float:
    """The probability of a mean as far from 0 as this one, or further, if each sign had come by a toss.

    All signs are tried for up to 14 differences that are not 0; for more, 10,000 draws (fewer where there are more than
    200 of them) estimate it.

    >>> permutation_test([0.5] * 6), permutation_test([0.25, -0.25]), permutation_test([])
    (0.03125, 1.0, 1.0)
    """
    sizes = sorted(abs(each) for each in differences if each)
    if not sizes:
        return 1.0
    # Sums of the same numbers in another order may differ in the last digit.
    least = abs(math.fsum(differences)) * (1 - 1e-12)
    if len(sizes) <= _EXACT:
        reached = sum(abs(math.fsum(signed)) >= least for signed in itertools.product(*((-x, x) for x in sizes)))
        return min(1.0, reached / 2 ** len(sizes))
    total = math.fsum(sizes)
    draw = random.Random(_SEED).getrandbits
    draws = max(1_000, min(10_000, 2_000_000 // len(sizes)))
    reached = 0
    for _ in range(draws):
        bits = f"{draw(len(sizes)):0{len(sizes)}b}"
        positive = math.fsum(itertools.compress(sizes, map(int, bits)))
        reached += abs(2 * positive - total) >= least
    return (reached + 1) / (draws + 1)


def wilcoxon_test(differences: Sequence[float]) -> float:
    """The probability by Wilcoxon's signed-rank test, which goes by the order of the differences and not their size.

    Raises:
        ImportError: scipy is not installed.
    """
    from scipy import stats  # noqa: PLC0415 - optional, and slow

    if not any(differences):
        return 1.0
    return min(1.0, float(stats.wilcoxon(list(differences)).pvalue))


def rank_direction(differences: Sequence[float]) -> int:
    """Where the sum of signed ranks, which is what Wilcoxon's test goes by, points to: 1 for up, -1 for down, or 0.

    It need not be where the mean points to: one large difference has one rank only.

    >>> rank_direction([1, 2, 3, -100]), rank_direction([1, -1]), rank_direction([])
    (1, 0, 0)
    """
    sizes = sorted(abs(each) for each in differences if each)
    # Twice the mean of the ranks of equal sizes, so that the sum is exact.
    ranks = {size: bisect.bisect_left(sizes, size) + bisect.bisect_right(sizes, size) + 1 for size in set(sizes)}
    total = sum(math.copysign(ranks[abs(each)], each) for each in differences if each)
    return (total > 0) - (total < 0)


def bootstrap_interval(differences: Sequence[float]) -> tuple[float, float]:
    """Where the mean of the differences lies, in 95 of 100 samples that are drawn from them.

    >>> bootstrap_interval([1.0] * 8)
    (1.0, 1.0)
    """
    # In order, so that it does not matter in which one they were given. Each draw is taken from both ends: measurements
    # that change places have the same numbers with the other sign, and so get the same interval with the other sign.
    up = sorted(differences)
    down = up[::-1]
    count = len(up)
    choose, places = random.Random(_SEED).choices, range(count)
    means: list[float] = []
    for _ in range(max(500, min(2_000, 500_000 // count))):
        drawn = choose(places, k=count)
        means += (math.fsum(map(end.__getitem__, drawn)) / count for end in (up, down))
    means.sort()
    outside = round(len(means) * 0.025)
    return means[outside], means[-1 - outside]
