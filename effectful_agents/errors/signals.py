"""What is no failure, and no `except Exception` may eat."""

from __future__ import annotations

from typing import Any

__all__ = ["Cancelled", "Signal", "Suspended"]


class Signal(BaseException):
    """Something that ends a call and is not a failure.

    It derives from BaseException so that no `except Exception` in a tool or in user code can eat it. Should a bare
    `except` do so, it is raised again at the next operation.

    Attributes:
        ends: The part of the program (a `runtime.StopScope`) that it ends; None: every call that it passes through.
    """

    ends: Any = None


class Suspended(Signal):
    """The run waits for somebody's decision, and goes on when it is resumed after that.

    Attributes:
        question: What is asked, as plain data: an `operations.approvals.PendingQuestion`; None where nothing is known.
        token: With it the question is answered, once. Whoever has it, and is of its scope, may: it is for that person
            only, and not for logs.
    """

    def __init__(self, message: str = "", *, question: Any = None, token: str = "") -> None:
        super().__init__(message)
        self.question = question
        self.token = token


class Cancelled(Signal):
    """The call was ended on purpose, by the program that made it: with `CallControl.cancel`, say.

    A cancellation that comes from the event loop, or from whoever pressed Ctrl-C, keeps its own type.
    """
