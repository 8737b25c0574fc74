"""The other end of `isolation`: what runs in the process that is started for a piece of restricted code."""

from __future__ import annotations

import contextlib
import io
import marshal
import sys
from types import FunctionType, ModuleType
from typing import Any

from effectful_agents.errors import CodeStopped
from effectful_agents.generated import remember_source
from effectful_agents.handlers.execution import crossing
from effectful_agents.handlers.execution.kinds import MODULES
from effectful_agents.handlers.execution.restricted import RestrictedPythonExecutor
from effectful_agents.operations import code
from effectful_agents.runtime import handler
from effectful_agents.tracebacks import describe_exception, summary

__all__ = ["answer", "main"]


def main() -> None:
    """Read a request, carry it out under limits of the operating system, and write the answer."""
    request = crossing.load(sys.stdin.buffer.read())
    seconds, _, _, memory = request["limits"]
    _limit(seconds, memory)
    out = sys.stdout.buffer
    out.write(crossing.dump(answer(request)))
    out.flush()


def _limit(seconds: float | None, memory: int | None) -> None:
    import resource  # noqa: PLC0415 - there is none on Windows

    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))
    resource.setrlimit(resource.RLIMIT_NOFILE, (16, 16))
    resource.setrlimit(resource.RLIMIT_NPROC, (0, 0))
    if memory is not None:
        most = _virtual() + memory
        resource.setrlimit(resource.RLIMIT_AS, (most, most))
    if seconds is not None:
        used = resource.getrusage(resource.RUSAGE_SELF)
        most = int(used.ru_utime + used.ru_stime + seconds) + 2
        resource.setrlimit(resource.RLIMIT_CPU, (most, most + 1))


def _virtual() -> int:
    try:
        with open("/proc/self/statm", "rb") as file:
            return int(file.read().split()[0]) * 4096
    except OSError:
        return 1 << 30


def answer(request: dict[str, Any]) -> dict[str, Any]:
    """Carry out a request."""
    seconds, size, output, _ = request["limits"]
    executor = RestrictedPythonExecutor(seconds=seconds, size=size, output=output, memory=None)
    env: dict[str, Any] = crossing.load(request["env"])
    printed = io.StringIO()
    given: dict[str, Any] = {
        "error": None,
        "stopped": None,
        "trace": "",
        "deleted": [],
        "bound": crossing.dump({}),
        "kept": {},
    }
    if "source" in request:
        remember_source(*request["source"])
    with handler(executor):
        with contextlib.redirect_stdout(io.StringIO()):
            for piece in request["pieces"]:
                with contextlib.suppress(Exception):  # it raised the first time, too
                    code.exec(marshal.loads(piece), env)
        # What was defined before does not overwrite what the program has bound since.
        env |= crossing.load(request["env"])
        before = dict(env)
        try:
            with contextlib.redirect_stdout(printed):
                value = _carried_out(request, env)
            if request["mode"] != "exec":
                given["value"] = crossing.dump(value)
        except Exception as error:
            given["error"] = (
                type(error).__name__,
                str(error) if not isinstance(error, KeyError) else summary(error)[10:],
            )
            given["trace"] = describe_exception(error)
            if isinstance(error, CodeStopped):
                given["stopped"] = (type(error).__name__, error.limit, error.value)
            if isinstance(error, NameError) and error.name in request["left_out"]:
                given["error"] = ("NameError", f"`{error.name}` is no plain data, and is not there in another process.")
        _collect(given, before, env)
    given["printed"] = printed.getvalue()
    return given


def _carried_out(request: dict[str, Any], env: dict[str, Any]) -> Any:
    if request["mode"] == "exec":
        return code.exec(marshal.loads(request["code"]), env)
    if request["mode"] == "eval":
        return code.eval(marshal.loads(request["code"]), env)
    call = code.compile("_function(*_args, **_kwargs)", "<call>", "eval")
    names = {"_function": env[request["name"]], "_args": request["args"], "_kwargs": request["kwargs"]}
    return code.eval(call, {**env, **names})


def _collect(given: dict[str, Any], before: dict[str, Any], env: dict[str, Any]) -> None:
    """What the code has bound: data as it is, and of the rest the kind."""
    bound: dict[str, Any] = {}
    given["deleted"] = [name for name in before if name not in env]
    for name, value in env.items():
        try:
            # An object that was there may have changed inside.
            crossing.dump(value)
            bound[name] = value
        except Exception:
            if before.get(name, given) is not value:
                given["kept"][name] = _kind(value)
    given["bound"] = crossing.dump(bound)


def _kind(value: Any) -> str:
    if isinstance(value, ModuleType):
        return "module" if value.__name__ in MODULES else "value"
    if isinstance(value, FunctionType):
        return "function"
    return "class" if isinstance(value, type) else f"value of `{type(value).__name__}`"
