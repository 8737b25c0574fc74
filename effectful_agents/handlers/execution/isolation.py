"""Restricted code in a process of its own, for memory and work that nothing inside a process can stop.

Each piece starts a process, which has no environment, no open files and limits of the operating system on its time,
its memory, its files and its own processes. There the code is run by an executor of this family. Plain data goes in and
comes back. What is defined there stays there: the program gets a stand-in, and where that is called, or another piece
uses it, a new process runs the piece that defined it once more, without its output.
"""

from __future__ import annotations

import linecache
import marshal
import subprocess
import sys
from collections.abc import Iterable
from types import CodeType
from typing import Any

from effectful_agents.errors import CodeStopped, OptionError
from effectful_agents.handlers.execution import crossing, limits
from effectful_agents.handlers.execution.limits import Limits

__all__ = ["IsolatedRun", "IsolatedValue", "require"]

_CHILD = "import sys; sys.path[:] = {path!r}; from effectful_agents.handlers.execution.isolated import main; main()"
_START = 30.0
"""Seconds that a process may take until it begins, beyond those of the code."""


def require() -> None:
    """Raise where the system cannot limit a process.

    Raises:
        OptionError: It is no Unix.
    """
    try:
        import resource  # noqa: F401, PLC0415 - there is none on Windows
    except ImportError as error:
        raise OptionError("`isolation='process'` needs the limits of a Unix system.") from error


class IsolatedValue:
    """Something that restricted code defined in a process that has ended: a function, a class, an object of one.

    Called, it is called in a new process.
    """

    def __init__(self, name: str, kind: str, piece: bytes, env: dict[str, Any], limits: Limits) -> None:
        self.__name__ = self.__qualname__ = name
        self.kind = kind
        self.piece = piece
        self.env = env
        self.limits = limits

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        request = {"mode": "call", "name": self.__name__, "args": args, "kwargs": kwargs}
        return IsolatedRun(self.limits).perform(request, {**self.env, self.__name__: self})["value"]

    def __repr__(self) -> str:
        return f"<{self.kind} {self.__name__}, in a process of its own>"


class IsolatedRun:
    """One piece of code, run in a process of its own.

    Args:
        limits: What it may use up.
    """

    def __init__(self, limits: Limits) -> None:
        self.limits = limits

    def exec(self, bytecode: CodeType, env: dict[str, Any]) -> None:
        """Run it, and bind what it binds."""
        piece = marshal.dumps(bytecode)
        before = dict(env)
        answer = self.perform({"mode": "exec", "code": piece, "source": _source(bytecode)}, env, bind=True)
        for name in answer["deleted"]:
            env.pop(name, None)
        env |= crossing.load(answer["bound"])
        for name, kind in answer["kept"].items():
            env[name] = IsolatedValue(name, kind, piece, before, self.limits)
        self._raise(answer)

    def eval(self, bytecode: CodeType, env: dict[str, Any]) -> Any:
        """Its value.

        Raises:
            NotData: The value is no plain data.
        """
        return self.perform({"mode": "eval", "code": marshal.dumps(bytecode), "source": _source(bytecode)}, env)[
            "value"
        ]

    def perform(self, request: dict[str, Any], env: dict[str, Any], *, bind: bool = False) -> dict[str, Any]:
        """Have a process do something among these names, and hear what came of it.

        Raises:
            CodeStopped: It reached a limit.
            Exception: What the code raised; with `bind` that is left to the caller, who binds what was bound by then.
        """
        pieces, data, left_out = _split(env)
        limited = (self.limits.seconds, self.limits.size, self.limits.output, self.limits.memory)
        answer = self._answer({**request, "pieces": pieces, "env": data, "limits": limited, "left_out": left_out})
        if answer["printed"]:
            print(answer["printed"], end="")
        if not bind:
            self._raise(answer)
        if "value" in answer:
            answer["value"] = crossing.load(answer["value"])
        return answer

    def _raise(self, answer: dict[str, Any]) -> None:
        if answer["error"] is None:
            return
        if answer["stopped"] is not None:
            kind, *arguments = answer["stopped"]
            raise getattr(limits, kind, CodeStopped)(*arguments)
        error = crossing.unpacked_error(*answer["error"])
        if answer["trace"]:
            error.add_note(answer["trace"])
        raise error

    def _answer(self, request: dict[str, Any]) -> dict[str, Any]:
        seconds = None if self.limits.seconds is None else self.limits.seconds + _START
        process = subprocess.Popen(
            [sys.executable, "-I", "-B", "-c", _CHILD.format(path=sys.path)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env={},
            cwd="/",
        )
        with process:
            try:
                answer, _ = process.communicate(crossing.dump(request), seconds)
            except subprocess.TimeoutExpired:
                assert self.limits.seconds is not None
                raise limits.OutOfTime("seconds", self.limits.seconds, "The process was ended.") from None
            finally:
                process.kill()
        if process.returncode or not answer:
            raise self._ended(process.returncode)
        return crossing.load(answer)

    def _ended(self, status: int) -> CodeStopped:
        # Killed for its time (SIGXCPU, or SIGKILL at the hard limit), or for want of memory (any other signal).
        if status in (-24, -9) and self.limits.seconds is not None:
            return limits.OutOfTime("seconds", self.limits.seconds, "The process was ended.")
        return limits.OutOfMemory("memory", self.limits.memory or 0, f"The process ended with status {status}.")


def _source(bytecode: CodeType) -> tuple[str, str]:
    """The source of a piece and its name, so that a traceback from there shows its lines."""
    return "".join(linecache.getlines(bytecode.co_filename)), bytecode.co_filename


def _split(env: dict[str, Any]) -> tuple[list[Any], bytes, list[str]]:
    """What of an environment goes along: pieces that are run first, data, and the names of what has to stay."""
    data: dict[str, Any] = {}
    left_out: list[str] = []
    stand_ins = [value for value in env.values() if isinstance(value, IsolatedValue)]
    for name, value in env.items():
        if isinstance(value, IsolatedValue) or name.startswith("__"):
            continue
        try:
            crossing.dump(value)
        except (TypeError, ValueError, RecursionError, AttributeError):
            left_out.append(name)
        else:
            data[name] = value
    return list(_pieces(stand_ins)), crossing.dump(data), left_out


def _pieces(stand_ins: Iterable[IsolatedValue]) -> Iterable[bytes]:
    """The pieces that defined something, each once, and before it those that it needs itself."""
    done: set[bytes] = set()
    for value in stand_ins:
        needed, _, _ = _split(value.env)
        for piece in (*needed, value.piece):
            if piece not in done:
                done.add(piece)
                yield piece
