"""How much harm a tool can do."""

import enum

__all__ = ["Risk"]


class Risk(enum.IntEnum):
    """What a tool can do to the world, in ascending order. A tool declares it; policies decide.

    >>> Risk.READ < Risk.DESTRUCTIVE
    True
    """

    READ = 0
    """It changes nothing."""
    SOFT_WRITE = 1
    """It changes something that is easily changed back."""
    HARD_WRITE = 2
    """It changes something that others notice, or that is hard to change back."""
    DESTRUCTIVE = 3
    """It can destroy what cannot be restored."""
