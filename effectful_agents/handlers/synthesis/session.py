"""A session: code that runs piece by piece in one namespace."""

from __future__ import annotations

import io
from collections.abc import Mapping
from types import CodeType
from typing import Any

from effectful_agents.errors import MissingHandlerError
from effectful_agents.generated import source_of
from effectful_agents.operations import code as operations
from effectful_agents.runtime.capturing import captured

__all__ = ["ReplSession"]


class ReplSession:
    r"""Run code in one namespace, and give what it printed.

    What a piece of code binds, the next one sees. The code is run by `effectful_agents.operations.code.exec`, so under
    whichever executor is installed. Only what is printed in the context of the call is taken; other threads and tasks
    print where they always did.

    Args:
        env: The names that the namespace begins with. They are copied when the first code runs, or somebody looks.

    Attributes:
        stdout: All that was printed.
        stderr: All that was written to the error output.

    >>> from effectful_agents import handler
    >>> from effectful_agents.handlers.execution import BuiltinExecutor
    >>> session = ReplSession({"n": 20})
    >>> with handler(BuiltinExecutor()):
    ...     for text in ("m = n + 1", "print(2 * m)"):
    ...         session.exec_code(operations.compile(text, "<text>"))
    ''
    '42\n'
    """

    stdout: io.StringIO
    stderr: io.StringIO

    def __init__(self, env: Mapping[str, Any]) -> None:
        self.stdout = io.StringIO()
        self.stderr = io.StringIO()
        self._env = env
        self._seed: dict[str, Any] | None = None
        self._locals: dict[str, Any] = {}
        self._snippets: list[str] = []
        self._closed = False

    @property
    def locals(self) -> dict[str, Any]:
        """The namespace itself."""
        if self._seed is None:
            self._seed = dict(self._env.items())
            # The module's own, which annotations in a piece of code would be written into.
            self._seed.pop("__annotations__", None)
            self._locals = dict(self._seed)
        return self._locals

    @property
    def bindings(self) -> dict[str, Any]:
        """What code has bound here, without what was there before."""
        seed = self._seed
        if seed is None:
            return {}
        return {
            name: value
            for name, value in self._locals.items()
            if name != "__builtins__" and (name not in seed or seed[name] is not value)
        }

    @property
    def prior_snippets(self) -> list[str]:
        """The sources of the pieces that ran without an error, in their order."""
        return list(self._snippets)

    def exec_code(self, code: CodeType) -> str:
        """Run code, and return what this run printed: its standard output, then its error output.

        Args:
            code: The code object.

        Raises:
            Exception: Whatever the code raises. What it had bound by then stays; what it had printed is not returned.
            MissingHandlerError: The session is closed.
        """
        begun = self.stdout.tell(), self.stderr.tell()
        self.runcode(code)
        source = source_of(code)
        if source is not None:
            self._snippets.append(source)
        return self._since(self.stdout, begun[0]) + self._since(self.stderr, begun[1])

    def runcode(self, code: CodeType) -> None:
        """Run code in the namespace.

        Raises:
            Exception: Whatever the code raises.
            MissingHandlerError: The session is closed.
        """
        if self._closed:
            raise MissingHandlerError("exec_code", "The session has ended with the call that it was opened for.")
        try:
            with captured(self.stdout, self.stderr):
                operations.exec(code, self.locals)
        except SystemExit as error:
            raise RuntimeError("the code ended itself; it cannot end the program, only raise an error") from error

    def close(self) -> None:
        """End the session: nothing is run in it any more. What it made, and somebody kept, goes on working."""
        self._closed = True

    @staticmethod
    def _since(buffer: io.StringIO, begin: int) -> str:
        buffer.seek(begin)
        return buffer.read()  # leaves the place at the end
