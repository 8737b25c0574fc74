"""A ty that runs beside the program and answers within milliseconds.

`ty check` starts anew for each module and reads it from a file. The server, which editors talk to, keeps what it knows
of the modules that are imported, and takes the text of a module that is in no file, or is other than the file.
"""

from __future__ import annotations

import atexit
import contextlib
import json
import os
import subprocess
import sys
import tempfile
import threading
from pathlib import Path
from typing import Any, NamedTuple

from effectful_agents.errors import MissingDependencyError, TypeCheckerError
from effectful_agents.handlers.validation.installed import program_of
from effectful_agents.handlers.validation.report import CANARY, CANARY_MISSING, import_paths

__all__ = ["ERROR", "Answer", "diagnostics"]

ERROR = 1
"""The severity of an error."""
_SECONDS = 60.0
"""After this long without an answer the server is taken for stuck."""
_ROOT = Path(sys.prefix).anchor
_NAMELESS = "__generated__.py"


class Answer(NamedTuple):
    """What the server said of a module.

    Attributes:
        items: The diagnostics, as in the language server protocol.
        uri: What the module goes by in them.
        fresh: Whether the server had seen nothing before.
    """

    items: list[dict[str, Any]]
    uri: str
    fresh: bool


def diagnostics(source: str, path: str | None, *, fresh: bool = False) -> Answer:
    """What ty says of a module.

    Args:
        source: The module.
        path: The file that it stands for; there need be none.
        fresh: Whether to ask a server that has seen nothing yet, so that files which were changed are read again.

    Raises:
        TypeCheckerError: The server does not start or breaks off, also when it is tried again.
        MissingDependencyError: ty is not installed.
    """
    folders = import_paths()
    uri = Path(path or os.path.join(folders[0] if folders else sys.prefix, _NAMELESS)).as_uri()
    with _keeper.lock:
        for last in (False, True):
            server = _keeper.server(folders, fresh or last)
            is_fresh = not server.used
            try:
                return Answer(server.check(uri, source), uri, is_fresh)
            except (OSError, ValueError, EOFError) as error:
                said = server.stop()
                if last:
                    raise TypeCheckerError(f"ty broke off: {error}{said}") from error
            except BaseException:
                # Broken off between a question and its answer: the next would get the wrong one.
                server.stop()
                raise
    raise AssertionError("either returned or raised")


class _Keeper:
    """The server of this process; there is one for all handlers, since it depends on nothing but the interpreter."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self._server: _Server | None = None

    def server(self, folders: list[str], fresh: bool) -> _Server:
        """One that finds modules in these folders."""
        server = self._server
        if server is not None and (not server.is_running or server.folders != folders or (fresh and server.used)):
            server.stop()
            server = None
        if server is None:
            server = self._server = _Server(folders)
        return server

    def stop(self) -> None:
        server, self._server = self._server, None
        if server is not None:
            server.stop()

    def forget(self) -> None:
        """In a forked process: the server is the parent's."""
        server, self._server = self._server, None
        self.lock = threading.Lock()
        if server is not None:
            server.abandon()


