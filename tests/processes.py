"""Processes for tests, made by copying the one of the test: a new interpreter would import everything again."""

from __future__ import annotations

import os
import traceback
import warnings
from collections.abc import Callable


def forked(function: Callable[[], object]) -> int:
    """Begin a process that calls a function and ends; its number. What the function opened before is not for it."""
    with warnings.catch_warnings():
        # Threads of the runner of the tests wait, and hold no lock.
        warnings.simplefilter("ignore", DeprecationWarning)
        child = os.fork()
    if not child:  # pragma: no cover - in the child
        try:
            function()
            os._exit(0)
        except BaseException:
            traceback.print_exc()
        finally:
            os._exit(1)
    return child


def exit_code(child: int) -> int:
    """Wait for the end of a process: 0, 1 where the function raised, or less than 0, the signal that killed it."""
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
