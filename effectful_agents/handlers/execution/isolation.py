"""Restricted code in a process of its own, for memory and work that nothing inside a process can stop.

Each piece starts a process, which has no environment and can open nothing, and whose time and memory the operating
system limits (`confinement`). There the code is run by an executor of this family. Plain data goes in and comes back.
What is defined there stays there: the program gets a stand-in, and where that is called, or another piece uses it, a
new process runs the piece that defined it once more, without its output.
"""

from __future__ import annotations

import dataclasses
import linecache
import marshal
import sys
from collections.abc import Iterable
from types import CodeType
from typing import Any

from effectful_agents.errors import AgentsError, CodeStopped, OptionError
from effectful_agents.handlers.execution import crossing, limits, processes
from effectful_agents.handlers.execution.limits import Limits

__all__ = ["READY", "Answer", "BadAnswer", "IsolatedRun", "IsolatedValue", "require"]

READY = b"R"
_CHILD = (
    "import sys; sys.path[:] = {path!r}; from effectful_agents.handlers.execution.isolated import main; "
    "main({seconds!r}, {memory!r})"
)
_GRACE = 2.0
"""Seconds beyond those of the code, in which it is read, and what it left behind is written."""


class BadAnswer(CodeStopped):
    """The process that ran the code gave an answer that cannot be read: the code may have taken it over."""

    def __init__(self, why: str) -> None:
        AgentsError.__init__(self, f"the process that ran the code gave no answer that can be used: {why}")
        self.limit = "isolation"
        self.value = 0


_STOPS: dict[str, type[CodeStopped]] = {
    cls.__name__: cls
    for cls in (limits.OutOfTime, limits.OutOfMemory, limits.TooLarge, limits.TooDeep, limits.TooMuchOutput)
}


@dataclasses.dataclass(frozen=True)
class Answer:
    """What a process says. It may have been taken over by the code, so that each part is looked at."""

    printed: str
    error: tuple[str, str] | None
    stopped: tuple[str, str, float] | None
    trace: str
    deleted: list[str]
    bound: dict[str, Any]
    kept: dict[str, str]
    value: Any

    @classmethod
    def read(cls, data: bytes, held: Limits) -> Answer:
        """Read one.

        Raises:
            NotData: It is none.
        """
        given = crossing.load(data)
        if type(given) is not dict or given.keys() - {"value"} != _PARTS:
            raise crossing.NotData("it has not the parts of an answer.")
        printed, trace = _text(given["printed"], held.output), _text(given["trace"], _LONG)
        error, stopped = given["error"], given["stopped"]
        if error is not None:
            kind, text = _list(error, 2)
            error = (_text(kind, 200), _text(text, held.size))
        if stopped is not None:
            kind, limit, value = _list(stopped, 3)
            if kind not in _STOPS or limit not in _LIMITS or type(value) not in (int, float):
                raise crossing.NotData("it names a limit that there is not.")
            stopped = (kind, limit, value)
        deleted = [_name(name) for name in _list(given["deleted"])]
        bound, kept = crossing.load(_of(bytes, given["bound"])), _of(dict, given["kept"])
        bound = {_name(name): value for name, value in _of(dict, bound).items()}
        kept = {_name(name): _text(kind, 1000) for name, kind in kept.items()}
        value = crossing.load(_of(bytes, given["value"])) if "value" in given else None
        return cls(printed, error, stopped, trace, deleted, bound, kept, value)


_PARTS = {"bound", "deleted", "error", "kept", "printed", "stopped", "trace"}
_LIMITS = frozenset(["depth", "memory", "output", "seconds", "size"])
_LONG = 1_000_000


def _of[T](cls: type[T], value: Any) -> T:
    if type(value) is not cls:
        raise crossing.NotData(f"a part of it is no `{cls.__name__}`.")
    return value


def _text(value: Any, most: int) -> str:
    if len(_of(str, value)) > most:
        raise crossing.NotData("a text in it is too long.")
    return value


def _list(value: Any, count: int | None = None) -> list[Any]:
    if count is not None and len(_of(list, value)) != count:
        raise crossing.NotData("a part of it has not as many values as it should.")
    return _of(list, value)


def _name(value: Any) -> str:
    if not _of(str, value).isidentifier() or value.startswith("__"):
        raise crossing.NotData("it binds what is no name.")
    return value


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
        return IsolatedRun(self.limits).perform(request, {**self.env, self.__name__: self}).value

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
        for name in answer.deleted:
            env.pop(name, None)
        env |= answer.bound
        for name, kind in answer.kept.items():
            env[name] = IsolatedValue(name, kind, piece, before, self.limits)
        self._raise(answer)

    def eval(self, bytecode: CodeType, env: dict[str, Any]) -> Any:
        """Its value.

        Raises:
            NotData: The value is no plain data.
        """
        request = {"mode": "eval", "code": marshal.dumps(bytecode), "source": _source(bytecode)}
        return self.perform(request, env).value

    def perform(self, request: dict[str, Any], env: dict[str, Any], *, bind: bool = False) -> Answer:
        """Have a process do something among these names, and hear what came of it.

        Raises:
            CodeStopped: It reached a limit.
            Exception: What the code raised; with `bind` that is left to the caller, who binds what was bound by then.
        """
        pieces, data, left_out = _split(env)
        limited = (self.limits.seconds, self.limits.size, self.limits.output, self.limits.memory)
        answer = self._answer({**request, "pieces": pieces, "env": data, "limits": limited, "left_out": left_out})
        if answer.printed:
            print(answer.printed, end="")
        if not bind:
            self._raise(answer)
        return answer

    def _raise(self, answer: Answer) -> None:
        if answer.stopped is not None:
            kind, limit, value = answer.stopped
            raise _STOPS[kind](limit, value)
        if answer.error is not None:
            error = crossing.unpacked_error(*answer.error)
            if answer.trace:
                error.add_note(answer.trace)
            raise error

    def _answer(self, request: dict[str, Any]) -> Answer:
        seconds = None if self.limits.seconds is None else self.limits.seconds + _GRACE
        size = 4 * (self.limits.size + self.limits.output) + 1_000_000
        try:
            answer = processes.ask(
                self.command(),
                crossing.dump(request),
                ready=READY,
                seconds=seconds,
                size=size,
            )
        except processes.TooLong:
            raise self._out_of_time() from None
        except processes.TooMuch:
            raise limits.TooLarge("size", self.limits.size, "What the code leaves behind is larger.") from None
        except processes.Ended as ended:
            # Killed for its time (SIGXCPU, or SIGKILL at the hard limit), or for want of memory (any other signal).
            if ended.status in (-24, -9) and self.limits.seconds is not None:
                raise self._out_of_time() from None
            raise limits.OutOfMemory(
                "memory", self.limits.memory or 0, f"The process ended with status {ended.status}."
            ) from None
        try:
            return Answer.read(answer, self.limits)
        except crossing.NotData as error:
            raise BadAnswer(str(error)) from None

    def command(self) -> list[str]:
        """What is started."""
        child = _CHILD.format(path=sys.path, seconds=self.limits.seconds, memory=self.limits.memory)
        return [sys.executable, "-I", "-B", "-c", child]

    def _out_of_time(self) -> CodeStopped:
        return limits.OutOfTime("seconds", self.limits.seconds or _GRACE, "The process was ended.")


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