class _Server:
    """One process of `ty server`."""

    def __init__(self, folders: list[str]) -> None:
        self.folders = folders
        self.used = False
        self._asked = 0
        self._said = ""
        executable = _executable()
        # Of no name, and gone with the process: it cannot fill up as a pipe would.
        self._errors = tempfile.TemporaryFile()  # noqa: SIM115 - closed in `stop`
        try:
            self._process = subprocess.Popen(
                [executable, "server"],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=self._errors,
                cwd=_ROOT,  # patterns of files count from there
            )
        except OSError as error:
            self._errors.close()
            raise TypeCheckerError(f"ty does not start: {error}") from error
        try:
            self._start()
        except (OSError, ValueError, EOFError) as error:
            raise TypeCheckerError(f"ty does not start: {error}{self.stop()}") from error
        except BaseException:
            self.stop()
            raise

    @property
    def is_running(self) -> bool:
        return self._process.poll() is None

    def _start(self) -> None:
        # Above every file, so that each is a part of the project. Settings of the user's would make the same code pass
        # in one folder and fail in another: an empty file takes their place.
        version = f"{sys.version_info.major}.{sys.version_info.minor}"
        environment = {"python": sys.prefix, "python-version": version, "root": self.folders}
        self._request(
            "initialize",
            {
                "processId": os.getpid(),
                "rootUri": Path(_ROOT).as_uri(),
                "workspaceFolders": [{"uri": Path(_ROOT).as_uri(), "name": "program"}],
                "capabilities": {
                    "general": {"positionEncodings": ["utf-32"]},
                    "textDocument": {
                        "diagnostic": {"relatedDocumentSupport": False},
                        "publishDiagnostics": {"relatedInformation": True},
                    },
                },
                "initializationOptions": {
                    "logLevel": "error",
                    "configurationFile": os.devnull,
                    # It would pass over what lies in `.venv`, or in any folder that git ignores.
                    "configuration": {
                        "environment": environment,
                        "src": {"exclude": ["!**/"], "respect-ignore-files": False},
                    },
                },
            },
        )
        self._send({"method": "initialized", "params": {}})

    def check(self, uri: str, source: str) -> list[dict[str, Any]]:
        """The diagnostics of a text."""
        self.used = True
        document = {"uri": uri, "languageId": "python", "version": 1, "text": source + CANARY}
        self._send({"method": "textDocument/didOpen", "params": {"textDocument": document}})
        result = self._request("textDocument/diagnostic", {"textDocument": {"uri": uri}})
        self._send({"method": "textDocument/didClose", "params": {"textDocument": {"uri": uri}}})
        if not any(one.get("severity") == ERROR for one in result["items"]):
            raise TypeCheckerError(CANARY_MISSING.format("ty"))
        return result["items"]

    def stop(self) -> str:
        """End the process.

        Returns:
            What it said last, for an error.
        """
        if self._errors.closed:
            return ""
        self._close(self._process.stdin, self._process.stdout)
        # It holds nothing that would be lost.
        self._process.kill()
        self._process.wait()
        self._errors.seek(0)
        written = self._errors.read().decode("utf-8", "replace").strip()
        self._errors.close()
        said = "\n".join(one for one in (self._said, written) if one)
        return f"\n{said[-2000:]}" if said else ""

    def abandon(self) -> None:
        """Let go of a process that belongs to another one."""
        self._close(self._process.stdin, self._process.stdout, self._errors)
        self._process.returncode = 0  # not ours to wait for

    @staticmethod
    def _close(*streams: Any) -> None:
        for stream in streams:
            with contextlib.suppress(OSError):  # what was not sent is of no use any more
                stream.close()

    def _request(self, method: str, params: Any) -> Any:
        self._asked += 1
        watch = threading.Timer(_SECONDS, self._process.kill)
        watch.daemon = True
        watch.start()
        try:
            self._send({"id": self._asked, "method": method, "params": params})
            while True:
                message = self._receive()
                if "method" in message:
                    self._take(message)
                elif message.get("id") == self._asked:
                    break
        finally:
            watch.cancel()
        if "error" in message:
            raise ValueError(str(message["error"].get("message", message["error"])))
        return message["result"]

    def _take(self, message: dict[str, Any]) -> None:
        if message["method"] in ("window/showMessage", "window/logMessage"):
            self._said = str(message["params"].get("message", ""))
        elif "id" in message:  # it asks for something that an editor would have
            self._send({"id": message["id"], "result": None})

    def _send(self, message: dict[str, Any]) -> None:
        body = json.dumps({"jsonrpc": "2.0", **message}).encode()
        stream: Any = self._process.stdin
        stream.write(b"Content-Length: %d\r\n\r\n%b" % (len(body), body))
        stream.flush()

    def _receive(self) -> dict[str, Any]:
        stream: Any = self._process.stdout
        length = 0
        while (line := stream.readline()) != b"\r\n":
            if not line:
                raise EOFError("it ended without an answer")
            name, _, value = line.partition(b":")
            if name.lower() == b"content-length":
                length = int(value)
        return json.loads(stream.read(length))


def _executable() -> str:
    found = program_of("ty")
    if found is None:
        raise MissingDependencyError(
            "`TyTypeChecker` needs ty: pip install ty. `harness(type_checker=None)` does without a checker."
        )
    return found


_keeper = _Keeper()
atexit.register(_keeper.stop)
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_keeper.forget)
