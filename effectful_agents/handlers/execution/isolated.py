"""The other end of `isolation`: what runs in the process that is started for a piece of restricted code."""

from __future__ import annotations

import codecs
import contextlib
import importlib
import io
import marshal
import os
import sys
from types import FunctionType, ModuleType
from typing import Any

from effectful_agents.errors import CodeStopped
from effectful_agents.generated import remember_source
from effectful_agents.handlers.execution import crossing
from effectful_agents.handlers.execution.confinement import confine
from effectful_agents.handlers.execution.isolation import READY
from effectful_agents.handlers.execution.kinds import MODULES
from effectful_agents.handlers.execution.restricted import RestrictedPythonExecutor
from effectful_agents.operations import code
from effectful_agents.runtime import handler
from effectful_agents.tracebacks import describe_exception, summary

__all__ = ["answer", "main"]


def main(seconds: float | None, memory: int | None) -> None:
    """Give up what can be given up, read a request, carry it out, and write the answer."""
    _prepare()
    confine(seconds, memory)
    # Whoever waits for this knows that from here on the time of the code counts.
    os.write(1, READY)
    with os.fdopen(0, "rb", closefd=False) as asked:
        request = crossing.load(asked.read())
    given = crossing.dump(answer(request))
    while given:
        given = given[os.write(1, given) :]
    # Nothing is tidied up: what the code has left behind could run there.
    os._exit(0)


_CODECS = (
    *("ascii", "latin-1", "cp1252", "cp437", "iso8859-15", "utf-8-sig", "utf-16", "utf-16-le", "utf-16-be", "utf-32"),
    *("utf-32-le", "utf-32-be", "utf-7", "idna", "punycode", "unicode-escape", "raw-unicode-escape", "rot13", "hex"),
)


def _prepare() -> None:
    """Load what is otherwise loaded when it is first used: then no file can be opened any more."""
    for name in _CODECS:
        codecs.lookup(name)
    for name in ("_strptime", "_pydatetime", "locale", "zoneinfo", "stringprep"):
        importlib.import_module(name)
    sys.stderr = io.StringIO()


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
            given["error"] = [type(error).__name__, _text_of(error)]
            given["trace"] = describe_exception(error)
            if isinstance(error, CodeStopped):
                given["stopped"] = [type(error).__name__, error.limit, error.value]
            if isinstance(error, NameError) and error.name in request["left_out"]:
                given["error"] = ["NameError", f"`{error.name}` is no plain data, and is not there in another process."]
        _collect(given, before, env)
    given["printed"] = printed.getvalue()
    return given


def _text_of(error: Exception) -> str:
    try:
        return f"{str(error) if not isinstance(error, KeyError) else summary(error)[10:]}"
    except Exception:  # its own `__str__` fails
        return "<exception str() failed>"


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
