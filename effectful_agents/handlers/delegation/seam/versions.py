"""Versions of the seam, and which of them two sides speak."""

from __future__ import annotations

import re
from collections.abc import Sequence

from effectful_agents.errors import SeamVersionError
from effectful_agents.messages.text import printable_text

__all__ = ["SEAM_VERSION", "SUPPORT_WINDOW", "negotiate", "supported_versions"]

SEAM_VERSION = "0.1"
"""The version of the seam that this package speaks. The second number grows with what is added, the first with what an
older side would misunderstand."""
SUPPORT_WINDOW = 2
"""How many versions are spoken: the newest, and those right before it that have the same first number."""

_VERSION = re.compile(r"(0|[1-9][0-9]{0,5})\.(0|[1-9][0-9]{0,5})")
_SHOWN = 8


def supported_versions(current: str = SEAM_VERSION, window: int = SUPPORT_WINDOW) -> tuple[str, ...]:
    """The versions that a side speaks whose newest one is `current`, the newest first.

    A window never reaches into an earlier first number, since that is a break, and what came last before it is not to
    be told from the number. There was no 0.0.

    Args:
        current: Its newest version.
        window: How many; at least 1.

    Raises:
        SeamVersionError: `current` is no version, or `window` is less than 1.

    >>> supported_versions("0.3"), supported_versions("1.4", 3), supported_versions("1.0"), supported_versions("0.1")
    (('0.3', '0.2'), ('1.4', '1.3', '1.2'), ('1.0',), ('0.1',))
    """
    match = _VERSION.fullmatch(current)
    if match is None or current == "0.0":
        raise SeamVersionError(f"{current!r} is no version of the seam; one is written as in `0.1`.")
    if window < 1:
        raise SeamVersionError(f"a window of {window} versions holds none, not even the newest; it is at least 1.")
    first, second = map(int, match.groups())
    oldest = max(second - window + 1, 0 if first else 1)
    return tuple(f"{first}.{number}" for number in range(second, oldest - 1, -1))


def negotiate(peer: Sequence[str], *, current: str = SEAM_VERSION) -> str:
    """The newest version that both sides speak.

    Args:
        peer: What the other side says it speaks, in any order. What is no version is passed over.
        current: The newest version of this side.

    Raises:
        SeamVersionError: There is none.

    >>> negotiate(["0.2", "0.1"], current="0.3")
    '0.2'
    """
    mine = supported_versions(current)
    theirs = {version for version in peer if isinstance(version, str)}
    for version in mine:
        if version in theirs:
            return version
    spoken = ", ".join(sorted(one for one in theirs if _VERSION.fullmatch(one))[:_SHOWN])
    raise SeamVersionError(
        f"the two sides of the seam have no version in common: this one speaks {', '.join(mine)}, and the other "
        f"{printable_text(spoken) or 'none that can be read'}. Update the older side."
    )
