"""Exceptions as text for a model: the same in every process, and nothing in it that is not the user's."""

from __future__ import annotations

import re
import traceback
from pathlib import PurePath

__all__ = ["describe_exception", "summary"]

_PACKAGE = PurePath(__file__).parent
# Its frames differ from one version of Python to the next.
_STDLIB = PurePath(traceback.__file__).parent
_MOST_FRAMES = 20
_ADDRESS = re.compile(r"\b0x[0-9a-fA-F]{6,}\b")


def describe_exception(error: BaseException, *, include_traceback: bool = True) -> str:
    """An exception as text for the model, the same in every process.

    Args:
        error: The exception.
        include_traceback: Whether to list the frames of user code that it passed through. File names come without
            their folders, frames of this package and of effectful are left out, and addresses are blotted out.

    Returns:
        The lines of the text, the exception last.

    >>> describe_exception(ValueError("no such city"))
    'ValueError: no such city'
    """
    lines = []
    frames = [frame for frame in traceback.extract_tb(error.__traceback__) if _is_user_code(frame.filename)]
    if include_traceback and frames:
        lines.append("Traceback (most recent call last):")
        # A recursion without end has a thousand frames, and the first and last few say all.
        for frame in frames if len(frames) <= _MOST_FRAMES else frames[: _MOST_FRAMES // 2]:
            lines += _frame_lines(frame)
        if len(frames) > _MOST_FRAMES:
            lines.append(f"  … {len(frames) - _MOST_FRAMES // 2 * 2} more …")
            for frame in frames[-(_MOST_FRAMES // 2) :]:
                lines += _frame_lines(frame)
    lines.append(summary(error))
    text = _ADDRESS.sub("0x…", "\n".join(lines))
    return text.encode("utf-8", "replace").decode("utf-8")  # a lone surrogate has no form on the wire


def _frame_lines(frame: traceback.FrameSummary) -> list[str]:
    place = f'  File "{PurePath(frame.filename).name}", line {frame.lineno}, in {frame.name}'
    return [place, f"    {frame.line}"] if frame.line else [place]


def _is_user_code(filename: str) -> bool:
    path = PurePath(filename)
    return not (path.is_relative_to(_PACKAGE) or path.is_relative_to(_STDLIB) or "site-packages" in path.parts)


def summary(error: BaseException) -> str:
    """An exception on one line: its kind and its text.

    >>> summary(ValueError("no such city"))
    'ValueError: no such city'
    """
    try:
        text = str(error)
    except Exception as broken:  # a user's __str__ may raise; the failure must still be told
        text = f"(its text cannot be shown: {type(broken).__name__})"
    return f"{type(error).__name__}: {text}" if text else type(error).__name__
